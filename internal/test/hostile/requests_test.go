package hostile_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/syntax"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// This file tries hostile strings in every string that a caller passes.
// Each is refused before a connection is made, or stands in the bytes that the
// service reads exactly where it belongs and nowhere else.

// class says what is wrong with a string; inputs refuse by classes.
type class uint16

const (
	plain     class = 1 << iota // nothing
	control                     // line ends, NUL, other controls, what turns the direction
	invalid                     // not UTF-8
	dots                        // another place in a path: dots, slashes
	spaced                      // white space at an end
	space                       // a space within
	wide                        // letters that are not ASCII
	escape                      // a percent sign
	special                     // a character with a meaning in a URL: ? # & = + ;
	quote                       // a quotation mark
	separator                   // another character that is none of a token's
	long                        // a million bytes
	invisible                   // a character that does not show
)

// hostile are the strings. One of several classes is refused where any of them is.
var hostile = []struct {
	text  string
	class class
}{
	{"card-1", plain},
	{"..", dots},
	{".", dots},
	{"/", dots},
	{"a/b", dots},
	{"../../admin", dots},
	{"/etc/passwd", dots},
	{`a\b`, dots},
	{`C:\id.png`, dots},
	{"..;/admin", dots | special},
	{"..;a=b", special},
	{"%2e%2e", escape},
	{"%2e%2e%2fadmin", escape},
	{"%2E%2E", escape},
	{"%252e", escape},
	{"%0d%0aX-Evil:%201", escape | separator},
	{"%00", escape},
	{"%", escape},
	{"100%", escape},
	{"a?b", special},
	{"a#b", special},
	{"a&b", special},
	{"a=b", special},
	{"a+b", plain},
	{"a;b", special},
	{"a&id=b", special},
	{"a b", space},
	{" a", spaced | space},
	{"a ", spaced | space},
	{" ", spaced | space},
	{"\u00a0", spaced | wide},
	{"a\u00a0b", wide},
	{`a"b`, quote},
	{`a"; filename="b.exe`, quote | special | space},
	{"--a", plain},
	{`{"a":1}`, quote | separator},
	{"a:b", separator},
	{"a,b", separator},
	{"<script>", separator},
	{"'; DROP TABLE cards; --", special | space},
	{"a\r\nX-Evil: 1", control},
	{"a\r\n\r\nGET /evil HTTP/1.1\r\nHost: evil\r\n\r\n", control},
	{"a\nb", control},
	{"a\rb", control},
	{"a\r\n", control},
	{"\n", control},
	{"a\x00b", control},
	{"\x00", control},
	{"a\tb", control},
	{"\x1b[2J", control},
	{"a\x7fb", control},
	{"a\u0085b", control},
	{"a\u2028b", control},
	{"a\u2029b", control},
	{"\u202egnp.exe", control},
	{"a\u2066b", control},
	{"\u2024\u2024", wide},        // one dot leaders
	{"\uff0e\uff0e", wide},        // fullwidth dots
	{"a\u2215b", wide},            // a division slash
	{"a\uff0fb", wide},            // a fullwidth slash
	{"\u560d\u560a", wide},        // whose low bytes end a line
	{"\ufeffa", wide | invisible}, // a byte order mark
	{"a\u200bb", wide | invisible},
	{"10\u00ad01", wide | invisible}, // a soft hyphen
	{"e\u0301", wide},                // not composed
	{"\u00e9", wide},
	{"\u0661", wide}, // a digit of another script
	{"\U0001f600", wide},
	{"\ufffd", wide}, // what invalid UTF-8 is replaced by
	{`\ufffd`, dots},
	{"a\xffb", invalid},
	{"\xc0\xaf", invalid},
	{"\xed\xa0\x80", invalid},
	{"\xf4\x90\x80\x80", invalid},
	{"a\xc3", invalid},
	{strings.Repeat("\u00fc", 500), long | wide},
	{strings.Repeat("a", 1_000_000), long},
}

// all are the classes of strings that are anything but a code of digits, say.
const all = ^class(0)

// input is one string that a caller passes.
type input struct {
	// name is as textInputs has it.
	name string
	// refuses are the classes that are not sent.
	refuses class
	// although are strings for which the opposite is true.
	although []string
	// benign is sent, where no hostile string is.
	benign string
	// call makes a call of a client for base with the string in its place.
	call func(ctx context.Context, base, text string) error
	// sent is what the service then reads, as readBack writes it.
	sent func(text string) string
	// without is what it reads where the string is ""; "": that is refused.
	without string
	// unnamed says that a refusal is no ErrInvalidParams: no parameter is wrong.
	unnamed bool
}

const (
	references = control | invalid | spaced | long | invisible
	names      = control | invalid | spaced // of parameters
	texts      = invalid
	paths      = control | invalid | dots | spaced | space | escape
	fileNames  = control | invalid | dots | quote | long
)

const matrixKey = "sk-test-7f3a"

// matrixClient is a client that asks the service once.
func matrixClient(base string, opts ...cardwire.Option) (*cardwire.Client, error) {
	return cardwire.New(base, matrixKey, append([]cardwire.Option{cardwire.WithRetry(cardwire.RetryPolicy{})}, opts...)...)
}

// callOf makes the call of an input from one of a client.
func callOf(call func(ctx context.Context, c *cardwire.Client, text string) error) func(context.Context, string, string) error {
	return func(ctx context.Context, base, text string) error {
		c, err := matrixClient(base)
		if err != nil {
			return err
		}
		return call(ctx, c, text)
	}
}

// withOption makes the call of an input from an option with the string.
func withOption(option func(text string) cardwire.Option) func(context.Context, string, string) error {
	return func(ctx context.Context, base, text string) error {
		c, err := matrixClient(base, option(text))
		if err != nil {
			return err
		}
		_, err = c.ListBINs(ctx)
		return err
	}
}

// requested makes the call of an input from a Request with the string.
func requested(request func(text string) cardwire.Request) func(context.Context, string, string) error {
	return callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
		_, err := cardwire.Call[any](ctx, c, request(text))
		return err
	})
}

// usual are the headers of every request, as readBack writes them.
const usual = `
Accept: "application/json"
Authorization: "Bearer sk-test-7f3a"`

// endingIn is a conversation that ends in the string.
func endingIn(before string) func(string) string {
	return func(text string) string { return before + " = " + strconv.Quote(text) }
}

// whatever is what is sent for any string.
func whatever(sent string) func(string) string { return func(string) string { return sent } }

const (
	get      = "GET \"/shop/api/v1"
	post     = "POST \"/shop/api/v1"
	agent    = "\nUser-Agent: \"cardwire-go/*\""
	formBody = "\nContent-Type: \"application/x-www-form-urlencoded\"" + agent
	jsonBody = "\nContent-Type: \"application/json\"" + agent
	partBody = "\nContent-Type: \"multipart/form-data\"" + agent
	askBINs  = get + "/bins\"" + usual + agent
	askCards = get + "/cards\"" + usual + agent
	askCard  = get + "/cards/info\"" + usual + agent
	image    = "\x89PNG\r\n\x1a\nimage"
	uuidText = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
)

func inputs(t *testing.T) []input {
	return slices.Concat(clientInputs(), cardInputs(), operationInputs(), imageInputs(t), requestInputs(), extraInputs(), transferInputs(), profileInputs(), listInputs())
}

// clientInputs are those of a client and of the options of a call.
func clientInputs() []input {
	return []input{
		{
			name: "New baseURL", refuses: paths, although: []string{"/", "a/b", "/etc/passwd", "a?b", "a#b", "a\u00a0b", "..;a=b"},
			call: func(ctx context.Context, base, text string) error {
				c, err := matrixClient(base + "/" + text)
				if err != nil {
					return err
				}
				_, err = c.ListBINs(ctx)
				return err
			},
			sent: func(text string) string {
				return "GET " + strconv.Quote(strings.TrimRight("/shop/api/v1/"+text, "/")+"/bins") + usual + agent
			},
			without: askBINs,
		},
		{
			name: "New apiKey", refuses: control | invalid | wide | space | spaced,
			call: func(ctx context.Context, base, text string) error {
				c, err := cardwire.New(base, text, cardwire.WithRetry(cardwire.RetryPolicy{}))
				if err != nil {
					return err
				}
				_, err = c.ListBINs(ctx)
				return err
			},
			sent: askBINsWith,
		},
		{
			name: "WithKeySource f", refuses: control | invalid | wide | space | spaced, unnamed: true,
			call: withOption(func(text string) cardwire.Option {
				return cardwire.WithKeySource(func(context.Context) (string, error) { return text, nil })
			}),
			sent: askBINsWith,
		},
		{
			name: "WithUserAgent product", refuses: control | invalid | wide, although: []string{" "},
			call: withOption(cardwire.WithUserAgent),
			sent: func(text string) string {
				return get + "/bins\"" + usual + "\nUser-Agent: " + strconv.Quote(strings.TrimLeft(text, " ")+" cardwire-go/*")
			},
		},
		{
			name: "WithHeader name", refuses: all &^ (plain | escape | long), although: []string{".", "..", "a#b", "a&b"},
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				_, err := c.ListBINs(ctx, cardwire.WithHeader(text, "v"))
				return err
			}),
			sent: func(text string) string {
				request, headers, _ := strings.Cut(askBINs, "\n")
				lines := strings.Split(headers+"\n"+http.CanonicalHeaderKey(text)+`: "v"`, "\n")
				slices.Sort(lines)
				return request + "\n" + strings.Join(lines, "\n")
			},
		},
		{
			name: "WithHeader value", refuses: control | invalid | wide, although: []string{"a\tb"},
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				_, err := c.ListBINs(ctx, cardwire.WithHeader("X-Trace", text))
				return err
			}),
			// White space around a header's value is not part of it.
			sent:    func(text string) string { return askBINs + "\nX-Trace: " + strconv.Quote(strings.Trim(text, " ")) },
			without: askBINs + "\nX-Trace: \"\"",
		},
	}
}

// cardInputs are those of the operations that read cards.
func cardInputs() []input {
	return []input{
		{
			name: "GetCard cardID", refuses: references, sent: endingIn(askCard + "\nquery \"id\""),
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				_, err := c.GetCard(ctx, text)
				return err
			}),
		},
		{
			name: "GetCardByOrder orderID", refuses: references, sent: endingIn(askCard + "\nquery \"id\""),
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				_, err := c.GetCardByOrder(ctx, text)
				return err
			}),
		},
		{
			name: "GetCardSecrets cardID", refuses: references,
			sent: endingIn(post + "/cards/private\"" + usual + formBody + "\nform \"cardId\""),
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				_, err := c.GetCardSecrets(ctx, text)
				return err
			}),
		},
		{
			name: "ListCardsParams.SubAccountID", refuses: references, sent: endingIn(askCards + "\nquery \"sub\""), without: askCards,
			call: func(ctx context.Context, base, text string) error {
				p := cardwire.DefaultProfile()
				p.SubAccountParam = "sub"
				return listWith(ctx, base, p, cardwire.ListCardsParams{SubAccountID: text})
			},
		},
		{
			name: "ListCardsParams.CardBIN", refuses: all, benign: "493193", sent: endingIn(askCards + "\nquery \"card_bin\""), without: askCards,
			call: func(ctx context.Context, base, text string) error {
				return listWith(ctx, base, cardwire.DefaultProfile(), cardwire.ListCardsParams{CardBIN: text})
			},
		},
	}
}

// operationInputs are those of the operations that change cards.
func operationInputs() []input {
	return []input{
		{
			name: "CancelOperation clientTransactionID", refuses: all, benign: uuidText,
			sent: func(text string) string {
				return post + "/cards/adjustAction\"" + usual + formBody + "\nform \"client_transaction_id\" = " + strconv.Quote(text) + "\nform \"type\" = \"cancel\""
			},
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error { return c.CancelOperation(ctx, text) }),
		},
		{
			name: "RetryOperation clientTransactionID", refuses: all, benign: uuidText,
			sent: func(text string) string {
				return post + "/cards/adjustAction\"" + usual + formBody + "\nform \"client_transaction_id\" = " + strconv.Quote(text) + "\nform \"type\" = \"retry\""
			},
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error { return c.RetryOperation(ctx, text) }),
		},
		{
			name: "FreezeCardParams.CardID", refuses: references,
			sent: func(text string) string {
				return post + "/cards/suspend\"" + usual + partBody + "\npart \"cardId\" = " + strconv.Quote(text) + "\npart \"clientTransactionId\" = \"5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01\""
			},
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				_, err := c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: text, ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"})
				return err
			}),
		},
		{
			name: "FreezeCardParams.ClientTransactionID", refuses: all, benign: uuidText,
			sent: endingIn(post + "/cards/suspend\"" + usual + partBody + "\npart \"cardId\" = \"c-1\"\npart \"clientTransactionId\""),
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				_, err := c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "c-1", ClientTransactionID: text})
				return err
			}),
			without: anyUUID,
		},
	}
}

func imageInputs(t *testing.T) []input {
	return []input{
		{
			name: "UploadImageParams.Filename", refuses: fileNames, sent: func(text string) string { return uploads(text, "image/png") },
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				p := cardwire.ImageBytes("a.png", []byte(image))
				p.Filename = text
				_, err := c.UploadImage(ctx, p)
				return err
			}),
		},
		{
			name: "ImageBytes filename", refuses: fileNames, sent: func(text string) string { return uploads(text, "image/png") },
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				_, err := c.UploadImage(ctx, cardwire.ImageBytes(text, []byte(image)))
				return err
			}),
		},
		{
			// What a directory cannot hold is not sent either.
			name: "ImageFile path", refuses: fileNames, unnamed: true, sent: func(text string) string { return uploads(text, "image/png") },
			call: func(ctx context.Context, base, text string) error {
				if strings.ContainsRune(text, filepath.Separator) {
					return errors.New("it is the name of no file")
				}
				path := filepath.Join(t.TempDir(), "a") // Join would clean what is joined to it
				path = strings.TrimSuffix(path, "a") + text
				if err := os.WriteFile(path, []byte(image), 0o600); err != nil {
					return err
				}
				p, err := cardwire.ImageFile(path)
				if err != nil {
					return err
				}
				c, err := matrixClient(base)
				if err != nil {
					return err
				}
				_, err = c.UploadImage(ctx, p)
				return err
			},
		},
		{
			name: "UploadImageParams.ContentType", refuses: all, although: []string{"a/b"}, benign: `image/x-scan; q="1"`,
			sent: func(text string) string { return uploads("a.png", text) }, without: uploads("a.png", "image/png"),
			call: callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
				p := cardwire.ImageBytes("a.png", []byte(image))
				p.ContentType = text
				_, err := c.UploadImage(ctx, p)
				return err
			}),
		},
	}
}

// requestInputs are those of Call.
func requestInputs() []input {
	return []input{
		{
			name: "Request.Op", refuses: references, sent: whatever(get + "/ask\"" + usual + agent),
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: text, Method: "GET", Path: "/ask"}
			}),
		},
		{
			name: "Request.Method", refuses: all, benign: "GET", sent: whatever(get + "/ask\"" + usual + agent),
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: text, Path: "/ask"}
			}),
		},
		{
			name: "Request.Path", refuses: paths, although: []string{"/", "a/b", "/etc/passwd", "a?b", "a#b", "a\u00a0b", "..;a=b"},
			sent: func(text string) string { return "GET " + strconv.Quote("/shop/api/v1/ask/"+text) + usual + agent },
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "GET", Path: "/ask/" + text}
			}),
			without: get + "/ask/\"" + usual + agent,
		},
		{
			name: "Request.Query, name", refuses: texts, without: get + "/ask\"" + usual + agent + "\nquery \"\" = \"v\"",
			sent: func(text string) string {
				return get + "/ask\"" + usual + agent + "\nquery " + strconv.Quote(text) + " = \"v\""
			},
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "GET", Path: "/ask", Query: url.Values{text: {"v"}}}
			}),
		},
		{
			name: "Request.Query, value", refuses: texts, without: get + "/ask\"" + usual + agent + "\nquery \"n\" = \"\"",
			sent: endingIn(get + "/ask\"" + usual + agent + "\nquery \"n\""),
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "GET", Path: "/ask", Query: url.Values{"n": {text}}}
			}),
		},
		{
			name: "Request.Multipart.Name", refuses: control | invalid | quote,
			sent: func(text string) string {
				return post + "/ask\"" + usual + partBody + "\npart " + strconv.Quote(text) + " = \"v\""
			},
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", Multipart: []cardwire.Part{{Name: text, Value: "v"}}}
			}),
		},
		{
			name: "Request.Multipart.Value", refuses: texts, without: post + "/ask\"" + usual + partBody + "\npart \"n\" = \"\"",
			sent: endingIn(post + "/ask\"" + usual + partBody + "\npart \"n\""),
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", Multipart: []cardwire.Part{{Name: "n", Value: text}}}
			}),
		},
		{
			name: "Request.Multipart.File.Filename", refuses: fileNames,
			sent: func(text string) string {
				return strings.Replace(uploads(text, "image/png"), "/cards/upload", "/ask", 1)
			},
			call: requested(func(text string) cardwire.Request {
				p := cardwire.ImageBytes(text, []byte(image))
				return cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", Multipart: []cardwire.Part{{Name: "file", File: &p}}}
			}),
		},
		{
			name: "Request.Multipart.File.ContentType", refuses: all, although: []string{"a/b"}, benign: `image/x-scan; q="1"`,
			sent:    func(text string) string { return strings.Replace(uploads("a.png", text), "/cards/upload", "/ask", 1) },
			without: strings.Replace(uploads("a.png", "image/png"), "/cards/upload", "/ask", 1),
			call: requested(func(text string) cardwire.Request {
				p := cardwire.ImageBytes("a.png", []byte(image))
				p.ContentType = text
				return cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", Multipart: []cardwire.Part{{Name: "file", File: &p}}}
			}),
		},
		{
			name: "Request.Form, name", refuses: texts, without: post + "/ask\"" + usual + formBody + "\nform \"\" = \"v\"",
			sent: func(text string) string {
				return post + "/ask\"" + usual + formBody + "\nform " + strconv.Quote(text) + " = \"v\""
			},
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", Form: url.Values{text: {"v"}}}
			}),
		},
		{
			name: "Request.Form, value", refuses: texts, without: post + "/ask\"" + usual + formBody + "\nform \"n\" = \"\"",
			sent: endingIn(post + "/ask\"" + usual + formBody + "\nform \"n\""),
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", Form: url.Values{"n": {text}}}
			}),
		},
		{
			name: "Request.JSON", refuses: texts, without: post + "/ask\"" + usual + jsonBody + "\nmember \"\" = \"\"",
			sent: func(text string) string {
				return post + "/ask\"" + usual + jsonBody + "\nmember " + strconv.Quote(text) + " = " + strconv.Quote(text)
			},
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", JSON: map[string]string{text: text}}
			}),
		},
		{
			name: "Request.Reference", refuses: references, sent: whatever(post + "/ask\"" + usual + formBody), without: post + "/ask\"" + usual + formBody,
			call: requested(func(text string) cardwire.Request {
				return cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", Reference: text}
			}),
		},
	}
}
func askBINsWith(key string) string {
	return strings.Replace(askBINs, strconv.Quote("Bearer "+matrixKey), strconv.Quote("Bearer "+key), 1)
}

// anyUUID stands for a reference that the client makes.
const anyUUID = "*"

func listWith(ctx context.Context, base string, p cardwire.Profile, params cardwire.ListCardsParams) error {
	c, err := matrixClient(base, cardwire.WithProfile(func(own *cardwire.Profile) { *own = p }))
	if err != nil {
		return err
	}
	_, err = c.ListCards(ctx, params)
	return err
}

func uploads(filename, contentType string) string {
	return post + "/cards/upload\"" + usual + partBody + "\nfile \"file\" called " + strconv.Quote(filename) +
		" of " + strconv.Quote(contentType) + " = " + strconv.Quote(image)
}

func transferring(change func(p *cardwire.TransferParams, text string)) func(context.Context, string, string) error {
	return callOf(func(ctx context.Context, c *cardwire.Client, text string) error {
		p := cardwire.TransferParams{MerchantOrderNo: "m-1", TransferAmount: decimal.New(105, -1)}
		change(&p, text)
		_, err := c.CreateTransfer(ctx, p)
		return err
	})
}

// transfers is a transfer with further fields: names and values by turns.
func transfers(further ...string) string {
	fields := map[string]string{"merchantOrderNo": "m-1", "transferAmount": "10.50"}
	for i := 0; i < len(further); i += 2 {
		fields[further[i]] = further[i+1]
	}
	var b strings.Builder
	b.WriteString(post + "/remittance/transfer\"" + usual + jsonBody)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "\nmember %q = %q", name, fields[name])
	}
	return b.String()
}

// transferInputs are the fields of a transfer by the names that the wire has for
// them.
func transferInputs() (list []input) {
	for _, f := range []struct {
		field, name string
		refuses     class
		benign      string
	}{
		{"MerchantOrderNo", "merchantOrderNo", references, ""},
		{"PayoutCurrency", "payoutCurrency", all, "PHP"},
		{"TransferType", "transferType", all, "3"},
		{"PayoutMethod", "payoutMethod", all, "1"},
		{"SenderBeneficiaryRelationship", "senderBeneficiaryRelationship", all, "01"},
		{"SenderSourceOfFund", "senderSourceOfFund", all, "2"},
		{"PurposeOfRemittance", "purposeOfRemittance", all, "7"},
		{"SenderFirstName", "senderFirstName", texts, ""},
		{"SenderLastName", "senderLastName", texts, ""},
		{"SenderGender", "senderGender", texts, ""},
		{"SenderMobileNumber", "senderMobileNumber", texts, ""},
		{"SenderIDType", "senderIdType", all, "4"},
		{"SenderIDNumber", "senderIdNumber", texts, ""},
		{"SenderNationality", "senderNationality", all, "PT"},
		{"SenderIDIssueCountry", "senderIdIssueCountry", all, "620"},
		{"SenderCountry", "senderCountry", all, "pt"},
		{"SenderAddress", "senderAddress", texts, ""},
		{"ReceiverNativeFirstName", "receiverNativeFirstName", texts, ""},
		{"ReceiverNativeLastName", "receiverNativeLastName", texts, ""},
		{"ReceiverIDType", "receiverIdType", all, "5"},
		{"ReceiverIDNumber", "receiverIdNumber", texts, ""},
		{"ReceiverMobileNumber", "receiverMobileNumber", texts, ""},
		{"ReceiverBankAccountNumber", "receiverBankAccountNumber", texts, ""},
	} {
		in := input{
			name: "TransferParams." + f.field, refuses: f.refuses, benign: f.benign, without: transfers(),
			sent: func(text string) string { return transfers(f.name, text) },
			call: transferring(func(p *cardwire.TransferParams, text string) {
				reflect.ValueOf(p).Elem().FieldByName(f.field).SetString(text)
			}),
		}
		if f.field == "MerchantOrderNo" {
			in.without = ""
		}
		list = append(list, in)
	}
	return list
}

// extraInputs are those of the fields that a transfer has beside its own.
func extraInputs() []input {
	return []input{
		{
			name: "TransferParams.Extra, name", refuses: control | invalid, sent: func(text string) string { return transfers("branch", "x", text, "x") },
			call: transferring(func(p *cardwire.TransferParams, text string) {
				p.Extra = map[string]string{"branch": "x", text: "x"}
			}),
		},
		{
			name: "TransferParams.Extra, value", refuses: texts, sent: func(text string) string { return transfers("branch", text) }, without: transfers(),
			call: transferring(func(p *cardwire.TransferParams, text string) {
				p.Extra = map[string]string{"branch": text}
			}),
		},
	}
}

// profileInputs are what other operations take from the profile.
func profileInputs() []input {
	return []input{
		{
			name: "Profile.RetryAction", refuses: names,
			sent: endingIn(post + "/cards/adjustAction\"" + usual + formBody + "\nform \"client_transaction_id\" = \"" + uuidText + "\"\nform \"type\""),
			call: func(ctx context.Context, base, text string) error {
				p := cardwire.DefaultProfile()
				p.RetryAction = text
				c, err := matrixClient(base, cardwire.WithProfile(func(own *cardwire.Profile) { *own = p }))
				if err != nil {
					return err
				}
				return c.RetryOperation(ctx, uuidText)
			},
		},
		{
			name: "Profile.CardIDParam", refuses: names,
			sent: func(text string) string { return askCard + "\nquery " + strconv.Quote(text) + " = \"c-1\"" },
			call: func(ctx context.Context, base, text string) error {
				p := cardwire.DefaultProfile()
				p.CardIDParam = text
				c, err := matrixClient(base, cardwire.WithProfile(func(own *cardwire.Profile) { *own = p }))
				if err != nil {
					return err
				}
				_, err = c.GetCard(ctx, "c-1")
				return err
			},
		},
	}
}

// listInputs are the names of the parameters of ListCards.
func listInputs() (list []input) {
	active := cardwire.CardActive
	day := cardwire.Date{Year: 2026, Month: 2, Day: 3}
	for field, f := range map[string]struct {
		params cardwire.ListCardsParams
		value  string
	}{
		"LimitParam":          {cardwire.ListCardsParams{Limit: 20}, "20"},
		"PageParam":           {cardwire.ListCardsParams{Page: 7}, "7"},
		"StatusParam":         {cardwire.ListCardsParams{Status: &active}, "0"},
		"CardBINParam":        {cardwire.ListCardsParams{CardBIN: "493193"}, "493193"},
		"SubAccountParam":     {cardwire.ListCardsParams{SubAccountID: "s-1"}, "s-1"},
		"CreatedFromParam":    {cardwire.ListCardsParams{CreatedFrom: day}, "2026-02-03"},
		"CreatedToParam":      {cardwire.ListCardsParams{CreatedTo: day}, "2026-02-03"},
		"TransactedFromParam": {cardwire.ListCardsParams{TransactedFrom: day}, "2026-02-03"},
		"TransactedToParam":   {cardwire.ListCardsParams{TransactedTo: day}, "2026-02-03"},
	} {
		list = append(list, input{
			name: "Profile." + field, refuses: names,
			sent: func(text string) string {
				return askCards + "\nquery " + strconv.Quote(text) + " = \"" + f.value + "\""
			},
			call: func(ctx context.Context, base, text string) error {
				p := cardwire.DefaultProfile()
				reflect.ValueOf(&p).Elem().FieldByName(field).SetString(text)
				return listWith(ctx, base, p, f.params)
			},
		})
	}
	return list
}

func TestHostileStrings(t *testing.T) {
	t.Parallel()
	for _, in := range inputs(t) {
		t.Run(in.name, func(t *testing.T) {
			t.Parallel()
			service := tap(t)
			arrived := 0
			for _, h := range hostile {
				if h.class&long != 0 && testing.Short() {
					continue
				}
				if !in.mayHold(h.text, h.class) {
					assertRefused(t, service, in, h.text)
					continue
				}
				arrived++
				assertArrives(t, service, in, h.text, in.sent(h.text))
			}
			if in.benign != "" {
				arrived++
				assertArrives(t, service, in, in.benign, in.sent(in.benign))
			}
			assert.NotZero(t, arrived, "a test that nothing passes proves nothing")
			if in.without == "" {
				assertRefused(t, service, in, "")
			} else {
				assertArrives(t, service, in, "", in.without)
			}
		})
	}
}

func (in *input) mayHold(text string, c class) bool {
	return (c&in.refuses == 0) != slices.Contains(in.although, text)
}

func assertRefused(t *testing.T, service *tapped, in input, text string) {
	t.Helper()
	before := service.conns.Load()
	err := in.call(t.Context(), service.base, text)
	if n := service.conns.Load() - before; n != 0 {
		t.Errorf("there was a connection for %.60q", text)
		for range n {
			<-service.requests
		}
		return
	}
	require.Error(t, err, "%.60q", text)
	if !in.unnamed {
		assert.ErrorIs(t, err, cardwire.ErrInvalidParams, "of %.60q", text)
	}
	var failure *cardwire.Error
	if errors.As(err, &failure) {
		assert.Equal(t, cardwire.OutcomeNotSent, failure.Outcome, "of %.60q", text)
	}
	if !in.unnamed && len(text) > 2 {
		assert.NotContains(t, err.Error(), text)
	}
}

func assertArrives(t *testing.T, service *tapped, in input, text, want string) {
	t.Helper()
	before := service.conns.Load()
	err := in.call(t.Context(), service.base, text)
	if service.conns.Load() == before {
		t.Errorf("%.60q was not sent: %v", text, err)
		return
	}
	// It is what the service responds to every request.
	assert.ErrorIs(t, err, cardwire.ErrNotFound, "of %.60q", text)
	got := readBack(t, <-service.requests, service.base)
	if want == anyUUID {
		assert.Regexp(t, `"clientTransactionId" = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`, got)
		return
	}
	if len(want) > 10_000 { // a diff of these would not help
		assert.True(t, want == got, "of %.60q", text)
		return
	}
	assert.Equal(t, want, got)
}

// tapped is a service on loopback that responds with 404, and returns the bytes of each
// connection.
type tapped struct {
	base     string
	requests chan []byte
	conns    atomic.Int32
}

func tap(t *testing.T) *tapped {
	t.Helper()
	s := &tapped{requests: make(chan []byte, 1)}
	done := make(chan struct{})
	s.base = loopback.Listen(t, func(conn net.Conn) {
		s.conns.Add(1)
		select {
		case s.requests <- s.serve(conn):
		case <-done:
		}
	}) + "/shop/api/v1"
	t.Cleanup(func() { close(done) })
	return s
}

// serve responds to the first request and returns all that came, to the last byte.
func (s *tapped) serve(conn net.Conn) []byte {
	defer conn.Close()
	var all bytes.Buffer
	text := bufio.NewReader(io.TeeReader(conn, &all))
	if r, err := http.ReadRequest(text); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	_, _ = io.WriteString(conn, loopback.Response("200 OK", "", nothingThere))
	_, _ = io.Copy(io.Discard, text) // until the client closes
	return all.Bytes()
}

// readBack reads the bytes of one request without the help of net/http, and
// writes down what they say: the method and the path, the headers, and what is
// in the query and the body. It insists that there is nothing else.
func readBack(t *testing.T, raw []byte, base string) string {
	t.Helper()
	head, body, whole := strings.Cut(string(raw), "\r\n\r\n")
	require.True(t, whole)
	lines := strings.Split(head, "\r\n")
	headers := map[string]string{}
	for _, line := range lines {
		require.False(t, strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }), "%.100q", line)
	}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ": ")
		require.True(t, ok, line)
		require.NotContains(t, headers, name)
		headers[name] = value
	}
	method, target, _ := strings.Cut(lines[0], " ")
	target, version, _ := strings.Cut(target, " ")
	require.Equal(t, "HTTP/1.1", version)
	require.Equal(t, strings.TrimSuffix(base, "/shop/api/v1"), "http://"+headers["Host"])
	if length, ok := headers["Content-Length"]; ok || body != "" {
		require.Equal(t, strconv.Itoa(len(body)), length)
	}
	media, params := headers["Content-Type"], map[string]string(nil)
	if media != "" {
		var err error
		media, params, err = mime.ParseMediaType(media)
		require.NoError(t, err)
		headers["Content-Type"] = media
	}
	for _, name := range []string{"Host", "Content-Length", "Connection"} {
		delete(headers, name)
	}
	headers["User-Agent"] = regexp.MustCompile(`cardwire-go/[0-9a-z.+-]+$`).ReplaceAllString(headers["User-Agent"], "cardwire-go/*")

	path, query, _ := strings.Cut(target, "?")
	plainPath, err := url.PathUnescape(path)
	require.NoError(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", method, plainPath)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		fmt.Fprintf(&b, "\n%s: %q", name, headers[name])
	}
	b.WriteString(pairs(t, "query", query))
	switch media {
	case "application/x-www-form-urlencoded":
		b.WriteString(pairs(t, "form", body))
	case "application/json":
		b.WriteString(fields(t, body))
	case "multipart/form-data":
		b.WriteString(parts(t, body, params["boundary"]))
	default:
		require.Empty(t, body)
	}
	return b.String()
}

func pairs(t *testing.T, kind, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	var b strings.Builder
	for pair := range strings.SplitSeq(text, "&") {
		name, value, ok := strings.Cut(pair, "=")
		require.True(t, ok)
		require.False(t, strings.ContainsFunc(name+value, needsEscape), "%.100q", pair)
		name, err := url.QueryUnescape(name)
		require.NoError(t, err)
		value, err = url.QueryUnescape(value)
		require.NoError(t, err)
		fmt.Fprintf(&b, "\n%s %q = %q", kind, name, value)
	}
	return b.String()
}

func needsEscape(r rune) bool {
	return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("%+._~-", r)
}

func fields(t *testing.T, text string) string {
	t.Helper()
	require.True(t, utf8.ValidString(text), "encoding/json would replace it")
	require.Equal(t, 1, strings.Count(text, "{")-strings.Count(text, `{\"`), "one object")
	var object map[string]string
	require.NoError(t, json.Unmarshal([]byte(text), &object))
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(object)) {
		fmt.Fprintf(&b, "\nmember %q = %q", name, object[name])
	}
	return b.String()
}

func parts(t *testing.T, body, boundary string) string {
	t.Helper()
	require.Regexp(t, `^[0-9a-f]{60}$`, boundary)
	require.True(t, strings.HasPrefix(body, "--"+boundary+"\r\n"))
	require.True(t, strings.HasSuffix(body, "\r\n--"+boundary+"--\r\n"))
	var b strings.Builder
	for reader := multipart.NewReader(strings.NewReader(body), boundary); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		require.NoError(t, err)
		content, err := io.ReadAll(part)
		require.NoError(t, err)
		disposition, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		require.NoError(t, err)
		require.Equal(t, "form-data", disposition)
		names := slices.Sorted(maps.Keys(part.Header))
		if filename, ok := params["filename"]; ok {
			require.Equal(t, []string{"Content-Disposition", "Content-Type"}, names)
			require.Equal(t, []string{"filename", "name"}, slices.Sorted(maps.Keys(params)))
			fmt.Fprintf(&b, "\nfile %q called %q of %q = %q", params["name"], filename, part.Header.Get("Content-Type"), content)
			continue
		}
		require.Equal(t, []string{"Content-Disposition"}, names)
		require.Equal(t, []string{"name"}, slices.Sorted(maps.Keys(params)))
		fmt.Fprintf(&b, "\npart %q = %q", params["name"], content)
	}
}

// The environment is read by NewFromEnv only, which hands it on to New.
func TestHostileEnvironment(t *testing.T) {
	for variable, name := range map[string]string{"CARDWIRE_BASE_URL": "New baseURL", "CARDWIRE_API_KEY": "New apiKey"} {
		list := inputs(t)
		in := list[slices.IndexFunc(list, func(in input) bool { return in.name == name })]
		in.call = func(ctx context.Context, base, text string) error {
			t.Setenv("CARDWIRE_BASE_URL", base)
			t.Setenv("CARDWIRE_API_KEY", matrixKey)
			if variable == "CARDWIRE_BASE_URL" {
				text = base + "/" + text
			}
			t.Setenv(variable, text)
			c, err := cardwire.NewFromEnv(cardwire.WithRetry(cardwire.RetryPolicy{}))
			if err != nil {
				return err
			}
			_, err = c.ListBINs(ctx)
			return err
		}
		service := tap(t)
		for _, h := range hostile {
			switch {
			case strings.Contains(h.text, "\x00"), h.class&long != 0: // no environment holds them
			case in.mayHold(h.text, h.class):
				assertArrives(t, service, in, h.text, in.sent(h.text))
			default:
				assertRefused(t, service, in, h.text)
			}
		}
	}
}

// Texts that are handed in and never sent.
var unsent = map[string]string{
	"NewCardNumber s":                "it is kept here",
	"NewCVV s":                       "it is kept here",
	"NewEncryptedPAN base64":         "it is kept here",
	"ParseDate s":                    "what it makes is a day, and only that is sent",
	"AuthRequirement.Missing values": "it is compared here",
	"NewFromEnv CARDWIRE_BASE_URL":   "TestHostileEnvironment tries it",
	"NewFromEnv CARDWIRE_API_KEY":    "TestHostileEnvironment tries it",
}

// A function, a field or a variable of the environment that is added must be
// added to the inputs above, or to what is never sent.
func TestTheListOfInputsIsComplete(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, in := range inputs(t) {
		listed = append(listed, in.name)
	}
	slices.Sort(listed)
	require.Equal(t, slices.Compact(slices.Clone(listed)), listed)
	found := textInputs(t)
	for _, name := range found {
		if unsent[name] == "" {
			assert.Contains(t, listed, name, "nobody tries it")
		}
	}
	for _, name := range slices.Concat(listed, slices.Collect(maps.Keys(unsent))) {
		assert.Contains(t, found, name, "there is no such input")
	}
}

// parameterTypes are the types of this package that functions of it take. Those
// of interfaces and functions are nil: what they hold is theirs.
var parameterTypes = map[string]reflect.Type{
	"Option": nil, "CallOption": nil, "Doer": nil, "Limiter": nil, "Journal": nil,
	"Client": nil, "Response": nil, "Part": nil, // filled in by the client, or a field of Request
	"Observer":          reflect.TypeFor[cardwire.Observer](),
	"RetryPolicy":       reflect.TypeFor[cardwire.RetryPolicy](),
	"Profile":           reflect.TypeFor[cardwire.Profile](),
	"Request":           reflect.TypeFor[cardwire.Request](),
	"ListCardsParams":   reflect.TypeFor[cardwire.ListCardsParams](),
	"FreezeCardParams":  reflect.TypeFor[cardwire.FreezeCardParams](),
	"TransferParams":    reflect.TypeFor[cardwire.TransferParams](),
	"UploadImageParams": reflect.TypeFor[cardwire.UploadImageParams](),
}

// textInputs finds which strings the exported functions take: parameters, fields
// of parameters, what functions that are handed in return, and the environment.
func textInputs(t *testing.T) (found []string) {
	t.Helper()
	for _, file := range syntax.Files(t, "../../..") {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				receiver := syntax.BaseName(f.Recv.List[0].Type)
				if !ast.IsExported(receiver) {
					continue
				}
				if receiver != "Client" {
					name = receiver + "." + name
				}
			}
			found = append(found, parameterInputs(t, name, f.Type.Params)...)
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isGetenv(call) {
					variable, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
					require.NoError(t, err)
					found = append(found, name+" "+variable)
				}
				return true
			})
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func isGetenv(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Getenv" && syntax.BaseName(f.X) == "os"
}

func parameterInputs(t *testing.T, function string, params *ast.FieldList) (found []string) {
	t.Helper()
	for _, p := range params.List {
		for _, name := range p.Names {
			switch x := p.Type.(type) {
			case *ast.FuncType:
				if x.Results != nil && slices.ContainsFunc(x.Results.List, func(r *ast.Field) bool { return syntax.BaseName(r.Type) == "string" }) {
					found = append(found, function+" "+name.Name)
				}
				for _, set := range x.Params.List { // what a function that is handed in fills in
					if star, ok := set.Type.(*ast.StarExpr); ok {
						found = append(found, structInputs(t, function, star)...)
					}
				}
			case *ast.MapType:
				found = append(found, function+" "+name.Name)
			case *ast.Ident, *ast.StarExpr:
				if _, ofAnother := dereferenced(x).(*ast.SelectorExpr); !ofAnother && syntax.BaseName(x) == "string" {
					found = append(found, function+" "+name.Name)
					continue
				}
				found = append(found, structInputs(t, function, x)...)
			}
		}
	}
	return found
}

// structInputs are the fields of a type of this package that a function takes.
func structInputs(t *testing.T, function string, x ast.Expr) []string {
	t.Helper()
	typeName := syntax.BaseName(x)
	if _, ofAnother := dereferenced(x).(*ast.SelectorExpr); ofAnother || !ast.IsExported(typeName) {
		return nil
	}
	parameter, known := parameterTypes[typeName]
	if !assert.True(t, known, "%s takes a %s: add it to parameterTypes", function, typeName) || parameter == nil {
		return nil
	}
	return fieldInputs(typeName, parameter)
}

func dereferenced(e ast.Expr) ast.Expr {
	if star, ok := e.(*ast.StarExpr); ok {
		return star.X
	}
	return e
}

func fieldInputs(name string, of reflect.Type) (found []string) {
	switch of.Kind() {
	case reflect.String, reflect.Interface:
		return []string{name}
	case reflect.Map:
		return []string{name + ", name", name + ", value"}
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return fieldInputs(name, of.Elem())
	case reflect.Struct:
		for i := range of.NumField() {
			if f := of.Field(i); f.IsExported() {
				found = append(found, fieldInputs(name+"."+f.Name, f.Type)...)
			}
		}
	}
	return found
}

// A search that finds nothing would pass the test above.
func TestTheSearchForInputsFindsThem(t *testing.T) {
	t.Parallel()
	type inner struct{ Text string }
	type params struct {
		Plain   string
		Named   cardwire.TransferStatus
		Number  int
		List    []string
		Nested  inner
		Pointer *inner
		Values  url.Values
		Any     any
		Call    func() string
		hidden  string
	}
	assert.Empty(t, params{}.hidden)
	assert.Equal(t, []string{
		"P.Plain", "P.Named", "P.List", "P.Nested.Text", "P.Pointer.Text", "P.Values, name", "P.Values, value", "P.Any",
	}, fieldInputs("P", reflect.TypeFor[params]()))
	function := &ast.FieldList{List: []*ast.Field{
		{Names: []*ast.Ident{{Name: "a"}, {Name: "b"}}, Type: &ast.Ident{Name: "string"}},
		{Names: []*ast.Ident{{Name: "p"}}, Type: &ast.Ident{Name: "FreezeCardParams"}},
		{Names: []*ast.Ident{{Name: "m"}}, Type: &ast.MapType{}},
		{Names: []*ast.Ident{{Name: "f"}}, Type: &ast.FuncType{
			Params:  &ast.FieldList{List: []*ast.Field{{Type: &ast.StarExpr{X: &ast.Ident{Name: "FreezeCardParams"}}}}},
			Results: &ast.FieldList{List: []*ast.Field{{Type: &ast.Ident{Name: "string"}}}},
		}},
	}}
	assert.Equal(t, []string{
		"F a", "F b", "FreezeCardParams.CardID", "FreezeCardParams.ClientTransactionID", "F m",
		"F f", "FreezeCardParams.CardID", "FreezeCardParams.ClientTransactionID",
	},
		parameterInputs(t, "F", function))
}
