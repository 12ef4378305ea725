package cardwiretest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// secret is a value that no refusal may repeat.
const secret = canary

func TestRefusals(t *testing.T) {
	const (
		form      = "\nContent-Type: application/x-www-form-urlencoded\n\n"
		multipart = "\nContent-Type: multipart/form-data; boundary=xx\n\n"
		toList    = "GET /cards?"
		toSecrets = "POST /cards/private" + form
		toAdjust  = "POST /cards/adjustAction" + form
		toFreeze  = "POST /cards/suspend" + multipart
		toUpload  = "POST /cards/upload" + multipart
		end       = "--xx--\n"
	)
	const (
		wrongKey     = "Authorization must be a valid bearer key"
		noPath       = "the path does not exist"
		notANumber   = " must be a number, at least 1 and at most 999999999"
		notPairs     = " must be names and values"
		notMultipart = "the body must be multipart/form-data"
		notForm      = "Content-Type must be application/x-www-form-urlencoded"
		freeze       = "the field clientTransactionId "
		operation    = "the field client_transaction_id "
		notAnAction  = "the field type must be cancel or the value that retries"
	)
	card := part("cardId", "card-1")
	refusals := map[int]map[string]string{
		400: {
			toSecrets + "cardId=%ff":                                         "the body" + notPairs,
			toFreeze + "--xx\nContent-Dis":                                   notMultipart,
			"POST /cards/suspend\nContent-Type: multipart/form-data\n\n--xx": notMultipart,
		},
		401: {
			"GET /cards\nAuthorization: none\n":                                                  wrongKey,
			"GET /cards\nAuthorization: Bearer " + secret:                                        wrongKey,
			"GET /cards\nAuthorization: Basic " + cardwiretest.DefaultKey:                        wrongKey,
			"GET /cards" + strings.Repeat("\nAuthorization: Bearer "+cardwiretest.DefaultKey, 2): wrongKey,
		},
		404: {"GET /cards/" + secret: noPath, "GET /cards%2finfo": noPath, "GET /cards/": noPath},
		405: {"DELETE /cards": "the method is not allowed here"},
		413: {toSecrets + "cardId=" + strings.Repeat("1", 1<<20): "the body is too large"},
		415: {
			"POST /cards/private\nContent-Type: application/json\n\n{}": notForm,
			"POST /cards/private\n\ncardId=1":                           notForm,
			"POST /cards/suspend" + form + "cardId=1":                   "Content-Type must be multipart/form-data",
		},
		422: {
			"GET /bins\n\n{}":                  "the body must be empty",
			toList + "secret=" + secret:        "the parameter secret is not supported",
			toList + secret + "=1":             "the parameter *** is not supported",
			toList + "a%20b=1":                 "the parameter *** is not supported",
			toList + "page=1&page=1":           "the parameter page is invalid: it appears twice",
			toList + "created_from=2025-01-01": "the parameter created_from is not supported",
			toList + "=1":                      "the query" + notPairs,
			toList + "page=%zz":                "the query" + notPairs,
			toList + "limit=0":                 "the parameter limit" + notANumber,
			toList + "page=-" + secret:         "the parameter page" + notANumber,
			toList + "page=":                   "the parameter page" + notANumber,
			toList + "status=5":                "the parameter status must be one of -1, 0, 1, 2, 3, 4",
			toList + "card_bin=VISA":           "the parameter card_bin must be a numeric code",
			"GET /cards/info":                  "the parameter id is missing",
			"GET /cards/info?id=":              "the parameter id is empty",
			"GET /remittance/states?page=1":    "the parameter page is not supported",
			"POST /cards/private?cardId=" + secret + form + "cardId=1": "the parameter cardId is not supported",

			toSecrets:                                  "the field cardId is missing",
			toSecrets + "cardId=1&secret=" + secret:    "the field secret is not supported",
			toSecrets + "cardID=1":                     "the field cardID is not supported",
			toSecrets + "cardId=1&cardId=1":            "the field cardId is invalid: it appears twice",
			toSecrets + cardwiretest.DefaultKey + "=1": "the field *** is not supported",

			toAdjust + "type=cancel":                                                   operation + "is missing",
			toAdjust + "client_transaction_id=" + failedID:                             "the field type is missing",
			toAdjust + "client_transaction_id=" + secret + "&type=cancel":              operation + "must be a UUID",
			toAdjust + "client_transaction_id=%7B" + failedID[:34] + "%7D&type=cancel": operation + "must be a UUID",
			toAdjust + "client_transaction_id=" + failedID[:35] + "g&type=cancel":      operation + "must be a UUID",
			adjusting(failedID, secret):                                                notAnAction,

			toFreeze + part("clientTransactionId", freezeID) + end:      "the field cardId is missing",
			toFreeze + card + part("clientTransactionId", secret) + end: freeze + "must be a UUID",
			toFreeze + card + card + end: "the field cardId is invalid: " +
				"it appears twice",
			toFreeze + strings.Replace(image, `"file"`, `"cardId"`, 1): "the field cardId must not be a file",
			toFreeze + part("cardId", "\xff") + end:                    "the field cardId must be a string",

			toUpload + end:                                            "the field file is missing",
			toUpload + part("file", "text") + end:                     "the field file must be a file",
			toUpload + part("idType", secret) + image:                 "the field idType is not supported",
			toUpload + strings.Replace(image, "\x89PNG1", "", 1):      "the field file is empty",
			toUpload + strings.Replace(image, `; name="file"`, "", 1): "the field *** is not supported",
		},
	}
	bothWays(t, func(t *testing.T, w way) {
		for status, cases := range refusals {
			for request, msg := range cases {
				got := w.ask(t, request)
				refused(t, got, status, msg)
				assert.NotContains(t, got.body, secret)
			}
		}
		assert.Empty(t, w.Ledger())
		assert.Equal(t, "POST", w.ask(t, "GET /cards/suspend").header.Get("Allow"))
	})
}

func TestTransferRefusals(t *testing.T) {
	w := inProcess()
	const (
		notAnObject  = "the body must be an object"
		notTwoPlaces = "the field transferAmount must be a decimal with two decimal places"
		outside      = "the field transferAmount is out of range: see min_quota and max_quota"
		notADate     = "must be a date like 2006-01-02"
		noCountry    = "must be a country code of two letters"
	)
	for status, cases := range map[int][]struct{ old, new, msg string }{
		415: {{"application/json", "text/plain", "Content-Type must be application/json"}},
		400: {
			{`{"mer`, `{mer`, notAnObject},
			{`{"mer`, `[{"mer`, notAnObject},
			{`3000"}`, `3000"}{}`, notAnObject},
			{`3000"}`, `3000"`, notAnObject},
			{`3000"}`, `300`, notAnObject},
			{`3000"}`, `3000","x`, notAnObject},
			{"Ada", "\xff", notAnObject},
		},
		422: {
			{`"senderGender"`, `"sendergender"`, "the field sendergender is not supported"},
			{`"senderGender"`, `"senderLastName"`, "the field senderLastName is invalid: it appears twice"},
			{`"100.25"`, `100.25`, "the field transferAmount must be a string"},
			{`"Ada"`, `null`, "the field senderFirstName must be a string"},
			{`"Ada"`, `""`, "the field senderFirstName is empty"},
			{`"merchantOrderNo":"order-1",`, ``, "the field merchantOrderNo is missing"},
			{`"payoutCurrency":"EUR",`, ``, "the field payoutCurrency is missing"},
			{`"transferAmount":"100.25",`, ``, "the field transferAmount is missing"},
			{"100.25", "100.2", notTwoPlaces},
			{"100.25", "100.250", notTwoPlaces},
			{"100.25", "100", notTwoPlaces},
			{"100.25", "1e2", notTwoPlaces},
			{"100.25", "0100.25", notTwoPlaces},
			{"100.25", "-100.25", notTwoPlaces},
			{"100.25", "0.00", "the field transferAmount must be greater than zero"},
			{"100.25", "9.99", outside},
			{"100.25", "50000.01", outside},
			{`"EUR"`, `"XXX"`, "the field payoutCurrency is invalid: it is none of List currencies"},
			{`"transferType":"3"`, `"transferType":"4"`,
				"the field transferType is invalid: it is none of List currencies"},
			{`"payoutMethod":"1"`, `"payoutMethod":"2"`,
				"the field payoutMethod is invalid: it is none of List currencies"},
			{`"senderIdType":"1"`, `"senderIdType":"passport"`, "the field senderIdType must be a numeric code"},
			{"1990-12-10", "1990-02-30", "the field senderDateOfBirth " + notADate},
			{"1990-12-10", "10-12-1990", "the field senderDateOfBirth " + notADate},
			{`"senderCountry":"GB"`, `"senderCountry":"GBR"`, "the field senderCountry " + noCountry},
			{`"senderNationality":"GB"`, `"senderNationality":"4 "`, "the field senderNationality " + noCountry},
		},
	} {
		for _, tc := range cases {
			require.Contains(t, transfer, tc.old)
			refused(t, w.ask(t, strings.Replace(transfer, tc.old, tc.new, 1)), status, tc.msg)
		}
	}
	assert.Empty(t, w.Ledger())
	for _, amount := range []string{"10.00", "50000.00", "45000.51"} {
		assert.Equal(t, 200, w.ask(t, strings.Replace(transfer, "100.25", amount, 1)).status, amount)
	}
}

func TestUnnamed(t *testing.T) {
	w := inProcess(cardwiretest.WithProfile(cardwire.Profile{}))
	w.AddFailedOperation(failedID, "close")
	refused(t, w.ask(t, "GET /cards/info?id=1"), 422, "the parameter id is not supported")
	refused(t, w.ask(t, "GET /cards/info"), 422, "the parameter *** is missing")
	got := w.ask(t, adjusting(failedID, "retry"))
	refused(t, got, 422, "the field type must be cancel or the value that retries")
	assert.Equal(t, 200, w.ask(t, "GET /cards").status)
}

func TestRequests(t *testing.T) {
	w := inProcess()
	w.ask(t, "GET /cards?limit=5&"+secret+"=1")
	w.ask(t, "GET /cards/"+secret+"\nAuthorization: none\n")
	w.ask(t, transfer)
	w.ask(t, freezing(secret, freezeID))
	w.ask(t, "POST /cards/private\nContent-Type: text/"+secret+"\n\n"+secret)
	w.ask(t, "POST /cards/private\nContent-Type: text/plain\n\n"+secret)
	w.ask(t, "STEAL /cards")
	w.Requests()[0].Path = "of a copy"
	assert.Equal(t, []cardwiretest.ReceivedRequest{
		{Method: "GET", Path: "/api/v1/cards", Query: "limit=***&***=***", Authorized: true},
		{Method: "GET", Path: "/api/v1/***"},
		{
			Method: "POST", Path: "/api/v1/remittance/transfer", ContentType: "application/json", Authorized: true,
			Fields: strings.Fields(`merchantOrderNo payoutCurrency transferType payoutMethod
				senderBeneficiaryRelationship transferAmount senderSourceOfFund purposeOfRemittance
				senderFirstName senderLastName senderGender senderMobileNumber senderIdType senderIdNumber
				senderDateOfBirth senderNationality senderIdIssueCountry senderCountry senderAddress
				receiverNativeFirstName receiverNativeLastName receiverIdType receiverIdNumber
				receiverMobileNumber receiverBankAccountNumber`),
		},
		{
			Method: "POST", Path: "/api/v1/cards/suspend", ContentType: "multipart/form-data",
			Fields: []string{"cardId", "clientTransactionId"}, Authorized: true,
		},
		{Method: "POST", Path: "/api/v1/cards/private", ContentType: "***", Authorized: true},
		{Method: "POST", Path: "/api/v1/cards/private", ContentType: "text/plain", Authorized: true},
		{Method: "***", Path: "/api/v1/cards", Authorized: true},
	}, w.Requests())
}
