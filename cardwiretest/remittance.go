package cardwiretest

import (
	"encoding/json"
	"math/big"
	"net/http"
)

// state is a remittance state.
type state struct{ code, name, country, countryStandardCode string }

// currency is a remittance currency. Quotas are amounts in the currency.
type currency struct {
	id                            int
	payoutCurrency                string
	country, countryCode          string
	feeRate, fixedFee             json.Number
	minQuota, maxQuota, yearQuota json.Number
}

var seededStates = []state{
	{"CA", "California", "US", "USA"},
	{"NY", "New York", "US", "USA"},
	{"TX", "Texas", "US", "USA"},
	{"11", "北京市", "CN", "CHN"},
	{"31", "上海市", "CN", "CHN"},
	{"BY", "Bayern", "DE", "DEU"},
	{"NW", "Nordrhein-Westfalen", "DE", "DEU"},
	{"00", "Metro Manila / NCR", "PH", "PHL"},
	{"07", "Cebu", "PH", "PHL"},
	{"MH", "Maharashtra", "IN", "IND"},
	{"SG", "Singapore", "SG", "SGP"},
}

var seededCurrencies = []currency{
	{1, "EUR", "DEU", "DE", "0.0035", "1.5", "10", "50000", "500000"},
	{2, "EUR", "FRA", "FR", "0.004", "1.5", "10", "45000.50", "500000"},
	{3, "GBP", "GBR", "GB", "0.0035", "1.2", "10", "40000", "400000"},
	{4, "PHP", "PHL", "PH", "0.008", "90", "500", "2500000", "25000000"},
	{5, "INR", "IND", "IN", "0.0075", "0", "1000", "1000000", "10000000"},
	{6, "CNY", "CHN", "CN", "0.006", "50", "100", "300000", "600000"},
	{7, "USD", "USA", "US", "0.0025", "25", "50", "100000", "1000000"},
}

// The one transfer type and the one payout method that the API documents.
const (
	transferTypeID    = "3"
	transferTypeValue = "C2C"
	payoutMethodID    = "1"
	payoutMethodValue = "Bank Transfer"
)

func listStates(s *Service, _ *request) result {
	return success(array(s.world.states, func(v state) []byte {
		var o object
		o.str("code", v.code)
		o.str("name", v.name)
		o.str("country", v.country)
		o.str("countryStandardCode", v.countryStandardCode)
		return o.end()
	}))
}

func listCurrencies(s *Service, _ *request) result {
	return success(array(s.world.currencies, func(v currency) []byte {
		var o object
		o.integer("id", v.id)
		o.str("payout_currency", v.payoutCurrency)
		o.number("transfer_type_id", transferTypeID)
		o.str("transfer_type_value", transferTypeValue)
		o.number("payout_method_id", payoutMethodID)
		o.str("payout_method_value", payoutMethodValue)
		o.str("country", v.country)
		o.str("country_code", v.countryCode)
		o.number("fee_rate", v.feeRate)
		o.number("fixed_fee", v.fixedFee)
		o.number("min_quota", v.minQuota)
		o.number("max_quota", v.maxQuota)
		o.number("year_transfer_amount_quota", v.yearQuota)
		return o.end()
	}))
}

var transferFields = []param{
	{name: "merchantOrderNo", required: true, check: notEmpty},
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
	e := Execution{
		Op: r.op, Reference: r.values["merchantOrderNo"], Action: "transfer",
		Amount: r.values["transferAmount"], Currency: r.values["payoutCurrency"],
	}
	if first, ok := s.firstResponse(e); ok {
		return first
	}
	if problem := s.world.transferProblem(r.values); problem != "" {
		return *refusal(http.StatusUnprocessableEntity, "the field "+problem)
	}
	e.ID = "AO" + s.world.token("transfer", s.world.executed, 16)
	done := s.once(r, e, order(e.Reference, e.ID), func(string) {})
	if r.twist == otherResponse {
		done.data = order("order-of-somebody-else", "AO"+s.world.token("other", s.world.executed, 16))
	}
	return done
}

func order(merchantOrderNo, apiOrderNo string) []byte {
	var o object
	o.str("merchant_order_no", merchantOrderNo)
	o.str("api_order_no", apiOrderNo)
	o.str("status", "wait_process")
	return o.end()
}

// transferProblem compares a transfer with List currencies.
func (w *world) transferProblem(values map[string]string) string {
	if v, ok := values["transferType"]; ok && v != transferTypeID {
		return "transferType is none of List currencies"
	}
	if v, ok := values["payoutMethod"]; ok && v != payoutMethodID {
		return "payoutMethod is none of List currencies"
	}
	problem := "payoutCurrency is none of List currencies"
	for _, c := range w.currencies {
		if c.payoutCurrency != values["payoutCurrency"] {
			continue
		}
		if c.admits(values["transferAmount"]) {
			return ""
		}
		problem = "transferAmount is outside min_quota and max_quota"
	}
	return problem
}

func (c *currency) admits(amount string) bool {
	number := func(v string) *big.Rat {
		r, _ := new(big.Rat).SetString(v) // all of them have been checked
		return r
	}
	a := number(amount)
	return a.Cmp(number(string(c.minQuota))) >= 0 && a.Cmp(number(string(c.maxQuota))) <= 0
}
