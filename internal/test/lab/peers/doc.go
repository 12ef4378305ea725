// Package peers measures other clients as cardwire is measured: the list call and the
// smallest call of each, to a service in memory, over what the same call costs by a bare
// http.Client, io.ReadAll and encoding/json.
//
//	go test -run '^$' -bench . ./peers
//
// The generated client is what a user would otherwise have: oapi-codegen makes it from
// this repository's OpenAPI document, and it is measured on the same payload and the
// same service as cardwire.
//
// stripe-go lists issuing cards and retrieves one, go-github lists users and gets one,
// metronome-go lists customers and gets one, all as their own documentation shows it and
// with their defaults. metronome-go stands for the clients of payment APIs that Stainless
// generates. Each has a payload of its own service, made here after its public reference,
// and a baseline of its own, which decodes that payload into a plain struct of the same
// fields. So a client is never blamed for the size of its service's responses: what is
// compared is how much each adds to its own baseline.
//
// The smallest call is one object of three fields, which is less than any of the services
// sends. It is compared in nanoseconds with the smallest call of cardwire.
package peers

//go:generate sh -c "cd generated && go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config config.yaml ../../../contract/openapi.yaml"
