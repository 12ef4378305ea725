// Package payouts is the proof of payouts/cmd/payouts: the program, as it is, in three
// replicas on PostgreSQL, each of them a process.
//
// Customers send orders to any replica, and click twice. The service is that of package
// cardwiretest: every second call meets one of its faults, before or after executing. Support
// looks into the ledger, late. Meanwhile, every second, a replica is killed (SIGKILL) or
// stopped for longer than a call may take (SIGSTOP), and PostgreSQL is restarted.
//
// Two minutes after the last blow at most, ledger, journal and order table must agree on
// every order: submitted and executed once, or failed and not executed.
//
// The short form is part of the tests. The long ones are
//
//	../../../sqljournal/scripts/postgres go test ./payouts -run TestProof -timeout 60m -v -args -orders 5000
//	../../../sqljournal/scripts/postgres go test ./payouts -run TestProof -timeout 60m -v -args -orders 5000 -failover behind
//
// In the second one a standby takes over that lacks the last second; with -failover whole it has all.
//
// All traffic stays on loopback.
package payouts
