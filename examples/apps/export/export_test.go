package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/internal/test/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = "id,trade_id,label,bin,number,expiry,status,currency,available,pending,frozen,fee," +
	"holder,email,created,updated,remark\n"

// page is a response of the service.
func page(number, last, total int, cards ...string) string {
	return fmt.Sprintf(`{"code":200,"msg":"success","data":{
"total":%d,"per_page":2,"current_page":%d,"last_page":%d,"data":[%s]}}`, total, number, last, strings.Join(cards, ","))
}

// card is one of a page, with a label of two lines.
func card(id string) string {
	return strings.NewReplacer(
		`"card-1"`, `"`+id+`"`, `"marketing/1"`, `"team\n\"a\""`, `12.5`, `-1.25`,
		`"Zoë \"Z\" Ødegård"`, `"=HYPERLINK(\"http://x\")"`, `"zoe@example.no"`, `"@a"`,
	).Replace(contract.Element("second", 0))
}

// row is what the file has of the card.
func row(id string) string {
	return id + `,trade-1,"team` + "\n" + `""a""",428837,428837******0003,09/2028,suspended,USD,1250.500,-1.25,0.25,1.50,` +
		`"'=HYPERLINK(""http://x"")",'@a,2025-01-02 03:04:05,2025-02-03 04:05:06,checked` + "\n"
}

// broken is a response that is not retried.
const broken = `{"code":403,"msg":"not now"}`

// service serves the responses by the number of the page; those that there are not, it
// refuses. It returns the numbers that were asked for.
func service(t *testing.T, responses map[string]string) *[]string {
	t.Helper()
	asked := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := r.URL.Query().Get("page")
		assert.Equal(t, "/api/v1/cards?limit=2&page="+number, r.URL.String())
		*asked = append(*asked, number)
		response, ok := responses[number]
		if !ok {
			response = broken
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(response))
	}))
	t.Cleanup(server.Close)
	t.Setenv("CARDWIRE_BASE_URL", server.URL+"/api/v1")
	t.Setenv("CARDWIRE_API_KEY", "key")
	return asked
}

// exported runs the program, two cards to a page, and returns its exit status and what it
// wrote to its two outputs.
func exported(ctx context.Context, name string, args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = status(ctx, &o, &e, append([]string{"-limit", "2", "-prefetch", "0", "-out", name}, args...))
	return code, o.String(), e.String()
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

// beside returns the names of the files where the export is.
func beside(t *testing.T, name string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Amounts are as they were sent, numbers masked, and a card that moved to the next page while
// pages were read is there once.
func TestTheFile(t *testing.T) {
	service(t, map[string]string{
		"1": page(1, 2, 3, card("c1"), card("c2")),
		"2": page(2, 2, 3, card("c2"), card("-c3")),
	})
	name := filepath.Join(t.TempDir(), "cards.csv")
	code, out, errs := exported(t.Context(), name, "-prefetch", "4")
	assert.Zero(t, code)
	assert.Equal(t, "3 cards are in "+name+"\n", out)
	assert.Empty(t, errs, "no progress where nobody looks on")
	assert.Equal(t, header+row("c1")+row("c2")+row("'-c3"), text(t, name))
	assert.Equal(t, []string{"cards.csv"}, beside(t, name))
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// A former export stays until the new one is whole. What was read before an error is not read
// again, and others may not read it meanwhile.
func TestAnErrorIsResumedFrom(t *testing.T) {
	responses := map[string]string{
		"1": page(1, 3, 5, card("c1"), card("c2")),
		"2": page(2, 3, 5, card("c3"), card("c4")),
	}
	asked := service(t, responses)
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, os.WriteFile(name, []byte("former"), 0o600))
	require.NoError(t, os.WriteFile(name+".part", nil, 0o600))
	require.NoError(t, os.Chmod(name+".part", 0o644))
	code, out, errs := exported(t.Context(), name)
	assert.Equal(t, 1, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "export: 4 cards are in "+name+".part, where the next run resumes: cardwire: ListCards")
	assert.Equal(t, "former", text(t, name))
	assert.Equal(t, header+row("c1")+row("c2")+row("c3")+row("c4"), text(t, name+".part"))
	info, err := os.Stat(name + ".part")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	responses["3"] = page(3, 3, 5, card("c5"))
	code, out, _ = exported(t.Context(), name)
	assert.Zero(t, code)
	assert.Equal(t, "5 cards are in "+name+"\n", out)
	assert.Equal(t, []string{"1", "2", "3", "2", "3"}, *asked)
	assert.Equal(t, header+row("c1")+row("c2")+row("c3")+row("c4")+row("c5"), text(t, name))
	assert.Equal(t, []string{"cards.csv"}, beside(t, name))
}

// Wherever a crash cuts the part off, whatever stands behind, the file is what it would be
// without.
func TestACrashIsResumedFrom(t *testing.T) {
	service(t, map[string]string{"1": page(1, 2, 3, card("c1"), card("@c2")), "2": page(2, 2, 3, card("c3"))})
	whole := header + row("c1") + row("'@c2") + row("c3")
	name := filepath.Join(t.TempDir(), "cards.csv")
	for end := len(header); end <= len(whole); end++ {
		garbage := []string{row("c9"), "", "\n\x00\x00"}[(len(whole)-end)%3]
		require.NoError(t, os.WriteFile(name+".part", []byte(whole[:end]+garbage), 0o600))
		code, _, errs := exported(t.Context(), name)
		require.Zero(t, code, errs)
		require.Equal(t, whole, text(t, name), "cut off after %d bytes", end)
	}
}

func TestAnInterrupt(t *testing.T) {
	service(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	name := filepath.Join(t.TempDir(), "cards.csv")
	code, out, errs := exported(ctx, name)
	assert.Equal(t, 130, code)
	assert.Empty(t, out)
	assert.Regexp(t, `^export: 0 cards are in [^\n]*the context was already canceled[^\n]*\n$`, errs)
	assert.NoFileExists(t, name)
}

func TestWhatIsNotBegun(t *testing.T) {
	asked := service(t, nil)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.part"), []byte("id,name\n"), 0o600))
	for name, want := range map[string]string{
		"":         "is not a regular file: give the name of a file\n",
		"notes":    "notes.part is not what an export left: remove it, or give -out another name\n",
		"none/csv": "no such file or directory\n",
	} {
		code, _, errs := exported(t.Context(), filepath.Join(dir, name))
		assert.Equal(t, 1, code)
		assert.Contains(t, errs, want)
	}
	assert.Empty(t, *asked)
	assert.Equal(t, "id,name\n", text(t, filepath.Join(dir, "notes.part")))
	assert.Equal(t, []string{"notes.part"}, beside(t, filepath.Join(dir, "notes")))
}

func TestTheCommandLine(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", "")
	name := filepath.Join(t.TempDir(), "cards.csv")
	for want, args := range map[string][]string{
		"export: flag provided but not defined: -nope: -help lists the flags\n":                {"-nope"},
		"export: unexpected argument \"now\": -help lists the flags\n":                         {"now"},
		"export: -limit must be at least 1: -help lists the flags\n":                           {"-limit", "0"},
		"export: invalid value \"many\" for flag -limit: parse error: -help lists the flags\n": {"-limit", "many"},
	} {
		code, out, errs := exported(t.Context(), name, args...)
		assert.Equal(t, 2, code, args)
		assert.Empty(t, out, args)
		assert.Equal(t, want, errs)
	}
	code, _, errs := exported(t.Context(), name)
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, "CARDWIRE_BASE_URL is empty")
	code, out, errs := exported(t.Context(), name, "-help")
	assert.Zero(t, code)
	assert.Empty(t, errs)
	for _, part := range []string{"writes all cards", "CARDWIRE_BASE_URL", "CARDWIRE_API_KEY", "\n  -out file\n"} {
		assert.Contains(t, out, part)
	}
	assert.Empty(t, beside(t, name))
}

// suspicious are strings of which a spreadsheet takes a part for a formula.
var suspicious = []string{
	"=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "\n=1+1", "\r\n=1+1", " =1+1", "\u00a0=1+1",
	"\u3000\u200b\ufeff=1+1", "＝1+1", "＋1+1", "－1+1", "＠SUM(A1)", "﹦1", "﹢1", "﹣1", "﹫A1", "−1+1", " ＝1+1",
	"a;=1+1", "a; =1+1", "a;;＝1+1", "a|@A1", "a\t+1+1", "a\n=1+1", "a\r\n-1+1",
	`"=1+1"`, `a;"=1+1"`, `a" ; "=1+1`, "a;-1",
}

// A formula begins no cell, neither of the field nor of what another separator makes of it.
// The run that resumes reads what was written, and of one string only.
func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	separator, written := regexp.MustCompile(`[;|\t\r\n]`), map[string]string{}
	for _, field := range suspicious {
		for _, field := range []string{
			field, "'" + field, harmless(field), strings.ReplaceAll(field, "=", "'="),
			strings.ReplaceAll(field, ";", ";'"), strings.ReplaceAll(field, "\r", ""),
		} {
			got := harmless(field)
			for _, cell := range append(separator.Split(got, -1), got) {
				assert.NotRegexp(t, `^[\s\pZ\pC"]*[=+\-@＝＋－＠﹦﹢﹣﹫−]`, cell, "%q became %q", field, got)
			}
			var file strings.Builder
			rows := csv.NewWriter(&file)
			require.NoError(t, rows.Write([]string{got, "x"}))
			rows.Flush()
			read, err := csv.NewReader(strings.NewReader(file.String())).Read()
			require.NoError(t, err)
			assert.Equal(t, got, read[0], "of %q", field)
			other, known := written[got]
			assert.True(t, !known || other == field, "%q and %q became one", field, other)
			written[got] = field
		}
	}
	for _, field := range []string{"", "a=1", "a - b", "a; b", "x@y.example", "Ünal", "400000******0018"} {
		assert.Equal(t, field, harmless(field), "what no spreadsheet calculates")
	}
}
