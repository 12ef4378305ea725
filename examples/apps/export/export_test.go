package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = "id,trade_id,label,bin,number,expiry,status,currency,available,pending,frozen,fee,holder,email,created,updated,remark\n"

// carrier responds with the source of a page of cards.
type carrier string

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(string(c))), ContentLength: int64(len(c)),
	}, nil
}

const twoCards = `{"code":200,"msg":"success","data":{"total":2,"per_page":100,"current_page":1,"last_page":1,"data":[
{"id":"c1","trade_id":"t1","label":"team, \"a\"","bin_id":1,"card_bin":"400000","card_no":"4000001234560018","cvv":"987",
"currency":"USD","available":"12.500","pending":-1.25,"frozen":0,"expire_date":"08/2027","holder_username":"=HYPERLINK(\"http://x\")",
"holder_address":[],"create_time":"2026-01-02 03:04:05","update_time":"2026-02-03 04:05:06","status":0,"remark":null,
"holder_phone":"","holder_phone_code":"","holder_email":"@a","fee":"0.10","destory_reason":null,"nickname":"","physical":0,
"physical_status":0,"deliver_status":0,"platform_waybill_number":null,"platform_waybill_company":null},
{"id":"c2","trade_id":"t2","label":null,"bin_id":1,"card_bin":"400000","card_no":"4000001234560026","cvv":"986",
"currency":"EUR","available":"1.000","pending":0,"frozen":3,"expire_date":"09/2028","holder_username":"Ünal",
"holder_address":[],"create_time":"2026-01-02 03:04:05","update_time":"2026-02-03 04:05:06","status":4,"remark":"-",
"holder_phone":"","holder_phone_code":"","holder_email":"","fee":"0.10","destory_reason":null,"nickname":"","physical":0,
"physical_status":0,"deliver_status":0,"platform_waybill_number":null,"platform_waybill_company":null}]}}`

// place returns the settings of an export into a directory of the test's own.
func place(t *testing.T) settings {
	t.Helper()
	return settings{out: filepath.Join(t.TempDir(), "cards.csv"), limit: 10}
}

// exported makes one run, on a client with this transport.
func exported(t *testing.T, s settings, transport http.RoundTripper, opts ...cardwire.Option) (*totals, error) {
	t.Helper()
	opts = append(opts, cardwire.WithHTTPClient(&http.Client{Transport: transport}))
	client, err := cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, opts...)
	require.NoError(t, err)
	f, err := openPart(s)
	if err != nil {
		return nil, err
	}
	defer f.close()
	return export(t.Context(), client, f, io.Discard)
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

func TestTheFile(t *testing.T) {
	for name, tc := range map[string]struct {
		reveal bool
		first  string
		second string
	}{
		"masked":   {false, "400000******0018", "400000******0026"},
		"revealed": {true, "4000001234560018", "4000001234560026"},
	} {
		t.Run(name, func(t *testing.T) {
			s := place(t)
			s.reveal = tc.reveal
			totals, err := exported(t, s, carrier(twoCards))
			require.NoError(t, err)
			assert.Equal(t, header+
				`c1,t1,"team, ""a""",400000,`+tc.first+`,08/2027,active,USD,12.500,-1.25,0,0.10,"'=HYPERLINK(""http://x"")",'@a,2026-01-02 03:04:05,2026-02-03 04:05:06,`+"\n"+
				`c2,t2,,400000,`+tc.second+`,09/2028,suspended,EUR,1.000,0,3,0.10,Ünal,,2026-01-02 03:04:05,2026-02-03 04:05:06,'-`+"\n",
				text(t, s.out))
			info, err := os.Stat(s.out)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			left, err := os.ReadDir(filepath.Dir(s.out))
			require.NoError(t, err)
			assert.Len(t, left, 1, "what is beside the file")

			var out strings.Builder
			require.NoError(t, totals.print(&out))
			assert.Equal(t, `2 cards

STATUS     CARDS
active     1
suspended  1
           
CURRENCY   CARDS  AVAILABLE  PENDING  FROZEN
EUR        1      1.000      0        3
USD        1      12.500     -1.25    0
`, out.String())
		})
	}
}

// pagesUntil is a limiter that lets n pages be read.
func pagesUntil(n int, end func() error) cardwire.Option {
	return cardwire.WithLimiter(limiter(func() error {
		if n--; n < 0 {
			return end()
		}
		return nil
	}))
}

type limiter func() error

func (l limiter) Wait(ctx context.Context) error { return errors.Join(l(), ctx.Err()) }

// What was read before an error is not read again, and the file is the same as
// if there had been no error.
func TestAnErrorIsResumedFrom(t *testing.T) {
	service := cardwiretest.New(cardwiretest.WithCards(95))
	undisturbed := place(t)
	want, err := exported(t, undisturbed, service)
	require.NoError(t, err)

	s := place(t)
	for _, page := range []int{4, 8} {
		down := pagesUntil(3+page/8, func() error { return errors.New("down") })
		_, err = exported(t, s, service, down)
		require.ErrorContains(t, err, fmt.Sprintf("run it again to resume at page %d", page))
		require.ErrorIs(t, err, cardwire.ErrNotSent)
		assert.NoFileExists(t, s.out)
		assert.NotRegexp(t, `[0-9]{13}`, text(t, s.out+".part"))
	}
	totals, err := exported(t, s, service)
	require.NoError(t, err)
	assert.Equal(t, text(t, undisturbed.out), text(t, s.out))
	assert.Equal(t, 95, totals.cards)
	assert.Equal(t, want.byStatus, totals.byStatus)
	for currency, sum := range want.byCurrency {
		assert.Equal(t, exact(sum.available), exact(totals.byCurrency[currency].available), currency)
	}
	assert.NoFileExists(t, s.out+".part")
	assert.NoFileExists(t, s.out+".part.json")
}

func TestAnInterruptLeavesWhatWasRead(t *testing.T) {
	service := cardwiretest.New(cardwiretest.WithCards(95))
	s := place(t)
	ctx, interrupt := context.WithCancel(t.Context())
	client, err := cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey,
		cardwire.WithHTTPClient(&http.Client{Transport: service}),
		pagesUntil(2, func() error { interrupt(); return nil }))
	require.NoError(t, err)
	f, err := openPart(s)
	require.NoError(t, err)
	defer f.close()
	_, err = export(ctx, client, f, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "resume at page 3")
	assert.Equal(t, 1+20, strings.Count(text(t, s.out+".part"), "\n"))
}

// A card that moved to a later page between two runs is written once, and half a
// row that a crash left is not kept.
func TestWhatIsThereTwiceIsWrittenOnce(t *testing.T) {
	service := cardwiretest.New(cardwiretest.WithCards(95))
	undisturbed := place(t)
	_, err := exported(t, undisturbed, service)
	require.NoError(t, err)
	s := place(t)
	_, err = exported(t, s, service, pagesUntil(3, func() error { return errors.New("down") }))
	require.Error(t, err)
	part := text(t, s.out+".part")
	require.NoError(t, os.WriteFile(s.out+".part", []byte(part+"half a r"), 0o600))
	state := text(t, s.out+".part.json")
	require.NoError(t, os.WriteFile(s.out+".part.json", []byte(strings.Replace(state, `"next_page":4`, `"next_page":3`, 1)), 0o600))
	_, err = exported(t, s, service)
	require.NoError(t, err)
	assert.Equal(t, text(t, undisturbed.out), text(t, s.out))
}

// A card is known again also where its ID does not stand in the file as it was sent.
func TestAnIDThatLooksLikeAFormulaIsWrittenOnce(t *testing.T) {
	cards := strings.NewReplacer(`"id":"c1"`, `"id":"-c1"`, `"id":"c2"`, `"id":"@c2;＝1"`, `"EUR"`, `"=EUR"`).Replace(twoCards)
	undisturbed, s := place(t), place(t)
	first, err := exported(t, undisturbed, carrier(cards))
	require.NoError(t, err)
	want := text(t, undisturbed.out)
	require.Contains(t, want, "\n'-c1,t1,")
	require.Contains(t, want, "\n'@c2;'＝1,t2,")

	// The run before ended after the page that comes once more now.
	require.NoError(t, os.WriteFile(s.out+".part", []byte(want), 0o600))
	state := fmt.Sprintf(`{"fake":false,"reveal":false,"limit":10,"next_page":1,"bytes":%d}`, len(want))
	require.NoError(t, os.WriteFile(s.out+".part.json", []byte(state), 0o600))
	totals, err := exported(t, s, carrier(cards))
	require.NoError(t, err)
	assert.Equal(t, want, text(t, s.out))
	assert.Equal(t, 2, totals.cards)
	assert.Equal(t, first.byCurrency, totals.byCurrency)
}

// suspicious are strings of which a spreadsheet takes a part for a formula.
var suspicious = []string{
	"=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "\n=1+1", "\r\n=1+1", " =1+1", "\u00a0=1+1", "\u3000\u200b\ufeff=1+1",
	"＝1+1", "＋1+1", "－1+1", "＠SUM(A1)", "﹦1", "﹢1", "﹣1", "﹫A1", "−1+1", " ＝1+1",
	"a;=1+1", "a; =1+1", "a;;＝1+1", "a|@A1", "a\t+1+1", "a\n=1+1", "a\r\n-1+1", `"=1+1"`, `a;"=1+1"`, `a" ; "=1+1`, "a;-1",
}

// cellOf matches the separators that a spreadsheet may be told to use, or guess.
var cellOf = regexp.MustCompile(`[;|\t\r\n]`)

// A formula begins no cell, neither of the field nor of what another separator makes of it.
func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for _, field := range suspicious {
		got := harmless(field)
		for _, cell := range append(cellOf.Split(got, -1), got) {
			assert.NotRegexp(t, `^[\s\pZ\pC"]*[=+\-@＝＋－＠﹦﹢﹣﹫−]`, cell, "%q became %q", field, got)
		}
	}
	for _, field := range []string{"", "-1.25", "-0.00", "+5", "a=1", "a - b", "a; b", "x@y.example", "Ünal", "2026-01-02 03:04:05", "400000******0018"} {
		assert.Equal(t, field, harmless(field), "what no spreadsheet calculates")
	}
}

// What the reader of a resumed export finds is what was written, and of one string only.
func TestWhatWasMadeHarmlessIsRecognized(t *testing.T) {
	t.Parallel()
	written := map[string]string{}
	for _, field := range suspicious {
		for _, field := range []string{field, "'" + field, harmless(field), strings.ReplaceAll(field, "=", "'="), strings.ReplaceAll(field, ";", ";'"), strings.ReplaceAll(field, "\r", "")} {
			var file strings.Builder
			rows := csv.NewWriter(&file)
			require.NoError(t, rows.Write([]string{harmless(field), "x"}))
			rows.Flush()
			row, err := csv.NewReader(strings.NewReader(file.String())).Read()
			require.NoError(t, err)
			assert.Equal(t, harmless(field), row[0], "of %q", field)
			other, known := written[row[0]]
			assert.True(t, !known || other == field, "%q and %q became one", field, other)
			written[row[0]] = field
		}
	}
}

func TestIDsThatDifferByAQuoteAreTwoCards(t *testing.T) {
	s := place(t)
	cards := strings.NewReplacer(`"id":"c1"`, `"id":"-c1"`, `"id":"c2"`, `"id":"'-c1"`).Replace(twoCards)
	totals, err := exported(t, s, carrier(cards))
	require.NoError(t, err)
	assert.Equal(t, 2, totals.cards)
	assert.Contains(t, text(t, s.out), "\n'-c1,t1,")
	assert.Contains(t, text(t, s.out), "\n''-c1,t2,")
}

func TestWhatCannotBeResumed(t *testing.T) {
	s := place(t)
	_, err := exported(t, s, cardwiretest.New(), pagesUntil(1, func() error { return errors.New("down") }))
	require.Error(t, err)
	part, state := text(t, s.out+".part"), text(t, s.out+".part.json")
	for name, tc := range map[string]struct {
		reveal      bool
		part, state string
		want        string
	}{
		"other flags":     {true, part, state, "was begun with other flags"},
		"no state":        {false, part, "{", ".part.json is damaged"},
		"no rows":         {false, part, `{"reveal":false,"limit":10,"next_page":2,"bytes":0}`, ".part is damaged"},
		"an amount":       {false, strings.Replace(part, ",USD,", ",USD,x", 1), state, ".part is damaged"},
		"too few columns": {false, part[:strings.LastIndex(part, ",")] + ";" + part[strings.LastIndex(part, ",")+1:], state, ".part is damaged"},
		"a row less":      {false, part[:strings.LastIndex(strings.TrimSpace(part), "\n")+1], state, ".part has lost rows: remove it and "},
		"an empty file":   {false, "", state, ".part has lost rows: remove it and "},
	} {
		t.Run(name, func(t *testing.T) {
			s := place(t)
			s.reveal = tc.reveal
			require.NoError(t, os.WriteFile(s.out+".part", []byte(tc.part), 0o600))
			require.NoError(t, os.WriteFile(s.out+".part.json", []byte(tc.state), 0o600))
			_, err := exported(t, s, cardwiretest.New())
			require.ErrorContains(t, err, tc.want)
			assert.Equal(t, tc.part, text(t, s.out+".part"))
			assert.NoFileExists(t, s.out)
		})
	}
}

// A crash between the two last steps leaves the file and a state without rows.
func TestACrashAtTheEndIsNothingToResume(t *testing.T) {
	s := place(t)
	require.NoError(t, os.WriteFile(s.out+".part.json", []byte(`{"reveal":false,"limit":10,"next_page":3,"bytes":99}`), 0o600))
	totals, err := exported(t, s, cardwiretest.New(cardwiretest.WithCards(30)))
	require.NoError(t, err)
	assert.Equal(t, 30, totals.cards)
	assert.NoFileExists(t, s.out+".part.json")
}

// modeOf returns who may read and write the file.
func modeOf(t *testing.T, name string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(name)
	require.NoError(t, err)
	return info.Mode()
}

// What stood in the place of the part does not say who may read full numbers.
func TestAFreshFileIsTheOwnersAlone(t *testing.T) {
	t.Parallel()
	for name, stand := range map[string]func(t *testing.T, part string){
		"a file for all": func(t *testing.T, part string) {
			require.NoError(t, os.WriteFile(part, nil, 0o600))
			require.NoError(t, os.Chmod(part, 0o644))
		},
		"a link": func(t *testing.T, part string) {
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			require.NoError(t, os.WriteFile(elsewhere, nil, 0o600))
			require.NoError(t, os.Symlink(elsewhere, part))
			t.Cleanup(func() { assert.Empty(t, text(t, elsewhere)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := place(t)
			s.reveal = true
			stand(t, s.out+".part")
			_, err := exported(t, s, carrier(twoCards))
			require.NoError(t, err)
			assert.Contains(t, text(t, s.out), "4000001234560018")
			assert.Equal(t, os.FileMode(0o600), modeOf(t, s.out))
		})
	}
}

// A part is the owner's alone from before its first new row on.
func TestAResumedFileIsTheOwnersAlone(t *testing.T) {
	t.Parallel()
	s := place(t)
	service := cardwiretest.New(cardwiretest.WithCards(30))
	_, err := exported(t, s, service, pagesUntil(1, func() error { return errors.New("down") }))
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	require.NoError(t, os.Chmod(s.out+".part", 0o644))

	var meanwhile os.FileMode
	_, err = exported(t, s, service, pagesUntil(0, func() error {
		meanwhile = modeOf(t, s.out+".part")
		return nil
	}))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), meanwhile)
	assert.Equal(t, os.FileMode(0o600), modeOf(t, s.out))
}

// What is not a file of its own is not gone on with.
func TestALinkIsNotResumed(t *testing.T) {
	t.Parallel()
	s := place(t)
	service := cardwiretest.New(cardwiretest.WithCards(30))
	_, err := exported(t, s, service, pagesUntil(1, func() error { return errors.New("down") }))
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.Rename(s.out+".part", elsewhere))
	require.NoError(t, os.Symlink(elsewhere, s.out+".part"))
	require.NoError(t, os.Chmod(elsewhere, 0o644))
	before := text(t, elsewhere)

	_, err = exported(t, s, service)
	require.EqualError(t, err, s.out+".part is not a regular file: remove it to begin anew")
	assert.Equal(t, before, text(t, elsewhere))
	assert.Equal(t, os.FileMode(0o644), modeOf(t, elsewhere))
	assert.NoFileExists(t, s.out)
}

// The program as a whole, on a server and on its own fake service. Nothing of a
// card goes to its outputs.
func TestTheProgram(t *testing.T) {
	server := cardwiretest.NewServer(t, cardwiretest.WithCards(30))
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"a server":         {nil, `^30 cards\n`},
		"the fake service": {[]string{"-fake"}, `^The cards are made up: they are those of the fake service\.\n950 cards\n`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CARDWIRE_BASE_URL", server.URL)
			t.Setenv("CARDWIRE_API_KEY", server.Key)
			name := filepath.Join(t.TempDir(), "cards.csv")
			var out, progress strings.Builder
			require.NoError(t, run(t.Context(), &out, &progress, append(tc.args, "-out", name, "-limit", "7", "-v")))
			assert.Regexp(t, tc.says, out.String())
			assert.Contains(t, progress.String(), "operation=ListCards")
			assert.NotRegexp(t, `[0-9]{13}`, out.String()+progress.String()+text(t, name))
		})
	}
}

// outcome runs the program, and returns what it wrote to its two outputs.
func outcome(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = status(ctx, &o, &e, args)
	return code, o.String(), e.String()
}

func TestTheCommandLine(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", "")
	t.Setenv("CARDWIRE_API_KEY", "")
	t.Chdir(t.TempDir())
	for want, args := range map[string][]string{
		"export: flag provided but not defined: -nope: -help lists the flags\n":                                           {"-nope"},
		"export: unexpected argument \"now\": -help lists the flags\n":                                                    {"-fake", "now"},
		"export: set CARDWIRE_BASE_URL and CARDWIRE_API_KEY, or export made-up cards with -fake: -help lists the flags\n": {},
		"export: invalid value \"many\" for flag -limit: parse error: -help lists the flags\n":                            {"-limit", "many"},
	} {
		code, out, errs := outcome(t.Context(), args...)
		assert.Equal(t, 2, code, args)
		assert.Empty(t, out, args)
		assert.Equal(t, want, errs)
	}
	code, out, errs := outcome(t.Context(), "-help")
	assert.Zero(t, code)
	assert.Empty(t, errs)
	for _, part := range []string{"writes all cards to a CSV file", "go run -C examples/apps ./export", "CARDWIRE_BASE_URL", "CARDWIRE_API_KEY", "\n  -fake\n"} {
		assert.Contains(t, out, part)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left)
}

// An interrupt before anything was read leaves nothing behind.
func TestAnInterruptIsOneLine(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	code, out, errs := outcome(ctx, "-fake")
	assert.Equal(t, 130, code)
	assert.Empty(t, out)
	assert.Regexp(t, `^export: interrupted: [^\n]*\n$`, errs)
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left)
}

// What one service's export wrote the other's does not overwrite; its own it does.
func TestMadeUpCardsReplaceNoRealOnes(t *testing.T) {
	t.Parallel()
	service := cardwiretest.New(cardwiretest.WithCards(30))
	for name, tc := range map[string]struct {
		first, second bool
		cards         int
		want          string
	}{
		"made up over real":    {false, true, 30, "has the cards of a service: made-up ones do not replace them: give another name"},
		"real over made up":    {true, false, 30, "has made-up cards of the fake service: remove it, or give another name"},
		"none over made up":    {true, false, 0, "has made-up cards of the fake service"},
		"made up over made up": {true, true, 30, ""},
		"real over real":       {false, false, 30, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := place(t)
			s.fake = tc.first
			_, err := exported(t, s, cardwiretest.New(cardwiretest.WithCards(tc.cards)))
			require.NoError(t, err)
			before := text(t, s.out)
			asked := len(service.Requests())
			s.fake = tc.second
			_, err = exported(t, s, service)
			if tc.want == "" {
				require.NoError(t, err)
				assert.Greater(t, len(service.Requests()), asked)
				return
			}
			require.ErrorContains(t, err, "-out "+s.out+" "+tc.want)
			assert.Equal(t, before, text(t, s.out))
			assert.NoFileExists(t, s.out+".part")
		})
	}
}

// A file of the other service that appears in the meantime is not overwritten either.
func TestAFileThatAppearsIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := place(t)
	_, err := exported(t, s, carrier(twoCards), cardwire.WithObserver(cardwire.Observer{
		CallEnd: func(context.Context, cardwire.CallInfo, cardwire.CallResult) {
			assert.NoError(t, os.WriteFile(s.out, []byte("fake_"+header), 0o600))
		},
	}))
	require.ErrorContains(t, err, "has made-up cards of the fake service")
	assert.Equal(t, "fake_"+header, text(t, s.out))
}

func TestWhatCannotBeReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("id,name\n"), 0o600))
	for out, want := range map[string]string{
		dir:                                    "is not a regular file: give the name of a file",
		dir + string(filepath.Separator) + ".": "is not a regular file: give the name of a file",
		notes:                                  "is not an export of this program: remove it, or give another name",
		filepath.Join(dir, "none", "x.csv"):    "no such file or directory",
	} {
		service := cardwiretest.New()
		_, err := exported(t, settings{out: out, limit: 10}, service)
		require.ErrorContains(t, err, want)
		assert.Empty(t, service.Requests(), out)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

// A process that is killed writes nothing more: each page is on record by then.
func TestACrashIsResumedFrom(t *testing.T) {
	server := cardwiretest.NewServer(t, cardwiretest.WithCards(95))
	t.Setenv("CARDWIRE_BASE_URL", server.URL)
	t.Setenv("CARDWIRE_API_KEY", server.Key)
	s := place(t)
	client, err := cardwire.NewFromEnv()
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	f, err := openPart(s)
	require.NoError(t, err)
	for page, err := range client.AllPages(t.Context(), cardwire.ListCardsParams{Limit: 10}) {
		require.NoError(t, err)
		require.NoError(t, f.add(page.Cards))
		if page.CurrentPage == 3 {
			require.NoError(t, f.write(&page.Cards[0])) // and half of the next
			f.rows.Flush()
			break
		}
	}
	require.NoError(t, f.file.Close())

	code, out, errs := outcome(t.Context(), "-out", s.out, "-limit", "10")
	assert.Zero(t, code)
	assert.Equal(t, "Resuming at page 4: 30 cards are in "+s.out+".part.\n", errs)
	assert.Contains(t, out, "95 cards\n")
	assert.Equal(t, 1+95, strings.Count(text(t, s.out), "\n"))
}
