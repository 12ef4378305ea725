package hostile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/contract"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
)

// maxDepth is how deep a response may be nested.
const maxDepth = 64

func FuzzEnvelope(f *testing.F) {
	good := wiretest.Success
	for _, body := range []string{
		good(`null`), good(`{"a":[1.50,"\u00e9"]}`), good(contract.Data("suspended")), good(contract.Data("bins")),
		good(`"\\ud800"`), good(`"\\\ud83d\ude00"`), good(`[{"a":1,"a":1}]`),
		`{"data":{},"msg":"success","code":200}`, `{"code":200,"msg":null,"data":1}`,
		`{"code":200,"data":1}`, `{"code":200,"msg":"success"}`, `{"code":422,"msg":"no","data":null}`,
		`{"code":500,"msg":"no"}`, `{"code":599}`, `{"code":-1}`, `{"code":0}`, `{"code":200.0,"data":1}`,
		`{"code":2e2,"data":1}`, `{"code":"200","data":1}`, `{"Code":200,"data":1}`, `{"c\u006fde":200,"data":1}`,
		`{"code":200,"code":200,"data":1}`, `{"code":200,"Code":500,"data":1}`, `{"code":200,"data":1,"x":{"y":[]}}`,
		`{"code":200,"msg":7,"data":1}`, `{"code":9223372036854775807}`, `{"code":9223372036854775808}`, `[]`, `200`,
		"\ufeff" + `{"code":"200","data":1}`, `{"code":"+200","data":1}`, `{"code":200.5,"data":1}`,
		"{\"code\":200,\"msg\":\"\xff\",\"data\":1}", "{\"code\":200,\"msg\":\"\",\"data\":\"\xff\"}", "{\"\xff\":1}",
		`{"code":200,"msg":"","data":1,"x":{"y":["\ud800"]}}`, `{"code":200,"msg":"\ud800\\ud800","data":1}`,
		``, "\ufeff" + good(`1`), "\ufeff\ufeff" + good(`1`), good(`1`) + "\x00", `<html>`,
		good(strings.Repeat("[", 62) + strings.Repeat("]", 62)),
		good(strings.Repeat("[", 63) + strings.Repeat("]", 63)),
		good(strings.Repeat("[", 64) + strings.Repeat("]", 64)),
	} {
		f.Add(uint16(0), []byte(body))
	}
	for _, status := range []uint16{271, 302, 400, 401, 403, 404, 411, 422, 429} {
		for _, body := range []string{
			``, `<html>`, "<html>\xbb", `[]`, " \ufeff<html>", "\ufeff" + `{"code":422,"msg":"no"}`, "\xff{",
			`{"code":422,"msg":"no"}`, `{"code":422}`, `{"code":422,"msg":null}`, `{"code":422,"msg":"success"}`,
			`{"code":422,"msg":"SUCCESS "}`,
			`{"code":1020}`, `{"code":200,"msg":"no"}`, `{"code":3000000000,"msg":"no"}`,
			`{"code":422,"msg":"no","data":null}`,
			`{"code":200,"msg":"success","data":null}`, `{"code":500,"msg":"no","data":null}`,
			`{"code":"422","msg":"no"}`, `{"code":422.0,"msg":"no"}`, "{\"code\":422,\"msg\":\"\xd6\xd8\xb8\xb4\"}",
			`{"code":422,"msg":"\ud800"}`, "{\"code\":422,\"msg\":\"no\",\"x\":\"\xff\"}",
			"\ufeff{\"code\":422,\"msg\":\"\xff\"}", "{\"code\":422,\"msg\":\"no\",\"data\":\"\xff\"}",
		} {
			f.Add(status-200, []byte(body))
		}
	}
	for _, text := range jsonsuite.Seeds(f, 12) {
		f.Add(uint16(0), []byte(good(string(text))))
	}
	f.Fuzz(func(t *testing.T, n uint16, body []byte) {
		status := 200 + int(n)%400
		for _, write := range []bool{false, true} {
			response := wiretest.Always(status, string(body))
			c := wiretest.NewClient(t, response, cardwire.WithRetry(cardwire.RetryPolicy{}))
			request := cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", ReadOnly: !write}
			if write {
				request.Reference = wiretest.UUID
			}
			got, err := cardwire.Call[json.RawMessage](t.Context(), c, request)
			documented, bomOnly := documentedForm(body)
			outcome, data := outcomeOf(status, documented)
			// a read's code may have another form
			believed := !write && err != nil && wiretest.Failure(t, err).Outcome == cardwire.OutcomeRefused
			if !bomOnly && outcome == cardwire.OutcomeRefused && !withoutObject(documented) && !believed {
				outcome = cardwire.OutcomeUnknown
			}
			if old, _ := outcomeOf(status, body); !bomOnly && (err == nil) != (outcome == succeeded) {
				outcome = old // the form is not among those that are tolerated
			}
			if outcome == succeeded {
				require.NoError(t, err)
				require.True(t, data == string(got) || !bomOnly)
				continue
			}
			// A refusal of a write says why, or is none.
			if got := wiretest.Failure(t, err).Outcome; got != cardwire.OutcomeUnknown ||
				outcome != cardwire.OutcomeRefused || !write {
				require.Equal(t, outcome, got)
			}
			require.Nil(t, got)
			if write && wiretest.Failure(t, err).Outcome == cardwire.OutcomeUnknown {
				require.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
			}
		}
		c := wiretest.NewClient(t, wiretest.Always(status, string(body)))
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		documented, bomOnly := documentedForm(body)
		want, _ := outcomeOf(status, documented)
		if err != nil && (want != cardwire.OutcomeRefused || !bomOnly && !withoutObject(documented)) {
			require.NotEqual(t, cardwire.OutcomeRefused, wiretest.Failure(t, err).Outcome)
		}
	})
}

var (
	escapes   = regexp.MustCompile(`(?i)\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\ud[89a-f][0-9a-f]{2}`)
	looseCode = regexp.MustCompile(`("code"\s*:\s*)(?:"(0|[1-9][0-9]*)"|(-?(?:0|[1-9][0-9]*))\.0+)`)
)

// documentedForm returns a body with what is tolerated in its envelope as the API documents it,
// and reports whether that was a byte order mark at most: other forms make no refusal.
func documentedForm(body []byte) (documented []byte, bomOnly bool) {
	plain := bytes.TrimPrefix(body, []byte("\ufeff"))
	documented = escapes.ReplaceAllFunc(bytes.ToValidUTF8(plain, []byte("\ufffd")), func(escape []byte) []byte {
		if len(escape) == len(`\ud800`) {
			return []byte(`\ufffd`)
		}
		return escape
	})
	documented = looseCode.ReplaceAll(documented, []byte("$1$2$3"))
	return documented, bytes.Equal(plain, documented)
}

// succeeded is the outcome of a success, which no failure has.
const succeeded cardwire.Outcome = 255

// outcomeOf judges a response by the table of outcomes, with encoding/json only.
func outcomeOf(status int, body []byte) (outcome cardwire.Outcome, data string) {
	code, message, data, readable := envelopeOf(body)
	refusal := message != nil && !slices.ContainsFunc([]string{"success", "Uploaded"}, func(word string) bool {
		return strings.EqualFold(word, strings.TrimSpace(*message))
	})
	switch {
	case !readable && slices.Contains([]int{401, 404, 405, 411, 413, 429}, status) && withoutObject(body):
		return cardwire.OutcomeRefused, ""
	case !readable:
		return cardwire.OutcomeUnknown, ""
	case status < 300 && code == 200 && data != "":
		return succeeded, data
	case status < 300 && wiretest.RefusalsByNumber[code] != "" && refusal:
		return cardwire.OutcomeRefused, ""
	case status < 300, code == 200, code >= 500 && code <= 599:
		return cardwire.OutcomeUnknown, ""
	case wiretest.RefusalsByNumber[status] != "" && refusal:
		return cardwire.OutcomeRefused, ""
	}
	return cardwire.OutcomeUnknown, ""
}

// withoutObject reports whether a body does not begin as an object, whatever stands
// before its first character that is visible.
func withoutObject(body []byte) bool {
	text := strings.TrimLeftFunc(string(body), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\ufeff\ufffd\x00", r)
	})
	return !strings.HasPrefix(text, "{")
}

var integerText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// envelopeOf reads an envelope with encoding/json, after checking what that accepts too much.
func envelopeOf(body []byte) (code int, message *string, data string, ok bool) {
	var fields map[string]json.RawMessage
	if !jsonsuite.Strict(body, maxDepth) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return 0, nil, "", false
	}
	if text, there := fields["msg"]; there && json.Unmarshal(text, &message) != nil {
		return 0, nil, "", false
	}
	var n int32
	ok = integerText.Match(fields["code"]) && json.Unmarshal(fields["code"], &n) == nil
	return int(n), message, string(fields["data"]), ok
}

// model is a value of a type that decodes itself.
type model interface {
	json.Marshaler
	json.Unmarshaler
}

// models are new values of all such types.
func models() []model {
	return []model{
		new(cardwire.BIN), new(cardwire.Card), new(cardwire.CardOperation), new(cardwire.CardPage),
		new(cardwire.CardSecrets),
		new(cardwire.RemittanceCurrency), new(cardwire.RemittanceState), new(cardwire.Transfer),
		new(cardwire.TransferParams), new(cardwire.UploadedImage),
	}
}

// A type that decodes itself is read as a response is: what it takes is strict JSON, and
// what it encodes is read as the same again.
func FuzzModels(f *testing.F) {
	for _, text := range []string{
		contract.Element("second", 0), contract.Data("suspended"), contract.Data("secrets"),
		contract.Element("bins", 0),
		contract.Element("states", 0), contract.Element("currencies", 0), contract.Data("order"),
		contract.Data("second"),
		contract.Data("image"), `{}`, `null`, `[]`, `{"id":"c1"}`, string(contract.Example("transfer")),
		`{"id":1,"bin":"493193","avs":7,"3ds":"1","foreign_fee_config":[],"auth_fee_config":{"a":1e99}}`,
		`{"id":"c","available":1,"pending":"2.50","frozen":0,"fee":"0.00","cvv":"123","holder_address":{}}`,
		`{"id":"c","available":1,"pending":0,"frozen":0,"fee":"0.00","create_time":"0000-00-00 00:00:00"}`,
		`{"id":"c","available":1,"pending":0,"frozen":0,"fee":"0.00","create_time":"2026-01-02T03:04:05.5+08:00",` +
			`"update_time":1700000000,"expire_date":"4111111111111111","card_no":"4000 00XX XXXX 0002"}`,
		`{"api_order_no":"a\u0000\u2028b ","merchant_order_no":"m","status":""}`,
		`{"transferAmount":"1.00","merchantOrderNo":"a","fee":"none","available":"1.0"}`,
		`{"merchantOrderNo":"a","transferAmount":"1"}`,
		`{"merchantOrderNo":"a","transferAmount":"1.00","senderDateOfBirth":"2026-02-29"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for i, v := range models() {
			err := v.UnmarshalJSON(text)
			if again := json.Unmarshal(text, v); err == nil {
				require.NoError(t, again, "%T", v)
			} else {
				if _, params := v.(*cardwire.TransferParams); !params || !errors.Is(err, cardwire.ErrInvalidParams) {
					require.ErrorIs(t, err, cardwire.ErrUnreadable, "%T", v)
				}
				require.Error(t, again, "%T", v)
				continue
			}
			documented, _ := documentedForm(text)
			require.True(t, jsonsuite.Strict(documented, maxDepth), "%T", v)
			if string(bytes.TrimSpace(text)) == "null" {
				continue // which leaves it as it was
			}
			encoded, err := encodedOf(v)
			require.NoError(t, err)
			if _, params := v.(*cardwire.TransferParams); params { // all of it is kept
				require.JSONEq(t, string(text), string(encoded))
			}
			// What was encoded is complete, and is read as the same again.
			again := models()[i]
			require.NoError(t, again.UnmarshalJSON(encoded), "%T", v)
			twice, err := encodedOf(again)
			require.NoError(t, err)
			require.Equal(t, string(encoded), string(twice))
		}
	})
}

// encodedOf returns the JSON that v reads.
func encodedOf(v model) ([]byte, error) {
	if p, ok := v.(*cardwire.TransferParams); ok {
		return p.RevealJSON()
	}
	return v.MarshalJSON()
}
