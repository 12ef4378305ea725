package cardwiretest

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"net/http"
	"slices"
)

var transferFields = []param{
	{name: "merchantOrderNo", required: true, check: notEmpty, reference: true},
	{name: "payoutCurrency", required: true, check: notEmpty},
	{name: "transferType", check: numeric},
	{name: "payoutMethod", check: numeric},
	{name: "senderBeneficiaryRelationship", check: numeric},
	{name: "transferAmount", required: true, check: amount},
	{name: "senderSourceOfFund", check: numeric},
	{name: "purposeOfRemittance", check: numeric},
	{name: "senderFirstName", check: notEmpty},
	{name: "senderLastName", check: notEmpty},
	{name: "senderGender", check: notEmpty},
	{name: "senderMobileNumber", check: notEmpty},
	{name: "senderIdType", check: numeric},
	{name: "senderIdNumber", check: notEmpty},
	{name: "senderDateOfBirth", check: date},
	{name: "senderNationality", check: country},
	{name: "senderIdIssueCountry", check: numeric},
	{name: "senderCountry", check: country},
	{name: "senderAddress", check: notEmpty},
	{name: "receiverNativeFirstName", check: notEmpty},
	{name: "receiverNativeLastName", check: notEmpty},
	{name: "receiverIdType", check: numeric},
	{name: "receiverIdNumber", check: notEmpty},
	{name: "receiverMobileNumber", check: notEmpty},
	{name: "receiverBankAccountNumber", check: notEmpty},
}

func createTransfer(s *Service, r *request) result {
	if problem := s.state.transferProblem(r.values); problem != "" {
		return *refusal(http.StatusUnprocessableEntity, "the field "+problem)
	}
	id := "AO" + s.state.token("transfer", s.state.executed, 16)
	return s.executed(r, Execution{
		ID: id, Action: "transfer", Amount: r.values["transferAmount"], Currency: r.values["payoutCurrency"],
	}, success(fmt.Appendf(nil, `{"merchant_order_no":%s,"api_order_no":"%s","status":"wait_process"}`,
		quoted(r.reference()), id)))
}

// transferProblem compares a transfer with List currencies.
func (w *state) transferProblem(values map[string]string) string {
	for _, code := range []struct{ field, of string }{
		{"transferType", "transfer_type_id"},
		{"payoutMethod", "payout_method_id"},
		{"payoutCurrency", "payout_currency"},
	} {
		if v, ok := values[code.field]; ok && find(w.currencies, code.of, v) == nil {
			return code.field + " is invalid: it is none of List currencies"
		}
	}
	number := func(v string) *big.Rat {
		r, _ := new(big.Rat).SetString(v) // all of them have been checked
		return r
	}
	amount := number(values["transferAmount"])
	if slices.ContainsFunc(w.currencies, func(c *node) bool {
		return c.str("payout_currency") == values["payoutCurrency"] &&
			amount.Cmp(number(c.str("min_quota"))) >= 0 && amount.Cmp(number(c.str("max_quota"))) <= 0
	}) {
		return ""
	}
	return "transferAmount is out of range: see min_quota and max_quota"
}

var uploadFields = []param{{name: "file", required: true}}

// uploadImage returns a key that depends on what was uploaded, so that a test can
// check that it was the right image.
func uploadImage(s *Service, r *request) result {
	n := int(binary.BigEndian.Uint32(r.file.sum[:])) + s.state.executed
	key := "att/" + s.state.token("attachment", n, 24)
	done := success(fmt.Appendf(nil, `{"attachment_key":"%s"}`, key))
	done.msg = "Uploaded"
	return s.executed(r, Execution{ID: key, Action: "upload", Size: int64(r.file.size)}, done)
}

func listStates(*Service, *request) result { return success(data().get("states").json()) }

func listCurrencies(s *Service, _ *request) result {
	return success(list(s.state.currencies...).json())
}
