// Package replay asks of every operation of the client, whatever the service
// does to a connection: how often did it arrive?
//
// Its tests are four matrices, which differ in where something may be sent a
// second time:
//
//   - the service's doings (a reset here, half an answer there) by the state of
//     the client's connections by operation,
//   - HTTP/2, over which net/http sends again by itself, by the transport that a
//     caller brings by operation,
//   - redirects by where they lead by what carries the request,
//   - races between a request and the service that closes its connection.
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
