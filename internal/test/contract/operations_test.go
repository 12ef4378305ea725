package contract_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/contract"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// Whoever adds a method learns here what else it needs: the fake, the document, the contract
// suite, the list of own operations, and the calls that other tests make.
func TestEveryMethodIsEverywhere(t *testing.T) {
	t.Parallel()
	const base = "https://cards.example/api/v1"
	fake := contract.NewService()
	suite, err := contract.Run(t.Context(), contract.Client(t, base, fake))
	require.NoError(t, err)
	require.NoError(t, contract.Executed(fake))
	for m := range reflect.TypeFor[*cardwire.Client]().Methods() {
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() {
			continue // it sends nothing
		}
		assert.Contains(t, suite, m.Name, "the contract suite does not call %s", m.Name)
		call := wiretest.AllMethods()[m.Name]
		if !assert.NotNil(t, call, "wiretest.MethodsGiven has no %s", m.Name) {
			continue
		}
		requests := 0
		c := contract.Client(t, base, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			requests++
			path := strings.TrimPrefix(r.URL.Path, "/api/v1")
			described := `(?m)^  ` + regexp.QuoteMeta(path) + `:\n    ` + strings.ToLower(r.Method) + `:\n`
			assert.Regexp(t, described, string(contract.Document), "openapi.yaml lacks what %s sends", m.Name)
			return fake.RoundTrip(r)
		}))
		err := call(t.Context(), c)
		assert.Positive(t, requests, "%s was not sent: %v", m.Name, err)
		if e := new(cardwire.Error); errors.As(err, &e) {
			assert.NotRegexp(t, "^the (path|method) ", e.Message, "cardwiretest has no route for %s", m.Name)
		}
		if m.Name != "AllPages" && m.Name != "AllCards" { // which are ListCards
			_, err = cardwire.Call[any](t.Context(), c,
				cardwire.Request{Op: cardwire.Op(m.Name), Method: "GET", Path: "/a"})
			assert.ErrorIs(t, err, cardwire.ErrSetup, "ownOps lacks %s", m.Name)
		}
	}
}
