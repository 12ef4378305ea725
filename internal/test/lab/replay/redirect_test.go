package replay

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// destination is where a redirect leads: from a service to itself or another.
type destination struct {
	name   string
	secure bool // the first service speaks TLS
	to     func(first, second string) string
}

// elsewhere is the path to which redirects lead.
const elsewhere = basePath + "/elsewhere"

var destinations = []destination{
	{"same host", false, func(first, _ string) string { return strings.TrimSuffix(first, basePath) + elsewhere }},
	{"same host, without its name", false, func(string, string) string { return elsewhere }},
	// Only the port differs: net/http sends the key along.
	{"another service of the host", false, func(_, second string) string { return strings.TrimSuffix(second, basePath) + elsewhere }},
	{"other host", false, func(_, second string) string {
		return strings.TrimSuffix(strings.Replace(second, "127.0.0.1", "localhost", 1), basePath) + elsewhere
	}},
	{"https to http", true, func(_, second string) string { return strings.TrimSuffix(second, basePath) + elsewhere }},
}

// redirected responds to the first request with a redirect, and others as if it had
// been followed.
func redirected(status int, location string) func(*exchange) {
	return executed(func(x *exchange) {
		if x.request.URL.Path == elsewhere {
			x.respond("200 OK")
			return
		}
		x.respond(fmt.Sprint(status, " ", http.StatusText(status)), "Location: "+location)
	})
}

// doer is a caller's doer that is not an *http.Client, and so follows.
type doer struct{ *http.Client }

// porters are what carries a request.
var porters = []struct {
	name    string
	follows bool
	opt     func(*http.Transport) cardwire.Option
}{
	{"own engine", false, cardwire.WithTransport},
	{"caller's client", false, func(transport *http.Transport) cardwire.Option {
		return cardwire.WithHTTPClient(&http.Client{Transport: transport})
	}},
	{"caller's client with a jar", false, func(transport *http.Transport) cardwire.Option {
		return cardwire.WithHTTPClient(&http.Client{Transport: transport, Jar: jar()})
	}},
	{"caller's client with a timeout", false, func(transport *http.Transport) cardwire.Option {
		return cardwire.WithHTTPClient(&http.Client{Transport: transport, Timeout: time.Minute})
	}},
	{"caller's client that allows redirects", false, func(transport *http.Transport) cardwire.Option {
		return cardwire.WithHTTPClient(&http.Client{
			Transport: transport, Jar: jar(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
		})
	}},
	{"doer that follows", true, func(transport *http.Transport) cardwire.Option {
		return cardwire.WithHTTPClient(doer{&http.Client{Transport: transport}})
	}},
}

// jar holds a cookie for every host here.
func jar() http.CookieJar {
	j, err := cookiejar.New(nil)
	if err != nil {
		panic(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		j.SetCookies(&url.URL{Scheme: "http", Host: host, Path: "/"}, []*http.Cookie{{Name: "session", Value: "s-1"}})
	}
	return j
}

func TestRedirects(t *testing.T) {
	flat(t)
	ops := []*operation{named("GetCard"), named("GetCardSecrets"), named("CreateTransfer")}
	cells := 0
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range destinations {
			for _, porter := range porters {
				for _, op := range ops {
					cells++
					t.Run(fmt.Sprintf("%d to %s, %s, %s", status, to.name, porter.name, op.name), func(t *testing.T) {
						first, second := pair(t, status, to, op)
						transport := trusting(t)
						t.Cleanup(transport.CloseIdleConnections)
						c := newClient(t, first.base, porter.opt(transport))
						err := op.do(t.Context(), c, "1")
						assert.Equal(t, "unknown", outcome(err))
						require.ErrorIs(t, err, cardwire.ErrRedirect)
						if porter.follows {
							return // the verdict is all that can be had
						}
						assert.Equal(t, status, statusOf(err))
						c.CloseIdleConnections()
						transport.CloseIdleConnections()
						first.settle(t)
						_, requests := first.counts()
						assert.Equal(t, 1, requests, "the requests that the first service saw")
						connections, _ := second.counts()
						assert.Zero(t, connections, "the second service was connected to")
						assertDone(t, first.of("1"), exactly(1), exactly(1))
					})
				}
			}
		}
	}
	t.Logf("%d cells", cells)
}

// pair starts the service that redirects, and the one that it may redirect to.
func pair(t *testing.T, status int, to destination, op *operation) (first, second *service) {
	t.Helper()
	config := serverTLS("http/1.1")
	if !to.secure {
		config = nil
	}
	first, second = serve(t, config, nil), serve(t, nil, nil)
	act := script{do: redirected(status, to.to(first.base, second.base)), op: op}
	first.perform(act)
	second.perform(act)
	return first, second
}

// The control: net/http follows, and the second service gets the key.
func TestRedirectsWithoutThisClient(t *testing.T) {
	to := destinations[2]
	for _, status := range []int{301, 302, 303, 307, 308} {
		first, second := pair(t, status, to, named("CreateTransfer"))
		transport := trusting(t)
		t.Cleanup(transport.CloseIdleConnections)
		require.NoError(t, post(t.Context(), transport, first.base+"/remittance/transfer", "1"))
		got := second.of("1")
		assert.Equal(t, 1, got.arrivals, status)
		assert.Equal(t, 1, got.credentials, status)
	}
}
