package cardwiretest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// secret stands for a value that no refusal may repeat.
const secret = "4288379977000003"

func TestRefusals(t *testing.T) {
	const (
		form      = "\nContent-Type: application/x-www-form-urlencoded\n\n"
		jsonBody  = "\nContent-Type: application/json\n\n"
		multipart = "\nContent-Type: multipart/form-data; boundary=xx\n\n"
		toList    = "GET /cards?"
		toSecrets = "POST /cards/private" + form
		toAdjust  = "POST /cards/adjustAction" + form
		toFreeze  = "POST /cards/suspend" + multipart
		toUpload  = "POST /cards/upload" + multipart
		end       = "--xx--\n"
	)
	card := part("cardId", "card-1")
	for name, tc := range map[string]struct {
		request string
		status  int
		msg     string
	}{
		"no key":              {"GET /cards\nAuthorization: none\n", 401, "Authorization must be a valid bearer key"},
		"wrong key":           {"GET /cards\nAuthorization: Bearer " + secret, 401, "Authorization must be a valid bearer key"},
		"other scheme":        {"GET /cards\nAuthorization: Basic " + cardwiretest.DefaultKey, 401, "Authorization must be a valid bearer key"},
		"two keys":            {"GET /cards\nAuthorization: Bearer " + cardwiretest.DefaultKey + "\nAuthorization: Bearer " + cardwiretest.DefaultKey, 401, "Authorization must be a valid bearer key"},
		"other path":          {"GET /cards/" + secret, 404, "the path does not exist"},
		"escaped path":        {"GET /cards%2finfo", 404, "the path does not exist"},
		"trailing slash":      {"GET /cards/", 404, "the path does not exist"},
		"other method":        {"DELETE /cards", 405, "the method is not allowed here"},
		"body of a read":      {"GET /bins\n\n{}", 422, "the body must be empty"},
		"unknown parameter":   {toList + "secret=" + secret, 422, "the parameter secret is unknown"},
		"unusual parameter":   {toList + secret + "=1", 422, "the parameter *** is unknown"},
		"parameter of a list": {"GET /remittance/states?page=1", 422, "the parameter page is unknown"},
		"parameter of a post": {"POST /cards/private?cardId=" + secret + form + "cardId=1", 422, "the parameter cardId is unknown"},
		"repeated parameter":  {toList + "page=1&page=1", 422, "the parameter page appears twice"},
		"unnamed parameter":   {toList + "created_from=2025-01-01", 422, "the parameter created_from is unknown"},
		"no name":             {toList + "=1", 422, "the query must consist of names and values"},
		"bad escape":          {toList + "page=%zz", 422, "the query must consist of names and values"},
		"bad limit":           {toList + "limit=0", 422, "the parameter limit must be a number, at least 1"},
		"bad page":            {toList + "page=-" + secret, 422, "the parameter page must be a number, at least 1"},
		"empty page":          {toList + "page=", 422, "the parameter page must be a number, at least 1"},
		"bad status":          {toList + "status=5", 422, "the parameter status must be one of -1, 0, 1, 2, 3, 4"},
		"bad BIN":             {toList + "card_bin=VISA", 422, "the parameter card_bin must be a numeric code"},
		"no id":               {"GET /cards/info", 422, "the parameter id is missing"},
		"empty id":            {"GET /cards/info?id=", 422, "the parameter id is empty"},

		"secrets as JSON":      {"POST /cards/private" + jsonBody + `{"cardId":"1"}`, 415, "Content-Type must be application/x-www-form-urlencoded"},
		"secrets without type": {"POST /cards/private\n\ncardId=1", 415, "Content-Type must be application/x-www-form-urlencoded"},
		"no cardId":            {toSecrets, 422, "the field cardId is missing"},
		"unknown field":        {toSecrets + "cardId=1&secret=" + secret, 422, "the field secret is unknown"},
		"other letter case":    {toSecrets + "cardID=1", 422, "the field cardID is unknown"},
		"repeated field":       {toSecrets + "cardId=1&cardId=1", 422, "the field cardId appears twice"},
		"not UTF-8":            {toSecrets + "cardId=%ff", 400, "the body must consist of names and values"},
		"large form":           {toSecrets + "cardId=" + strings.Repeat("1", 1<<20), 413, "the body is too large"},
		"key as a field":       {toSecrets + cardwiretest.DefaultKey + "=1", 422, "the field *** is unknown"},

		"no UUID":           {toAdjust + "client_transaction_id=" + secret + "&type=cancel", 422, "the field client_transaction_id must be a UUID"},
		"UUID in braces":    {toAdjust + "client_transaction_id=%7B" + failedID[:34] + "%7D&type=cancel", 422, "the field client_transaction_id must be a UUID"},
		"UUID of others":    {toAdjust + "client_transaction_id=" + failedID[:35] + "g&type=cancel", 422, "the field client_transaction_id must be a UUID"},
		"no type":           {toAdjust + "client_transaction_id=" + failedID, 422, "the field type is missing"},
		"other type":        {toAdjust + "client_transaction_id=" + failedID + "&type=" + secret, 422, "the field type is neither cancel nor the value that retries"},
		"freeze as a form":  {"POST /cards/suspend" + form + "cardId=1", 415, "Content-Type must be multipart/form-data"},
		"freeze nothing":    {toFreeze + part("clientTransactionId", freezeID) + end, 422, "the field cardId is missing"},
		"freeze by no UUID": {toFreeze + card + part("clientTransactionId", secret) + end, 422, "the field clientTransactionId must be a UUID"},
		"freeze twice":      {toFreeze + card + card + end, 422, "the field cardId appears twice"},
		"freeze a file":     {toFreeze + strings.Replace(image, `"file"`, `"cardId"`, 1), 422, "the field cardId must not be a file"},
		"freeze cut off":    {toFreeze + "--xx\nContent-Dis", 400, "the body is not multipart/form-data"},
		"freeze too long":   {toFreeze + part("cardId", strings.Repeat("1", 65<<10)) + end, 422, "the field cardId must be a string of at most 64 KiB"},
		"no boundary":       {"POST /cards/suspend\nContent-Type: multipart/form-data\n\n--xx", 400, "the body is not multipart/form-data"},
		"upload nothing":    {toUpload + end, 422, "the field file is missing"},
		"upload a text":     {toUpload + part("file", "text") + end, 422, "the field file must be a file"},
		"upload more":       {toUpload + part("idType", secret) + image, 422, "the field idType is unknown"},
		"upload no bytes":   {toUpload + strings.Replace(image, "\x89PNG1", "", 1), 422, "the field file is empty"},
		"part of no name":   {toUpload + strings.Replace(image, `; name="file"`, "", 1), 422, "the field *** is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, nil, func(t *testing.T, s *cardwiretest.Service, ask talk) {
				got := ask(t, tc.request)
				expect(t, got, tc.status, `{"code":`+itoa(tc.status)+`,"msg":"`+tc.msg+`","data":null}`)
				if strings.Contains(got.body, secret) || len(s.Ledger()) > 0 {
					t.Errorf("got %s, ledger %v", got.body, s.Ledger())
				}
			})
		})
	}
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

func TestTransferRefusals(t *testing.T) {
	s := cardwiretest.New()
	ask := inProcess(s)
	for name, tc := range map[string]struct {
		old, new string
		status   int
		msg      string
	}{
		"content type":     {"application/json", "text/plain", 415, "Content-Type must be application/json"},
		"not JSON":         {`{"mer`, `{mer`, 400, "the body is not a JSON object"},
		"an array":         {`{"mer`, `[{"mer`, 400, "the body is not a JSON object"},
		"two values":       {`3000"}`, `3000"}{}`, 400, "the body is not a JSON object"},
		"cut off":          {`3000"}`, `3000"`, 400, "the body is not a JSON object"},
		"cut off earlier":  {`3000"}`, `300`, 400, "the body is not a JSON object"},
		"cut off in names": {`3000"}`, `3000","x`, 400, "the body is not a JSON object"},
		"not UTF-8":        {"Ada", "\xff", 400, "the body is not a JSON object"},
		"unknown":          {`"senderGender"`, `"sendergender"`, 422, "the field sendergender is unknown"},
		"repeated":         {`"senderGender"`, `"senderLastName"`, 422, "the field senderLastName appears twice"},
		"number":           {`"100.25"`, `100.25`, 422, "the field transferAmount must be a string"},
		"null":             {`"Ada"`, `null`, 422, "the field senderFirstName must be a string"},
		"empty":            {`"Ada"`, `""`, 422, "the field senderFirstName is empty"},
		"no order":         {`"merchantOrderNo":"order-1",`, ``, 422, "the field merchantOrderNo is missing"},
		"no amount":        {`"transferAmount":"100.25",`, ``, 422, "the field transferAmount is missing"},
		"one fraction":     {"100.25", "100.2", 422, "the field transferAmount must be a decimal with two decimal places"},
		"three fractions":  {"100.25", "100.250", 422, "the field transferAmount must be a decimal with two decimal places"},
		"no fraction":      {"100.25", "100", 422, "the field transferAmount must be a decimal with two decimal places"},
		"exponent":         {"100.25", "1e2", 422, "the field transferAmount must be a decimal with two decimal places"},
		"leading zero":     {"100.25", "0100.25", 422, "the field transferAmount must be a decimal with two decimal places"},
		"negative":         {"100.25", "-100.25", 422, "the field transferAmount must be a decimal with two decimal places"},
		"zero":             {"100.25", "0.00", 422, "the field transferAmount must be greater than zero"},
		"too little":       {"100.25", "9.99", 422, "the field transferAmount is outside min_quota and max_quota"},
		"too much":         {"100.25", "50000.01", 422, "the field transferAmount is outside min_quota and max_quota"},
		"other currency":   {`"EUR"`, `"XXX"`, 422, "the field payoutCurrency is none of List currencies"},
		"other type":       {`"transferType":"3"`, `"transferType":"4"`, 422, "the field transferType is none of List currencies"},
		"other method":     {`"payoutMethod":"1"`, `"payoutMethod":"2"`, 422, "the field payoutMethod is none of List currencies"},
		"numeric code":     {`"senderIdType":"1"`, `"senderIdType":"passport"`, 422, "the field senderIdType must be a numeric code"},
		"date":             {"1990-12-10", "1990-02-30", 422, "the field senderDateOfBirth must be a date like 2006-01-02"},
		"date order":       {"1990-12-10", "10-12-1990", 422, "the field senderDateOfBirth must be a date like 2006-01-02"},
		"country":          {`"senderCountry":"GB"`, `"senderCountry":"GBR"`, 422, "the field senderCountry must be a country code of two letters"},
		"nationality":      {`"senderNationality":"GB"`, `"senderNationality":"4 "`, 422, "the field senderNationality must be a country code of two letters"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(transfer, tc.old) {
				t.Fatal("the request does not hold", tc.old)
			}
			got := ask(t, strings.Replace(transfer, tc.old, tc.new, 1))
			expect(t, got, tc.status, `{"code":`+itoa(tc.status)+`,"msg":"`+tc.msg+`","data":null}`)
		})
	}
	if len(s.Ledger()) != 0 {
		t.Errorf("ledger: %v", s.Ledger())
	}
	for _, amount := range []string{"10.00", "50000.00", "45000.51"} {
		if got := ask(t, strings.Replace(transfer, "100.25", amount, 1)); got.status != 200 {
			t.Errorf("%s: got %s", amount, got.body)
		}
	}
}

func TestAllow(t *testing.T) {
	if got := inProcess(cardwiretest.New())(t, "GET /cards/suspend"); got.header.Get("Allow") != "POST" {
		t.Errorf("got %v", got.header)
	}
}

func TestUnnamed(t *testing.T) {
	s := cardwiretest.New(cardwiretest.WithProfile(cardwire.Profile{}))
	s.AddFailedOperation(failedID, "close")
	ask := inProcess(s)
	expect(t, ask(t, "GET /cards/info?id=1"), 422, `{"code":422,"msg":"the parameter id is unknown","data":null}`)
	expect(t, ask(t, "GET /cards/info"), 422, `{"code":422,"msg":"the parameter *** is missing","data":null}`)
	expect(t, ask(t, adjusting(failedID, "retry")), 422,
		`{"code":422,"msg":"the field type is neither cancel nor the value that retries","data":null}`)
	if got := ask(t, "GET /cards"); got.status != 200 {
		t.Errorf("got %s", got.body)
	}
}

func TestRequests(t *testing.T) {
	s := cardwiretest.New()
	ask := inProcess(s)
	ask(t, "GET /cards?limit=5&"+secret+"=1")
	ask(t, "GET /cards/"+secret+"\nAuthorization: none\n")
	ask(t, transfer)
	ask(t, freezing(secret, freezeID))
	ask(t, "POST /cards/private\nContent-Type: text/"+secret+"\n\n"+secret)
	ask(t, "POST /cards/private\nContent-Type: text/plain\n\n"+secret)
	ask(t, "STEAL /cards")
	got := s.Requests()
	want := []cardwiretest.RequestRecord{
		{Method: "GET", Path: "/api/v1/cards", Query: "limit=***&***=***", Authorized: true},
		{Method: "GET", Path: "/api/v1/***"},
		{Method: "POST", Path: "/api/v1/remittance/transfer", ContentType: "application/json", Authorized: true, Fields: strings.Fields(
			`merchantOrderNo payoutCurrency transferType payoutMethod senderBeneficiaryRelationship transferAmount senderSourceOfFund
			purposeOfRemittance senderFirstName senderLastName senderGender senderMobileNumber senderIdType senderIdNumber
			senderDateOfBirth senderNationality senderIdIssueCountry senderCountry senderAddress receiverNativeFirstName
			receiverNativeLastName receiverIdType receiverIdNumber receiverMobileNumber receiverBankAccountNumber`)},
		{Method: "POST", Path: "/api/v1/cards/suspend", ContentType: "multipart/form-data", Fields: []string{"cardId", "clientTransactionId"}, Authorized: true},
		{Method: "POST", Path: "/api/v1/cards/private", ContentType: "***", Authorized: true},
		{Method: "POST", Path: "/api/v1/cards/private", ContentType: "text/plain", Authorized: true},
		{Method: "***", Path: "/api/v1/cards", Authorized: true},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d records", len(got))
	}
	for i := range want {
		if g, w := fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i]); g != w {
			t.Errorf("got  %s\nwant %s", g, w)
		}
	}
}
