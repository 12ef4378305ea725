// Package journal has the rules of a [cardwire.Journal], as pure functions of what is on record: [Record], for authors
// of journals; and [Memory], a journal that forgets everything when the program ends. A durable one is in the module
// sqljournal. Package cardwiretest has a test of any journal.
//
// What each method returns, a minute after the call on record could send last. "Other body" is [cardwire.ErrOtherBody];
// the other words are those of a [cardwire.DuplicateIntent], which has the service's number of what was executed.
//
//	on record         | Begin       other body              | Void        other body              | Reserve     other body
//	nothing           | ok          ok                      | ok          ok                      | ok          ok
//	refused, not sent | ok          other body              | ok          ok                      | ok          other body
//	reserved          | ok          reserved, other body    | ok          reserved, other body    | ok          other body
//	closed            | refused     refused                 | ok          ok                      | refused     refused, other body
//	open              | in progress in progress, other body | in progress in progress             | in progress in progress, other body
//	open after SendBy | unknown     unknown, other body     | unknown     unknown                 | unknown     unknown, other body
//	unknown           | unknown     unknown, other body     | unknown     unknown                 | unknown     unknown, other body
//	executed          | executed    executed, other body    | executed    executed, other body    | executed    executed, other body
//
// A row that was closed or recorded without a body is of another one only where amount or currency differ, and both
// are known. Void without a body is that of the same one. Reserve pins what it finds, unless that is of another body.
// While the journal is on [Hold], what would be granted is [ErrOnHold], and so are Void and denials before its floor.
//
// What happened comes first: what was closed and is executed or unknown is not closed, and whoever corrects that can
// only close it again. Executed wins over everything, and the first service ID stays; but a row that is reserved keeps
// its body, and is unknown and closed once a call of another body was executed. An End as refused or not sent counts
// only for the call that is open; one as unknown opens also what is closed, with the later SettledBy, but not what is
// executed, nor after a person has denied that very call. What a response proved is never
// corrected. What a person recorded as executed is never free again: it is corrected to refused, and the order gets a
// new number.
package journal
