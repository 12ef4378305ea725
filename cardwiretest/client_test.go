package cardwiretest_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// renamed is a profile in which nothing has its usual name.
var renamed = cardwire.Profile{
	LimitParam: "size", PageParam: "no", SubAccountParam: "sub", StatusParam: "state", CardBINParam: "bin",
	CreatedFromParam: "made_from", CreatedToParam: "made_to",
	TransactedFromParam: "used_from", TransactedToParam: "used_to", CardIDParam: "which", RetryAction: "again",
}

func TestClientProfile(t *testing.T) {
	client, service := cardwiretest.NewClient(t, cardwiretest.WithProfile(renamed))
	early, late := cardwire.Date{Year: 2024, Month: 1, Day: 1}, cardwire.Date{Year: 2026, Month: 1, Day: 1}
	page, err := client.ListCards(t.Context(), cardwire.ListCardsParams{
		PageSize: 3, Page: 1, SubAccountID: "sub-1", Status: new(cardwire.CardActive), CardBIN: "428837",
		CreatedFrom: early, CreatedTo: late, TransactedFrom: early, TransactedTo: late,
	})
	require.NoError(t, err)
	require.NotEmpty(t, page.Cards)
	_, err = cardwire.Call[any](t.Context(), client, cardwire.Request{
		Op: "List", Method: "GET", Path: "/cards", Query: url.Values{"limit": {"1"}},
	})
	require.ErrorContains(t, err, "the parameter limit is not supported")
	service.AddFailedOperation(failedID, "close")
	require.NoError(t, client.RetryOperation(t.Context(), failedID))
	assert.Equal(t, 1, service.Executions("RetryOperation", failedID))

	server := cardwiretest.NewServer(t, cardwiretest.WithProfile(renamed), cardwiretest.WithKey("another-key"))
	assert.Equal(t, "another-key", server.Key)
	card, err := server.Client().GetCard(t.Context(), page.Cards[0].ID)
	require.NoError(t, err)
	assert.Equal(t, page.Cards[0].ID, card.ID)
}

// The clients of a service have the options given to it, of which nil is none, and know that
// it executes nothing late.
func TestClientOptions(t *testing.T) {
	var seen []cardwire.Profile
	look := cardwire.WithProfile(func(own *cardwire.Profile) { seen = append(seen, *own) })
	late := cardwire.DefaultProfile()
	late.LateExecution = time.Hour
	late.LimitParam = "size"
	cardwiretest.NewClient(t, nil, cardwiretest.WithClientOptions(look), cardwiretest.WithProfile(late))
	cardwiretest.NewServer(t).Client(look)
	want := [2]cardwire.Profile{cardwire.DefaultProfile(), cardwire.DefaultProfile()}
	want[0].LimitParam = "size"
	want[0].LateExecution, want[1].LateExecution = 0, 0
	assert.Equal(t, want[:], seen)

	tb := &tester{}
	defer tb.end()
	server := cardwiretest.NewServer(tb)
	assert.Nil(t, server.Client(cardwire.WithTimeout(-1)))
	assert.Len(t, tb.errors, 1)
}
