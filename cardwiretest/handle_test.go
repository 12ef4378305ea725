package cardwiretest_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
)

func TestHandle(t *testing.T) {
	t.Parallel()
	client, service := cardwiretest.NewClient(t)
	service.Handle("POST", "/cards/close", func(r *http.Request) (int, string, any) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "cardId=card-1" {
			return 422, "no such card", nil
		}
		return 200, "success", map[string]string{"ticket": "T-9"}
	})
	closing := func(card string) (struct{ Ticket string }, error) {
		return cardwire.Call[struct{ Ticket string }](t.Context(), client, cardwire.Request{
			Op: "CloseCard", Method: "POST", Path: "/cards/close", Form: url.Values{"cardId": {card}}, Reference: card,
		})
	}
	got, err := closing("card-1")
	require.NoError(t, err)
	assert.Equal(t, "T-9", got.Ticket)

	_, err = closing("card-2")
	var failure *cardwire.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, cardwire.OutcomeRefused, failure.Outcome)
	assert.Equal(t, 422, failure.HTTPStatus)
	assert.Equal(t, 422, failure.Code)
	assert.Equal(t, "no such card", failure.Message)
	assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err))

	stranger, err := cardwire.New("https://api.example.com/api/v1", "another-key",
		cardwire.WithHTTPClient(&http.Client{Transport: service}),
		cardwire.WithJournal(journal.NewMemory()))
	require.NoError(t, err)
	_, err = cardwire.Call[any](t.Context(), stranger, cardwire.Request{
		Op: "CloseCard", Method: "POST", Path: "/cards/close", Reference: "card-1",
	})
	require.ErrorIs(t, err, cardwire.ErrUnauthorized)

	// An operation that the fake has can be replaced, and comes back.
	service.Handle("GET", "/account/capacity", func(r *http.Request) (int, string, any) {
		body, _ := io.ReadAll(r.Body) // which is never nil
		return 200, "success", 7 + len(body)
	})
	n, err := client.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 7, n)
	response, err := service.RoundTrip(get(t))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	service.Handle("GET", "/account/capacity", nil)
	n, err = client.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.NotEqualValues(t, 7, n)
}
