// Package contract is what client and fake are tested against: openapi.yaml, written
// from the API's documentation alone, and a suite that calls every operation of a
// client, whatever service is behind it. Only tests and checks use it.
package contract

import (
	_ "embed"

	"github.com/cardwire/cardwire-go"
)

// Document is openapi.yaml: the twelve operations in OpenAPI 3.1.
//
//go:embed openapi.yaml
var Document []byte

// Profile returns the names that Document gives to undocumented parameters, so that
// every parameter is sent.
func Profile() cardwire.Profile {
	p := cardwire.DefaultProfile()
	p.LimitParam, p.PageParam, p.SubAccountParam, p.StatusParam, p.CardBINParam = "limit", "page", "sub_account_id", "status", "card_bin"
	p.CreatedFromParam, p.CreatedToParam = "created_from", "created_to"
	p.TransactedFromParam, p.TransactedToParam = "transacted_from", "transacted_to"
	p.CardIDParam, p.RetryAction = "id", "retry"
	return p
}
