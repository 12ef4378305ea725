package cardwiretest_test

import (
	"fmt"

	"github.com/cardwire/cardwire-go"
)

func sprint(v any) string { return fmt.Sprintf("%+v", v) }

func profileOf(limit, page, sub, status, bin, createdFrom, createdTo, transactedFrom, transactedTo, id, retry string) cardwire.Profile {
	p := cardwire.DefaultProfile()
	p.LimitParam, p.PageParam, p.SubAccountParam, p.StatusParam, p.CardBINParam = limit, page, sub, status, bin
	p.CreatedFromParam, p.CreatedToParam = createdFrom, createdTo
	p.TransactedFromParam, p.TransactedToParam = transactedFrom, transactedTo
	p.CardIDParam, p.RetryAction = id, retry
	return p
}
