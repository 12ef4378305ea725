// Package replay asks of every operation of the client, whatever the service
// does to a connection: how often did it arrive?
//
// Its tests differ in what could have something sent a second time:
//
//   - what the service does, such as a reset here and half a response there, on
//     connections that are fresh, reused or ten, to each operation,
//   - HTTP/2, over which net/http sends again by itself, with the transports that
//     callers bring,
//   - redirects of each status, to each kind of place, whatever carries the
//     request,
//   - races of a request with the end of its connection, or of its caller's
//     patience.
//
// The services keep a ledger of what arrived and what they executed. Where
// something must not be sent again, a control shows that net/http alone would.
//
// The races are few in the tests; many are
//
//	go test -run TestRaces -timeout 30m ./replay -v -args -races 45000
//
// All traffic stays on loopback.
package replay
