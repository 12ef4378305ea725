package cardwire

import (
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
)

// Profile has every assumption about what is undocumented. A call that needs a string of the
// Profile that is "" is refused.
type Profile struct {
	LimitParam          string // the query parameter of the page size. Assumed: "limit".
	PageParam           string // the query parameter of the page number. Assumed: "page".
	StatusParam         string // the query parameter of the card status. Assumed: "status".
	CardBINParam        string // the query parameter of the BIN. Assumed: "card_bin".
	SubAccountParam     string // the query parameter of the sub-account. No default.
	CreatedFromParam    string // the query parameter of the first creation day. No default.
	CreatedToParam      string // the query parameter of the last creation day. No default.
	TransactedFromParam string // the query parameter of the first transaction day. No default.
	TransactedToParam   string // the query parameter of the last transaction day. No default.
	CardIDParam         string // the query parameter of GetCard. Assumed: "id".
	RetryAction         string // the value that RetryOperation sends as type. Assumed: "retry".
	// RefusedCodes are the codes that mean that nothing was executed, if the HTTP status is a
	// success. Assumed: 400 401 403 404 405 413 415 422 429.
	RefusedCodes []int
	// RefusedStatuses are the HTTP statuses, from 400 to 499, that mean the same, if the body
	// is an envelope whose code is neither 200 nor 500 to 599. Assumed: the same.
	RefusedStatuses []int
	// BareRefusedStatuses are the HTTP statuses, from 400 to 499, that mean the same, if the
	// body is certainly not an envelope. Assumed: 401 404 405 413 429. A firewall may send
	// 403 in place of the response to a transfer that was executed.
	BareRefusedStatuses []int
	// DuplicateCodes are the codes that mean that the reference exists: OutcomeUnknown,
	// since a gateway may have sent the request twice. Default: none. Ask the provider.
	DuplicateCodes []int
	// DuplicateMessages are phrases that mean the same in the message of a refused write, compared
	// by letters and digits in any case. Assumed: "already exist", "duplicate", "重复" and similar.
	DuplicateMessages []string
	// LateExecution is how long after a call's SendBy the service may still execute it.
	// Assumed: 10 minutes. 0: it never executes late.
	LateExecution  time.Duration
	TrustResponses bool // switches off the checks behind ErrParameterIgnored
}

// DefaultProfile returns the assumptions for an unknown service.
func DefaultProfile() Profile {
	return Profile{
		LimitParam: "limit", PageParam: "page", StatusParam: "status", CardBINParam: "card_bin",
		CardIDParam: "id", RetryAction: "retry",
		RefusedCodes:    []int{400, 401, 403, 404, 405, 413, 415, 422, 429},
		RefusedStatuses: []int{400, 401, 403, 404, 405, 413, 415, 422, 429},

		BareRefusedStatuses: []int{401, 404, 405, 413, 429},
		DuplicateMessages: []string{
			"already exist", "already been", "already used", "duplicate", "重复", "重複", "已存在", "已经存在", "已被使用",
		},
		LateExecution: 10 * time.Minute,
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

func (p *Profile) valid() error {
	ofListCards := new(ListCardsParams).selectors(p)
	others := []selector{{"CardIDParam", p.CardIDParam, ""}, {"RetryAction", p.RetryAction, ""}}
	for _, n := range slices.Concat(ofListCards, others) {
		if check.Text("", n.param) != nil || strings.TrimSpace(n.param) != n.param {
			return badSetup("WithProfile: " + n.field + " contains a control character, " +
				"begins or ends with a space, or is not valid UTF-8")
		}
	}
	for i, n := range ofListCards {
		for _, other := range ofListCards[:i] {
			if n.param != "" && n.param == other.param {
				return badSetup("WithProfile: " + other.field + " and " + n.field + " must be different names")
			}
		}
	}
	unfit := func(status int) bool { return status < 400 || status > 499 }
	empty := func(phrase string) bool { return lettersOf(phrase) == "" }
	switch {
	case slices.ContainsFunc(p.DuplicateMessages, empty):
		return badSetup("WithProfile: a phrase of DuplicateMessages has no letter or digit")
	case p.LateExecution < 0:
		return badSetup("WithProfile: LateExecution must not be negative")
	case p.RetryAction == cancelAction:
		return badSetup("WithProfile: RetryAction must not be the value that cancels")
	case slices.Contains(p.RefusedCodes, codeSuccess) || slices.Contains(p.DuplicateCodes, codeSuccess):
		return badSetup("WithProfile: RefusedCodes and DuplicateCodes must not contain 200, the code of a success")
	case slices.ContainsFunc(p.RefusedStatuses, unfit) || slices.ContainsFunc(p.BareRefusedStatuses, unfit):
		return badSetup("WithProfile: a refused status must be from 400 to 499")
	}
	return nil
}
