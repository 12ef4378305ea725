package main

// mutant is a defect that the tests must notice.
type mutant struct {
	name   string
	places []place
}

func defect(name string, places ...place) mutant { return mutant{name, places} }

// dirs are the directories of the packages other than the root's.
var dirs = map[string]string{
	"check":      "internal/check",
	"export":     "examples/apps/export",
	"mask":       "internal/mask",
	"sqljournal": "sqljournal",
	"transport":  "internal/transport",
	"upload":     "internal/upload",
	"wire":       "internal/wire",
}

// follow does what an http.Client does to redirects, and nothing else that one
// does: its other ways are noticed by other tests.
const follow = `func follow(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := rt.RoundTrip(req)
	if err != nil || resp == nil || resp.StatusCode/100 != 3 || resp.Header.Get("Location") == "" {
		return resp, err
	}
	again := req.Clone(req.Context())
	switch {
	case resp.StatusCode < 307:
		again.Method, again.Body, again.ContentLength = http.MethodGet, nil, 0
	case req.GetBody != nil:
		again.Body, _ = req.GetBody()
	case req.ContentLength != 0:
		return resp, nil
	}
	if again.URL, err = resp.Location(); err != nil {
		return resp, nil
	}
	again.Host = again.URL.Host
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	return rt.RoundTrip(again)
}

type following struct{ http.RoundTripper }

func (f following) RoundTrip(req *http.Request) (*http.Response, error) { return follow(f.RoundTripper, req) }
`

// mutants are what is tried. Each is the smallest change that brings its defect
// about in a client that is otherwise whole: where two guards stand one behind
// the other, both are taken away. It says what changes and where: a pattern names
// functions, fields and constants where it can, and _ is any expression.
var mutants = []mutant{
	// What is sent twice.
	defect("retry writes on 502",
		in("transport.exchange.retryable", swap("_ && slices.Contains(_, _)", "(_ || resp.StatusCode == 502) && slices.Contains(_, _)"))),
	defect("retry writes on 429",
		in("transport.exchange.retryable", swap("_ && slices.Contains(_, _)", "(_ || resp.StatusCode == 429) && slices.Contains(_, _)"))),
	defect("retry writes on a reset", in("transport.exchange.retryable", swap("is[*unsentError](_)", "true"))),
	defect("retry writes without end", in("transport.maxWriteRetries", value("9"))),
	defect("client that retries by itself not noticed", in("transport.exchange.RoundTrip", swap("_ > 1", "_ > 9"))),
	defect("retries of a caller's client not told", in("resent", swap("detailed(why, detail)", "why"))),
	defect("WithoutRetry ignored", in("transport.exchange.maxRetries", never("NoRetry"))),
	defect("follow 307",
		in("transport.Engine.carrier", declare(follow), swap("_.fresh", "following{_.fresh}")),
		in("transport.exchange.request", after("Body", "GetBody: x.openBody"))),
	defect("follow 302 of reads", in("transport.Engine.carrier", declare(follow), swap("_.pooled", "following{_.pooled}"))),
	defect("redirect of a caller's client followed",
		in("transport.Engine.carrier", declare(follow), swap("return _.Transport", "return following{_.Transport}"))),
	defect("redirect of a caller's client with cookies followed", in("transport.Engine.carrier", drop("CheckRedirect"))),
	defect("keep-alive for writes", in("transport.newTransports", drop("DisableKeepAlives"))),
	defect("HTTP/2 for writes", in("transport.newTransports", after("DisableKeepAlives", `fresh.Protocols.SetHTTP2(true)
		fresh.ForceAttemptHTTP2, fresh.TLSNextProto, fresh.TLSClientConfig.NextProtos = true, nil, []string{"h2", "http/1.1"}`))),
	defect("HTTP/2 for reads",
		in("transport.harden", swap("_.SetHTTP1(true)", "_.SetHTTP1(true); _.SetHTTP2(true)")),
		in("transport.harden/TLSNextProto", value("nil")),
		in("transport.hardenTLS", before(`"http/1.1"`, `"h2"`))),
	defect("GetBody left", in("transport.exchange.request", after("Body", "GetBody: x.openBody"))),
	defect("empty writes of a caller's doer recognised as empty", in("transport.exchange.openBody", never("doer"))),
	defect("idempotency header added", in("call.Header", after(`"Authorization"`,
		`if k.op.reference != "" { h["Idempotency-Key"] = []string{k.op.reference} }`))),
	defect("idempotency header of the caller's allowed", in("check.refused", drop(`"Idempotency-Key"`))),
	defect("Call by POST as a read", in("Request.class", swap("_.ReadOnly", `_.ReadOnly || _.Reference == ""`))),
	defect("Begin not asked", in("call.claim", after("Begin", "err = nil"))),
	defect("executed order sent again", in("row.duplicate", swap("_.isEnded()", "_.closed"))),
	defect("unresolved order sent again", in("row.duplicate", drop("isUnresolved"))),
	defect("closed order sent again", in("row.duplicate", swap("_.isEnded()", "_.outcome == OutcomeExecuted"))),
	defect("another body of an executed order sent", in("row.refusal", swap("return fmt.Errorf(_, ErrOtherBody, d)", "return nil"))),
	defect("another body of a free reference sent", in("row.refusal", swap("d == nil && !sameBody", "false"))),
	defect("executed order not remembered", in("row.executed", swap("r.outcome, r.proven, r.serviceID = OutcomeExecuted, true, serviceID", "_ = serviceID"))),
	defect("write by Call without a reference", in("Request.valid", never(`_.Reference == ""`))),
	defect("freezes as repeatable", in("Client.FreezeCard", before("fields(reference)", `repeats: "FreezeCard"`))),
	defect("cancel as if it were executed once", in("Client.adjust", drop("repeats"))),
	defect("row keyed without the operation", in("keyOf", swap("i.Op", `""`))),
	defect("intents without the operation", in("call.newIntent", swap("cmp.Or(_, _)", `cmp.Or("", "")`))),
	defect("cancel beside retry of one record", in("call.newIntent", swap("cmp.Or(op.repeats, op.name)", "cmp.Or(op.name, op.repeats)"))),
	defect("settled when the last byte is sent", in("call.newIntent", swap("sendBy.Add(_)", "sendBy.Add(0*_)"))),
	defect("result not recorded", in("call.end", never("held"))),
	defect("repeated while another call may be executed", in("row.isRepeatableAt", swap("!now.Before(_)", "true"))),

	// What is told wrongly.
	defect("GotConn check dropped", in("transport.connTrace.classify", swap("!got.Load()", "true"))),
	defect("WroteHeaders in its place",
		in("transport.connTrace.attach", drop("GotConn"), after("written", "t.got.Store(true)"))),
	defect("GetConn check dropped", in("transport.connTrace.classify", drop("sought"))),
	defect("not sent claimed of a read through a caller's doer", in("transport.exchange.classify", drop("doer"))),
	defect("deadline forgotten once connected", in("transport.newTransports", drop("fenceDials"))),
	defect("deadline by the wall clock alone", in("transport.fence.expired", drop("_.Before(_.deadline)"))),
	defect("deadline by the monotonic clock alone", in("transport.fence.expired", drop("wall"))),
	defect("DialTLS without the deadline", in("transport.fenceDials", swap("fenced(_, _.DialTLS)", "_"))),
	defect("handshake after the look at the clocks", in("transport.fenced", never("conn.(_)"))),
	defect("not sent claimed of half a request", in("transport.fence.bar", swap("_ || _", "true"))),
	defect("not sent claimed of a request that is still to begin", in("transport.fence.admit", swap("!_ || _ || _", "!_ || true"))),
	defect("not sent claimed after a first attempt that was", in("transport.exchange.record", swap("NotSent && unsent", "unsent"))),
	defect("409 as refused", in("DefaultProfile/RefusedStatuses", after("405", "409"))),
	defect("code 500 as refused", in("DefaultProfile/RefusedCodes", after("429", "500"))),
	defect("bare 403 as refused", in("DefaultProfile/BareRefusedStatuses", after("401", "403"))),
	defect("spoiled envelope as bare", in("wire.IsBare", swap("_[0] != '{'", "true"))),
	defect("body that is cut off as bare", in("wire.IsBare", swap("whole", "true"))),
	defect("compressed envelope as bare", in("operation.isBare", drop("isEncoded"))),
	defect("redirect not told", in("transport.exchange.readHead", drop("StatusCode/100"))),
	defect("response to another request taken", in("transport.exchange.readHead", drop("isOfAnotherRequest"))),
	defect("adjust false as success", in("Client.adjust", always("*done"))),
	defect("echo check off", in("Client.CreateTransfer", never("MerchantOrderNo"))),
	defect("echo check only of what is otherwise whole", in("provesTransfer", swap("(named || numbered) && !other", "(named || numbered) && (!other || other)"))),
	defect("transfer without api_order_no as success",
		in("transferFields/apiOrderNo", drop("Required"), swap("serviceIDValue(_, _)", "_.Text(_, wire.Code)"))),
	defect("freeze without an operation ID as success", in("Client.FreezeCard", swap("serviceIDValue(_, _)", "_.Text(_, wire.Code)"))),
	defect("source of an upload not compared after an early response", in("call.gatherEvidence", swap("k.op.parts.Check()", "error(nil)"))),
	defect("fault of an image not told after an early response", in("operation.explain", never("codeSuccess"))),
	defect("longer source of an upload cut", in("upload.exactReader.atEnd", swap("errTooMany", "io.EOF"))),
	defect("another call's outcome lent", in("hiddenCause.Is", swap("!isSentinel", "(!isSentinel || true)"))),
	defect("cause of the network hidden", in("hiddenCause.As", swap("errors.As(_, _)", "false"))),
	defect("several errors as one", in("theError", drop("countErrors"))),
	defect("5xx as refused",
		in("judge", swap("slices.Contains(p.RefusedStatuses, _)", "(f.status >= 500 || slices.Contains(p.RefusedStatuses, _))"))),
	defect("code 500 of a 4xx as refused", in("judge", drop("_/100 != 5"))),
	defect("code 200 of a 4xx as refused", in("judge", drop("_ != codeSuccess"))),
	defect("any other code as refused", in("judge", drop("RefusedCodes"))),
	defect("page under any status as refused", in("judge", drop("BareRefusedStatuses"))),
	defect("spoiled envelope under a bare status as refused", in("judge", drop("f.bare"))),
	defect("refusal without a message", in("facts.refuses", drop("hasMessage"))),
	defect("refusal with a message of success", in("facts.refuses", drop("isSuccessMessage"))),
	defect("refusal that names the order", in("facts.exists", drop("thisOrder"))),
	defect("refusal that says that it exists",
		in("facts.exists", swap("slices.ContainsFunc(_, said)", "slices.ContainsFunc(_[:0], said)"))),
	defect("letter case of what says that it exists", in("facts.exists", swap("lettersOf(f.message)", "f.message"))),
	defect("duplicate code as refused", in("facts.exists", drop("DuplicateCodes"))),
	defect("another order's data as this one's", in("call.gatherEvidence", swap("e.data, e.unreadable = otherOrder, err", "e.data, e.unreadable = thisOrder, err"))),
	defect("undecodable data of a 200 as executed", in("judge", drop("thisOrder"))),
	defect("executed whatever the message", in("judge", drop("contradicted"))),
	defect("last of several requests believed", in("judge", swap("f.resent && _", "false"))),
	defect("lost response judged", in("judge", never("f.lost != nil"))),
	defect("redirect judged", in("judge", never("elsewhere"))),
	defect("status 201 as no success", in("facts.succeeded", swap("f.status/100 == 2", "f.status == 200"))),
	defect("status 400 with code 200 as success", in("facts.succeeded", swap("f.status/100 == 2", "f.status/100%2 == 0"))),
	defect("second Content-Encoding ignored", in("isEncoded", swap("h.Values(_)", "h.Values(_)[:min(1, len(h))]"))),
	defect("reference in a page ignored", in("operation.isBare", swap("!named", "(named || true)"))),
	defect("unknown write advised as safe", in("Error.advice", swap("harmless || _", "harmless || e.Outcome == OutcomeUnknown"))),
	defect("unknown outcome as a retry", in("Error.step", swap("e.Outcome == OutcomeNotSent && !e.isClosed() && _", "e.Outcome <= OutcomeNotSent && !e.isClosed() && _"))),
	defect("closed reference as a retry", in("Error.step", drop("!e.isClosed()"))),
	defect("invalid request as a retry", in("Error.step", swap("e.Outcome == OutcomeNotSent && !e.isClosed() && _", "e.Outcome == OutcomeNotSent && !e.isClosed()"))),
	defect("another body as done", in("Error.step", never("ErrOtherBody"))),
	defect("refused for now as failed", in("Error.step", drop("refusedForNow"))),
	defect("404 of a wrong URL as final", in("Error.refusedForNow", drop("isOfURL"))),
	defect("in progress as unknown", in("Error.step", never("InProgress"))),
	defect("duplicate that contradicts its error believed", in("Error.step", never("d.Outcome != e.Outcome"))),

	// What the journal is told.
	defect("journal End on the call's context", in("call.settle", swap("context.WithoutCancel(_)", "_"))),
	defect("letter case of a UUID", in("Client.adjust", swap("strings.ToLower", "strings.Clone"))),
	defect("letter case of the UUID of a freeze", in("Client.FreezeCard", swap("strings.ToLower", "strings.Clone"))),
	defect("deadline of a write as late as its context", in("call.endOf", drop("isClaimed() && _"))),
	defect("journal digest without the target", in("Call/wire.Field", swap("_.query", `""`))),
	defect("journal digest that depends on the order", in("wire.Fields.Digest", swap("cmp.Or(_, _)", "0*cmp.Or(_, _)"))),
	defect("panic settles nothing", in("do", drop("settleAfterPanic"))),
	defect("journal asked without a bound", in("call.bounded", swap("context.WithDeadline(_, _)", "context.WithCancel(_)"))),
	defect("Begin error ignored", in("call.claim", swap("return k.unrecorded(_, _, err)", "k.held = true\nreturn nil"))),
	defect("taken reference sent again", in("call.unrecorded", swap("return k.duplicate(err, d)", "_ = d\nk.held = true\nreturn nil"))),
	defect("another body told as executed", in("call.duplicate", never("ErrOtherBody"))),
	defect("refusal that is not on record told as one",
		in("call.settle", swap("failure.Outcome, failure.Err = OutcomeUnknown, _", "failure.Err = _"))),
	defect("contradiction not told", in("call.settle", swap("return k.duplicate(err, d)", "_ = d\nreturn failure"))),
	defect("invalid parameters without closing the reference", in("call.unready", always("isClaimed"))),
	defect("invalid request as the one that was sent", in("operation.digest", never("invalid"))),
	defect("invalid parameters where the journal failed",
		in("call.void", swap("return k.unrecorded(_, _, err)", "return k.op.failure(OutcomeNotSent, reason)"))),
	defect("refusal not told as final", in("call.settle", drop("Final"))),
	defect("journal not told the service's ID",
		in("call.settle", swap("end.ServiceID, end.Status = k.op.record()", "_, end.Status = k.op.record()"))),
	defect("error without the service's ID", in("call.settle", swap("failure.ServiceID = end.ServiceID", "_ = failure"))),
	defect("panic recorded as executed", in("call.settleAfterPanic", swap("failure.Outcome = OutcomeUnknown", "failure.Outcome = OutcomeExecuted"))),
	defect("panic after sending as not sent", in("call.settleAfterPanic", never("sending"))),
	defect("words of a journal in errors", in("journalCause", swap(`return "check its database"`, "return err.Error()"))),

	// What the journal in memory holds.
	defect("result of an earlier call counts", in("row.record", swap("own && r.open", "r.open"))),
	defect("executed order refused later", in("row.record", swap("own && r.open", "own"))),
	defect("final refusals that close nothing", in("row.record", swap("result.Final && _", "result.Final && false && _"))),
	defect("executed order unknown later", in("row.unknown", swap("r.outcome == OutcomeExecuted || _", "_"))),
	defect("denial undone by a late result", in("row.unknown", drop("byPerson"))),
	defect("unknown order as not sent", in("row.unknown", swap("r.open, r.closed, r.outcome = _, _, OutcomeUnknown", "r.open, r.closed, r.outcome = _, _, OutcomeNotSent"))),
	defect("resolved before it is settled", in("row.resolve", never("SettledBy"))),
	defect("later call resolved", in("row.resolve", never("Call"))),
	defect("what a response proved corrected", in("row.resolve", never("proven"))),
	defect("executed order voided", in("row.void", swap("return d", "r.closed = true\nreturn nil"))),
	defect("voided order granted", in("row.void", swap("r.closed = true", "r.closed = false"))),
	defect("unresolved orders forgotten", in("MemoryJournal.home", swap("nil", "&j.free"))),
	defect("ended orders remembered without end", in("MemoryJournal.move", never("maxEnded"))),
	defect("more unresolved orders than can be remembered", in("row.begin", never("full"))),
	defect("journal of another service", in("MemoryJournal.change", never("Service"))),

	// What goes on for too long, or too much of it.
	// The cap is not taken away but raised, because tests give bodies without end.
	defect("body cap off", in("transport.buffer.fill", before("minBuffer", "limit += 1 << 26"))),
	defect("body cap of writes off", in("call.prepare", swap("min(_, maxWriteResponseBytes)", "max(_, maxWriteResponseBytes)"))),
	defect("Content-Length believed", in("transport.buffer.fill", swap("maxFirst", "1<<28"))),
	defect("header cap off", in("transport.maxHeaderBytes", value("10 << 20"))),
	defect("decompression by net/http", in("transport.harden/DisableCompression", value("false"))),
	defect("Retry-After cap off", in("transport.exchange.pause", never("MaxRetryAfter"))),
	defect("Retry-After ignored", in("transport.exchange.pause", drop("wait = after"))),
	defect("budget off", in("transport.exchange.pause", drop("budget"))),
	defect("budget refilled by retries", in("transport.exchange.checkRetry", drop("Tries"))),
	defect("budget refilled by failures", in("transport.exchange.checkRetry", swap("_ && healthy", "_ && (healthy || true)"))),
	defect("jitter removed", in("transport.Policy.delay", swap("1 + rand.N(_)", "_ + 0*rand.N(_)"))),
	defect("wait that outlasts the call begun", in("transport.exchange.pause", swap("time.Until(_) <= _", "false"))),
	defect("drain without deadline", in("transport.exchange.RoundTrip", swap("_.request(_, _)", "_.request(context.WithoutCancel(_), _)"))),
	defect("drain of what is too large", in("transport.exchange.receive", swap("defer Body.Close()", `defer func() {
		_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)
		_ = resp.Body.Close()
	}()`))),
	defect("drain of another protocol", in("transport.exchange.receive", drop("http.StatusOK"))),
	defect("body that ignores the deadline", in("transport.buffer.fill", never("_ && _.Err() != nil"))),
	defect("deadline of the call off", in("call.prepare", drop("Deadline"))),
	defect("deadline of an attempt off", in("transport.exchange.bound", never("policy.Attempt"))),
	defect("limiter skipped for retries", in("transport.exchange.admit", swap("_.engine.limit != nil", "_.engine.limit != nil && _.response.Tries == 0"))),
	defect("retries of what is permanent", in("transport.exchange.retryable", never("permanent"))),
	defect("failed call closes everybody's connections", in("transport.exchange.checkRetry", after("record", "if err != nil { x.engine.CloseIdleConnections() }"))),

	// What is shown.
	defect("Release not clearing the buffer", in("transport.Response.Release", drop("clear"))),
	defect("growing not clearing the buffer", in("transport.buffer.grow", drop("clear"))),
	defect("RevealBody under WithMaskedCards", in("call.capture", drop("maskedCards"))),
	defect("card numbers in messages", in("mask.Message", swap("maskDigits(_)", "_"))),
	defect("card numbers in groups in messages", in("mask.maskDigits", never("minGroupDigits"))),
	defect("key in messages", in("mask.Message", never("keyAt"))),
	defect("card numbers in request IDs", in("mask.RequestID", swap("Message(_, _)", "_"))),
	defect("key in request IDs", in("mask.RequestID", swap("Message(_, _)", `Message(_, "")`))),
	defect("key in a Response's header", in("mask.Header", drop("containsKey"))),
	defect("card numbers in a Response's header", in("mask.Header", swap("maskDigits(v)", "v"))),
	defect("cookies in a Response", in("mask.Header", drop(`"Set-Cookie"`))),
	defect("net/http's words in errors", in("transport.sealed.Error", swap("_.words", "_.raw().Error()"))),
	defect("words of a caller's function in errors", in("hideCause", swap("message", `message + ": " + cause.Error()`))),
	defect("proxy's words in errors", in("transport.checkProxy", never("http.StatusOK"))),
	defect("reference in the log", in("call.logAttempt", after(`"operation"`, `slog.String("reference", k.op.reference)`))),
	defect("name of an unknown field in drift", in("wire.Codec.skipUnknown", swap("anyName", "step(c.pos - len(name) - 3)"))),
	defect("export: full numbers in the file", in("export.run", swap("cardwire.WithMaskedCards()", `cardwire.WithUserAgent("export")`)), in("export.columns", swap("c.Number.Masked()", "c.Number.Reveal()"))),
	defect("export: a file that others read", in("export.openPart", swap("_.Chmod(_)", "nil"))),
	defect("TLS 1.0 spoken", in("transport.hardenTLS", swap("tls.VersionTLS12", "tls.VersionTLS10"))),
	defect("anybody's certificate trusted", in("WithTransport", never("trustsAnybody"))),
	defect("plain http through a proxy", in("config.directTransport", drop("Proxy"))),
	defect("plain http to any host", in("check.BaseURL", never("loopback"))),
	defect("WithMaskedCards off", in("call.read", drop("Masking"))),

	// What is read, and believed.
	defect("second code accepted", in("wire.readObject", never("order[:seen]"))),
	defect("second unknown field accepted", in("wire.Codec.forget", never("bytes.Equal"))),
	defect("code as text accepted", in("envelope.readCode", swap("wire.Exact", "wire.Code"))),
	defect("blank identifiers accepted", in("wire.Codec.Bytes", never("bytes.TrimSpace"))),
	defect("any text as the record of a freeze", in("Client.FreezeCard", never("!isRecordID(_)"))),
	defect("words as a service's identifier", in("isServiceID", drop("ContainsAny"))),
	defect("negative number as a service's identifier", in("isServiceID", drop("HasPrefix"))),
	defect("zero as a service's identifier", in("isServiceID", drop("Trim"))),
	defect("zero dates unreadable", in("wire.Date", swap(`c.Drift("invalid date")`, `c.Fail("a date")`))),
	defect("date that cannot be read not told", in("wire.Date", drop(`"invalid date"`))),
	defect("bytes after the end accepted", in("wire.Codec.End", never("peek"))),
	defect("data read before the code says success",
		in("envelope.reachData", swap("_.succeeded()", "(e.succeeded() || e.code == 0)"))),
	defect("missing data as success", in("envelope.decode", before("deferred", "if !e.deferred { return }"))),
	defect("verifyPage off", in("Client.ListCards", never("verifyPage"))),
	defect("verifyPage without a second look", in("Client.ListCards", drop("recheck"))),
	defect("verifyPage without slack for zones", in("zoneSlack", value("0 * time.Hour"))),
	defect("endAfterLast off", in("Client.ListCards", drop("endAfterLast"))),
	defect("pager loop check off", in("pager.cameTwice", swap("!w.client.settings().profile.TrustResponses", "false"))),
	defect("page to resume from not told", in("pager.step", drop("resumable.Page = _"))),
	defect("pages read ahead without end", in("prefetch.begin", drop("most"))),
	defect("pages read ahead after a failure", in("prefetch.begin", drop("failed.Load"))),
	defect("pages read ahead after the loop", in("prefetch.stop", drop("Wait"))),
	defect("another card taken", in("Client.GetCard", always("TrustResponses"))),
	defect("another card's number decrypted", in("CardSecrets.DecryptPAN", never("covers"))),
	defect("Cents rounding", in("wire.Cents", drop("len(fraction) > 2"))),
	defect("inexact amount sent", in("TransferParams.checkAmount", drop(`" has more than two decimal places"`))),
	defect("order numbers that look alike", in("check.hidden", swap("unicode.Cf", "unicode.Cs"))),
	defect("field of a transfer shadowed", in("checkExtra", swap("strings.EqualFold(_, _)", "_ == _"))),
	defect("further fields of a kept transfer lost", in("TransferParams.read", drop("p.Extra[_] = _"))),
	defect("kept transfer mixed with an earlier one", in("TransferParams.UnmarshalJSON", swap("var fresh TransferParams", "fresh := *p"))),
	defect("kept amount of another form", in("wire.TwoPlaces.UnmarshalText", swap("sent != _", `sent == ""`))),

	// What the journal in a table holds.
	defect("sqljournal: open intents begun again", in("sqljournal.begin", literal("'not_sent')", "'not_sent', 'open')"))),
	defect("sqljournal: unknown intents begun again", in("sqljournal.begin", literal("'not_sent')", "'not_sent', 'unknown')"))),
	defect("sqljournal: executed intents begun again", in("sqljournal.begin", literal("'not_sent')", "'not_sent', 'executed')"))),
	defect("sqljournal: closed references begun again", in("sqljournal.begin", literal(" AND NOT i.closed", ""))),
	defect("sqljournal: another body under a reference", in("sqljournal.begin", literal(" AND i.body_sha256 IN ('', excluded.body_sha256)", ""))),
	defect("sqljournal: repeated while another call may be executed",
		in("sqljournal.begin", literal("i.state NOT IN ('open', 'unknown') OR i.settled_by <= @now", "TRUE"))),
	defect("sqljournal: journal of another service", in("sqljournal.begin", literal("?10 IN ('', service)", "?10 = ?10"))),
	defect("sqljournal: a Begin that was executed twice is a duplicate", in("sqljournal.refusal", never("k.Call == i.Call"))),
	defect("sqljournal: another body without what is known of the first",
		in("sqljournal.refusal", swap("fmt.Errorf(_, cardwire.ErrOtherBody, _)", "cardwire.ErrOtherBody"))),
	defect("sqljournal: executed undone by a later result", in("sqljournal.end", literal(" AND state = 'open'", ""))),
	defect("sqljournal: executed unknown later", in("sqljournal.unknownLate", literal("state <> 'executed' AND ", ""))),
	defect("sqljournal: late success not recorded", in("sqljournal.executedLate", literal("state = 'executed'", "state = state"))),
	defect("sqljournal: late result of a row that has changed", in("sqljournal.Journal.End", swap("j.transaction(_, _)", "func() (err error) { flaw, err = e.late(ctx, t); return err }()"))),
	defect("sqljournal: result of an earlier call counts", in("sqljournal.end", literal(" AND call = ?3", ""))),
	defect("sqljournal: contradiction not told", in("sqljournal.ending.late", swap("flaw = ErrContradiction", "flaw = nil"))),
	defect("sqljournal: unknown outcome as not sent", in("sqljournal.states/OutcomeUnknown", value(`"not_sent"`))),
	defect("sqljournal: final refusals that close nothing", in("sqljournal.ending.end", swap("r.Final", "false"))),
	defect("sqljournal: an end that is tried once", in("sqljournal.Journal.End", swap("j.passes(err)", "j.busy(err)"))),
	defect("sqljournal: an end that is told again happens again",
		in("sqljournal.recordEvent", literal("h.service_id = ?6)", "h.service_id = ?6 AND FALSE)"))),
	defect("sqljournal: what has vanished stays so", in("sqljournal.ending.late", swap("_.again(_, _)", "error(nil)"))),
	defect("sqljournal: a failure that lasts is tried again", in("sqljournal.Journal.passes", swap("_ && _ && _", "_"))),
	defect("sqljournal: a reference that a failed Begin left open stays taken", in("sqljournal.Journal.release", drop("abandoned"))),
	defect("sqljournal: failed Begin leaves an open intent", in("sqljournal.Journal.release", drop("persistent"))),
	defect("sqljournal: a failure that is another caller's", in("sqljournal.writes.execute", drop("[]*write{b}"))),
	defect("sqljournal: calls of the future in progress", in("sqljournal.readEntry", drop("!_.After(_)"))),
	defect("sqljournal: intents of the future not counted", in("sqljournal.isUnresolved", literal(" OR i.time > coalesce(@clock, @now)", ""))),
	defect("sqljournal: open intents not listed", in("sqljournal.Journal.Unresolved", literal("'open', ", ""))),
	defect("sqljournal: another journal's database",
		in("sqljournal.Tx.identify", never("pinned != identity")),
		in("sqljournal.Dialect.translate", literal("IN ('', j.identity)", "IS NOT NULL"))),
	defect("sqljournal: a history that is not written", in("sqljournal.Tx.identify", never("triggers != 2"))),
	defect("sqljournal: resolved before it is settled", in("sqljournal.resolve", literal(" AND settled_by <= ?9 AND ?9 <= @now", ""))),
	defect("sqljournal: later call resolved", in("sqljournal.resolve", literal("proved AND call = ?4", "proved"))),
	defect("sqljournal: what a response proved corrected", in("sqljournal.resolve", literal("NOT proved AND call", "call"))),
	defect("sqljournal: one service ID of two references", in("sqljournal.resolve", literal("o.service_id <> ''", "FALSE"))),
	defect("sqljournal: statement: not executed before From", in("sqljournal.Statement.compare", never("!s.covers(e)"))),
	defect("sqljournal: statement: not executed before it is settled", in("sqljournal.Statement.compare", never("!s.settles(e)"))),
	defect("sqljournal: statement: another amount believed", in("sqljournal.Statement.compare", never("l.status != \"\" && differs(l.line, e)"))),
	defect("sqljournal: statement: a similar line not seen", in("sqljournal.reconciliation.compareAll", never("l.other != \"\""))),
	defect("sqljournal: statement: changed since the report", in("sqljournal.Tx.Apply", never("hasMoved(f.Entry, now)"))),
	defect("sqljournal: statement: denied by one that does not list it", in("sqljournal.pend", literal("@earlier(i.time, excluded.time)", "i.time"))),
	defect("sqljournal: statement: of another account", in("sqljournal.reconciliation.survey", never("2*strays > lines && !r.statement.AllowStrays"))),
	defect("sqljournal: executed references voided", in("sqljournal.void", literal("i.state IN ('refused', 'not_sent') AND ", ""))),
}
