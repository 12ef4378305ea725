package cardwiretest_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// script asks for everything.
var script = []string{
	"GET /cards?limit=100", "GET /bins", "GET /bins/maintenance", "GET /account/capacity", "GET /remittance/states",
	"GET /remittance/currency", transfer, "POST /cards/upload\nContent-Type: multipart/form-data; boundary=xx\n\n" + image,
	"GET /cards/info?id=", "POST /cards/private\nContent-Type: application/x-www-form-urlencoded\n\ncardId=", "GET /cards?page=2",
}

// transcript returns the responses to the script and a freeze, for the first active card.
func transcript(t *testing.T, opts ...cardwiretest.Option) string {
	t.Helper()
	ask := inProcess(cardwiretest.New(opts...))
	id := cardIDs(t, opts...)[0]
	var b strings.Builder
	for _, request := range script {
		if strings.HasSuffix(request, "=") || strings.HasSuffix(request, "d=") {
			request += id
		}
		b.WriteString(ask(t, request).body + "\n")
	}
	b.WriteString(ask(t, freezing(id, freezeID)).body)
	return b.String()
}

// cardIDs asks a service like the one under test, without quirks.
func cardIDs(t *testing.T, opts ...cardwiretest.Option) []string {
	t.Helper()
	got := inProcess(cardwiretest.New(opts...))(t, "GET /cards")
	var ids []string
	for _, m := range regexp.MustCompile(`"id":"?(\d{10})"?`).FindAllStringSubmatch(got.body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

func TestSeed(t *testing.T) {
	for _, quirks := range []bool{false, true} {
		opts := []cardwiretest.Option{cardwiretest.WithSeed(7)}
		if quirks {
			opts = append(opts, cardwiretest.WithQuirks())
		}
		first := transcript(t, opts...)
		if again := transcript(t, opts...); again != first {
			t.Error("the same seed gives other bytes")
		}
		if other := transcript(t, append(opts, cardwiretest.WithSeed(8))...); other == first {
			t.Error("another seed gives the same bytes")
		}
		if !json.Valid([]byte(strings.Split(first, "\n")[0])) {
			t.Errorf("not JSON: %s", first)
		}
	}
}

type wireCard struct {
	ID, Label, Available, Fee, Nickname                      *string
	CardNo                                                   string `json:"card_no"`
	CardBIN                                                  string `json:"card_bin"`
	CVV                                                      string
	Status                                                   int
	HolderAddress                                            json.RawMessage `json:"holder_address"`
	HolderPhoneCode                                          string          `json:"holder_phone_code"`
	CreateTime                                               string          `json:"create_time"`
	UpdateTime                                               string          `json:"update_time"`
	ExpireDate                                               string          `json:"expire_date"`
	Remark, DestoryReason, PlatformWaybillNumber, TradeID    *string
	Physical, PhysicalStatus, DeliverStatus, Pending, Frozen *json.Number
}

func TestSeededCards(t *testing.T) {
	ask := inProcess(cardwiretest.New(cardwiretest.WithCards(60)))
	var page struct{ Data struct{ Data []wireCard } }
	if err := json.Unmarshal([]byte(ask(t, "GET /cards?limit=100").body), &page); err != nil || len(page.Data.Data) != 60 {
		t.Fatal(len(page.Data.Data), err)
	}
	statuses, kinds, numbers := map[int]bool{}, map[string]bool{}, map[string]bool{}
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\|(0[1-9]|1[0-2])/20\d\d\|\d+\.\d{3}\|\d+\.\d\d\|\d{3}$`)
	for _, c := range page.Data.Data {
		statuses[c.Status] = true
		kinds["label "+string("yn"[b2i(c.Label == nil)])] = true
		kinds["address "+string(c.HolderAddress[:1])] = true
		kinds["phone code "+c.HolderPhoneCode[:min(1, len(c.HolderPhoneCode))]] = true
		numbers[c.CardNo] = true
		if !strings.HasPrefix(c.CardNo, c.CardBIN) || len(c.CardNo) != 16 || luhnHolds(c.CardNo) {
			t.Errorf("number %s of BIN %s", c.CardNo, c.CardBIN)
		}
		if s := strings.Join([]string{c.CreateTime, c.UpdateTime, c.ExpireDate, *c.Available, *c.Fee, c.CVV}, "|"); !form.MatchString(s) {
			t.Errorf("got %s", s)
		}
	}
	for _, want := range []string{"label y", "label n", "address {", "address [", "phone code +", "phone code 4", "phone code "} {
		if !kinds[want] {
			t.Errorf("no %s in %v", want, kinds)
		}
	}
	if len(statuses) != 6 || len(numbers) != 60 {
		t.Errorf("statuses %v, %d numbers", statuses, len(numbers))
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func luhnHolds(n string) bool {
	sum := 0
	for i := range n {
		d := int(n[len(n)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

func TestAddCard(t *testing.T) {
	s := cardwiretest.New(cardwiretest.WithCards(-1), cardwiretest.WithMaxPageSize(0))
	s.AddCard(cardwiretest.Card{CardBIN: "49387519"})
	s.AddBIN(cardwiretest.BIN{ID: 7, BIN: "220000"})
	s.AddCard(cardwiretest.Card{BINID: 7, ID: "seven"})
	s.AddCard(cardwiretest.Card{BINID: 7, ID: "seven", Nickname: "again", TradeID: "t"})
	ask := inProcess(s)
	if got := ask(t, "GET /cards").body; !strings.Contains(got, `"total":2,"per_page":1,`) || !strings.Contains(got, `"bin_id":102,"card_bin":"49387519","card_no":"493875197`) {
		t.Errorf("got %s", got)
	}
	if got := ask(t, "GET /cards?page=2").body; !strings.Contains(got, `"nickname":"again"`) || !strings.Contains(got, `"card_no":"22000099`) {
		t.Errorf("got %s", got)
	}
	if got := ask(t, "GET /cards/info?id=t"); got.status != 200 {
		t.Errorf("got %s", got.body)
	}
}

func TestWithKey(t *testing.T) {
	ask := inProcess(cardwiretest.New(cardwiretest.WithKey("another")))
	if got := ask(t, "GET /bins"); got.status != 401 {
		t.Errorf("got %s", got.body)
	}
	if got := ask(t, "GET /bins\nAuthorization: Bearer another"); got.status != 200 {
		t.Errorf("got %s", got.body)
	}
}

// Quirks change the form, not the meaning: undone, the responses are the same.
func TestQuirks(t *testing.T) {
	var all strings.Builder
	for seed := range int64(20) {
		opts := []cardwiretest.Option{cardwiretest.WithSeed(seed), cardwiretest.WithCards(40)}
		plain := strings.Split(transcript(t, opts...), "\n")
		quirky := strings.Split(transcript(t, append(opts, cardwiretest.WithQuirks())...), "\n")
		for i := range plain {
			if want, got := meaning(t, plain[i]), meaning(t, quirky[i]); want != got {
				t.Fatalf("seed %d:\nwant %s\ngot  %s", seed, want, got)
			}
			if !strings.Contains(quirky[i], `"code":200`) {
				t.Errorf("seed %d: %s", seed, quirky[i])
			}
		}
		all.WriteString(strings.Join(quirky, "\n"))
	}
	for _, want := range []string{
		`\/`, `\u00eb`, `\ud83d\ude00`, `"_extra":[`, `"bin_id":"`, `"holder_phone":4`, `"available":9`, `"fee":1`,
		`"physical":true`, `"physical":"0"`, `"maintain":0`, `"maintain":"1"`, `"data":"`,
		`"holder_address":{}`, `"holder_address":null`, `"holder_address":[]`, `"foreign_fee_config":[]`, `"auth_fee_config":[]`,
		`"card_bin":4`, `"bin":4`, `"code":11`, `"total":"`, `"3ds":true`, `[53270366`,
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	for _, never := range []string{`"code":"200"`, `"available":null`, `"fee":null`, `"data":null`, `"pan":null`} {
		if strings.Contains(all.String(), never) {
			t.Errorf("there is %s", never)
		}
	}
}

// meaning writes a response with everything that quirks change undone.
func meaning(t *testing.T, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	b, err := json.Marshal(plainly("", v))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func plainly(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if p := plainly(name, value); name != "_extra" && p != nil {
				out[name] = p
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, value := range v {
			out = append(out, plainly("", value))
		}
		if out == nil {
			return nil
		}
		return out
	case json.Number:
		return v.String()
	case bool:
		return map[bool]string{true: "1", false: "0"}[v]
	}
	return v
}
