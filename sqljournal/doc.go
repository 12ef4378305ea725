// Package sqljournal keeps a client's journal in SQLite or PostgreSQL. Each write is on disk
// before its first byte is sent, so that after a crash you know what may have been executed,
// and nothing is sent twice.
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
// creates the tables, as a step of the deployment.
//
// # What to do after a crash
//
// [Journal.Unresolved] yields the intents whose outcome is unknown; until it is known, every
// call with the reference is refused with cardwire.ErrDuplicateIntent. Ask the service about
// each, and record what it says with [Journal.Resolve]. "Not executed" is accepted only if the
// service said so at or after the SettledBy of the entry: before that, it may still execute the
// call. [Journal.Reconcile] compares all of them with the provider's own statement, and finds
// what the database has lost; [Journal.Apply] records what happened.
//
// [Journal.Lookup] and [Journal.History] return everything that is known about a reference,
// for customer support. [Journal.Stats] has the numbers to monitor. [Journal.Void] closes a
// reference that must never be sent, or never again. [Journal.In] does these in your own
// transaction, so that an order and its reference change together.
//
// # The tables
//
// [Schema] returns the statements, for those who migrate by other means. A journal belongs to
// one service and one account of it, which the first Begin or Reserve records from
// cardwire.Intent; for others, Begin, Reserve, Void and Resolve fail. Another account needs
// tables of its own ([WithTable]).
//
// A reference has one row; if the row is deleted, the reference may be sent again. Columns
// that are not listed here are named like the fields of [Entry]:
//
//	state      open, unknown, executed, refused or not_sent
//	closed     the reference was closed: it is closed now if the state is refused or not_sent
//	era        of the journal when the reference was new, a call began, or a person resolved it
//	time       when the call began
//	kind       the kind of the last change, with by and note
//
// Your own SQL may read them, for example to join orders with what is known about them: names
// and meanings stay the same within a version of the schema. In PostgreSQL the columns by which
// a row is found are COLLATE "C", since a linguistic collation changes with the operating system,
// and its index then misses rows. A join with a column of yours must say which collation it means:
//
//	ON o.reference = i.reference COLLATE "default"
//
// The table _history has a row for each [Event], written in the statement that changes the
// intent, or in its transaction, and one without a reference for each hold ("held") and its
// end ("released" or "moved"), and each synchronous failover ("failed over"). Manual changes
// are not in it. A late result that changes nothing is recorded only there.
//
// The table _journal has one row: the version of the schema and the oldest program that may
// write, the service and the account, the longest time that a call may take to be executed,
// where the journal is, its eras and a hold, and the journal's identity, a random ID that
// Migrate writes once. In its one statement, Begin also reads them, and compares that ID with
// the one that [WithIdentity] names, or that this Journal found first. So another journal, an
// empty database or a deleted file stops the payment before it is sent, with [ErrSchema]; but
// a connection to an SQLite file that was deleted while open continues to use that file. The
// tables are those of one schema: the one of [WithTable], or else the first of the search path
// at the first use.
//
// # Several processes
//
// Begin is one statement, atomic by a unique index, and one round trip: of any number of
// concurrent Begins of one reference, in any number of processes, exactly one succeeds. The
// default isolation level, READ COMMITTED, is enough in PostgreSQL. Under SERIALIZABLE, Begin
// sometimes fails with a serialization error, even if only other references are written, and
// its call sends nothing. All else is decided and recorded in a transaction that locks the row,
// by the rules of journal.Record.
//
// All times are those of the PostgreSQL server, so that its clients' clocks may differ:
// SendBy is recorded as the server's time plus the time left at the client. With SQLite they
// are those of the machine, which all processes share. If a clock was set back, an intent may
// have begun in the future: Unresolved yields it, and it is never reported as in progress. A
// clock that is set forward lets "not sent" be accepted too early: slew it instead.
//
// SQLite lets one connection write at a time, and each transaction waits for the disk: the
// journal groups what its concurrent callers write into one. For other processes it waits as
// long as the context allows, at most 10 seconds, whatever the driver's busy timeout. A busy
// timeout of a few seconds (PRAGMA busy_timeout) saves retries; with journal_mode=WAL a
// shorter one is enough. A private database (:memory:) is a different one on each connection,
// and a network file system does not lock as SQLite needs: use neither.
//
// # What the journal does when the database fails
//
// If Begin fails, nothing is sent. Begin is not retried: the caller is still waiting for the
// call. If the caller's context ends during the statement, Begin waits another second for the
// statement. Because the intent may have been recorded anyway, its result, not sent, is kept:
// the Journal tries for a further second to record it, and again in Flush and before anything
// else that it does with the reference, until the call's SendBy, since the statement may come
// late. If a driver loses a response and executes Begin's statement again, it finds its own
// row, and Begin succeeds.
//
// End comes after the order was sent. It is retried, after pauses of up to 50 milliseconds,
// until it succeeds, its context ends, or 10 seconds have passed; the client allows 5 seconds,
// so that a server has time to restart. Recording a result twice changes nothing. End is not
// retried if the sql.DB was closed, if the table or a permission is missing, or if the
// database cannot store a string. A result that it could not record is kept in the program, at
// most 10,000 of them, and recorded before the Journal next has to do with its reference, or
// by [Journal.Flush]: call it on a timer, and before the program ends.
//
// # What the database forgets
//
// An intent that the database loses may be sent again. Leave PRAGMA synchronous at FULL and
// synchronous_commit at on, as [Journal.Verify] demands, and replicate synchronously if a
// standby may take over.
//
// A journal that may have lost intents is on hold: nothing begins until a person releases it,
// and what was free before is unknown until a person resolves it: see [Journal.Hold]. It puts
// itself on hold where PostgreSQL is another than it was: another server (its system
// identifier), another timeline, as after a failover or a recovery to a point in time, another
// database or another table; see also [WithSynchronousFailover]. What PostgreSQL does not tell,
// and SQLite, it notices by an intent that vanished between Begin and End, which End records
// again, with [ErrRecordedAgain], and Verify by the last call that the program began.
// Everything else needs a person: docs/operations.md says what.
//
// # Permissions
//
// A program needs SELECT, INSERT and UPDATE on the table, SELECT and INSERT on _history, and
// SELECT on _journal, with UPDATE of all its columns but one, version, oldest_writer and
// identity; it needs no DELETE.
package sqljournal
