package chaos

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Verdict is what a client says about a call.
type Verdict int

// The verdicts of the cardwire client. One that knows only success and failure
// says Success and Refused: that is how its callers will take a failure.
const (
	Success Verdict = iota
	NotSent
	Refused
	Unknown
	Executed
	verdicts // how many there are
)

func (v Verdict) String() string {
	return [...]string{"success", "not sent", "refused", "unknown", "executed"}[v]
}

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

	ops      []string // those that can meet it; nil: all
	effect   effect
	verdicts []Verdict       // those that are right where the deadline leaves time
	serve    func(*exchange) // what the service does; nil: it succeeds
	toxic    string          // of the proxy, as JSON; "": none
	down     bool            // the proxy does not listen
	direct   bool            // no proxy: it would make a reset an orderly end, or choke on what nobody reads
	silent   bool            // only the deadline ends the call
}

func (k *Kind) allows(v Verdict) bool { return slices.Contains(k.verdicts, v) }

// refusedAddress is an address on loopback where nothing listens: a port that needs
// privileges, and that no ephemeral listener can be given.
const refusedAddress = "127.0.0.1:1"

// lateBy is when the order is executed that nobody waits for any more.
const lateBy = 300 * time.Millisecond

// fits returns which of the operations can meet the kind.
func (k *Kind) fits(ops []string) (fit []string) {
	for _, op := range ops {
		if k.ops == nil || slices.Contains(k.ops, op) {
			fit = append(fit, op)
		}
	}
	return fit
}

// Kinds returns all kinds: 25 of the service, 15 of the proxy, and 5 of data
// that are not the promised.
func Kinds() []Kind { return slices.Concat(serviceKinds(), proxyKinds(), dataKinds()) }

// KindsOf returns the kinds that some of the operations can meet.
func KindsOf(ops []string) []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return len(k.fits(ops)) == 0 })
}

func serviceKinds() []Kind {
	// Before it is executed, or instead.
	kinds := []Kind{
		{Name: "ok", effect: always, verdicts: []Verdict{Success}},
		{Name: "400", verdicts: []Verdict{Refused}, serve: respond(400, `{"code":400,"msg":"no","data":null}`)},
		{Name: "code-422", verdicts: []Verdict{Refused}, serve: respond(200, `{"code":422,"msg":"no","data":null}`)},
		{Name: "429", verdicts: []Verdict{Refused}, serve: retryAfter(429, "1")},
		{Name: "reset", verdicts: []Verdict{Unknown}, serve: (*exchange).reset, direct: true},
		{Name: "503", verdicts: []Verdict{Unknown}, serve: respond(503, `{"code":503,"msg":"busy","data":null}`)},
		{
			Name: "duplicate-code", verdicts: []Verdict{Unknown},
			serve: respond(200, `{"code":500,"msg":"no","data":null,"code":200}`),
		},
		{Name: "html-200", verdicts: []Verdict{Unknown}, serve: respond(200, page)},
		{Name: "empty-object", verdicts: []Verdict{Unknown}, serve: respond(200, `{}`)},
	}
	// After it was executed: of this the response, if there is one, says nothing.
	for _, k := range []Kind{
		{Name: "done-reset", serve: (*exchange).reset, direct: true},
		{Name: "done-close", serve: (*exchange).close},
		{Name: "done-502-html", serve: respond(502, page)},
		{Name: "done-500", serve: respond(500, `{"code":500,"msg":"oops","data":null}`)},
		{Name: "done-503", serve: retryAfter(503, "0")},
		{Name: "done-504", serve: respond(504, page)},
		{Name: "done-code-500", serve: respond(200, `{"code":500,"msg":"oops","data":null}`)},
		{Name: "done-hang", serve: (*exchange).awaitDeparture, silent: true},
		{Name: "done-truncated", serve: truncate},
		{Name: "done-garbage", serve: func(x *exchange) { x.raw("\x16\x03\x01\x02\x00\x01\x00\xfc\x03\x03 4111\r\n\r\n") }},
		{Name: "done-html-200", serve: respond(200, page)},
		{Name: "done-307-itself", serve: redirect(http.StatusTemporaryRedirect, "")},
		{Name: "done-303-dead", serve: redirect(http.StatusSeeOther, "http://"+refusedAddress+"/")},
		{Name: "done-gzip-bomb", serve: bomb, direct: true},
		{Name: "done-header-flood", serve: flood, direct: true},
	} {
		fault := k.serve
		k.serve = func(x *exchange) { x.execute(); fault(x) }
		k.effect, k.verdicts = always, []Verdict{Unknown}
		kinds = append(kinds, k)
	}
	return append(kinds, Kind{
		Name: "done-late", effect: always, verdicts: []Verdict{Unknown}, silent: true,
		serve: func(x *exchange) { x.accept(); x.awaitDeparture(); x.executeIn(lateBy) },
	})
}

func proxyKinds() []Kind {
	// Where the proxy resets a connection as soon as it is made, the reset may
	// come before the client has it: then nothing was sent, and that is provable.
	early := []Verdict{Unknown, NotSent}
	return []Kind{
		{Name: "down", down: true, verdicts: []Verdict{NotSent}},
		{Name: "reset-downstream", effect: either, verdicts: early, toxic: toxic("reset_peer", "downstream", "timeout", 0)},
		{Name: "reset-upstream", effect: either, verdicts: early, toxic: toxic("reset_peer", "upstream", "timeout", 0)},
		{Name: "timeout-upstream", verdicts: []Verdict{Unknown}, silent: true, toxic: toxic("timeout", "upstream", "timeout", 0)},
		{
			// Not silent: the service hangs up after its response, and that gets through.
			Name: "timeout-downstream", effect: always, verdicts: []Verdict{Unknown},
			toxic: toxic("timeout", "downstream", "timeout", 0),
		},
		{Name: "limit-upstream-60", verdicts: []Verdict{Unknown}, toxic: toxic("limit_data", "upstream", "bytes", 60)},
		{Name: "limit-upstream-230", verdicts: []Verdict{Unknown}, toxic: toxic("limit_data", "upstream", "bytes", 230)},
		{Name: "limit-downstream-0", effect: always, verdicts: []Verdict{Unknown}, toxic: toxic("limit_data", "downstream", "bytes", 0)},
		{Name: "limit-downstream-20", effect: always, verdicts: []Verdict{Unknown}, toxic: toxic("limit_data", "downstream", "bytes", 20)},
		{Name: "limit-downstream-100", effect: always, verdicts: []Verdict{Unknown}, toxic: toxic("limit_data", "downstream", "bytes", 100)},
		{Name: "latency", effect: always, verdicts: []Verdict{Success}, toxic: toxic("latency", "downstream", "latency", 20)},
		{
			// So much longer than even a patient call waits that a machine which
			// stands still for a while does not make up for it.
			Name: "latency-too-long", effect: always, verdicts: []Verdict{Unknown}, silent: true,
			toxic: toxic("latency", "downstream", "latency", 8000),
		},
		{
			Name: "slicer", effect: always, verdicts: []Verdict{Success},
			toxic: `{"type":"slicer","stream":"downstream","attributes":{"average_size":16,"size_variation":8,"delay":100}}`,
		},
		{Name: "bandwidth", effect: always, verdicts: []Verdict{Success}, toxic: toxic("bandwidth", "downstream", "rate", 50)},
		{Name: "slow-close", effect: always, verdicts: []Verdict{Success}, toxic: toxic("slow_close", "downstream", "delay", 50)},
	}
}

// After it was executed, and was said to be: only data that names the order, or has
// the service's identifier of it, proves that the response is about it.
func dataKinds() []Kind {
	kinds := []Kind{
		{Name: "done-other-data", verdicts: []Verdict{Unknown}, serve: data(`["true"]`)},
		{Name: "done-no-identity", verdicts: []Verdict{Unknown}, ops: withoutReference, serve: withoutIdentity},
		{Name: "done-own-number-only", verdicts: []Verdict{Executed}, ops: []string{"CreateTransfer"}, serve: ownNumberOnly},
		{
			Name: "done-other-order", verdicts: []Verdict{Unknown}, ops: []string{"CreateTransfer"},
			serve: data(`{"merchant_order_no":"another","api_order_no":"AO-1","status":"wait_process"}`),
		},
		{
			Name: "done-false", verdicts: []Verdict{Unknown}, ops: []string{"CancelOperation", "RetryOperation"},
			serve: data(`false`),
		},
	}
	for i := range kinds {
		kinds[i].effect = always
	}
	return kinds
}

func toxic(name, stream, attribute string, value int) string {
	return fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{%q:%d}}`, name, stream, attribute, value)
}

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
	return func(x *exchange) {
		x.execute()
		x.say(http.StatusOK, `{"code":200,"msg":"success","data":`+text+`}`)
	}
}

// ownNumberOnly executes, and names the order without the service's number for it.
func ownNumberOnly(x *exchange) {
	data(`{"merchant_order_no":"` + x.order.Reference + `","status":"wait_process"}`)(x)
}

// withoutReference are the operations whose data does not name the caller's reference.
var withoutReference = []string{"FreezeCard", "UploadImage", "CancelOperation", "RetryOperation"}

// withoutIdentity executes, and its data is without the identifier.
func withoutIdentity(x *exchange) {
	data(map[string]string{
		"FreezeCard":  `""`,
		"UploadImage": `{}`,
		// These have none. That there is no data at all is the next to it.
		"CancelOperation": `null`,
		"RetryOperation":  `null`,
	}[x.order.Op])(x)
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

// truncate promises a success and ends in the middle of it.
func truncate(x *exchange) {
	text := x.success()
	x.raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(text), text[:len(text)/2]))
}

// bomb is a success of a few kilobytes that expands to 16 MiB.
func bomb(x *exchange) {
	x.w.Header().Set("Content-Encoding", "gzip")
	x.w.Header().Set("Content-Type", "application/json")
	_, _ = x.w.Write(compress([]byte(x.success())))
	_, _ = x.w.Write(padding())
}

// padding is a gzip member of its own, so that it is compressed once.
var padding = sync.OnceValue(func() []byte { return compress(bytes.Repeat([]byte{' '}, 16<<20)) })

func compress(text []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = z.Write(text) // nothing of this fails: the level exists, and the buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// flood is a success below 1 MiB of header.
func flood(x *exchange) {
	line := strings.Repeat("x", 16<<10)
	for i := range 64 {
		x.w.Header().Set(fmt.Sprintf("X-Flood-%d", i), line)
	}
	x.say(http.StatusOK, x.success())
}
