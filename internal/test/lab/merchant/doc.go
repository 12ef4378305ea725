// Package merchant is a proof that cardwire.NextStep can be followed blindly: a
// merchant that does what it says, and knows nothing else, ends each order once.
//
// The merchant has a table of orders and a queue of messages, and each message has a
// worker call CreateTransfer. The service is that of package chaos, with every fault
// before and after executing, and with gateways that replay a POST or block a
// response. Beyond that
//
//   - customers click twice: two workers call with one order at once,
//   - processes are killed and paused, for longer than a call may take,
//   - messages of orders that ended long ago are delivered again, some of them with
//     another amount or with invalid parameters,
//   - support responds late, and says "not found" of orders that are executed later.
//
// In the end the service's ledger says what happened. Each order must be submitted
// and executed once, or failed and not executed.
//
// The short form is part of the tests. The long one is
//
//	go test ./merchant -run TestJournal -timeout 120m -v -args -orders 100000
//
// and the comparison with other clients, whose result is in docs/merchant.md, is
//
//	go test ./merchant -run TestComparison -timeout 60m -v -args -orders 10000
//
// All traffic stays on loopback.
package merchant
