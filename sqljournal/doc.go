// Package sqljournal keeps a client's journal in SQLite or PostgreSQL: what is
// about to be sent is on disk before the first byte leaves, so that after a
// crash it is known what may have happened, and nothing is sent twice.
//
//	db, err := sql.Open("pgx", dsn)
//	...
//	journal, err := sqljournal.New(db, sqljournal.PostgreSQL)
//	...
//	if err := journal.Verify(ctx); err != nil {
//		return err
//	}
//	client, err := cardwire.New(url, key, cardwire.WithJournal(journal))
//
// It imports no driver: any of database/sql for the dialect will do. The tables are
// created and upgraded by [Journal.Migrate], as a step of the deployment.
//
// # What to do after a crash
//
// [Journal.Unresolved] yields the intents whose outcome somebody must find out. Ask
// the service about each, then tell the journal by [Journal.Resolve], with who decided
// it and on what grounds. Until then every call with its reference is refused with
// cardwire.ErrDuplicateIntent.
//
// The rule is: an order may be resolved as refused or not sent once its SendBy is ten
// minutes past and the service says that it does not know it. Ten minutes is the
// grace to give to Unresolved, because a service may execute late what it received in
// time; use more where the service promises less. Before SendBy the journal itself
// refuses it. That it was executed may be recorded at any time.
//
// [Journal.Lookup] and [Journal.History] tell all that is known of a reference, for
// who answers the telephone, [Journal.Stats] has the numbers to watch, and
// [Journal.Void] closes a reference that must never be sent, or never again. What was
// taken for refused or not sent and turns out to be paid is corrected by Resolve.
//
// # The tables
//
// [Schema] returns the statements, for those who migrate by other means. Each account
// and each environment of the service has tables of its own ([WithTable]): in common
// ones an order number of the sandbox would stop that of production, and what is known
// of one account would decide what another sends.
//
// A unique intent is one row for good; others, such as cancelling and retrying, have a
// row for each Begin. Rows are never deleted, and a deleted one lets its reference be
// sent again.
//
//	id           the row's number
//	op           the operation, as in cardwire.Error.Op
//	reference    the caller's identifier
//	exclusive    whether the intent is unique
//	body_sha256  cardwire.Intent.BodySHA256, the same for good; empty: voided before it was begun
//	summary      cardwire.Intent.Summary
//	state        see below
//	closed       whether the reference is never begun again
//	holder       who began it last: the Journal value, the time and the call;
//	             where it is not unique, then the call that ended it
//	attempts     how often it was begun or retried ([WithRepeats])
//	service_id   the service's identifier; empty: none was returned
//	created_at   when it was first begun, in UTC
//	begun_at     when it was last begun or retried, in UTC
//	send_by      when nothing of it is sent any more, in UTC
//	ended_at     when a result was last told, in UTC; null: none since begun_at
//	event        the last entry of the history, with who and note
//
// The states, and what a Begin of the same reference and body gets:
//
//	open      begun, no result yet: in progress, or crashed.  DuplicateIntent, Unknown
//	unknown   ended, with an unknown outcome.                 DuplicateIntent, Unknown
//	executed  it happened.                                    DuplicateIntent, Executed
//	refused   it did not happen: the service refused it.      begun again, unless closed
//	not_sent  it did not happen: nothing was sent.            begun again, unless closed
//
// An unknown intent stays so until a result shows that it was executed, or it is
// resolved: that a retry was refused says nothing of the first call. An executed one
// stays executed. A result with cardwire.IntentResult.Final closes the reference, as
// Void does: Begin then returns a DuplicateIntent with Refused or NotSent. With another
// body, Begin returns [cardwire.ErrOtherBody] in every state, together with what it
// would return for the same body, unless that did not happen.
//
// The table _history has a row for each event, written in the statement that changes
// the intent: by PostgreSQL in the same WITH, by SQLite in a trigger. Changes that are
// made by hand are not in it.
//
// The table _journal has one row: the version of the schema, and the journal's
// identity, a random ID that Migrate writes once. Begin compares it with the one that
// [WithIdentity] names, or that this Journal found first, in its own statement. So a
// second schema, another database, a restored copy of another journal, an empty
// database or a deleted file stops the payment before it is sent, with [ErrSchema].
// One thing cannot notice: a connection to an SQLite file that was deleted while it was
// open goes on in the deleted file.
//
// A client with cardwire.Profile.ServerDeduplicates retries what is open or unknown
// only with [WithRepeats], which records the retry before it is sent. The intent is
// then unknown, even if the first call learns of a refusal: the retry may have been
// executed, and its process may have died.
//
// # Several processes
//
// Begin is one statement, atomic by a unique index, and one round trip: of any number
// that begin the same reference at once, in any number of processes, one does. The
// default isolation level, READ COMMITTED, is enough in PostgreSQL. Under SERIALIZABLE a
// Begin now and then fails for no fault, also beside other references, and its call
// sends nothing.
//
// All times are of PostgreSQL's server, so that its clients' clocks may differ: SendBy
// is recorded as its now and what is left at the client. With SQLite they are of the
// processes, which have their machine's clock in common. What began in the future, by
// a clock that was set back since, is yielded by Unresolved whatever the grace, and is
// never said to be in progress.
//
// SQLite lets one connection write at a time. The journal waits for its turn as
// long as the context allows, at most 10 seconds, whatever the driver's busy
// timeout; one of a few seconds (PRAGMA busy_timeout) waits with fewer tries,
// and journal_mode=WAL lets it be shorter. A private database (:memory:) is
// another one on each connection, and a network file system does not lock as
// SQLite needs it: neither will do.
//
// # What the journal does when the database fails
//
// A Begin that fails means that nothing is sent. It is not tried again: the caller
// still waits for the call itself. As it may have been recorded all the same, the
// journal tries for another second to mark it as not sent, and where it cannot, the
// next Begin or Void of the same Journal takes the reference back. A driver that loses
// a response and executes Begin's statement again finds the row, which is its own.
//
// An End comes when the order is paid, and what it cannot record stays open, for
// somebody to ask about. So it is tried again, after pauses of up to 50 milliseconds,
// until it succeeds or its context ends: the client gives it 5 seconds, which is
// longer than a server needs to restart, and a context without a deadline 10. To be
// told twice changes no outcome, but that an unknown one, told again, takes back what
// somebody resolved in between. A database that was closed is not asked again, nor
// one without the table or the permission to write it, or that refuses the string.
//
// # What the database forgets
//
// What it forgets may be sent again. Leave PRAGMA synchronous at FULL and
// synchronous_commit at on, and replicate synchronously if a standby may take over.
// Where an intent has vanished between Begin and End, as by a failover to a standby
// that lags, End records it again and returns [ErrRecordedAgain], which
// cardwire.Observer.JournalError is told. It is a sign that intents of calls that had
// ended are gone too: stop sending, and compare with the service's own records.
//
// # Speed and size
//
// FIGURES
package sqljournal
