package cardwire

import (
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
)

// Profile names every assumption about what is undocumented. A parameter whose name is
// "" cannot be used: the call is refused with an [ErrSetup] that names the field to set.
type Profile struct {
	// LimitParam is the query parameter for the page size. Assumed: "limit".
	LimitParam string
	// PageParam is the query parameter for the page number. Assumed: "page".
	PageParam string
	// StatusParam is the query parameter for the card status. Assumed: "status".
	StatusParam string
	// CardBINParam is the query parameter for the BIN. Assumed: "card_bin".
	CardBINParam string
	// SubAccountParam is the query parameter for the sub-account. No default.
	SubAccountParam string
	// CreatedFromParam is the query parameter for the first creation day. No default.
	CreatedFromParam string
	// CreatedToParam is the query parameter for the last creation day. No default.
	CreatedToParam string
	// TransactedFromParam is the query parameter for the first transaction day. No default.
	TransactedFromParam string
	// TransactedToParam is the query parameter for the last transaction day. No default.
	TransactedToParam string
	// CardIDParam is the query parameter of GetCard. Assumed: "id".
	CardIDParam string
	// RetryAction is the value that RetryOperation sends as type. Assumed: "retry".
	RetryAction string
	// RefusedCodes are the envelope codes that mean that nothing was executed, where
	// the HTTP status is that of a success. Assumed: 400 401 403 404 405 413 415 422
	// 429. Any other code than 200 is OutcomeUnknown.
	RefusedCodes []int
	// RefusedStatuses are the HTTP statuses, from 400 to 499, that mean that nothing was
	// executed, where the body is an envelope. Its code may be any but 200 and 500 to
	// 599, which contradict them. Assumed: the same numbers.
	RefusedStatuses []int
	// BareRefusedStatuses are the HTTP statuses, from 400 to 499, that mean that nothing
	// was executed, where the body is bare: empty, or not beginning with "{" after a byte
	// order mark and white space. If it contains the reference, has a Content-Encoding, or is
	// empty and ended only by the end of the connection, a write is OutcomeUnknown.
	// Assumed: 401 404 405 413 429. 403 is not among them: a firewall may send it in place
	// of the response to a transfer that was executed.
	BareRefusedStatuses []int
	// DuplicateCodes are the envelope codes that mean that the reference exists:
	// OutcomeUnknown whatever the HTTP status, never OutcomeRefused, since a gateway
	// may have sent the request twice. Default: none. Ask the provider for them.
	DuplicateCodes []int
	// DuplicateMessages are phrases of a message that mean that the reference exists, in
	// any letter case: a refusal of a write with a reference that has one of them is
	// OutcomeUnknown, for the same reason.
	// Assumed: "already exist", "duplicate", "重复", "已存在".
	DuplicateMessages []string
	// LateExecution is how long after its SendBy the service may still execute a call
	// that it received in time. Until then nobody can know that it did not happen: see
	// Intent.SettledBy. Assumed: 10 minutes. 0: it never executes late.
	LateExecution time.Duration
	// TrustReplies switches off the checks behind ErrParameterIgnored.
	TrustReplies bool
}

// DefaultProfile returns the assumptions for an unknown service.
func DefaultProfile() Profile {
	return Profile{
		LimitParam: "limit", PageParam: "page", StatusParam: "status", CardBINParam: "card_bin",
		CardIDParam: "id", RetryAction: "retry",
		RefusedCodes:    []int{400, 401, 403, 404, 405, 413, 415, 422, 429},
		RefusedStatuses: []int{400, 401, 403, 404, 405, 413, 415, 422, 429},

		BareRefusedStatuses: []int{401, 404, 405, 413, 429},
		DuplicateMessages:   []string{"already exist", "duplicate", "重复", "已存在"},
		LateExecution:       10 * time.Minute,
	}
}

// clone returns a copy that shares nothing that a caller could change later.
func (p *Profile) clone() Profile {
	c := *p
	for _, list := range []*[]int{&c.RefusedCodes, &c.RefusedStatuses, &c.BareRefusedStatuses, &c.DuplicateCodes} {
		*list = slices.Clone(*list)
	}
	c.DuplicateMessages = slices.Clone(p.DuplicateMessages)
	return c
}

// valid refuses a profile that would make requests mean something else.
func (p *Profile) valid() error {
	type param struct{ field, name string }
	ofListCards := []param{
		{"LimitParam", p.LimitParam},
		{"PageParam", p.PageParam},
		{"StatusParam", p.StatusParam},
		{"CardBINParam", p.CardBINParam},
		{"SubAccountParam", p.SubAccountParam},
		{"CreatedFromParam", p.CreatedFromParam},
		{"CreatedToParam", p.CreatedToParam},
		{"TransactedFromParam", p.TransactedFromParam},
		{"TransactedToParam", p.TransactedToParam},
	}
	for _, n := range append(ofListCards, param{"CardIDParam", p.CardIDParam}, param{"RetryAction", p.RetryAction}) {
		if check.Text("", n.name) != nil || strings.TrimSpace(n.name) != n.name {
			return badSetup("WithProfile: " + n.field + " contains a control character, begins or ends with a space, or is not valid UTF-8")
		}
	}
	for i, n := range ofListCards {
		for _, other := range ofListCards[:i] {
			if n.name != "" && n.name == other.name {
				return badSetup("WithProfile: " + other.field + " and " + n.field + " must be different names")
			}
		}
	}
	if p.LateExecution < 0 {
		return badSetup("WithProfile: LateExecution must not be negative")
	}
	if p.RetryAction == cancelAction {
		return badSetup("WithProfile: RetryAction must not be the value that cancels")
	}
	if slices.Contains(p.RefusedCodes, codeSuccess) || slices.Contains(p.DuplicateCodes, codeSuccess) {
		return badSetup("WithProfile: RefusedCodes and DuplicateCodes must not contain 200, the code of a success")
	}
	if slices.ContainsFunc(slices.Concat(p.RefusedStatuses, p.BareRefusedStatuses), func(s int) bool { return s < 400 || s > 499 }) {
		return badSetup("WithProfile: a refused status must be from 400 to 499")
	}
	return nil
}
