// Package sqljournal keeps a client's journal in SQLite or PostgreSQL: what is
// about to be sent is on disk before the first byte leaves, so that after a
// crash it is known what may have happened, and nothing is sent twice.
//
//	db, err := sql.Open("pgx", dsn)
//	...
//	journal, err := sqljournal.New(db, sqljournal.PostgreSQL)
//	...
//	if err := journal.EnsureSchema(ctx); err != nil {
//		return err
//	}
//	client, err := cardwire.New(url, key, cardwire.WithJournal(journal))
//
// It imports no driver: any of database/sql for the dialect will do.
//
// # What to do after a crash
//
// [Journal.Undecided] lists the intents that nobody knows the end of. Ask the
// service about each, then tell the journal by [Journal.ResolveEntry]. Until then
// a repeat of its reference is refused with cardwire.ErrDuplicateIntent. Give
// Undecided a duration longer than any call takes: a younger intent may belong
// to a call that is still under way, and resolving that lets a second one go.
// ResolveEntry leaves alone what was begun again since the question; an answer
// that comes without an entry, by [Journal.Resolve], may be older than it looks.
//
// # The table
//
// [SchemaSQLite] and [SchemaPostgreSQL] are the statements, for those who manage
// schemas otherwise than by [Journal.EnsureSchema]. A unique intent is one row for
// good; others, such as cancelling and retrying, have a row for each Begin. Rows are
// never deleted. An executed row that is deleted lets its reference be sent again.
//
// Each account and each environment of the service has a table of its own
// ([WithTable]): in a common one, an order number of the sandbox would stop that
// of production, and an answer of one account would decide what another sent.
//
//	id           the row's number
//	op           the operation, as in cardwire.Error.Op
//	reference    the caller's identifier
//	exclusive    whether the intent is unique
//	body_sha256  cardwire.Intent.BodySHA256, the same for good
//	state        see below
//	holder       who began it last: the Journal value, the time and the call;
//	             where it is not unique, then the call that ended it
//	attempts     how often it was begun or repeated ([WithRepeats])
//	service_id   the service's identifier; empty: none was answered
//	created_at   when it was first begun, in UTC
//	begun_at     when it was last begun or repeated, in UTC
//	ended_at     when a result was last told, in UTC; null: none since begun_at
//
// The states, and what a Begin of the same reference and body gets:
//
//	open       begun, no result yet: under way, or crashed. DuplicateIntent, Unknown
//	undecided  ended, and nobody knows how.                 DuplicateIntent, Unknown
//	executed   it happened.                                 DuplicateIntent, Executed
//	refused    it did not happen: the service said no.      begun again
//	not_sent   it did not happen: nothing was sent.         begun again
//
// An undecided intent stays so until a result says that it was executed, or
// an answer decides it: that a repeat was refused says nothing of the first. An
// executed one stays executed. With another body, Begin returns
// [cardwire.ErrOtherBody] in every state, and what it would return for the same body with it.
//
// A client with cardwire.Profile.ServerDeduplicates repeats what is open or
// undecided only with [WithRepeats], which records the repeat before it is sent.
// The intent is then undecided, even if the first call is told a refusal: the
// repeat may have been executed, and its process may have died.
//
// # Several processes
//
// Begin is one statement, atomic by a unique index: of any number that begin
// the same reference at once, in any number of processes, one does. The default
// isolation level, READ COMMITTED, is enough in PostgreSQL. Under SERIALIZABLE a
// Begin now and then fails for no fault, also beside other references, and its call
// sends nothing.
//
// All times are of PostgreSQL's server, so that its clients' clocks may differ.
// With SQLite they are of the processes, which have their machine's clock in
// common; a step of that clock makes intents older or younger than they are.
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
// A Begin that fails means that nothing is sent. It is not repeated: the caller
// still waits for the call itself. As it may have been recorded all the same, the
// journal tries for another second to mark it as not sent.
//
// An End comes when the order is paid, and what it cannot record stays open, for
// somebody to ask about. So it is repeated, after pauses of up to 50 milliseconds,
// until it succeeds or its context ends: the client gives it 5 seconds, which is
// longer than a server needs to restart, and a context without a deadline 10. To be
// told twice changes no outcome, but that an unknown one, told again, takes back what
// somebody resolved in between. A database that was closed is not asked again, nor
// one without the table or the permission to write it.
//
// # Durability
//
// What the database forgets may be sent again. Leave PRAGMA synchronous at FULL
// and synchronous_commit at on, and replicate synchronously if a standby may
// take over.
package sqljournal
