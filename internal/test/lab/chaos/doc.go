// Package chaos makes thousands of calls into a service that fails in forty
// ways, and says yes with other data than it promised in four more, and then
// compares what the client said with what the service did.
//
// The service keeps a ledger and does not deduplicate: a request that is sent
// twice is executed twice. In front of it stands one proxy for each kind of
// fault. A call is judged only when nothing can be executed any more. What must
// not occur is
//
//   - a duplicate: an order that was executed more than once,
//   - a false success: said to be done, and not in the ledger,
//   - a false failure: said not to be done, and in the ledger,
//   - a verdict, or an execution, that the kind of fault does not allow.
//
// The short run is part of the tests:
//
//	go test -race -run TestLedger ./chaos
//
// and the long one, over all five operations that change something, is
//
//	go test -run TestLedger -timeout 60m ./chaos -v -args -all -calls 200000
//
// Times are printed and never asserted. All traffic stays on loopback.
package chaos
