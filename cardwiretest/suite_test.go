package cardwiretest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

// suite calls every operation and returns the first difference from what the
// service was prepared to return, nil if there is none.
func suite(ctx context.Context, c *cardwire.Client, s *cardwiretest.Service) error {
	if _, err := contract.Run(ctx, c, contract.Fake); err != nil {
		return err
	}
	return contract.Executed(s)
}

func TestSuiteOnTheServer(t *testing.T) {
	t.Parallel()
	s := cardwiretest.NewServer(t, contract.Options()...)
	contract.Prepare(s.Service)
	require.NoError(t, suite(t.Context(), s.Client(cardwire.WithStrictDrift()), s.Service))
}

// suiteClient returns a client that takes every deviation for an error.
func suiteClient(t *testing.T, way http.RoundTripper, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey, append(opts,
		cardwire.WithHTTPClient(&http.Client{Transport: way}), cardwire.WithProfile(func(own *cardwire.Profile) { *own = contract.Profile() }), cardwire.WithStrictDrift())...)
	require.NoError(t, err)
	return c
}
