package main

import (
	"bytes"
	"html"
	"mime/multipart"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// upload sends the form of the page, with a file if there is one.
func (s *shop) upload(file string, form map[string]string) *httptest.ResponseRecorder {
	s.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range form {
		require.NoError(s.t, w.WriteField(name, value))
	}
	if file != "" {
		part, err := w.CreateFormFile("file", "file.csv")
		require.NoError(s.t, err)
		_, err = part.Write([]byte(file))
		require.NoError(s.t, err)
	}
	require.NoError(s.t, w.Close())
	r := httptest.NewRequestWithContext(s.t.Context(), "POST", "http://127.0.0.1/statement", &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.Header.Set("Accept", "text/html")
	response := httptest.NewRecorder()
	s.routes("").ServeHTTP(response, r)
	return response
}

var hiddenField = regexp.MustCompile(`(?s)<input type="hidden" name="([a-z]+)" value="(.*?)">`)

// hiddenOf is the form that applies the report of a page.
func hiddenOf(page string) map[string]string {
	form := map[string]string{}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		form[field[1]] = html.UnescapeString(field[2])
	}
	return form
}

// A statement is larger than other requests, and not of any size. What can be compared can be applied:
// the browser sends the file back with two bytes for each LF.
func TestALargeStatementIsApplied(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	asked := map[string]string{
		"from": "2026-01-31T00:00:00", "until": "2026-02-01T00:00:00", "exported": "2026-02-01T00:00:00",
		"status": meanings, "strays": "true",
	}
	text := header + "A-1,T-1,12.50,EUR,done,2026-01-31T07:00:00Z\n"
	text += strings.Repeat("\n", mostUpload-len(text))
	for _, more := range []int{1, 3 * mostUpload} {
		w := s.upload(text+strings.Repeat("\n", more), asked)
		assert.Equal(t, 422, w.Code)
		assert.Contains(t, w.Body.String(), "it may have at most 4 MiB; -reconcile reads files of any size")
	}
	w := s.upload(text, asked)
	require.Equal(t, 200, w.Code)
	form := hiddenOf(w.Body.String())
	form["text"] = strings.ReplaceAll(form["text"], "\n", "\r\n")
	form["by"], form["why"], form["anyway"] = "Ada", "ticket 7", "true"
	w = s.upload("", form)
	require.Equal(t, 200, w.Code)
	assert.Contains(t, w.Body.String(), "Recorded: 1.")
	form["surprise"] = "1"
	assert.Equal(t, 400, s.upload("", form).Code)
}

// Hold, upload, report, application, release and what is held, in a browser.
func TestARestoreInABrowser(t *testing.T) {
	s := shopInFile(t)
	server := httptest.NewServer(s.routes(""))
	t.Cleanup(server.Close)
	b := newBrowser(t, server.URL)
	s.lost("paid", true)
	s.lost("unpaid-with-a-number-that-is-as-long-as-some-merchants-make-them", false)
	s.lost("differs", false)
	const longAgo = `'2026-01-02T03:04:05.000000Z'`
	s.exec(`UPDATE cardwire_intents SET time = ` + longAgo + `, send_by = ` + longAgo + `, settled_by = ` + longAgo)
	s.putOnHold()
	s.orders("late-1", "late-2")
	b.open("/")
	assert.Contains(t, b.text(), "on hold until somebody releases it")
	assert.Contains(t, b.text(), "2 held")
	b.look("on-hold")
	b.open("/statement")
	b.look("statement-empty")
	file := fileOf(t, s.ledger("differs T-9 99.00 done", hostile+" T-8 3.00 done"))
	b.do(chromedp.SetUploadFiles(chromedp.CSS(`[name="file"]`), []string{file}))
	now, minute := time.Now().UTC(), "2006-01-02T15:04" // a browser leaves out seconds of zero
	b.do(chromedp.SetValue(chromedp.CSS(`[name="from"]`), "2026-01-01T00:00:01"))
	b.do(chromedp.SetValue(chromedp.CSS(`[name="until"]`), now.Add(-time.Minute).Format(minute)+":01"))
	b.do(chromedp.SetValue(chromedp.CSS(`[name="exported"]`), now.Add(-30*time.Second).Format(minute)+":01"))
	b.fill(map[string]string{"status": meanings})
	assert.Equal(t, 200, b.press("Compare"))
	assert.Contains(t, b.text(), "Record what is certain: 3")
	assert.Equal(t, int64(4), script[int64](b, `[...document.querySelectorAll('details')].map(d => d.open = true).length`))
	b.look("statement-report")
	b.fill(map[string]string{"by": "Ada", "why": "restore of January 2"})
	b.do(chromedp.Click(chromedp.CSS(`[name="anyway"]`)))
	assert.Equal(t, 200, b.press("Record all 3"))
	assert.Contains(t, b.text(), "Recorded: 3.")
	b.look("statement-applied")
	assert.Equal(t, []string{submitted, unresolved}, s.statesOf("paid", "differs"))
	b.open("/?state=held&still=on")
	b.look("on-hold-held")
}
