package cardwiretest_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
	numbers "github.com/cardwire/cardwire-go/internal/canary"
)

// transcript returns the responses to requests for everything.
func transcript(t *testing.T, opts ...cardwiretest.Option) string {
	t.Helper()
	w := inProcess(opts...)
	id := idsOf(t, w.ask(t, "GET /cards"))[0]
	var b strings.Builder
	for _, request := range []string{
		"GET /cards?limit=100", "GET /cards?page=2", "GET /cards/info?id=" + id, freezing(id, freezeID),
		"POST /cards/private\nContent-Type: application/x-www-form-urlencoded\n\ncardId=" + id,
		"GET /bins", "GET /bins/maintenance", "GET /account/capacity",
		"GET /remittance/states", "GET /remittance/currency",
		transfer, "POST /cards/upload\nContent-Type: multipart/form-data; boundary=xx\n\n" + image,
	} {
		got := w.ask(t, request)
		require.Equal(t, 200, got.status)
		b.WriteString(got.body + "\n")
	}
	return b.String()
}

func TestSeed(t *testing.T) {
	first := transcript(t)
	assert.Equal(t, first, transcript(t, cardwiretest.WithSeed(1)))
	assert.NotEqual(t, first, transcript(t, cardwiretest.WithSeed(8)))
}

func TestSeededCards(t *testing.T) {
	var page struct {
		Data struct {
			Data []struct {
				Label              *string
				HolderAddress      json.RawMessage `json:"holder_address"`
				HolderPhoneCode    string          `json:"holder_phone_code"`
				CardNo             string          `json:"card_no"`
				CardBIN            string          `json:"card_bin"`
				CreateTime         string          `json:"create_time"`
				UpdateTime         string          `json:"update_time"`
				ExpireDate         string          `json:"expire_date"`
				Available          string
				Fee, CVV, Nickname string
				Status             int
			}
		}
	}
	body := inProcess(cardwiretest.WithCards(60)).ask(t, "GET /cards?limit=100").body
	require.NoError(t, json.Unmarshal([]byte(body), &page))
	require.Len(t, page.Data.Data, 60)
	kinds, statuses, different, balances := map[string]bool{}, map[int]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range page.Data.Data {
		statuses[c.Status], different[c.CardNo], balances[c.Available] = true, true, true
		kinds["address "+string(c.HolderAddress[:1])] = true
		kinds["phone code "+c.HolderPhoneCode[:min(1, len(c.HolderPhoneCode))]] = true
		kinds[map[bool]string{true: "no label", false: "label"}[c.Label == nil]] = true
		kinds["negative balance"] = kinds["negative balance"] || strings.HasPrefix(c.Available, "-")
		assert.True(t, strings.HasPrefix(c.CardNo, c.CardBIN) && len(c.CardNo) == 16, c.CardNo)
		assert.True(t, numbers.IsNumber(c.CardNo), "it might be real: %s", c.CardNo)
		assert.Regexp(t, `^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d){2}$`, c.CreateTime+c.UpdateTime)
		assert.Regexp(t, `^(0[1-9]|1[0-2])/20\d\d 9\d7 card \d+$`, c.ExpireDate+" "+c.CVV+" "+c.Nickname)
		assert.Regexp(t, `^-?\d+\.\d{3} \d+\.\d\d$`, c.Available+" "+c.Fee)
	}
	assert.Equal(t, map[string]bool{
		"label": true, "no label": true, "address {": true, "address [": true, "negative balance": true,
		"phone code +": true, "phone code 4": true, "phone code 3": true, "phone code ": true,
	}, kinds)
	assert.Len(t, statuses, 6)
	assert.Len(t, different, 60)
	assert.Len(t, balances, 56, "five of them owe the same")
}

// A merchant's test gives the fields that it is about, and gets the rest.
func TestSetCard(t *testing.T) {
	w := inProcess(cardwiretest.WithCards(-1))
	w.SetCard(`{"id":"card-1","available":"-12.500","create_time":"2025-02-01 00:00:00","holder_username":"<R&D>"}`)
	page := w.ask(t, "GET /cards").body
	for _, field := range []string{
		`"id":"card-1"`, `"available":"-12.500"`, `"holder_username":"<R&D>"`, `"currency":"USD"`,
	} {
		assert.Contains(t, page, field)
	}
	names := regexp.MustCompile(`"\w+":`)
	assert.Equal(t, names.FindAllString(listedEmpty, -1), names.FindAllString(page[strings.Index(page, `{"id"`):], -1))

	// What is given changes, and nothing else.
	w.SetCard(`{"id":"card-1","status":4,"available":0.5,"label":{"odd":[1,true,null]}}`)
	assert.Equal(t, strings.NewReplacer(`"status":0`, `"status":4`, `"-12.500"`, `0.5`,
		`"label":null`, `"label":{"odd":[1,true,null]}`).Replace(page), w.ask(t, "GET /cards").body)

	// BINs are found by id and by digits.
	w.SetBIN(`{"id":7,"bin":"220000"}`)
	w.SetCard(`{"bin_id":7,"trade_id":"t"}`)
	w.SetCard(`{"card_bin":"49387519"}`)
	body := w.ask(t, "GET /cards").body
	assert.Regexp(t, `"card_bin":"220000","card_no":"22000099\d{8}".*"bin_id":7,`, body)
	assert.Regexp(t, `"card_no":"22000099.*"create_time":"2025-.*"bin_id":7,"update_time":"2025-`, body)
	assert.Regexp(t, `"card_bin":"49387519","card_no":"49387519\d{8}".*"bin_id":102,`, body)
	assert.Equal(t, 200, w.ask(t, "GET /cards/info?id=t").status)
	assert.Len(t, regexp.MustCompile(`"id":"6727440809"`).FindAllString(body, -1), 1, "an id of its own")
}

func TestSetPanics(t *testing.T) {
	s := cardwiretest.New()
	for fields, want := range map[string]string{
		`{"labels":1}`:     `cardwiretest: there is no field "labels"`,
		`["id"]`:           "cardwiretest: the fields are not a JSON object",
		`{"id":"card-1"`:   "cardwiretest: the fields are not a JSON object",
		`{"Label":"vip"}`:  `cardwiretest: there is no field "Label"`,
		`{"drift":"true"}`: `cardwiretest: there is no field "drift"`,
	} {
		assert.PanicsWithValue(t, want, func() { s.SetCard(fields) })
		assert.PanicsWithValue(t, want, func() { s.SetBIN(fields) })
	}
	assert.PanicsWithValue(t, "cardwiretest: the client transaction id of a failed operation must be a UUID",
		func() { s.AddFailedOperation("42", "close") })
}
