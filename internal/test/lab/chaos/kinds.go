package chaos

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// Verdict is what a client says about a call.
type Verdict string

// The verdicts of the client.
const (
	Success  Verdict = "success"
	NotSent  Verdict = "not_sent"
	Refused  Verdict = "refused"
	Unknown  Verdict = "unknown"
	Executed Verdict = "executed"
)

// done says that the caller will believe it done, undone that it may be done
// again. Of neither kind is Unknown.
func (v Verdict) done() bool   { return v == Success || v == Executed }
func (v Verdict) undone() bool { return v == NotSent || v == Refused }

// effect says whether a fault lets the order be executed.
type effect int

const (
	never effect = iota
	always
	either // which of two ends of a connection is first decides it
)

// Kind is a way in which a call goes wrong, or right.
type Kind struct {
	// Name is also the first segment of the path.
	Name string

	effect   effect
	verdicts []Verdict       // those that are right where the deadline leaves time
	serve    func(*exchange) // what the service does; nil: it succeeds
	unread   bool            // serve comes before the body is read
	read     func(*exchange) // what the service does to a read; nil: it succeeds
	line     line            // what happens to each connection; nil: nothing
	down     bool            // there is no server
	silent   bool            // only the deadline ends the call
}

func (k *Kind) allows(v Verdict) bool { return slices.Contains(k.verdicts, v) }

// refusedAddress is an address on loopback with no server: a port that needs privileges, and
// that no ephemeral listener can be given.
const refusedAddress = "127.0.0.1:1"

// lateBy is how long after its arrival an order is executed late.
const lateBy = 300 * time.Millisecond

// Kinds returns all kinds: those of the service, before and after it has executed, and of
// connections. Data other than the documented is in the client's own tests.
func Kinds() []Kind { return slices.Concat(earlyKinds(), executedKinds(), connectionKinds()) }

var (
	success = []Verdict{Success}
	refused = []Verdict{Refused}
	unknown = []Verdict{Unknown}
	// Where a connection is reset as soon as it is made, the reset may come before the
	// client has it: then nothing was sent, and that is provable.
	early = []Verdict{Unknown, NotSent}
)

// earlyKinds are before it is executed, or instead.
func earlyKinds() []Kind {
	return []Kind{
		{Name: "ok", effect: always, verdicts: success},
		{Name: "ok-close", effect: always, verdicts: success, serve: func(x *exchange) {
			x.w.Header().Set("Connection", "close")
			succeed(x)
		}},
		{Name: "400", verdicts: refused, serve: respond(400, `{"code":400,"msg":"invalid account","data":null}`)},
		{Name: "code-422", verdicts: refused, serve: respond(200, `{"code":422,"msg":"invalid account","data":null}`)},
		{Name: "429", verdicts: refused, serve: retryAfter(429, "1")},
		{Name: "reset", verdicts: unknown, serve: (*exchange).reset},
		{Name: "reset-unread", verdicts: unknown, serve: (*exchange).reset, unread: true},
		{Name: "503", verdicts: unknown, serve: respond(503, `{"code":503,"msg":"busy","data":null}`)},
		{
			Name: "duplicate-code", verdicts: unknown,
			serve: respond(200, `{"code":500,"msg":"no","data":null,"code":200}`),
		},
		{Name: "html-200", verdicts: unknown, serve: respond(200, page)},
		{Name: "empty-object", verdicts: unknown, serve: respond(200, `{}`)},
	}
}

// executedKinds fail after it was executed, which the response, if there is one, does not say.
func executedKinds() []Kind {
	kinds := []Kind{
		{Name: "done-reset", serve: (*exchange).reset},
		{Name: "done-close", serve: (*exchange).close},
		{Name: "done-408", serve: respond(408, `{"code":408,"msg":"later","data":null}`)},
		{Name: "done-425", serve: respond(425, "")},
		{Name: "done-502-html", serve: respond(502, page)},
		{Name: "done-500", serve: respond(500, `{"code":500,"msg":"oops","data":null}`)},
		{Name: "done-503", serve: retryAfter(503, "0")},
		{Name: "done-504", serve: respond(504, page)},
		{Name: "done-code-500", serve: respond(200, `{"code":500,"msg":"oops","data":null}`)},
		{Name: "done-hang", serve: (*exchange).awaitDeparture, silent: true},
		{Name: "done-truncated", serve: truncate},
		{Name: "done-half-head", serve: func(x *exchange) { x.raw("HTTP/1.1 200 OK\r\nContent-Le", loopback.HangUp) }},
		{Name: "done-half-reset", serve: func(x *exchange) {
			x.raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", loopback.Reset)
		}},
		{Name: "done-garbage", serve: func(x *exchange) {
			x.raw("\x16\x03\x01\x02\x00\x01\x00\xfc\x03\x03 4111\r\n\r\n", loopback.HangUp)
		}},
		{Name: "done-html-200", serve: respond(200, page)},
		{Name: "done-307-itself", serve: redirect(http.StatusTemporaryRedirect, "")},
		{Name: "done-303-dead", serve: redirect(http.StatusSeeOther, "http://"+refusedAddress+"/")},
	}
	for i := range kinds {
		k := &kinds[i]
		k.effect, k.verdicts, k.serve = always, unknown, after(k.serve)
	}
	return append(kinds, Kind{
		Name: "done-late", effect: always, verdicts: unknown, silent: true,
		serve: func(x *exchange) { x.accept(); x.awaitDeparture(); x.executeIn(lateBy) },
	})
}

// after has the order executed before the fault.
func after(fault func(*exchange)) func(*exchange) { return func(x *exchange) { x.execute(); fault(x) } }

// requestTimeout is how a server ends an idle connection. On one that is not idle it is
// not the response to a request.
const requestTimeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

func connectionKinds() []Kind {
	return []Kind{
		{Name: "down", down: true, verdicts: []Verdict{NotSent}},
		{Name: "reset-at-once", verdicts: early, line: resetAtOnce},
		{Name: "reset-any-time", effect: either, verdicts: append(early, Success), line: anyTime(loopback.Reset)},
		{Name: "close-any-time", effect: either, verdicts: append(early, Success), line: anyTime(loopback.HangUp)},
		{Name: "leave-any-time", effect: either, verdicts: append(early, Success), line: anyTime(leave)},
		{Name: "408-at-once", effect: either, verdicts: early, line: saying(requestTimeout)},
		{Name: "deaf", verdicts: unknown, silent: true, line: func(conn net.Conn) net.Conn { return deaf{conn} }},
		{Name: "cut-after-60-sent", verdicts: unknown, line: cutAfter(60)},
		{Name: "cut-after-230-sent", verdicts: unknown, line: cutAfter(230)},
		{
			// A deploy: what was used before is reset, new connections are served.
			Name: "reset-reused", effect: either, verdicts: append(unknown, Success), serve: func(x *exchange) {
				if x.reused {
					x.reset()
				}
				succeed(x)
			},
		},
		{
			// At an address of its own: no other kind meets the connections that it leaves.
			Name: "408-on-idle", line: saying(""), effect: either, verdicts: append(unknown, Success),
			read: func(x *exchange) {
				head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(capacity))
				x.raw(head+capacity+requestTimeout, linger)
			},
		},
	}
}

// GatewayKinds are what something in front of the service makes of a request or of
// its response, and code 200 without evidence, for operations with a reference. Whether the
// first two are read rightly may depend on the client's profile.
func GatewayKinds() []Kind {
	return []Kind{
		// The gateway delivers a POST twice, and returns the second response.
		{Name: "done-replayed", effect: always, verdicts: unknown, serve: after(orderExists)},
		{Name: "unless-exists", effect: either, verdicts: append(unknown, Success), serve: executeUnlessExists},

		// A firewall blocks the response.
		{Name: "done-403-html", effect: always, verdicts: unknown, serve: after(respond(403, page))},
		{Name: "done-403-object", effect: always, verdicts: unknown, serve: after(respond(403, `{"code":1020}`))},
		{Name: "done-404-bom", effect: always, verdicts: unknown, serve: after(func(x *exchange) {
			x.say(404, "\ufeff"+x.success())
		})},
		{Name: "done-422-named", effect: always, verdicts: unknown, serve: after(func(x *exchange) {
			x.say(422, `{"code":4221,"msg":"no","data":{"order":"`+x.order.Reference+`"}}`)
		})},

		// It blocks the request.
		{Name: "401", verdicts: refused, serve: respond(401, "")},
		{Name: "403", verdicts: refused, serve: respond(403, `{"code":403,"msg":"no","data":null}`)},
		{Name: "404-html", verdicts: unknown, serve: respond(404, page)},

		{Name: "200-null", verdicts: unknown, serve: respond(200, `{"code":200,"msg":"success","data":null}`)},
		{Name: "done-200-null", effect: always, verdicts: unknown, serve: data(`null`)},
	}
}

// executeUnlessExists is a service that deduplicates.
func executeUnlessExists(x *exchange) {
	if e := x.service.ledger.entry(x.order); e.accepted || e.executions > 0 {
		orderExists(x)
		return
	}
	succeed(x)
}

func orderExists(x *exchange) { x.say(422, `{"code":422,"msg":"order exists","data":null}`) }

// page is what a gateway shows.
const page = "<html><head><title>Gateway</title></head><body>Please try again.</body></html>"

func succeed(x *exchange) {
	x.execute()
	x.say(http.StatusOK, x.success())
}

func respond(status int, text string) func(*exchange) {
	return func(x *exchange) { x.say(status, text) }
}

// data executes, and responds with the code of success and that.
func data(text string) func(*exchange) {
	return after(respond(http.StatusOK, `{"code":200,"msg":"success","data":`+text+`}`))
}

func retryAfter(status int, seconds string) func(*exchange) {
	return func(x *exchange) {
		x.w.Header().Set("Retry-After", seconds)
		x.say(status, fmt.Sprintf(`{"code":%d,"msg":"later","data":null}`, status))
	}
}

// redirect goes to the address itself where location is "".
func redirect(status int, location string) func(*exchange) {
	return func(x *exchange) {
		x.w.Header().Set("Location", cmp.Or(location, x.r.URL.RequestURI()))
		x.w.WriteHeader(status)
	}
}

// truncate promises a success and ends one byte before its end.
func truncate(x *exchange) {
	text := x.success()
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(text))
	x.raw(head+text[:len(text)-1], loopback.HangUp)
}
