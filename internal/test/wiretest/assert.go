package wiretest

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// Failure returns err as the Error that every failed call returns.
func Failure(t *testing.T, err error) *cardwire.Error {
	t.Helper()
	var e *cardwire.Error
	require.ErrorAs(t, err, &e)
	return e
}

// RefusedBeforehand asserts that a call was refused for what cause is about, and not sent.
func RefusedBeforehand(t *testing.T, err, kind error, cause string) {
	t.Helper()
	require.ErrorIs(t, err, kind)
	require.Equal(t, cardwire.OutcomeNotSent, Failure(t, err).Outcome)
	require.ErrorContains(t, err, cause)
}

// UnreadableAt asserts that err is of a response that is unreadable at path.
func UnreadableAt(t *testing.T, err error, path string) {
	t.Helper()
	require.ErrorIs(t, err, cardwire.ErrUnreadable)
	require.Regexp(t, ": "+regexp.QuoteMeta(path)+"(: expected \\w.*| is missing)( \\(ID [\\w-]+\\))?: ", err)
}

// NoZeroField asserts that no exported field of v, at any depth, is zero: a field that is
// never decoded would otherwise pass as its zero value.
func NoZeroField(t *testing.T, v any, except ...string) {
	t.Helper()
	assert.Equal(t, append([]string(nil), except...), zeroFields(reflect.ValueOf(v), ""), "the fields that are zero")
}

func zeroFields(v reflect.Value, path string) (zero []string) {
	if d, ok := v.Interface().(decimal.Decimal); ok {
		if d.IsZero() {
			return []string{path}
		}
		return nil
	}
	switch {
	case v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0:
		return []string{path}
	case v.Kind() == reflect.Pointer:
		return zeroFields(v.Elem(), path)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if v.Type().Elem().Kind() != reflect.Uint8 {
				zero = append(zero, zeroFields(v.Index(i), path+"[]")...)
			}
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				zero = append(zero, zeroFields(v.Field(i), strings.TrimPrefix(path+"."+f.Name, "."))...)
			}
		}
	}
	return zero
}

// Sentinels are all sentinels: an error is compared with each of them, so that one which
// matches too many is found as well.
var Sentinels = []struct {
	Name string // in OutcomeOf
	Err  error
	Text string
}{
	{"Unauthorized", cardwire.ErrUnauthorized, "cardwire: the API key was not accepted"},
	{"NotFound", cardwire.ErrNotFound, "cardwire: not found"},
	{"RateLimited", cardwire.ErrRateLimited, "cardwire: too many requests"},
	{"InvalidParams", cardwire.ErrInvalidParams, "cardwire: invalid parameters"},
	{"Elements", cardwire.ErrElements, "cardwire: some elements are unreadable"},
	{"Unreadable", cardwire.ErrUnreadable, "cardwire: the response is unreadable"},
	{"Setup", cardwire.ErrSetup, "cardwire: invalid setup"},
	{"TooLarge", cardwire.ErrResponseTooLarge, "cardwire: the response is too large"},
	{"Redirect", cardwire.ErrRedirect, "cardwire: the response is a redirect"},
	{"ParameterIgnored", cardwire.ErrParameterIgnored, "cardwire: the service ignored a parameter"},
	{"DuplicateIntent", cardwire.ErrDuplicateIntent, "cardwire: this reference was used before"},
	{"OtherBody", cardwire.ErrOtherBody, "cardwire: this reference was already used for a different request"},
	{"Drift", cardwire.ErrDrift, "cardwire: the response deviates from the API"},
}

// Matched returns the outcome of err, without "Outcome", and the sentinels that it matches, without "Err".
func Matched(err error) string {
	var names []string
	if e, ok := errors.AsType[*cardwire.Error](err); ok {
		names = append(names, []string{"Unknown", "NotSent", "Refused", "Executed"}[e.Outcome])
	}
	for _, s := range Sentinels {
		if errors.Is(err, s.Err) {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, " ")
}

// OutcomeOf returns all that an error tells a program: the sentinels that it matches, what
// the response was, when to call again, and how far each attempt got.
func OutcomeOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "success"
	}
	e, text := Failure(t, err), Matched(err)
	if e.HTTPStatus != 0 {
		text += fmt.Sprint(", HTTP ", e.HTTPStatus)
	}
	if e.Code != 0 || e.Message != "" {
		text += fmt.Sprintf(", %d %q", e.Code, e.Message)
	}
	if e.RetryAfter != 0 {
		text += fmt.Sprint(", again after ", e.RetryAfter)
	}
	var phases []string
	for _, a := range e.Attempts {
		phases = append(phases, a.Phase)
	}
	return strings.TrimSuffix(text+", "+strings.Join(phases, " "), ", ")
}
