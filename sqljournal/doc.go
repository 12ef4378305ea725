// Package sqljournal keeps a client's journal in SQLite or PostgreSQL. Each write is on
// disk before its first byte is sent, so that after a crash you know what may have
// happened, and nothing is sent twice.
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
// It imports no driver: use any database/sql driver for the dialect. [Journal.Migrate]
// creates and upgrades the tables, as a step of the deployment.
//
// # What to do after a crash
//
// [Journal.Unresolved] yields the intents whose outcome is unknown. Ask the service
// about each, then record its outcome with [Journal.Resolve], with who decided it and
// why. Until then every call with its reference is refused with
// cardwire.ErrDuplicateIntent.
//
// The rule is: an order may be resolved as refused or not sent once its SendBy is ten
// minutes past and the service reports that it does not know the order. Pass ten
// minutes as the grace of Unresolved, because a service may execute a request late; use
// more if the service needs more. Before SendBy the journal refuses such a resolution.
// Executed may be recorded at any time.
//
// [Journal.Lookup] and [Journal.History] return all that is known of a reference, for
// customer support. [Journal.Stats] has the numbers to monitor. [Journal.Void] closes a
// reference that must never be sent, or never again. Resolve also corrects an order that
// was recorded as refused or not sent and turns out to be executed.
//
// # The tables
//
// [Schema] returns the statements, for those who migrate by other means. Each account
// and each environment of the service has tables of its own ([WithTable]): in shared
// tables an order number of the sandbox would block the same number in production, and
// the orders of one account would block those of another.
//
// A unique intent keeps one row; others, such as canceling and retrying, have a
// row for each Begin. Rows are never deleted, and a deleted one lets its reference be
// sent again.
//
//	id           the row's number
//	op           the operation, as in cardwire.Error.Op
//	reference    the caller's identifier
//	exclusive    whether the intent is unique
//	body_sha256  cardwire.Intent.BodySHA256, never changed; empty: voided before it was begun
//	summary      cardwire.Intent.Summary
//	state        see below
//	closed       whether the reference can never be begun again
//	holder       who began it last: the Journal value, the time and the call;
//	             where it is not unique, then the call that ended it
//	attempts     how often it was begun or retried ([WithRepeats])
//	service_id   the service's identifier; empty: none was returned
//	created_at   when it was first begun, in UTC
//	begun_at     when it was last begun or retried, in UTC
//	send_by      no write of it begins after this time, in UTC
//	ended_at     when a result was last reported, in UTC; null: none since begun_at
//	event        the last entry of the history, with who and note
//
// The states, and what Begin returns for the same reference and body:
//
//	open      begun, no result yet: in progress, or crashed.  DuplicateIntent, Unknown
//	unknown   ended, with an unknown outcome.                 DuplicateIntent, Unknown
//	executed  it happened.                                    DuplicateIntent, Executed
//	refused   it did not happen: the service refused it.      begun again, unless closed
//	not_sent  it did not happen: nothing was sent.            begun again, unless closed
//
// An unknown intent stays unknown until a result proves that it was executed, or it is
// resolved: a refused retry proves nothing about the first call. An executed one
// stays executed. A result with cardwire.IntentResult.Final closes the reference, as
// Void does: Begin then returns a DuplicateIntent with Refused or NotSent. For another
// body, Begin returns [cardwire.ErrOtherBody] in every state. Unless the intent was
// refused or not sent, the error also wraps what Begin returns for the same body.
//
// The table _history has a row for each event, written in the statement that changes
// the intent: by PostgreSQL in the same WITH, by SQLite in a trigger. Manual changes
// are not in it.
//
// The table _journal has one row: the version of the schema, and the journal's
// identity, a random ID that Migrate writes once. In its own statement, Begin compares it
// with the one that [WithIdentity] names, or that this Journal found first. So a
// second schema, another database, a restored copy of another journal, an empty
// database or a deleted file stops the payment before it is sent, with [ErrSchema].
// There is one exception: a connection to an SQLite file that was deleted while open
// continues to use the deleted file.
//
// A client with cardwire.Profile.ServerDeduplicates retries what is open or unknown
// only with [WithRepeats], which records the retry before it is sent. The intent is
// then unknown, even if the first call is refused: the retry may have been
// executed, and its process may have died.
//
// # Several processes
//
// Begin is one statement, atomic by a unique index, and one round trip: of any number
// of concurrent Begins of one reference, in any number of processes, one succeeds. The
// default isolation level, READ COMMITTED, is enough in PostgreSQL. Under SERIALIZABLE, Begin
// sometimes fails with a serialization error, even if only other references are written,
// and its call sends nothing.
//
// All times are those of the PostgreSQL server, so that its clients' clocks may differ:
// SendBy is recorded as the server's time plus the time left at the client. With SQLite
// they are those of the machine, which all processes share. If a clock was set back, an
// intent may have begun in the future: Unresolved yields it whatever the grace, and it
// is never reported as in progress.
//
// SQLite lets one connection write at a time. The journal waits for its turn as
// long as the context allows, at most 10 seconds, whatever the driver's busy
// timeout. A busy timeout of a few seconds (PRAGMA busy_timeout) saves tries; with
// journal_mode=WAL a shorter one is enough. A private database (:memory:) is
// a different one on each connection, and a network file system does not lock as
// SQLite needs: use neither.
//
// # What the journal does when the database fails
//
// A Begin that fails means that nothing is sent. It is not retried: the caller
// is still waiting for the call. If the caller's context ends during the statement, Begin
// waits another second for the statement. Because the intent may have been recorded anyway,
// the journal tries for a further second to mark it as not sent. If that fails, the next Begin
// or Void of the same Journal releases the reference. A driver that loses a response and
// executes Begin's statement again finds its own row.
//
// End comes after the order was sent, and an intent whose result it cannot record stays
// open until a person resolves it. So End is retried, after pauses of up to 50
// milliseconds, until it succeeds, its context ends, or 10 seconds have passed. The client
// allows 5 seconds, longer than a server needs to restart. Recording a result twice changes
// no outcome, with one exception: an unknown one, recorded again, overrides a resolution
// made in between. End is not retried if the sql.DB was closed, if the table or the
// permission is missing, or if the database cannot store a string.
//
// # What the database forgets
//
// An intent that the database forgets may be sent again. Leave PRAGMA synchronous at FULL and
// synchronous_commit at on, and replicate synchronously if a standby may take over.
// Where an intent has vanished between Begin and End, as by a failover to a standby
// that lags, End records it again and returns [ErrRecordedAgain], which
// cardwire.Observer.JournalError receives. It is a sign that intents of calls that had
// ended are gone too: stop sending, and compare with the service's own records.
//
// # Speed and size
//
// Microseconds that a caller waits, the best of three runs of BenchmarkBeginAndEnd on two
// cores; PostgreSQL 15 on the same machine and without fsync, SQLite with WAL and
// synchronous=FULL. "both" is the time from one intent to the next, of all writers
// together:
//
//	writers               1       16       64
//	PostgreSQL  Begin   179    1,583    7,805
//	            End     175    1,605    7,164
//	            both    354      200      236
//	SQLite      Begin   414    7,797   30,581
//	            End     377    4,571   20,981
//	            both    794      800      858
//
// A transfer takes 577 bytes in PostgreSQL: its row 289, the row's indexes 82, two
// events of the history 161 and their index 45. With 3,000,000 intents every statement
// finds its own by an index, as fast as with 20,000; to read 3,000 that are unresolved
// takes 40 milliseconds, and Stats 15.
//
// # Permissions
//
// A program needs SELECT, INSERT and UPDATE on the table, SELECT and INSERT on
// _history, and SELECT on _journal; it needs no DELETE.
package sqljournal
