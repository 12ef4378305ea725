package page

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mounted are ways in which routers and proxies pass on what is asked for at /admin/payouts.
func mounted(t *testing.T, h http.Handler) map[string]http.Handler {
	t.Helper()
	mux := func(h http.Handler, patterns ...string) http.Handler {
		m := http.NewServeMux()
		for _, pattern := range patterns {
			m.Handle(pattern, h)
		}
		return m
	}
	behind := httptest.NewServer(mux(h, "/"))
	t.Cleanup(behind.Close)
	to, err := url.Parse(behind.URL)
	require.NoError(t, err)
	stripping := func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/admin/payouts")
		if path == "" { // as nginx does
			http.Redirect(w, r, "/admin/payouts/?"+r.URL.RawQuery, http.StatusMovedPermanently)
			return
		}
		proxy := httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.URL.Path, p.Out.Host = to.Scheme, to.Host, path, "inside.example"
		}}
		proxy.ServeHTTP(w, r)
	}
	both := []string{"/admin/payouts", "/admin/payouts/"}
	return map[string]http.Handler{
		"a router that leaves the path whole": h,
		"a mux":                               mux(h, both...),
		"a mux that redirects":                mux(h, "/admin/payouts/"),
		"a router in a mux":                   mux(h, "/"),
		"StripPrefix":                         mux(http.StripPrefix("/admin/payouts", h), both...),
		"a proxy":                             http.HandlerFunc(stripping),
	}
}

// The page is where it is mounted, with and without the slash at its end, whatever passes on its requests; it leads to
// itself, and a form of the site is taken behind a proxy that rewrites Host, if its origin is named.
func TestWhereThePageIs(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("A-1", "A-2", "A-3", "A-4", "A-5", "A-6")
	number := 0
	for name, h := range mounted(t, Handler(s.Service, ada, WithTrustedOrigins("https://shop.example"))) {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(h)
			defer server.Close()
			client := server.Client()
			do := func(method, address, form string) (*http.Response, string) {
				r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
				require.NoError(t, err)
				r.Header.Set("Accept", "text/html")
				r.Header.Set("Origin", "https://shop.example")
				response, err := client.Do(r)
				require.NoError(t, err)
				defer response.Body.Close()
				return response, textOf(t, response)
			}
			for _, path := range []string{"/admin/payouts", "/admin/payouts?state=queued", "/admin/payouts/"} {
				r, text := do("GET", server.URL+path, "")
				assert.Equal(t, 200, r.StatusCode, path)
				assert.Equal(t, "/admin/payouts/", r.Request.URL.Path, "where its links lead to it")
				assert.Equal(t, strings.Contains(path, "?"), strings.Contains(text, "<h1>Orders: queued</h1>"), path)
				style, _ := do("GET", r.Request.URL.JoinPath("style.css").String(), "")
				assert.Equal(t, "text/css; charset=utf-8", style.Header.Get("Content-Type"))
			}
			r, text := do("HEAD", server.URL+"/admin/payouts/orders.csv", "")
			assert.Equal(t, []any{200, "", "text/csv; charset=utf-8"},
				[]any{r.StatusCode, text, r.Header.Get("Content-Type")})
			number++
			r, text = do("POST", server.URL+"/admin/payouts/cancel", "why=x&order=A-"+string(rune('0'+number)))
			assert.Equal(t, 200, r.StatusCode, text)
			assert.Equal(t, "/admin/payouts/order", r.Request.URL.Path)
		})
	}
	assert.Equal(t, 404, send(t, Handler(s.Service, nil), "GET", "/admin/payouts/ordrs.csv", "", false).StatusCode)
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/cancel", strings.NewReader("order=A-1&why=x"))
	r.Header.Set("Origin", "https://shop.example")
	w := httptest.NewRecorder()
	Handler(s.Service, ada).ServeHTTP(w, r)
	assert.Equal(t, 403, w.Code)
	assert.Contains(t, w.Body.String(), "by WithTrustedOrigins")
	assert.PanicsWithValue(t, "page: WithTrustedOrigins: invalid origin \"shop.example\": scheme is required",
		func() { Handler(s.Service, ada, WithTrustedOrigins("shop.example")) })
}

// Each operation says by which methods it is.
func TestMethods(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	for request, want := range map[string]string{
		"DELETE ":        "GET, HEAD",
		"POST queue":     "GET, HEAD",
		"GET cancel":     "POST",
		"HEAD orders":    "POST",
		"PUT statement":  "GET, HEAD, POST",
		"OPTIONS readyz": "GET, HEAD",
	} {
		method, path, _ := strings.Cut(request, " ")
		r := s.request(method, "/ops/"+path, "", false)
		assert.Equal(t, 405, r.StatusCode, request)
		assert.Equal(t, want, r.Header.Get("Allow"), request)
	}
	for _, path := range []string{"", "order?number=A-9", "queue", "readyz", "statement", "now.js"} {
		assert.Equal(t, s.request("GET", "/ops/"+path, "", false).StatusCode,
			s.request("HEAD", "/ops/"+path, "", false).StatusCode, path)
	}
}
