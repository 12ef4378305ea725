package main

// mutant is a defect that the tests must notice.
type mutant struct {
	name  string
	edits []edit
	dir   string // of the nested module whose tests are run; "": the root's are
}

// edit puts text in the place of old, which stands once in the file.
type edit struct{ file, old, text string }

// The files that most mutants are made in.
const (
	attemptFile  = "internal/transport/attempt.go"
	bufferFile   = "internal/transport/buffer.go"
	causeFile    = "internal/transport/cause.go"
	fenceFile    = "internal/transport/fence.go"
	hardenFile   = "internal/transport/harden.go"
	retryFile    = "internal/transport/retry.go"
	checkFile    = "internal/check/check.go"
	callFile     = "call.go"
	cardsFile    = "cards.go"
	clientFile   = "client.go"
	envelopeFile = "envelope.go"
	errorsFile   = "errors.go"
	journalFile  = "journal.go"
	secretsFile  = "secrets.go"
	observerFile = "observer.go"
	outcomeFile  = "outcome.go"
	optionsFile  = "options.go"
	pagesFile    = "pages.go"
	profileFile  = "profile.go"
	requestFile  = "request.go"
	stepFile     = "next_step.go"
	inflightFile = "internal/inflight/inflight.go"
	transferFile = "remittance.go"
	uploadFile   = "upload.go"
	sourceFile   = "internal/upload/upload.go"
	sqlFile      = "sqljournal/journal.go"
	sqlListFile  = "sqljournal/unresolved.go"
	sqlExecFile  = "sqljournal/database.go"
)

const errNoResponse = "// errNoResponse is for doers"

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
// the other, both are taken away.
var mutants = []mutant{
	// What is sent twice.
	{name: "retry writes on 502", edits: []edit{{
		retryFile, "\tswitch status {\n\tcase http.StatusTooManyRequests,",
		"\tif status == http.StatusBadGateway {\n\t\treturn true\n\t}\n\tswitch status {\n\tcase http.StatusTooManyRequests,",
	}}},
	{name: "retry writes on 429", edits: []edit{{
		retryFile, "\tswitch status {\n\tcase http.StatusTooManyRequests,",
		"\tif status == http.StatusTooManyRequests {\n\t\treturn true\n\t}\n\tswitch status {\n\tcase http.StatusTooManyRequests,",
	}}},
	{name: "retry writes on a reset", edits: []edit{{retryFile, "\treturn c.unsent\n", "\treturn true\n"}}},
	{name: "retry secrets as often as reads", edits: []edit{{retryFile, "\tmaxSecretRetries = 1\n", "\tmaxSecretRetries = 9\n"}}},
	{name: "retry writes without end", edits: []edit{{retryFile, "\tmaxWriteRetries  = 2\n", "\tmaxWriteRetries  = 9\n"}}},
	{name: "WithoutRetry ignored", edits: []edit{{retryFile, "\tcase c.in.NoRetry:\n", "\tcase false:\n"}}},
	{name: "follow 307", edits: []edit{
		{attemptFile, errNoResponse, follow + errNoResponse},
		{attemptFile, "\t\treturn e.fresh\n", "\t\treturn following{e.fresh}\n"},
		{attemptFile, "\t\tBody:          body,\n", "\t\tBody:          body,\n\t\tGetBody:       c.openBody,\n"},
	}},
	{name: "follow 302 of reads", edits: []edit{
		{attemptFile, errNoResponse, follow + errNoResponse},
		{attemptFile, "\t\t\treturn e.pooled\n", "\t\t\treturn following{e.pooled}\n"},
	}},
	{name: "redirect of a caller's client followed", edits: []edit{
		{attemptFile, errNoResponse, follow + errNoResponse},
		{attemptFile, "\treturn hc.Transport\n", "\treturn following{hc.Transport}\n"},
	}},
	{name: "redirect of a caller's client with cookies followed", edits: []edit{{
		attemptFile, "\t\tsingle.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }\n", "",
	}}},
	{name: "keep-alive for writes", edits: []edit{{hardenFile, "\tfresh.DisableKeepAlives = true\n", ""}}},
	{name: "HTTP/2 for writes", edits: []edit{{
		hardenFile, "\tfresh.DisableKeepAlives = true\n",
		"\tfresh.DisableKeepAlives = true\n\tfresh.Protocols.SetHTTP2(true)\n\tfresh.ForceAttemptHTTP2 = true\n" +
			"\tfresh.TLSNextProto = nil\n\tfresh.TLSClientConfig.NextProtos = []string{\"h2\", \"http/1.1\"}\n",
	}}},
	{name: "HTTP/2 for reads", edits: []edit{
		{hardenFile, "\tt.Protocols.SetHTTP1(true)\n", "\tt.Protocols.SetHTTP1(true)\n\tt.Protocols.SetHTTP2(true)\n"},
		{hardenFile, "\tt.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}\n", "\tt.TLSNextProto = nil\n"},
		{hardenFile, "\tc.NextProtos = []string{\"http/1.1\"}\n", "\tc.NextProtos = []string{\"h2\", \"http/1.1\"}\n"},
	}},
	{name: "GetBody left", edits: []edit{{
		attemptFile, "\t\tBody:          body,\n", "\t\tBody:          body,\n\t\tGetBody:       c.openBody,\n",
	}}},
	{name: "empty writes of a caller's doer recognised as empty", edits: []edit{{
		attemptFile, "\tif c.in.Class == Write && c.engine.doer != nil {\n", "\tif false {\n",
	}}},
	{name: "idempotency header added", edits: []edit{{
		callFile, "\th[\"Authorization\"] = values[2:3:3]\n",
		"\th[\"Authorization\"] = values[2:3:3]\n\tif k.op.reference != \"\" {\n\t\th[\"Idempotency-Key\"] = []string{k.op.reference}\n\t}\n",
	}}},
	{name: "idempotency header of the caller's allowed", edits: []edit{{checkFile, "\t\"Idempotency-Key\": true, ", "\t"}}},
	{name: "guard off", edits: []edit{{journalFile, "c.core.memory.Enter(c.guard(), sendBy); !ok {", "c.core.memory.Enter(c.guard(), sendBy); !ok && false {"}}},
	{name: "executed order sent again", edits: []edit{{journalFile, "\tcase known.State == inflight.Executed, c.core.memory.Waited(c.guard()):\n", "\tcase c.core.memory.Waited(c.guard()):\n"}}},
	{name: "order sent again by who waited", edits: []edit{{journalFile, "\tcase known.State == inflight.Executed, c.core.memory.Waited(c.guard()):\n", "\tcase known.State == inflight.Executed:\n"}}},
	{name: "executed order with another body sent", edits: []edit{{journalFile, "\tcase known.Body != c.body():\n", "\tcase false:\n"}}},
	{name: "executed order not remembered", edits: []edit{{journalFile, "\t\tc.remember(inflight.Executed, end.ServiceID)\n", "\t\tc.remember(inflight.Free, \"\")\n"}}},
	{name: "ServerDeduplicates ignored by the memory", edits: []edit{{journalFile, "\tcase c.core.profile.ServerDeduplicates:\n\t\treturn nil\n", ""}}},
	{name: "Call by POST as a read", edits: []edit{{requestFile, "\tcase r.ReadOnly:\n", "\tcase r.ReadOnly || r.Reference == \"\":\n"}}},
	{name: "Call that the journal cannot record", edits: []edit{{requestFile, "if r.Reference == \"\" && r.class() == transport.Write && c.initialized()", "if false && c.initialized()"}}},
	{name: "uniqueness off for freezes", edits: []edit{{cardsFile, "record: cardOperationRecord, unique: true, intent", "record: cardOperationRecord, intent"}}},
	{name: "guard keyed without the operation", edits: []edit{
		{journalFile, "cmp.Or(c.op.record, c.op.name)", "cmp.Or(\"\", \"\")"},
	}},
	{name: "cancel beside retry of one record", edits: []edit{{cardsFile, "reference: accepted(check.UUID, strings.ToLower(id)), record: cardOperationRecord,", "reference: accepted(check.UUID, strings.ToLower(id)),"}}},
	{name: "references of operations mixed up", edits: []edit{{journalFile, "inflight.Key{Op: c.op.name, Reference: c.op.reference} }", "inflight.Key{Reference: c.op.reference} }"}}},
	{name: "guard that never lets go", edits: []edit{{journalFile, "\tdefer c.core.memory.Leave(c.guard())\n", ""}}},
	{name: "uniqueness for cancel", edits: []edit{{cardsFile, "reference: accepted(check.UUID, strings.ToLower(id)), record", "unique: true, reference: accepted(check.UUID, strings.ToLower(id)), record"}}},

	// What is told wrongly.
	{name: "GotConn check dropped", edits: []edit{{attemptFile, " && (!t.got.Load() || ", " && (true || "}}},
	{name: "WroteHeaders in its place", edits: []edit{{
		attemptFile, "GotConn: func(httptrace.GotConnInfo) { t.got.Store(true) }", "WroteHeaders: func() { t.got.Store(true) }",
	}}},
	{name: "GetConn check dropped", edits: []edit{{attemptFile, " && t.sought.Load() && ", " && "}}},
	{name: "not sent claimed of a read through a caller's doer", edits: []edit{{attemptFile, "\treturn c.engine.doer == nil && c.in.Class == Read && (op", "\treturn c.in.Class == Read && (op"}}},
	{name: "deadline forgotten once connected", edits: []edit{{hardenFile, "\tfenceDials(fresh)\n", ""}}},
	{name: "deadline by the wall clock alone", edits: []edit{{fenceFile, "\treturn !now.Before(f.deadline) || ", "\treturn "}}},
	{name: "deadline by the monotonic clock alone", edits: []edit{{fenceFile, " || !f.wall(now).Before(f.deadline.Round(0))", ""}}},
	{name: "DialTLS without the deadline", edits: []edit{{fenceFile, "fenced(t.DialTLSContext, t.DialTLS)", "t.DialTLSContext"}}},
	{name: "handshake after the look at the clocks", edits: []edit{{fenceFile, "\t\tif err := handshake(ctx, conn); err != nil {\n", "\t\tif err := error(nil); err != nil {\n"}}},
	{name: "not sent claimed of half a request", edits: []edit{{
		fenceFile, "f.state.CompareAndSwap(untouched, barred) || f.state.Load() == barred", "true",
	}}},
	{name: "not sent claimed of a request that is still to begin", edits: []edit{{
		fenceFile, " || f.state.CompareAndSwap(untouched, begun) || f.state.Load() == begun", " || true",
	}}},
	{name: "not sent claimed after a first attempt that was", edits: []edit{{
		attemptFile, "\tc.response.NotSent = c.response.NotSent && unsent\n", "\tc.response.NotSent = unsent\n",
	}}},
	{name: "409 as refused", edits: []edit{{
		profileFile, "\t\tRefusedStatuses: []int{400, 401, 403, 404, 405, 413,", "\t\tRefusedStatuses: []int{400, 401, 403, 404, 405, 409, 413,",
	}}},
	{name: "5xx as refused", edits: []edit{{outcomeFile, "\t\t!e.success && !slices.Contains(p.RefusedStatuses, k.last.status),\n", "\t\t!e.success && k.last.status < 500 && !slices.Contains(p.RefusedStatuses, k.last.status),\n"}}},
	{name: "code 500 as refused", edits: []edit{{
		profileFile, "\t\tRefusedCodes:    []int{400, 401, 403, 404, 405, 413, 415, 422, 429},",
		"\t\tRefusedCodes:    []int{400, 401, 403, 404, 405, 413, 415, 422, 429, 500},",
	}}},
	{name: "code 500 of a 4xx as refused", edits: []edit{{outcomeFile, "e.code == codeSuccess || e.code >= 500 && e.code <= 599:", "e.code == codeSuccess:"}}},
	{name: "code 200 of a 4xx as refused", edits: []edit{{outcomeFile, "e.code == codeSuccess || e.code >= 500 && e.code <= 599:", "e.code >= 500 && e.code <= 599:"}}},
	{name: "any other code as refused", edits: []edit{{outcomeFile, "\tcase e.success && !slices.Contains(p.RefusedCodes, e.code),\n", "\tcase e.success && false,\n"}}},
	{name: "refusal without a message", edits: []edit{{outcomeFile, "\tcase body.Err() != nil, !e.isEnvelope(), isSuccessMessage(e.message):\n", "\tcase body.Err() != nil, isSuccessMessage(e.message):\n"}}},
	{name: "refusal with a message of success", edits: []edit{{outcomeFile, "\tcase body.Err() != nil, !e.isEnvelope(), isSuccessMessage(e.message):\n", "\tcase body.Err() != nil, !e.isEnvelope():\n"}}},
	{name: "refusal that names the order", edits: []edit{{outcomeFile, "\tcase e.deferred && k.op.isClaimed() &&", "\tcase false && e.deferred && k.op.isClaimed() &&"}}},
	{name: "bare 403 as refused", edits: []edit{{profileFile, "BareRefusedStatuses: []int{401, 404,", "BareRefusedStatuses: []int{401, 403, 404,"}}},
	{name: "spoiled envelope as bare", edits: []edit{{outcomeFile, "\treturn len(body) == 0 || body[0] != '{'\n", "\treturn true\n"}}},
	{name: "duplicate code as refused", edits: []edit{{outcomeFile, "\tcase body.Err() == nil && slices.Contains(k.client.profile.DuplicateCodes, e.code):\n", "\tcase false:\n"}}},
	{name: "undecodable 200 as failure", edits: []edit{{
		outcomeFile, "k.fail(OutcomeUnknown, unreadable(body.Err()))", "k.fail(OutcomeRefused, unreadable(body.Err()))",
	}}},
	{name: "undecodable data of a 200 as failure", edits: []edit{{outcomeFile, "k.fail(outcome, unreadable(e.mismatch))", "k.fail(OutcomeRefused, unreadable(e.mismatch))"}}},
	{name: "undecodable data of a 200 as executed", edits: []edit{{outcomeFile, "\t\toutcome := OutcomeUnknown\n", "\t\toutcome := OutcomeExecuted\n"}}},
	{name: "undecodable 200 as executed", edits: []edit{{
		outcomeFile, "k.fail(OutcomeUnknown, unreadable(body.Err()))", "k.fail(OutcomeExecuted, unreadable(body.Err()))",
	}}},
	{name: "status 201 as no success", edits: []edit{{
		outcomeFile, "success: r.Status >= 200 && r.Status <= 299}", "success: r.Status == 200}",
	}}},
	{name: "status 400 with code 200 as success", edits: []edit{{
		outcomeFile, "success: r.Status >= 200 && r.Status <= 299}", "success: r.Status >= 200 && r.Status <= 499}",
	}}},
	{name: "redirect not told", edits: []edit{{attemptFile, "resp.StatusCode/100 == 3 || c.answersOther(resp.Request)", "c.answersOther(resp.Request)"}}},
	{name: "reply to another request taken", edits: []edit{{attemptFile, "resp.StatusCode/100 == 3 || c.answersOther(resp.Request)", "resp.StatusCode/100 == 3"}}},
	{name: "adjust false as success", edits: []edit{{cardsFile, "\t\t\tif *done {\n", "\t\t\tif true {\n"}}},
	{name: "sticky Unknown off", edits: []edit{{journalFile, "known.State == inflight.Unknown && (failure", "false && (failure"}}},
	{name: "executed order refused later", edits: []edit{{journalFile, "\t\tfailure.Outcome = OutcomeExecuted\n", ""}}},
	{name: "unknown references not remembered", edits: []edit{{journalFile, "\tcase end.Outcome == OutcomeUnknown:\n\t\tc.remember(inflight.Unknown, \"\")\n", "\tcase end.Outcome == OutcomeUnknown:\n"}}},
	{name: "references remembered without end", edits: []edit{{inflightFile, "len(g[0]) >= each {", "false {"}}},
	{name: "echo check off", edits: []edit{{transferFile, "\t\t\tif t.MerchantOrderNo != \"\" && t.MerchantOrderNo != p.MerchantOrderNo {\n", "\t\t\tif false {\n"}}},
	{name: "echo check only of what is otherwise whole", edits: []edit{{transferFile, "(named || numbered) && !other", "named || numbered"}}},
	{name: "transfer without api_order_no as success", edits: []edit{{transferFile, "{Name: apiOrderNo, Required: true, Value: func(c *wire.Codec, v *Transfer) { serviceIDValue(c, ", "{Name: apiOrderNo, Value: func(c *wire.Codec, v *Transfer) { (*wire.Codec).Code(c, "}}},
	{name: "freeze without an operation ID as success", edits: []edit{{cardsFile, "\t\t\tserviceIDValue(d, &o.ID)\n", "\t\t\td.Code(&o.ID)\n"}}},
	{name: "source of an upload not compared after an early answer", edits: []edit{{outcomeFile, "\t\tif err := file.Check(); err != nil {\n", "\t\tif err := error(nil); err != nil {\n"}}},
	{name: "fault of an image not told after an early answer", edits: []edit{{uploadFile, "\t\tif failure.Code == codeSuccess {\n", "\t\tif false {\n"}}},
	{name: "longer source of an upload cut", edits: []edit{{sourceFile, "\t\treturn errTooMany\n", "\t\treturn io.EOF\n"}}},
	{name: "another call's outcome by a doer", edits: []edit{{errorsFile, "return !isSentinel(target) && errors.Is(f.cause, target)", "return errors.Is(f.cause, target)"}}},
	{name: "outcome of another call lent", edits: []edit{{errorsFile, "return !isSentinel(target) && errors.Is(cause, target)", "return errors.Is(cause, target)"}}},
	{name: "unknown write advised as safe", edits: []edit{{errorsFile, "\tif e.ReadOnly || e.Op == opUploadImage {\n", "\tif e.ReadOnly || e.Op == opUploadImage || e.Outcome == OutcomeUnknown {\n"}}},
	{name: "unknown outcome as a retry", edits: []edit{{stepFile, "\treturn e.stepOfOutcome()\n", "\tif e.Outcome == OutcomeUnknown {\n\t\treturn StepRetry\n\t}\n\treturn e.stepOfOutcome()\n"}}},
	{name: "several errors as one", edits: []edit{{stepFile, " || countErrors(err) > 1 {", " {"}}},
	{name: "another body as done", edits: []edit{{stepFile, "\tcase errors.Is(e.Err, ErrOtherBody):\n\t\treturn StepReconcile\n", ""}}},
	{name: "refused for now as failed", edits: []edit{{stepFile, "\t\tif e.refusedForNow() {\n", "\t\tif false {\n"}}},
	{name: "in progress as unknown", edits: []edit{{stepFile, "\tcase known && d.InProgress:\n", "\tcase false:\n"}}},

	// What the journal is told.
	{name: "journal End on the call's context", edits: []edit{{
		journalFile, "context.WithTimeout(context.WithoutCancel(ctx), journalTimeout)", "context.WithTimeout(ctx, journalTimeout)",
	}}},
	{name: "journal End without a bound", edits: []edit{{
		journalFile, "context.WithTimeout(context.WithoutCancel(ctx), journalTimeout)", "context.WithCancel(context.WithoutCancel(ctx))",
	}}},
	{name: "Begin error ignored", edits: []edit{{journalFile, "\t\tc.keepKnown(failure)\n\t\treturn failure\n", "\t\tc.keepKnown(failure)\n\t\treturn nil\n"}}},
	{name: "journal asked after sending", edits: []edit{
		{journalFile, "\tfailure := c.grant(ctx)\n", "\tvar failure *Error\n\tif c.core.journal == nil {\n\t\tfailure = c.grant(ctx)\n\t}\n"},
		{callFile, "\t\tfailure = k.exchange(ctx)\n", "\t\tfailure = k.exchange(ctx)\n\t\tif k.claim.held && k.client.journal != nil {\n\t\t\tif begun := k.claim.grant(ctx); begun != nil {\n\t\t\t\tfailure = begun\n\t\t\t}\n\t\t}\n"},
	}},
	{name: "End error fails the call", edits: []edit{{callFile, "\t\tk.client.journalFailed(ctx, k.op, err)\n", "\t\tk.client.journalFailed(ctx, k.op, err)\n\t\tif failure != nil {\n\t\t\tfailure.Outcome = OutcomeUnknown\n\t\t}\n"}}},
	{name: "taken reference sent again", edits: []edit{{journalFile, "\treturn c.refused(err, d)\n}\n\n// refused", "\tc.journaled = true\n\treturn nil\n}\n\n// refused"}}},
	{name: "ServerDeduplicates lifting executed ones", edits: []edit{{journalFile, "bare && d.sound().Outcome == OutcomeUnknown &&", "bare &&"}}},
	{name: "ServerDeduplicates forgetting the unknown", edits: []edit{{journalFile, "\t\tc.remember(inflight.Unknown, \"\")\n\t\tc.journaled = true\n", "\t\tc.journaled = true\n"}}},
	{name: "executed whatever the message", edits: []edit{{outcomeFile, "e.proven && (e.message == \"\" || isSuccessMessage(e.message))", "e.proven"}}},
	{name: "letter case of a UUID", edits: []edit{{cardsFile, "reference: accepted(check.UUID, strings.ToLower(id))", "reference: accepted(check.UUID, strings.Clone(id))"}}},
	{name: "letter case of the UUID of a freeze", edits: []edit{{cardsFile, "accepted(check.UUID, strings.ToLower(p.ClientTransactionID))", "accepted(check.UUID, strings.Clone(p.ClientTransactionID))"}}},
	{name: "resolved reference kept unknown by the memory", edits: []edit{{journalFile, "\t\tc.remember(inflight.Free, \"\") // it was resolved, whatever this client remembers\n", "\t\t_ = c.remember\n"}}},
	{name: "another body told as executed", edits: []edit{{journalFile, "return c.op.failure(OutcomeUnknown, &journalRefusal{ErrOtherBody", "return c.op.failure(d.Outcome, &journalRefusal{ErrOtherBody"}}},
	{name: "not sent beside one in progress", edits: []edit{{journalFile, "c.core.memory.InProgress(c.guard()); ok {", "c.core.memory.InProgress(c.guard()); ok && false {"}}},
	{name: "not sent beside one that was executed", edits: []edit{{journalFile, "\tcase known.State == inflight.Executed:\n\t\treturn c.duplicate(", "\tcase false:\n\t\treturn c.duplicate("}}},
	{name: "invalid parameters without asking the journal", edits: []edit{{journalFile, "\t\treturn c.look(ctx, failure)\n", "\t\treturn failure\n"}}},
	{name: "invalid parameters where the journal cannot be asked", edits: []edit{{journalFile, "\t\tfailure.Outcome = OutcomeUnknown\n\t\treturn failure\n", "\t\treturn failure\n"}}},
	{name: "refusal not told as final", edits: []edit{{journalFile, ", Final: NextStep(failure) == StepFail}", "}"}}},
	{name: "deadline of a write as late as its context", edits: []edit{{callFile, "\tcase !ok, k.op.isClaimed() && own.Before(d):\n", "\tcase !ok:\n"}}},
	{name: "ServerDeduplicates lifting another body", edits: []edit{{journalFile, "; !bare {", "; !bare && false {"}}},
	{name: "journal digest without the target", edits: []edit{{requestFile, "Value: s.query}", "Value: \"\"}"}}},
	{name: "journal digest that depends on the order", edits: []edit{{
		"internal/wire/body.go", "cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))",
		"cmp.Or(0*strings.Compare(a.Name, b.Name), 0*strings.Compare(a.Value, b.Value))",
	}}},
	{name: "journal not told the service's ID", edits: []edit{{journalFile, "\tif end.Outcome == OutcomeExecuted {\n", "\tif false {\n"}}},
	{name: "panic settles nothing", edits: []edit{{callFile, "\tdefer k.settleAfterPanic(ctx)\n", ""}}},
	{name: "claim kept where the journal panics", edits: []edit{{journalFile, "\t\tif !c.held { // also where the journal panicked\n", "\t\tif false {\n"}}},
	{name: "panic recorded as executed", edits: []edit{{callFile, "\t\tk.settle(ctx, k.fail(OutcomeUnknown, nil))\n", "\t\tk.settle(ctx, nil)\n"}}},

	// What goes on for too long, or too much of it.
	// The cap is not taken away but raised, because tests give bodies without end.
	{name: "body cap off", edits: []edit{{
		bufferFile, "\tb.grow(int(max(min(size, limit, maxFirst), minBuffer-1)) + 1)\n", "\tlimit += 1 << 26\n\tb.grow(int(max(min(size, limit, maxFirst), minBuffer-1)) + 1)\n",
	}}},
	{name: "body cap of writes off", edits: []edit{{callFile, "\t\tr.MaxBytes = min(r.MaxBytes, maxWriteResponseBytes)\n", "\t\tr.MaxBytes = max(r.MaxBytes, maxWriteResponseBytes)\n"}}},
	{name: "Content-Length believed", edits: []edit{{bufferFile, "min(size, limit, maxFirst)", "min(size, limit, 1<<28)"}}},
	{name: "header cap off", edits: []edit{{hardenFile, "\tmaxHeaderBytes   = 64 << 10\n", "\tmaxHeaderBytes   = 10 << 20\n"}}},
	{name: "decompression by net/http", edits: []edit{{hardenFile, "\tt.DisableCompression = true\n", "\tt.DisableCompression = false\n"}}},
	{name: "Retry-After cap off", edits: []edit{{
		retryFile, "after > c.engine.policy.MaxRetryAfter:\n\t\treturn 0\n", "false:\n\t\treturn 0\n",
	}}},
	{name: "Retry-After ignored", edits: []edit{{retryFile, "\t\twait = after\n", ""}}},
	{name: "budget off", edits: []edit{{retryFile, "\tif !c.outlasts(wait) || !c.engine.budget.spend() {\n", "\tif !c.outlasts(wait) {\n"}}},
	{name: "budget refilled by repeats", edits: []edit{{retryFile, "!again && c.response.Tries == 1 && c.healthy()", "!again && c.healthy()"}}},
	{name: "budget refilled by failures", edits: []edit{{retryFile, "!again && c.response.Tries == 1 && c.healthy()", "!again && c.response.Tries == 1"}}},
	{name: "jitter removed", edits: []edit{{retryFile, "\treturn 1 + rand.N(most)\n", "\t_ = rand.N(most)\n\treturn most\n"}}},
	{name: "wait that outlasts the call begun", edits: []edit{{
		retryFile, "\tif !c.outlasts(wait) || !c.engine.budget.spend() {\n", "\tif !c.engine.budget.spend() {\n",
	}}},
	{name: "drain without deadline", edits: []edit{{attemptFile, "RoundTrip(c.request(ctx, body))", "RoundTrip(c.request(context.WithoutCancel(ctx), body))"}}},
	{name: "drain of what is too large", edits: []edit{
		{attemptFile, "\t\tdefer resp.Body.Close()\n", "\t\tdefer func() {\n\t\t\t_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)\n\t\t\t_ = resp.Body.Close()\n\t\t}()\n"},
	}},
	{name: "drain of another protocol", edits: []edit{{attemptFile, "\tif resp.Body == nil || resp.StatusCode < http.StatusOK {\n", "\tif resp.Body == nil {\n"}}},
	{name: "body that ignores the deadline", edits: []edit{{
		bufferFile, "\t\tcase int64(len(b.b)) != size && ctx.Err() != nil:\n", "\t\tcase false:\n",
	}}},
	{name: "deadline of the call off", edits: []edit{{callFile, "OnAttempt: k.onAttempt(ctx), Deadline: k.deadline,", "OnAttempt: k.onAttempt(ctx),"}}},
	{name: "deadline of an attempt off", edits: []edit{{
		attemptFile, "limit > 0 && c.in.Class == Read {\n", "false {\n",
	}}},
	{name: "limiter skipped for retries", edits: []edit{{attemptFile, "\tif c.engine.limit != nil {\n", "\tif c.engine.limit != nil && c.response.Tries == 0 {\n"}}},
	{name: "retries of what is permanent", edits: []edit{{attemptFile, "\t\tc.final = permanent(err)\n", ""}}},
	{name: "failed call closes everybody's connections", edits: []edit{{
		attemptFile, "\t\tc.final = permanent(err)\n", "\t\tc.final = permanent(err)\n\t\tc.engine.CloseIdleConnections()\n",
	}}},

	// What is shown.
	{name: "Release not clearing the buffer", edits: []edit{{bufferFile, "\tclear(b.b)\n\tb.b = b.b[:0]\n", "\tb.b = b.b[:0]\n"}}},
	{name: "growing not clearing the buffer", edits: []edit{{bufferFile, "\tclear(old)\n", ""}}},
	{name: "Codec not cleared", edits: []edit{{"internal/wire/reader.go", "\tclear(s[:cap(s)])\n", ""}}},
	{name: "RevealBody under WithMaskedCards", edits: []edit{{requestFile, "\tif r.Err == nil && !k.client.maskedCards {\n", "\tif r.Err == nil {\n"}}},
	{name: "WithMaskedCards off", edits: []edit{{outcomeFile, "\tbody.Masking = k.client.maskedCards\n", ""}}},
	{name: "card numbers in messages", edits: []edit{{secretsFile, "\tdigits := maskDigits(msg)\n", "\tdigits := msg\n"}}},
	{name: "card numbers in groups in messages", edits: []edit{{secretsFile, "case group >= minGroupDigits && digitAt", "case false && digitAt"}}},
	{name: "key in messages", edits: []edit{{secretsFile, "\t\tif key != \"\" && strings.HasPrefix(msg[i:], key) {\n", "\t\tif false {\n"}}},
	{name: "card numbers in request IDs", edits: []edit{{secretsFile, "if id := sanitise(strings.Map(visible, value), key); id", "if id := strings.Map(visible, value); id"}}},
	{name: "key in request IDs", edits: []edit{{secretsFile, "sanitise(strings.Map(visible, value), key)", "sanitise(strings.Map(visible, value), \"\")"}}},
	{name: "key in a Response's header", edits: []edit{{
		secretsFile, "strings.Contains(strings.Join(values, \"\\n\"), key) {", "false && strings.Contains(strings.Join(values, \"\\n\"), key) {",
	}}},
	{name: "card numbers in a Response's header", edits: []edit{{secretsFile, "\t\t\tout[name][i] = maskDigits(v)\n", "\t\t\tout[name][i] = v\n"}}},
	{name: "cookies in a Response", edits: []edit{{secretsFile, "\t\tif name == \"Set-Cookie\" || name", "\t\tif name"}}},
	{name: "net/http's words in errors", edits: []edit{{
		causeFile, "func (s *sealed) Error() string { return s.words }", "func (s *sealed) Error() string { return s.raw().Error() }",
	}}},
	{name: "words of a caller's function in errors", edits: []edit{{errorsFile, "\treturn &hiddenCause{message, func", "\treturn &hiddenCause{message + \": \" + cause.Error(), func"}}},
	{name: "proxy's words in errors", edits: []edit{{
		hardenFile, "\t\tif resp.StatusCode != http.StatusOK {\n", "\t\tif false {\n",
	}}},
	{name: "reference in the log", edits: []edit{{observerFile, "\t\tslog.String(\"operation\", k.op.name), slog.Int", "\t\tslog.String(\"operation\", k.op.name), slog.String(\"reference\", k.op.reference), slog.Int"}}},
	{name: "name of an unknown field in drift", edits: []edit{{
		"internal/wire/object.go", "\t// The name itself is payload too, so it is not reported.\n\tc.path[len(c.path)-1] = anyName\n", "\tc.path[len(c.path)-1] = step(c.pos - len(name) - 3)\n",
	}}},
	{name: "export: full numbers in a file for all", dir: "examples/apps", edits: []edit{{
		"examples/apps/export/part.go", "return opened.Size(), f.file.Chmod(partMode)", "return opened.Size(), nil",
	}}},
	{name: "export: full numbers in what stood there", dir: "examples/apps", edits: []edit{
		{"examples/apps/export/part.go", "[]string{f.name(), f.stateName()}", "[]string{f.stateName()}"},
		{"examples/apps/export/part.go", "os.O_CREATE|os.O_EXCL, partMode", "os.O_CREATE|os.O_TRUNC, partMode"},
	}},
	{name: "export: made-up cards over real ones", dir: "examples/apps", edits: []edit{{
		"examples/apps/export/part.go", "slices.Equal(first, s.header())", "len(first) == len(columns)",
	}}},
	{name: "TLS 1.0 spoken", edits: []edit{{hardenFile, "tls.VersionTLS12", "tls.VersionTLS10"}}},
	{name: "anybody's certificate trusted", edits: []edit{{optionsFile, "\t\tcase trustsAnybody(t.TLSClientConfig):\n", "\t\tcase false:\n"}}},
	{name: "plain http through a proxy", edits: []edit{{clientFile, "\tdirect.Proxy = nil\n", ""}}},
	{name: "plain http to any host", edits: []edit{{checkFile, "\tcase u.Scheme == \"http\" && !insecure && !loopback(u.Hostname()):\n", "\tcase false:\n"}}},

	// What is read, and believed.
	{name: "second code accepted", edits: []edit{{"internal/wire/object.go", "\t\tif seen&(1<<i) != 0 {\n", "\t\tif false {\n"}}},
	{name: "second unknown field accepted", edits: []edit{{"internal/wire/reader.go", "\tif duplicate {\n", "\tif duplicate = false; duplicate {\n"}}},
	{name: "code as text accepted", edits: []edit{{envelopeFile, "\tc.ExactInt(&e.code)\n", "\tc.Int(&e.code)\n"}}},
	{name: "blank identifiers accepted", edits: []edit{{"internal/wire/values.go", "if len(bytes.TrimSpace(b)) == 0 {", "if len(bytes.TrimSpace(b)) == 0 && len(b) == 0 {"}}},
	{name: "any text as the record of a freeze", edits: []edit{{cardsFile, "if check.UUID(\"\", o.ID) != nil {", "if false {"}}},
	{name: "zero dates unreadable", edits: []edit{{"types.go", "slices.Contains(zeros, string(text))", "slices.Contains(zeros, \"no \"+string(text))"}}},
	{name: "any date that cannot be read is absent", edits: []edit{{"types.go", "slices.Contains(zeros, string(text))", "(slices.Contains(zeros, string(text)) || len(zeros) > 0)"}}},
	{name: "bytes after the end accepted", edits: []edit{{"internal/wire/reader.go", "\tif c.peek() != 0 || (c.err == nil && c.pos < len(c.buf)) {\n", "\tif false {\n"}}},
	{name: "data read before the code says success", edits: []edit{{envelopeFile, "\tif e.hasCode && e.succeeded() {\n", "\tif e.success && (e.succeeded() || !e.hasCode) {\n"}}},
	{name: "missing data as success", edits: []edit{{envelopeFile, "\tif !e.deferred {\n", "\tif !e.deferred {\n\t\treturn\n\t}\n\tif !e.deferred {\n"}}},
	{name: "verifyPage off", edits: []edit{{pagesFile, "\t\t\tif err := c.verifyPage(p, page); err != nil {\n", "\t\t\tif err := c.verifyPage(p, page); err != nil && false {\n"}}},
	{name: "verifyPage without a second look", edits: []edit{{pagesFile, ", recheck: true}", "}"}}},
	{name: "verifyPage without slack for zones", edits: []edit{{pagesFile, "const zoneSlack = 26 * time.Hour\n", "const zoneSlack = 0 * time.Hour\n"}}},
	{name: "endAfterLast off", edits: []edit{{pagesFile, "\t\t\tpage.endAfterLast(p.Page)\n", ""}}},
	{name: "pager loop check off", edits: []edit{{pagesFile, "\tif err == nil && w.samePage(ids) && !w.client.profile().TrustReplies {\n", "\tif false {\n"}}},
	{name: "page to resume from not told", edits: []edit{{pagesFile, "\tresumable.Page = page\n", ""}}},
	{name: "pages read ahead without end", edits: []edit{{pagesFile, " && len(w.ahead) < w.most && ", " && "}}},
	{name: "pages read ahead after a failure", edits: []edit{{pagesFile, " && !w.failed.Load(); n++ {\n", "; n++ {\n"}}},
	{name: "pages read ahead after the loop", edits: []edit{{pagesFile, "\tw.cancel()\n\tw.ended.Wait()\n", "\tw.cancel()\n"}}},
	{name: "another card taken", edits: []edit{{cardsFile, "\t\t\tif c.profile().TrustReplies || card.ID == cardID {\n", "\t\t\tif true {\n"}}},
	{name: "another card's number decrypted", edits: []edit{{cardsFile, "\tif !s.Number.covers(n) {\n", "\tif false {\n"}}},
	{name: "Cents rounding", edits: []edit{{
		"internal/wire/decimal.go", "\t\tif cut <= 0 || strings.Trim(text[cut:], \"0\") != \"\" {\n", "\t\tif cut <= 0 || strings.Trim(text[cut:], \"0123456789\") != \"\" {\n",
	}}},
	{name: "inexact amount sent", edits: []edit{{transferFile, "\tcase sent == \"\":\n", "\tcase sent == \"\" && name == \"\":\n"}}},
	{name: "order numbers that look alike", edits: []edit{{checkFile, "unicode.In(r, unicode.Cf, unicode.Other", "unicode.In(r, unicode.Cs, unicode.Other"}}},
	{name: "field of a transfer shadowed", edits: []edit{{transferFile, "strings.EqualFold(f.name, name)", "strings.EqualFold(f.name, name) && f.name == name"}}},

	{name: "further fields of a kept transfer lost", edits: []edit{{transferFile, "\tp.Extra[name] = string(text)\n", ""}}},
	{name: "kept transfer mixed with an earlier one", edits: []edit{{transferFile, "\tvar fresh TransferParams\n", "\tfresh := *p\n"}}},
	{name: "kept amount of another form", edits: []edit{{transferFile, "!ok || !exact || sent != string(text)", "!ok || !exact || sent == \"\""}}},

	// What the journal in a table holds.
	{name: "sqljournal: open intents begun again", dir: "sqljournal", edits: []edit{{
		sqlFile, "WHERE i.state IN ('refused', 'not_sent') AND NOT i.closed AND", "WHERE i.state IN ('refused', 'not_sent', 'open') AND NOT i.closed AND",
	}}},
	{name: "sqljournal: unknown intents begun again", dir: "sqljournal", edits: []edit{{
		sqlFile, "WHERE i.state IN ('refused', 'not_sent') AND NOT i.closed AND", "WHERE i.state IN ('refused', 'not_sent', 'unknown') AND NOT i.closed AND",
	}}},
	{name: "sqljournal: executed intents begun again", dir: "sqljournal", edits: []edit{{
		sqlFile, "WHERE i.state IN ('refused', 'not_sent') AND NOT i.closed AND", "WHERE i.state IN ('refused', 'not_sent', 'executed') AND NOT i.closed AND",
	}}},
	{name: "sqljournal: closed references begun again", dir: "sqljournal", edits: []edit{{
		sqlFile, "WHERE i.state IN ('refused', 'not_sent') AND NOT i.closed AND", "WHERE i.state IN ('refused', 'not_sent') AND",
	}}},
	{name: "sqljournal: another body under a reference", dir: "sqljournal", edits: []edit{
		{sqlFile, " AND i.body_sha256 = excluded.body_sha256`", "`"},
	}},
	{name: "sqljournal: executed undone by a later result", dir: "sqljournal", edits: []edit{{
		sqlFile, "\t\tWHEN state = 'executed' OR ?5 = 'executed' THEN 'executed'\n", "\t\tWHEN ?5 = 'executed' THEN 'executed'\n",
	}}},
	{name: "sqljournal: unknown undone by a retry", dir: "sqljournal", edits: []edit{{
		sqlFile, "\t\tWHEN state = 'open' AND holder LIKE ?4 THEN ?5\n", "\t\tWHEN state IN ('open', 'unknown') THEN ?5\n",
	}}},
	{name: "sqljournal: unknown outcome as not sent", dir: "sqljournal", edits: []edit{{
		sqlFile, "\tdefault: // an outcome that is not known is unknown\n\t\treturn stateUnknown\n", "\tdefault:\n\t\treturn stateNotSent\n",
	}}},
	{name: "sqljournal: final refusals that close nothing", dir: "sqljournal", edits: []edit{{
		sqlFile, "closed = closed OR (?8 AND", "closed = closed OR (FALSE AND ?8 AND",
	}}},
	{name: "sqljournal: a reference that a failed Begin left open stays taken", dir: "sqljournal", edits: []edit{{
		sqlFile, "\tj.abandoned.add(holder)\n", "",
	}}},
	{name: "sqljournal: a Begin that was executed twice is a duplicate", dir: "sqljournal", edits: []edit{{
		sqlFile, "!i.Unique || r.state == stateOpen && r.holder == holder", "!i.Unique",
	}}},
	{name: "sqljournal: calls of the future in progress", dir: "sqljournal", edits: []edit{{
		sqlFile, " && now.Before(sendBy) && !begun.After(now)", " && now.Before(sendBy)",
	}}},
	{name: "sqljournal: another journal's database", dir: "sqljournal", edits: []edit{{
		sqlExecFile, "if identity := j.pinned(); identity != \"\" {", "if identity := j.pinned(); false {",
	}}},
	{name: "sqljournal: open intents not listed", dir: "sqljournal", edits: []edit{{
		sqlListFile, "return `state IN ('open', 'unknown') AND (send_by <= `", "return `state IN ('unknown') AND (send_by <= `",
	}}},
	{name: "sqljournal: intents of the future not listed", dir: "sqljournal", edits: []edit{{
		sqlListFile, "` OR begun_at > ` + now + `)`", "` AND ` + now + ` = ` + now + `)`",
	}}},
	{name: "sqljournal: resolved while a call may send", dir: "sqljournal", edits: []edit{{
		sqlListFile, "(?5 = 'executed' OR send_by <= @now)", "(?5 = ?5 OR send_by <= @now)",
	}}},
	{name: "sqljournal: resolved intents resolved", dir: "sqljournal", edits: []edit{{
		sqlListFile, " OR state IN ('refused', 'not_sent') AND ?5 = 'executed')", " OR state IN ('refused', 'not_sent'))",
	}}},
	{name: "sqljournal: later tries resolved", dir: "sqljournal", edits: []edit{{
		sqlListFile, "WHERE id = ?1 AND attempts = ?2 AND", "WHERE id = ?1 AND attempts >= ?2 AND",
	}}},
	{name: "sqljournal: executed references voided", dir: "sqljournal", edits: []edit{{
		sqlListFile, "WHERE i.state IN ('refused', 'not_sent') AND NOT i.closed`", "WHERE NOT i.closed`",
	}}},
	{name: "sqljournal: failed Begin leaves an open intent", dir: "sqljournal", edits: []edit{{
		sqlFile, "\t_ = j.tryRelease(ctx, i, holder)\n", "",
	}}},
	{name: "sqljournal: two calls with one holder", dir: "sqljournal", edits: []edit{{sqlFile, "j.calls.Add(1)", "j.calls.Load()"}}},
	{name: "sqljournal: an end that is tried once", dir: "sqljournal", edits: []edit{{
		sqlExecFile, "return j.execWhile(ctx, j.passes, times{now: time.Now()}, statement, args)", "return j.execWhile(ctx, j.busy, times{now: time.Now()}, statement, args)",
	}}},
	{name: "sqljournal: an end that is told again takes another row", dir: "sqljournal", edits: []edit{{
		sqlFile, "ORDER BY CASE WHEN holder LIKE '%' || ?7 || '%' THEN 0 WHEN state = 'open' THEN 1", "ORDER BY CASE WHEN state = 'open' THEN 1",
	}}},
	{name: "sqljournal: what has vanished stays so", dir: "sqljournal", edits: []edit{{
		sqlFile, "\tif err == nil && found > 0 {\n\t\treturn nil\n", "\tif err == nil {\n\t\treturn nil\n",
	}}},
	{name: "sqljournal: a failure that lasts is tried again", dir: "sqljournal", edits: []edit{{
		sqlExecFile, "err.Error() != closedDatabase && !j.misunderstood(err)", "(err.Error() != closedDatabase && !j.misunderstood(err) || true)",
	}}},
	{name: "sqljournal: retries that leave an intent open", dir: "sqljournal", edits: []edit{{
		sqlFile, "SET state = 'unknown', attempts = attempts + 1", "SET attempts = attempts + 1",
	}}},
	{name: "sqljournal: retries that are not on record", dir: "sqljournal", edits: []edit{{
		sqlFile, "\treturn fmt.Errorf(\"sqljournal: no retry is on record: %w\", d)", "\treturn d",
	}}},
	{name: "sqljournal: another body without what is known of the first", dir: "sqljournal", edits: []edit{{
		sqlFile, "return false, fmt.Errorf(\"%w: %w\", cardwire.ErrOtherBody, r.duplicate())", "return false, cardwire.ErrOtherBody",
	}}},
}
