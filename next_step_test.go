package cardwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStepStrings(t *testing.T) {
	t.Parallel()
	for s, want := range map[Step]string{
		StepReconcile: "reconcile", StepDone: "done", StepRetry: "retry", StepFail: "fail", StepWait: "wait",
		-1: "Step(-1)", 5: "Step(5)",
	} {
		assert.Equal(t, want, s.String())
	}
	assert.Equal(t, StepReconcile, Step(0), "the zero value is the careful one")
}

// transferError is an error of CreateTransfer, as a stub would build it.
func transferError(o Outcome, cause error) *Error {
	return &Error{Op: "CreateTransfer", Reference: "M-1", Outcome: o, Err: cause}
}

func TestNextStep(t *testing.T) {
	t.Parallel()
	var none *Error
	var noneAsError error = none
	answered := func(o Outcome, status, code int) *Error {
		e := transferError(o, nil)
		e.HTTPStatus, e.Code = status, code
		return e
	}
	read := func(o Outcome, cause error) *Error {
		return &Error{Op: "GetCard", ReadOnly: true, Outcome: o, Err: cause}
	}
	upload := func(o Outcome, cause error) *Error { return &Error{Op: "UploadImage", Outcome: o, Err: cause} }
	for name, tc := range map[string]struct {
		err  error
		want Step
	}{
		"success":                             {nil, StepDone},
		"executed":                            {transferError(OutcomeExecuted, ErrUnreadable), StepDone},
		"executed with drift":                 {transferError(OutcomeExecuted, ErrDrift), StepDone},
		"executed before":                     {transferError(OutcomeExecuted, &DuplicateIntent{Outcome: OutcomeExecuted}), StepDone},
		"executed before, the sentinel alone": {transferError(OutcomeExecuted, ErrDuplicateIntent), StepDone},

		"a read that is unknown":   {read(OutcomeUnknown, nil), StepRetry},
		"a read that was refused":  {read(OutcomeRefused, nil), StepRetry},
		"a read that was not sent": {read(OutcomeNotSent, ErrInvalidParams), StepRetry},
		"a read that was executed": {read(OutcomeExecuted, ErrParameterIgnored), StepRetry},

		"not sent":            {transferError(OutcomeNotSent, nil), StepRetry},
		"no connection":       {transferError(OutcomeNotSent, io.EOF), StepRetry},
		"the context ended":   {transferError(OutcomeNotSent, context.Canceled), StepRetry},
		"the set-up is wrong": {transferError(OutcomeNotSent, ErrSetup), StepRetry},
		"a detail of it":      {transferError(OutcomeNotSent, badSetup("the context is nil")), StepRetry},

		"an invalid parameter": {transferError(OutcomeNotSent, ErrInvalidParams), StepFail},
		"a detail of that":     {transferError(OutcomeNotSent, invalid("Limit must not be negative")), StepFail},

		"refused":                  {transferError(OutcomeRefused, nil), StepFail},
		"422":                      {answered(OutcomeRefused, 422, 422), StepFail},
		"400":                      {answered(OutcomeRefused, 400, 1020), StepFail},
		"404 in an envelope":       {answered(OutcomeRefused, 404, 404), StepFail},
		"401":                      {answered(OutcomeRefused, 401, 401), StepRetry},
		"403":                      {answered(OutcomeRefused, 403, 1), StepRetry},
		"405":                      {answered(OutcomeRefused, 405, 1), StepRetry},
		"413":                      {answered(OutcomeRefused, 413, 1), StepRetry},
		"415":                      {answered(OutcomeRefused, 415, 1), StepRetry},
		"429":                      {answered(OutcomeRefused, 429, 1), StepRetry},
		"code 401":                 {answered(OutcomeRefused, 200, 401), StepRetry},
		"code 403":                 {answered(OutcomeRefused, 400, 403), StepRetry},
		"code 405":                 {answered(OutcomeRefused, 200, 405), StepRetry},
		"code 413":                 {answered(OutcomeRefused, 200, 413), StepRetry},
		"code 415":                 {answered(OutcomeRefused, 200, 415), StepRetry},
		"code 429":                 {answered(OutcomeRefused, 200, 429), StepRetry},
		"the sentinel of the key":  {transferError(OutcomeRefused, ErrUnauthorized), StepRetry},
		"the sentinel of the rate": {transferError(OutcomeRefused, ErrRateLimited), StepRetry},
		"bare":                     {transferError(OutcomeRefused, ErrUnreadable), StepRetry},

		"closed by a refusal":             {transferError(OutcomeRefused, &DuplicateIntent{Outcome: OutcomeRefused}), StepFail},
		"voided":                          {transferError(OutcomeNotSent, &DuplicateIntent{Outcome: OutcomeNotSent}), StepFail},
		"voided, the sentinel alone":      {transferError(OutcomeNotSent, ErrDuplicateIntent), StepFail},
		"closed, with a status of before": {&Error{Op: "CreateTransfer", Outcome: OutcomeRefused, HTTPStatus: 429, Err: ErrDuplicateIntent}, StepFail},

		"in progress": {transferError(OutcomeUnknown, &DuplicateIntent{InProgress: true, Remaining: time.Second}), StepWait},

		"unknown":                       {transferError(OutcomeUnknown, nil), StepReconcile},
		"the zero Error":                {&Error{}, StepReconcile},
		"an outcome that is none":       {transferError(9, nil), StepReconcile},
		"unknown before":                {transferError(OutcomeUnknown, &DuplicateIntent{}), StepReconcile},
		"a duplicate that is nil":       {transferError(OutcomeUnknown, (*DuplicateIntent)(nil)), StepReconcile},
		"a duplicate that contradicts":  {transferError(OutcomeNotSent, &DuplicateIntent{}), StepReconcile},
		"another body":                  {transferError(OutcomeUnknown, ErrOtherBody), StepReconcile},
		"another body, not sent":        {transferError(OutcomeNotSent, ErrOtherBody), StepReconcile},
		"another body of one executed":  {transferError(OutcomeExecuted, errors.Join(ErrOtherBody, &DuplicateIntent{Outcome: OutcomeExecuted})), StepReconcile},
		"invalid, and perhaps executed": {transferError(OutcomeUnknown, ErrInvalidParams), StepReconcile},
		"unknown with the set-up wrong": {transferError(OutcomeUnknown, ErrSetup), StepReconcile},
		"no Error":                      {io.EOF, StepReconcile},
		"what New returns":              {badSetup("the API key is empty"), StepReconcile},
		"a nil Error":                   {noneAsError, StepReconcile},
		"two Errors":                    {errors.Join(transferError(OutcomeNotSent, nil), transferError(OutcomeRefused, nil)), StepReconcile},
		"an Error in an Error":          {transferError(OutcomeNotSent, transferError(OutcomeUnknown, nil)), StepReconcile},
		"an Error beside a nil one":     {errors.Join(transferError(OutcomeNotSent, nil), noneAsError), StepReconcile},

		"an image that was taken":      {upload(OutcomeExecuted, ErrDrift), StepDone},
		"an image without its key":     {upload(OutcomeExecuted, ErrUnreadable), StepRetry},
		"an image that may be there":   {upload(OutcomeUnknown, nil), StepRetry},
		"an image that is refused":     {upload(OutcomeRefused, nil), StepRetry},
		"an image that cannot be sent": {upload(OutcomeNotSent, ErrInvalidParams), StepRetry},
	} {
		assert.Equal(t, tc.want, NextStep(tc.err), name)
		if tc.err != nil && tc.err != noneAsError {
			assert.Equal(t, tc.want, NextStep(fmt.Errorf("order 7: %w", tc.err)), "%s, wrapped", name)
			assert.Equal(t, tc.want, NextStep(errors.Join(io.EOF, tc.err)), "%s, joined", name)
		}
	}
}

// Whatever else an error of a write carries, its outcome bounds the step.
func TestNoCauseMakesAStepUnsafe(t *testing.T) {
	t.Parallel()
	may := map[Outcome][]Step{
		OutcomeUnknown:  {StepReconcile, StepWait},
		OutcomeExecuted: {StepDone, StepReconcile, StepWait},
		OutcomeNotSent:  {StepRetry, StepFail, StepReconcile, StepWait},
		OutcomeRefused:  {StepRetry, StepFail, StepReconcile, StepWait},
	}
	causes := []error{
		nil, context.DeadlineExceeded, &DuplicateIntent{}, &DuplicateIntent{InProgress: true},
		&DuplicateIntent{Outcome: OutcomeExecuted}, &DuplicateIntent{Outcome: OutcomeRefused}, &DuplicateIntent{Outcome: OutcomeNotSent},
	}
	for _, s := range allSentinels {
		causes = append(causes, s.err)
	}
	for outcome, steps := range may {
		for _, cause := range causes {
			for _, other := range causes {
				for _, status := range []int{0, 200, 302, 400, 401, 404, 422, 429, 500, 503} {
					e := transferError(outcome, errors.Join(cause, other))
					e.HTTPStatus, e.Code = status, status
					assert.Contains(t, steps, NextStep(e), "%v", e)
				}
			}
		}
	}
}
