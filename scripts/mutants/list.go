package main

// mutant is a defect that the tests must notice.
type mutant struct {
	name   string
	places []place
}

func defect(name string, places ...place) mutant { return mutant{name, places} }

// dirs are the directories of the packages other than the root's.
var dirs = map[string]string{
	"ahead":      "internal/ahead",
	"check":      "internal/check",
	"export":     "examples/apps/export",
	"inflight":   "internal/inflight",
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
		in("transport.exchange.retryable", swap("_ && retryableStatus(_)", "(_ || resp.StatusCode == 502) && retryableStatus(_)"))),
	defect("retry writes on 429",
		in("transport.exchange.retryable", swap("_ && retryableStatus(_)", "(_ || resp.StatusCode == 429) && retryableStatus(_)"))),
	defect("retry writes on a reset", in("transport.exchange.retryable", swap("is[*unsentError](_)", "true"))),
	defect("retry writes without end", in("transport.maxWriteRetries", value("9"))),
	defect("client that retries by itself not noticed", in("transport.exchange.RoundTrip", swap("_ > 1", "_ > 9"))),
	defect("refusal by a client that retries by itself believed", in("Error.doubt", swap("!r.Resent", "true"))),
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
	defect("guard off", in("claim.take", never("Enter"))),
	defect("executed order sent again", in("claim.recall", drop("inflight.Executed"))),
	defect("order sent again by who waited", in("claim.recall", drop("Waited"))),
	defect("executed order with another body sent", in("claim.recall", never("Body"))),
	defect("executed order not remembered", in("claim.settle", swap("_.remember(inflight.Executed, _)", `_.remember(inflight.Free, "")`))),
	defect("ServerDeduplicates ignored by the memory", in("claim.recall", drop("ServerDeduplicates"))),
	defect("Call by POST as a read", in("Request.class", swap("_.ReadOnly", `_.ReadOnly || _.Reference == ""`))),
	defect("Call that the journal cannot record", in("Request.unjournaled", never("Reference"))),
	defect("uniqueness off for freezes", in("Client.FreezeCard", drop("unique"))),
	defect("guard keyed without the operation", in("claim.guard", swap("cmp.Or(_, _)", `cmp.Or("", "")`))),
	defect("cancel beside retry of one record", in("Client.adjust", drop("record"))),
	defect("references of operations mixed up", in("claim.key", drop("Op"))),
	defect("guard that never lets go", in("claim.settle", drop("Leave"))),
	defect("uniqueness for cancel", in("Client.adjust", before("reference", "unique: true"))),

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
	defect("5xx as refused", in("call.judgeFailure", swap("!_.success && !_", "!_.success && k.last.status < 500 && !_"))),
	defect("code 500 as refused", in("DefaultProfile/RefusedCodes", after("429", "500"))),
	defect("code 500 of a 4xx as refused", in("call.judgeFailure", drop("_ >= 500 && _"))),
	defect("code 200 of a 4xx as refused", in("call.judgeFailure", drop("codeSuccess"))),
	defect("any other code as refused", in("call.judgeFailure", never("RefusedCodes"))),
	defect("refusal without a message", in("call.judgeFailure", drop("isEnvelope"))),
	defect("refusal with a message of success", in("call.judgeFailure", drop("isSuccessMessage"))),
	defect("refusal that names the order", in("call.judgeFailure", never("deferred"))),
	defect("bare 403 as refused", in("DefaultProfile/BareRefusedStatuses", after("401", "403"))),
	defect("spoiled envelope as bare", in("wire.IsBare", swap("_[0] != '{'", "true"))),
	defect("body that is cut off as bare", in("wire.IsBare", swap("whole", "true"))),
	defect("compressed envelope as bare", in("spec.isBare", drop("isEncoded"))),
	defect("duplicate code as refused", in("call.judge", never("DuplicateCodes"))),
	defect("undecodable 200 as failure",
		in("call.judgeFailure", swap("_.fail(OutcomeUnknown, unreadable(_))", "_.fail(OutcomeRefused, unreadable(_))"))),
	defect("undecodable data of a 200 as failure", in("call.judgeSuccess", before("fail(outcome, _)", "outcome = OutcomeRefused"))),
	defect("undecodable data of a 200 as executed", in("call.judgeSuccess", swap("OutcomeUnknown", "OutcomeExecuted"))),
	defect("undecodable 200 as executed",
		in("call.judgeFailure", swap("_.fail(OutcomeUnknown, unreadable(_))", "_.fail(OutcomeExecuted, unreadable(_))"))),
	defect("status 201 as no success", in("call.judge", swap("_ >= 200 && _", "_ == 200"))),
	defect("status 400 with code 200 as success", in("call.judge", swap("299", "499"))),
	defect("redirect not told", in("transport.exchange.readHead", drop("StatusCode/100"))),
	defect("response to another request taken", in("transport.exchange.readHead", drop("answersOther"))),
	defect("adjust false as success", in("Client.adjust", always("*done"))),
	defect("sticky Unknown off", in("claim.keepKnown", never("inflight.Unknown"))),
	defect("executed order refused later", in("claim.keepKnown", drop("OutcomeExecuted"))),
	defect("unknown references not remembered", in("claim.settle", drop("inflight.Unknown"))),
	defect("references remembered without end", in("inflight.recent.put", drop("len(_) >= _"))),
	defect("echo check off", in("Client.CreateTransfer", never("MerchantOrderNo"))),
	defect("echo check only of what is otherwise whole", in("provesTransfer", drop("!other"))),
	defect("transfer without api_order_no as success",
		in("transferFields/apiOrderNo", drop("Required"), swap("serviceIDValue", "(*wire.Codec).Code"))),
	defect("freeze without an operation ID as success", in("Client.FreezeCard", swap("serviceIDValue(_, _)", "_.Code(_)"))),
	defect("source of an upload not compared after an early response", in("call.check", never("Check"))),
	defect("fault of an image not told after an early response", in("spec.explain", never("codeSuccess"))),
	defect("longer source of an upload cut", in("upload.exactReader.atEnd", swap("errTooMany", "io.EOF"))),
	defect("another call's outcome by a doer", in("transportError.Is", drop("isSentinel"))),
	defect("outcome of another call lent", in("hideCause", drop("isSentinel"))),
	defect("unknown write advised as safe", in("Error.advice", swap("_.isHarmlessUpload()", "_.isHarmlessUpload() || _.Outcome == OutcomeUnknown"))),
	defect("unknown outcome as a retry", in("NextStep", before("stepOfOutcome", "if e.Outcome == OutcomeUnknown { return StepRetry }"))),
	defect("several errors as one", in("theError", drop("countErrors"))),
	defect("another body as done", in("NextStep", drop("ErrOtherBody"))),
	defect("refused for now as failed", in("Error.stepOfOutcome", never("refusedForNow"))),
	defect("in progress as unknown", in("Error.stepOfDuplicate", never("InProgress"))),

	// What the journal is told.
	defect("journal End on the call's context", in("claim.settle", swap("context.WithoutCancel(_)", "_"))),
	defect("journal End without a bound", in("claim.settle", swap("context.WithTimeout(_, journalTimeout)", "context.WithCancel(_)"))),
	defect("Begin error ignored", in("claim.onRecord", swap("return _.unrecorded(_, _)", "return nil"))),
	defect("journal asked after sending",
		in("claim.take", swap("failure := grant(ctx)", "var failure *Error\nif c.core.journal == nil { failure = c.grant(ctx) }")),
		in("do", after("exchange", `if k.claim.held && k.client.journal != nil {
			if begun := k.claim.grant(ctx); begun != nil { failure = begun }
		}`))),
	defect("End error fails the call", in("call.settle", after("journalFailed", "if failure != nil { failure.Outcome = OutcomeUnknown }"))),
	defect("taken reference sent again", in("claim.onRecord", swap("return _.refused(_, _)", "_.journaled = true\nreturn nil"))),
	defect("ServerDeduplicates lifting executed ones", in("claim.onRecord", drop("OutcomeUnknown"))),
	defect("ServerDeduplicates forgetting the unknown", in("claim.onRecord", drop("remember"))),
	defect("executed whatever the message", in("call.judgeSuccess", drop("_ || isSuccessMessage(_)"))),
	defect("letter case of a UUID", in("Client.adjust", swap("strings.ToLower", "strings.Clone"))),
	defect("letter case of the UUID of a freeze", in("Client.FreezeCard", swap("strings.ToLower", "strings.Clone"))),
	defect("resolved reference kept unknown by the memory", in("claim.grant", drop("remember"))),
	defect("another body told as executed", in("claim.otherBody", swap("OutcomeUnknown", "d.Outcome"))),
	defect("not sent beside one in progress", in("claim.unready", never("InProgress"))),
	defect("not sent beside one that was executed", in("claim.unready", never("inflight.Executed"))),
	defect("invalid parameters without asking the journal", in("claim.unready", swap("_.look(_, failure)", "failure"))),
	defect("invalid parameters where the journal cannot be asked", in("claim.look", drop("OutcomeUnknown"))),
	defect("refusal not told as final", in("claim.settle", drop("Final"))),
	defect("deadline of a write as late as its context", in("call.endOf", drop("isClaimed() && _"))),
	defect("ServerDeduplicates lifting another body", in("claim.refused", never("bare"))),
	defect("journal digest without the target", in("Call/wire.Field", swap("_.query", `""`))),
	defect("journal digest that depends on the order", in("wire.Fields.Digest", swap("cmp.Or(_, _)", "0*cmp.Or(_, _)"))),
	defect("journal not told the service's ID", in("claim.settle", never("_ == OutcomeExecuted"))),
	defect("panic settles nothing", in("do", drop("settleAfterPanic"))),
	defect("claim kept where the journal panics", in("claim.take", never("held"))),
	defect("panic recorded as executed", in("call.settleAfterPanic", swap("_.settle(_, _)", "_.settle(_, nil)"))),

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
	defect("budget refilled by failures", in("transport.exchange.checkRetry", drop("healthy"))),
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
	defect("Release not clearing the buffer", in("transport.Engine.recycle", drop("clear"))),
	defect("growing not clearing the buffer", in("transport.buffer.grow", drop("clear"))),
	defect("Codec not cleared", in("wire.emptied", drop("clear"))),
	defect("RevealBody under WithMaskedCards", in("call.capture", drop("maskedCards"))),
	defect("WithMaskedCards off", in("call.judge", drop("Masking"))),
	defect("card numbers in messages", in("mask.Message", swap("maskDigits(_)", "_"))),
	defect("card numbers in groups in messages", in("mask.maskDigits", never("minGroupDigits"))),
	defect("key in messages", in("mask.Message", never("strings.HasPrefix"))),
	defect("card numbers in request IDs", in("mask.RequestID", swap("Message(_, _)", "_"))),
	defect("key in request IDs", in("mask.RequestID", swap("Message(_, _)", `Message(_, "")`))),
	defect("key in a Response's header", in("mask.Header", drop(`_ && strings.Contains(_, _)`))),
	defect("card numbers in a Response's header", in("mask.Header", swap("maskDigits(v)", "v"))),
	defect("cookies in a Response", in("mask.Header", drop(`"Set-Cookie"`))),
	defect("net/http's words in errors", in("transport.sealed.Error", swap("_.words", "_.raw().Error()"))),
	defect("words of a caller's function in errors", in("hideCause", swap("message", `message + ": " + cause.Error()`))),
	defect("proxy's words in errors", in("transport.checkProxy", never("http.StatusOK"))),
	defect("reference in the log", in("call.logAttempt", after(`"operation"`, `slog.String("reference", k.op.reference)`))),
	defect("name of an unknown field in drift", in("wire.Codec.skipUnknown", swap("anyName", "step(c.pos - len(name) - 3)"))),
	defect("export: full numbers in a file for all", in("export.part.protect", swap("_.Chmod(_)", "nil"))),
	defect("export: full numbers in what stood there", in("export.part.begin",
		swap("[]string{_.name(), _.stateName()}", "[]string{_.stateName()}"), swap("os.O_EXCL", "os.O_TRUNC"))),
	defect("export: made-up cards over real ones", in("export.settings.replaceable", swap("slices.Equal(_, s.header())", "len(_) == len(columns)"))),
	defect("TLS 1.0 spoken", in("transport.hardenTLS", swap("tls.VersionTLS12", "tls.VersionTLS10"))),
	defect("anybody's certificate trusted", in("WithTransport", never("trustsAnybody"))),
	defect("plain http through a proxy", in("config.directTransport", drop("Proxy"))),
	defect("plain http to any host", in("check.BaseURL", never("loopback"))),

	// What is read, and believed.
	defect("second code accepted", in("wire.readObject", never("_&_ != 0"))),
	defect("second unknown field accepted", in("wire.Codec.unique", swap("if duplicate { _ }", "duplicate = false"))),
	defect("code as text accepted", in("envelope.readCode", swap("_.ExactInt(_)", "_.Int(_)"))),
	defect("blank identifiers accepted", in("wire.Codec.CleanedID", never("bytes.TrimSpace"))),
	defect("any text as the identifier of a freeze", in("Client.FreezeCard", never("ContainsAny"))),
	defect("any text as the record of a freeze", in("Client.FreezeCard", never("check.UUID"))),
	defect("zero dates unreadable", in("wire.Text", never("zeros"))),
	defect("any date that cannot be read is absent", in("wire.Text", swap("slices.Contains(zeros, _)", "(slices.Contains(zeros, _) || len(zeros) > 0)"))),
	defect("bytes after the end accepted", in("wire.Codec.End", never("peek"))),
	defect("data read before the code says success",
		in("envelope.reachData", swap("_.hasCode && _.succeeded()", "_.success && (_.succeeded() || !e.hasCode)"))),
	defect("missing data as success", in("envelope.decode", before("deferred", "if !e.deferred { return }"))),
	defect("verifyPage off", in("Client.ListCards", never("verifyPage"))),
	defect("verifyPage without a second look", in("Client.ListCards", drop("recheck"))),
	defect("verifyPage without slack for zones", in("zoneSlack", value("0 * time.Hour"))),
	defect("endAfterLast off", in("Client.ListCards", drop("endAfterLast"))),
	defect("pager loop check off", in("pager.step", never("TrustReplies"))),
	defect("page to resume from not told", in("resumeAt", drop("Page"))),
	defect("pages read ahead without end", in("ahead.Pages.Begin", drop("Most"))),
	defect("pages read ahead after a failure", in("ahead.Pages.Begin", drop("failed.Load"))),
	defect("pages read ahead after the loop", in("ahead.Pages.Stop", drop("Wait"))),
	defect("another card taken", in("Client.GetCard", always("TrustReplies"))),
	defect("another card's number decrypted", in("CardSecrets.DecryptPAN", never("covers"))),
	defect("Cents rounding", in("wire.Cents", swap(`strings.Trim(_, "0")`, `strings.Trim(_, "0123456789")`))),
	defect("inexact amount sent", in("TransferParams.checkAmount", drop(`" has more than two decimal places"`))),
	defect("order numbers that look alike", in("check.hidden", swap("unicode.Cf", "unicode.Cs"))),
	defect("field of a transfer shadowed", in("TransferParams.validExtra", swap("strings.EqualFold(_, _)", "_ == _"))),
	defect("further fields of a kept transfer lost", in("TransferParams.read", drop("p.Extra[_] = _"))),
	defect("kept transfer mixed with an earlier one", in("TransferParams.UnmarshalJSON", swap("var fresh TransferParams", "fresh := *p"))),
	defect("kept amount of another form", in("wire.TwoPlaces.UnmarshalText", swap("sent != _", `sent == ""`))),

	// What the journal in a table holds.
	defect("sqljournal: open intents begun again", in("sqljournal.insertUnique", literal("'not_sent')", "'not_sent', 'open')"))),
	defect("sqljournal: unknown intents begun again", in("sqljournal.insertUnique", literal("'not_sent')", "'not_sent', 'unknown')"))),
	defect("sqljournal: executed intents begun again", in("sqljournal.insertUnique", literal("'not_sent')", "'not_sent', 'executed')"))),
	defect("sqljournal: closed references begun again", in("sqljournal.insertUnique", literal("NOT i.closed AND ", ""))),
	defect("sqljournal: another body under a reference", in("sqljournal.insertUnique", literal(" AND i.body_sha256 = excluded.body_sha256", ""))),
	defect("sqljournal: executed undone by a later result", in("sqljournal.record", literal("state = 'executed' OR ", ""))),
	defect("sqljournal: unknown undone by a retry",
		in("sqljournal.record", literal("WHEN state = 'open' AND holder LIKE ?4 THEN ?5", "WHEN state IN ('open', 'unknown') THEN ?5"))),
	defect("sqljournal: unknown outcome as not sent", in("sqljournal.stateOf", swap("stateUnknown", "stateNotSent"))),
	defect("sqljournal: final refusals that close nothing", in("sqljournal.record", literal("(?8 AND", "(FALSE AND ?8 AND"))),
	defect("sqljournal: a reference that a failed Begin left open stays taken", in("sqljournal.Journal.release", drop("abandoned"))),
	defect("sqljournal: a Begin that was executed twice is a duplicate", in("sqljournal.Journal.taken", drop("_ && _.holder == _"))),
	defect("sqljournal: calls of the future in progress", in("sqljournal.inProgress", drop("begun"))),
	defect("sqljournal: another journal's database", in("sqljournal.Journal.bind", never("pinned"))),
	defect("sqljournal: open intents not listed", in("sqljournal.Dialect.due", literal("'open', ", ""))),
	defect("sqljournal: intents of the future not listed",
		in("sqljournal.Dialect.due", swap("_ + ` OR begun_at > ` + _ + _", "_ + ` AND ` + _ + ` = ` + now + _"))),
	defect("sqljournal: resolved while a call may send", in("sqljournal.Journal.Resolve", literal("(?5 = 'executed' OR", "(?5 = ?5 OR"))),
	defect("sqljournal: resolved intents resolved", in("sqljournal.Journal.Resolve", literal(" AND ?5 = 'executed')", ")"))),
	defect("sqljournal: later tries resolved", in("sqljournal.Journal.Resolve", literal("attempts = ?2", "attempts >= ?2"))),
	defect("sqljournal: executed references voided", in("sqljournal.void", literal("i.state IN ('refused', 'not_sent') AND ", ""))),
	defect("sqljournal: failed Begin leaves an open intent", in("sqljournal.Journal.release", drop("tryRelease"))),
	defect("sqljournal: two calls with one holder", in("sqljournal.Journal.call", swap("_.Add(1)", "_.Load()"))),
	defect("sqljournal: an end that is tried once", in("sqljournal.Journal.persist", swap("_.passes", "_.busy"))),
	defect("sqljournal: an end that is told again takes another row",
		in("sqljournal.recordOther", literal("WHEN holder LIKE '%' || ?7 || '%' THEN 0 WHEN", "WHEN"))),
	defect("sqljournal: what has vanished stays so", in("sqljournal.Journal.End", swap("_ == nil && _ > 0", "_ == nil"))),
	defect("sqljournal: a failure that lasts is tried again", in("sqljournal.Journal.passes", swap("_ && _ && _", "_"))),
	defect("sqljournal: retries that leave an intent open", in("sqljournal.Journal.retry", literal("state = 'unknown', attempts", "attempts"))),
	defect("sqljournal: retries that are not on record", in("sqljournal.mustNotSend", swap("fmt.Errorf(_, _)", "d"))),
	defect("sqljournal: another body without what is known of the first",
		in("sqljournal.Journal.taken", swap("fmt.Errorf(_, cardwire.ErrOtherBody, _)", "cardwire.ErrOtherBody"))),
}
