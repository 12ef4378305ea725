package cardwire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// commonCard is what both forms of a card say.
func commonCard() cardwire.Card {
	return cardwire.Card{
		ID: "card-1", TradeID: "trade-2", Label: "team A", CardBIN: "493193", Currency: "USD",
		Available: wiretest.Dec("123.450"), Pending: wiretest.Dec("7.25"), Frozen: wiretest.Dec("3"), Fee: wiretest.Dec("1.50"),
		HolderUsername: "Maria Silva",
		HolderAddress: &cardwire.Address{
			City: "Lisbon", State: "Lisboa", Country: "PT", PostalCode: "1100-048",
			Line1: "Rua Augusta 5", Line2: "2 Esq",
		},
		HolderPhone: "912345678", HolderEmail: "maria@example.com",
		CreateTime: cardwire.DateTime{cardwire.Date{2026, time.January, 2}, 3, 4, 5},
		Physical:   true, PhysicalStatus: 2, DeliverStatus: 3,
		PlatformWaybillNumber: "WB-9", PlatformWaybillCompany: "CTT",
	}
}

func listedCardWanted(t *testing.T) cardwire.Card {
	t.Helper()
	card := commonCard()
	card.BINID = 37
	card.Number, card.CVV = wiretest.CardNumber(t, "4931930000001234"), wiretest.CVV(t, "123")
	card.Expiry = cardwire.Expiry{2027, time.August}
	card.HolderPhoneCode = "+351"
	card.UpdateTime = cardwire.DateTime{cardwire.Date{2026, time.June, 7}, 8, 9, 10}
	card.Status = cardwire.CardFrozen
	card.Remark, card.DestroyReason, card.Nickname = "keep", "lost", "travel"
	return card
}

func singleCardWanted(t *testing.T) cardwire.Card {
	t.Helper()
	card := commonCard()
	card.Number, card.CVV = wiretest.CardNumber(t, "493193******1234"), wiretest.CVV(t, "***")
	card.HolderPhoneCode = "351"
	card.Status = cardwire.CardSuspended
	card.AccountStatus, card.ConsumptionSceneType = 5, 6
	card.ConsumptionSceneConfig = []cardwire.ConsumptionScene{{Name: "online", ChannelID: 71}, {Name: "shop", ChannelID: 72}}
	return card
}

func secretsWanted(t *testing.T) cardwire.CardSecrets {
	t.Helper()
	return cardwire.CardSecrets{Number: wiretest.CardNumber(t, "493193******1234"), CVV: wiretest.CVV(t, "***"), PAN: wiretest.EncryptedPAN(t, "q83vAQ==")}
}

func TestListCardsReadsEveryField(t *testing.T) {
	t.Parallel()
	want := &cardwire.CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []cardwire.Card{listedCardWanted(t)}}
	wiretest.NoZeroField(t, want, "Cards[].AccountStatus", "Cards[].ConsumptionSceneType", "Cards[].ConsumptionSceneConfig")

	c := wiretest.Respond(t, "GET /shop/api/v1/cards", wiretest.Page(wiretest.ListedCard), cardwire.WithStrictDrift())
	got, err := c.ListCards(t.Context(), cardwire.ListCardsParams{})
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, "4931930000001234", got.Cards[0].Number.Reveal())
	assert.Equal(t, "123", got.Cards[0].CVV.Reveal())
}

func TestGetCardReadsEveryField(t *testing.T) {
	t.Parallel()
	want := singleCardWanted(t)
	wiretest.NoZeroField(t, want, "BINID", "Expiry", "UpdateTime", "Remark", "DestroyReason", "Nickname")

	c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id=card-1", wiretest.Success(wiretest.SingleCard), cardwire.WithStrictDrift())
	got, err := c.GetCard(t.Context(), "card-1")
	require.NoError(t, err)
	assert.Equal(t, &want, got)
	assert.True(t, got.Number.IsMasked())
	assert.Equal(t, "493193******1234", got.Number.Reveal())
	assert.True(t, got.CVV.IsMasked())
	assert.True(t, got.Expiry.IsMasked())
}

func TestGetCardByOrderComparesNothing(t *testing.T) {
	t.Parallel()
	want := singleCardWanted(t)
	c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id=order-9", wiretest.Success(wiretest.SingleCard), cardwire.WithStrictDrift())
	got, err := c.GetCardByOrder(t.Context(), "order-9")
	require.NoError(t, err)
	assert.Equal(t, &want, got)
}

func TestGetCardEscapesTheIdentifier(t *testing.T) {
	t.Parallel()
	profile := cardwire.DefaultProfile()
	profile.CardIDParam = "card id"
	c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?card+id=a%3Fb%26c%3Dd+%23%25%2B%C3%A9",
		wiretest.Success(wiretest.Edited(t, wiretest.SingleCard, `"id":"card-1"`, `"id":"a?b&c=d #%+é"`)), cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile }))
	got, err := c.GetCard(t.Context(), "a?b&c=d #%+é")
	require.NoError(t, err)
	assert.Equal(t, "a?b&c=d #%+é", got.ID)
}

func TestGetCardReturnsAnotherCardWithAnError(t *testing.T) {
	t.Parallel()
	want := singleCardWanted(t)
	c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id=card-2", wiretest.Success(wiretest.SingleCard))
	got, err := c.GetCard(t.Context(), "card-2")
	require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
	require.ErrorContains(t, err, "CardIDParam")
	assert.Equal(t, cardwire.OutcomeExecuted, wiretest.Failure(t, err).Outcome)
	assert.Equal(t, &want, got)
}

func TestGetCardTrustsResponsesWhereToldTo(t *testing.T) {
	t.Parallel()
	profile := cardwire.DefaultProfile()
	profile.TrustReplies = true
	c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id=card-2", wiretest.Success(wiretest.SingleCard), cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile }))
	got, err := c.GetCard(t.Context(), "card-2")
	require.NoError(t, err)
	assert.Equal(t, "card-1", got.ID)
}

func TestGetCardSecretsReadsEveryField(t *testing.T) {
	t.Parallel()
	want := secretsWanted(t)
	wiretest.NoZeroField(t, want, "Expiry")

	c := wiretest.Respond(t, "POST /shop/api/v1/cards/private\napplication/x-www-form-urlencoded\n\ncardId=card+1%2B",
		wiretest.Success(wiretest.CardSecrets), cardwire.WithStrictDrift())
	got, err := c.GetCardSecrets(t.Context(), "card 1+")
	require.NoError(t, err)
	assert.Equal(t, &want, got)
	assert.Equal(t, "q83vAQ==", got.PAN.Reveal())
	assert.True(t, got.CVV.IsMasked())
}

// The API masks the expiry. Where it does not, it must be read.
func TestGetCardSecretsReadsAnExpiryThatIsNotMasked(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, wiretest.Anything, wiretest.Success(wiretest.Edited(t, wiretest.CardSecrets, `**/****`, `09/2028`)))
	got, err := c.GetCardSecrets(t.Context(), "card-1")
	require.NoError(t, err)
	assert.Equal(t, cardwire.Expiry{2028, time.September}, got.Expiry)
}

func TestFreezeCardSendsTheReferenceThatItIsGiven(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, wiretest.FreezeRequest("card-1", wiretest.FreezeID), wiretest.Success(`"`+wiretest.OperationID+`"`), cardwire.WithStrictDrift())
	got, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: wiretest.FreezeID})
	require.NoError(t, err)
	assert.Equal(t, &cardwire.CardOperation{ID: wiretest.OperationID, ClientTransactionID: wiretest.FreezeID}, got)
	wiretest.NoZeroField(t, got)
}

func TestACardOperationHasTheNamesOfTheWire(t *testing.T) {
	t.Parallel()
	const encoded = `{"id":"` + wiretest.OperationID + `","clientTransactionId":"` + wiretest.FreezeID + `"}`
	want := cardwire.CardOperation{ID: wiretest.OperationID, ClientTransactionID: wiretest.FreezeID}
	for _, v := range []any{want, &want} {
		got, err := json.Marshal(v)
		require.NoError(t, err)
		assert.Equal(t, encoded, string(got))
	}
	var got cardwire.CardOperation
	require.NoError(t, json.Unmarshal([]byte(encoded), &got))
	assert.Equal(t, want, got)
	err := json.Unmarshal([]byte(`{"id":{}}`), &got)
	require.EqualError(t, err, "cardwire: cannot unmarshal CardOperation: id: expected a string")
	assert.Equal(t, want, got)
}

// What a program keeps itself is not a response, and has no base URL.
func TestAMalformedCardOfACacheIsNoResponse(t *testing.T) {
	t.Parallel()
	for cached, want := range map[string]string{
		`{"id":"c1"}`:                  "cardwire: cannot unmarshal Card: available is missing",
		`[]`:                           "cardwire: cannot unmarshal Card: expected an object",
		`{"id":"c1","id":"c2"}`:        "cardwire: cannot unmarshal Card: not strict JSON: a field name appears twice",
		`<!doctype html><html></html>`: "cardwire: cannot unmarshal Card: not strict JSON: HTML",
		`{"id":"c1"`:                   "cardwire: cannot unmarshal Card: not strict JSON: it ends too early",
	} {
		err := new(cardwire.Card).UnmarshalJSON([]byte(cached))
		require.EqualError(t, err, want, cached)
		require.ErrorIs(t, err, cardwire.ErrUnreadable, cached)
	}
	err := new(cardwire.BIN).UnmarshalJSON([]byte(`{"id":1,"bin":""}`))
	require.EqualError(t, err, "cardwire: cannot unmarshal BIN: bin: expected an identifier")
}

const uuid4 = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

func TestFreezeCardMakesAReference(t *testing.T) {
	t.Parallel()
	response := wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success(`"` + wiretest.OperationID + `"`)}
	s := wiretest.Script(t, response, response)
	c := wiretest.NewClient(t, s)
	first, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-1"})
	require.NoError(t, err)
	second, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-1"})
	require.NoError(t, err)

	assert.Regexp(t, "^"+uuid4+"$", first.ClientTransactionID)
	assert.Equal(t, wiretest.FreezeRequest("card-1", first.ClientTransactionID), s.Requests[0])
	assert.Equal(t, wiretest.FreezeRequest("card-1", second.ClientTransactionID), s.Requests[1])
	assert.NotEqual(t, first.ClientTransactionID, second.ClientTransactionID)
}

func TestFreezeCardReturnsTheReferenceOfAFailure(t *testing.T) {
	t.Parallel()
	s := wiretest.Script(t, wiretest.Exchange{Want: wiretest.Anything, Status: 500, Response: "down"})
	c := wiretest.NewClient(t, s)
	got, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-1"})
	assert.Nil(t, got)
	require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
	reference := wiretest.Failure(t, err).Reference
	assert.Regexp(t, "^"+uuid4+"$", reference)
	assert.Equal(t, wiretest.FreezeRequest("card-1", reference), s.Requests[0])
}

func TestFreezeCardWithoutAnOperationIDIsUnknown(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`null`, `""`, `true`, `{}`, `["` + wiretest.OperationID + `"]`} {
		t.Run(data, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, wiretest.Anything, wiretest.Success(data))
			got, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: wiretest.FreezeID})
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
			assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
		})
	}
}

func TestCancelAndRetryNameTheirAction(t *testing.T) {
	t.Parallel()
	const upper = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"
	other := cardwire.DefaultProfile()
	other.RetryAction = "re do"
	cases := map[string]struct {
		call    func(*cardwire.Client) error
		profile cardwire.Profile
		want    string
	}{
		"cancel": {
			func(c *cardwire.Client) error { return c.CancelOperation(t.Context(), wiretest.OperationID) }, cardwire.DefaultProfile(),
			"client_transaction_id=3f2504e0-4f89-41d3-9a0c-0305e82c3301&type=cancel",
		},
		"cancel, upper case": {
			func(c *cardwire.Client) error { return c.CancelOperation(t.Context(), upper) }, cardwire.DefaultProfile(),
			"client_transaction_id=3F2504E0-4F89-41D3-9A0C-0305E82C3301&type=cancel",
		},
		"retry": {
			func(c *cardwire.Client) error { return c.RetryOperation(t.Context(), wiretest.OperationID) }, cardwire.DefaultProfile(),
			"client_transaction_id=3f2504e0-4f89-41d3-9a0c-0305e82c3301&type=retry",
		},
		"retry, upper case": {
			func(c *cardwire.Client) error { return c.RetryOperation(t.Context(), upper) }, cardwire.DefaultProfile(),
			"client_transaction_id=3F2504E0-4F89-41D3-9A0C-0305E82C3301&type=retry",
		},
		"retry by another name": {
			func(c *cardwire.Client) error { return c.RetryOperation(t.Context(), wiretest.OperationID) }, other,
			"client_transaction_id=3f2504e0-4f89-41d3-9a0c-0305e82c3301&type=re+do",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, "POST /shop/api/v1/cards/adjustAction\napplication/x-www-form-urlencoded\n\n"+tc.want,
				wiretest.Success(`true`), cardwire.WithStrictDrift(), cardwire.WithProfile(func(own *cardwire.Profile) { *own = tc.profile }))
			require.NoError(t, tc.call(c))
		})
	}
}

// adjustments are the two operations that share one path.
var adjustments = map[string]func(context.Context, *cardwire.Client, string) error{
	"CancelOperation": func(ctx context.Context, c *cardwire.Client, id string) error { return c.CancelOperation(ctx, id) },
	"RetryOperation":  func(ctx context.Context, c *cardwire.Client, id string) error { return c.RetryOperation(ctx, id) },
}

func TestAdjustmentResponses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		data    string
		outcome cardwire.Outcome
		cause   error // nil: a success
		drift   []cardwire.Drift
	}{
		{data: `true`},
		{data: `1`, drift: []cardwire.Drift{{"data", "number for boolean"}}},
		{data: `"1"`, drift: []cardwire.Drift{{"data", "string for boolean"}}},
		// It may have been done before, by a request whose response was lost.
		{data: `false`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `0`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable, drift: []cardwire.Drift{{"data", "number for boolean"}}},
		{data: `"0"`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable, drift: []cardwire.Drift{{"data", "string for boolean"}}},
		{data: `"False"`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `-0`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `0.0`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `0e5`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `" false"`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `"0.0"`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `""`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `null`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable, drift: []cardwire.Drift{{"data", "null for boolean"}}},
		{data: `2`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `"true"`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
		{data: `{}`, outcome: cardwire.OutcomeUnknown, cause: cardwire.ErrUnreadable},
	}
	for name, adjust := range adjustments {
		for _, tc := range cases {
			t.Run(name+" "+tc.data, func(t *testing.T) {
				t.Parallel()
				observe, drift := wiretest.Drifts()
				err := adjust(t.Context(), wiretest.Respond(t, wiretest.Anything, wiretest.Success(tc.data), observe), wiretest.OperationID)
				assert.Equal(t, tc.drift, *drift)
				if tc.cause == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, tc.cause)
				if tc.data == "false" {
					assert.ErrorContains(t, err, "the service did not confirm the change: the operation may have been canceled or retried before")
				}
				e := wiretest.Failure(t, err)
				assert.Equal(t, tc.outcome, e.Outcome)
				assert.Equal(t, name, e.Op)
				assert.Equal(t, wiretest.OperationID, e.Reference)
			})
		}
	}
}

func TestRetryOperationNeedsAnAction(t *testing.T) {
	t.Parallel()
	profile := cardwire.DefaultProfile()
	profile.RetryAction = ""
	err := wiretest.Unasked(t, cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile })).RetryOperation(t.Context(), wiretest.OperationID)
	wiretest.RefusedBeforehand(t, err, "Profile.RetryAction")
}

// hostileIDs are no identifiers: they would be another string when they arrive, or look
// like one that they are not.
var hostileIDs = map[string]string{
	"empty": "", "white space": " a", "zero width": "a\u200bb",
	"nul": "a\x00b", "newline": "a\nb", "tab": "a\tb", "delete": "a\x7fb", "C1 control": "a\u0085b",
	"line separator": "a\u2028b", "direction override": "a\u202eb", "invalid UTF-8": "a\xffb",
	"129 bytes": strings.Repeat("a", 129),
}

func TestHostileIdentifiersAreNotSent(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *cardwire.Client, string) error{
		"cardID": func(ctx context.Context, c *cardwire.Client, id string) error {
			_, err := c.GetCard(ctx, id)
			return err
		},
		"orderID": func(ctx context.Context, c *cardwire.Client, id string) error {
			_, err := c.GetCardByOrder(ctx, id)
			return err
		},
		"cardID of secrets": func(ctx context.Context, c *cardwire.Client, id string) error {
			_, err := c.GetCardSecrets(ctx, id)
			return err
		},
		"CardID": func(ctx context.Context, c *cardwire.Client, id string) error {
			_, err := c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: id, ClientTransactionID: wiretest.FreezeID})
			return err
		},
		"SubAccountID": func(ctx context.Context, c *cardwire.Client, id string) error {
			if id == "" {
				id = "a\nb" // "" selects all
			}
			_, err := c.ListCards(ctx, cardwire.ListCardsParams{SubAccountID: id})
			return err
		},
	}
	profile := cardwire.DefaultProfile()
	profile.SubAccountParam = "sub"
	for parameter, call := range calls {
		for name, id := range hostileIDs {
			t.Run(parameter+", "+name, func(t *testing.T) {
				t.Parallel()
				err := call(t.Context(), wiretest.Unasked(t, cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile })), id)
				wiretest.RefusedBeforehand(t, err, strings.Fields(parameter)[0])
				if len(id) > 2 {
					assert.NotContains(t, err.Error(), id)
				}
			})
		}
	}
}

// No identifier is part of a path, so that slashes and dots harm nothing.
func TestAnIdentifierIsSentAsGiven(t *testing.T) {
	t.Parallel()
	for id, query := range map[string]string{"2024/0001": "2024%2F0001", "..": "..", `a\b`: "a%5Cb", "a b&c": "a+b%26c"} {
		c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id="+query, wiretest.Success(wiretest.SingleCard))
		got, err := c.GetCardByOrder(t.Context(), id)
		require.NoError(t, err, id)
		assert.Equal(t, "card-1", got.ID)
	}
}

func TestTheLongestIdentifierIsSent(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 128)
	c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id="+id, wiretest.Success(wiretest.Edited(t, wiretest.SingleCard, "card-1", id)))
	got, err := c.GetCard(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, id, got.ID)
}

func TestAdjustmentsWantAUUID(t *testing.T) {
	t.Parallel()
	ids := map[string]string{
		"bare": "3f2504e04f8941d39a0c0305e82c3301", "in braces": "{" + wiretest.OperationID + "}", "URN": "urn:uuid:" + wiretest.OperationID,
		"one digit more": wiretest.OperationID + "0", "one digit less": wiretest.OperationID[:35], "no hex": "g" + wiretest.OperationID[1:],
		"hyphen elsewhere": "3f2504e04-f89-41d3-9a0c-0305e82c3301", "nil UUID": "00000000-0000-0000-0000-000000000000",
		"space": " " + wiretest.OperationID[1:],
	}
	for operation, adjust := range adjustments {
		for name, id := range hostileIDs {
			ids[name] = id
		}
		for name, id := range ids {
			t.Run(operation+", "+name, func(t *testing.T) {
				t.Parallel()
				wiretest.RefusedBeforehand(t, adjust(t.Context(), wiretest.Unasked(t), id), "clientTransactionID")
			})
		}
	}
}

func TestFreezeCardRefusesReferencesThatAreNotVisibleText(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"space": " ", "space before": " f", "space after": "f ", "newline": "f\ng", "nul": "\x00", "delete": "f\x7f",
		"direction override": "f\u202eg", "invalid UTF-8": "f\xff", "129 bytes": strings.Repeat("f", 129),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wiretest.Unasked(t).FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: id})
			wiretest.RefusedBeforehand(t, err, "ClientTransactionID")
		})
	}
}

// quirks are the forms in which a service in PHP sends the same values.
func TestCardQuirks(t *testing.T) {
	t.Parallel()
	const address = `{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"}`
	cases := map[string]struct {
		old, replacement string
		change           func(*cardwire.Card) // of the value wanted
		drift            []cardwire.Drift
	}{
		"escaped slash": {`"08/2027"`, `"08\/2027"`, func(*cardwire.Card) {}, nil},
		"escaped letter": {`"Maria Silva"`, `"Andr\u00e9 \ud83d\ude00"`, func(c *cardwire.Card) {
			c.HolderUsername = "André 😀"
		}, nil},
		"number with a zero in front": {`"123"`, `"007"`, func(c *cardwire.Card) { c.CVV = wiretest.CVV(t, "007") }, nil},
		"CVV of four digits":          {`"123"`, `"1234"`, func(c *cardwire.Card) { c.CVV = wiretest.CVV(t, "1234") }, nil},
		"masked number":               {`4931930000001234`, `493193******1234`, func(c *cardwire.Card) { c.Number = wiretest.CardNumber(t, "493193******1234") }, nil},
		"masked CVV":                  {`"123"`, `"***"`, func(c *cardwire.Card) { c.CVV = wiretest.CVV(t, "***") }, nil},
		"masked expiry":               {`"08/2027"`, `"**/****"`, func(c *cardwire.Card) { c.Expiry = cardwire.Expiry{} }, nil},
		"no address":                  {address, `[]`, func(c *cardwire.Card) { c.HolderAddress = nil }, nil},
		"no address, spaced":          {address, "[ \n]", func(c *cardwire.Card) { c.HolderAddress = nil }, nil},
		"no address, as {}": {address, `{ }`, func(c *cardwire.Card) { c.HolderAddress = nil },
			[]cardwire.Drift{{"data.data[].holder_address", "empty object for array"}}},
		"no address, as null": {address, `null`, func(c *cardwire.Card) { c.HolderAddress = nil },
			[]cardwire.Drift{{"data.data[].holder_address", "null for object"}}},
		"address with little in it": {address, `{"city":"Porto"}`, func(c *cardwire.Card) { c.HolderAddress = &cardwire.Address{City: "Porto"} }, []cardwire.Drift{
			{"data.data[].holder_address.state", "missing field"},
			{"data.data[].holder_address.country", "missing field"},
			{"data.data[].holder_address.postalCode", "missing field"},
			{"data.data[].holder_address.addressLine1", "missing field"},
			{"data.data[].holder_address.addressLine2", "missing field"},
		}},
		"null label":           {`"team A"`, `null`, func(c *cardwire.Card) { c.Label = "" }, nil},
		"null remark":          {`"keep"`, `null`, func(c *cardwire.Card) { c.Remark = "" }, nil},
		"null reason":          {`"lost"`, `null`, func(c *cardwire.Card) { c.DestroyReason = "" }, nil},
		"null waybill number":  {`"WB-9"`, `null`, func(c *cardwire.Card) { c.PlatformWaybillNumber = "" }, nil},
		"null waybill company": {`"CTT"`, `null`, func(c *cardwire.Card) { c.PlatformWaybillCompany = "" }, nil},
		"null nickname": {`"travel"`, `null`, func(c *cardwire.Card) { c.Nickname = "" },
			[]cardwire.Drift{{"data.data[].nickname", "null for string"}}},
		"empty phone":               {`"912345678"`, `""`, func(c *cardwire.Card) { c.HolderPhone = "" }, nil},
		"empty phone code":          {`"+351"`, `""`, func(c *cardwire.Card) { c.HolderPhoneCode = "" }, nil},
		"phone code without a plus": {`"+351"`, `"351"`, func(c *cardwire.Card) { c.HolderPhoneCode = "351" }, nil},
		"empty mail address":        {`"maria@example.com"`, `""`, func(c *cardwire.Card) { c.HolderEmail = "" }, nil},
		"BIN of eight digits":       {`"493193"`, `"49319300"`, func(c *cardwire.Card) { c.CardBIN = "49319300" }, nil},
		"amount of another scale":   {`"123.450"`, `"-0.5"`, func(c *cardwire.Card) { c.Available = wiretest.Dec("-0.5") }, nil},
		"amount without a fraction": {`"123.450"`, `"123"`, func(c *cardwire.Card) { c.Available = wiretest.Dec("123") }, nil},
		"number with an exponent":   {`7.25`, `725e-2`, func(c *cardwire.Card) { c.Pending = wiretest.Dec("7.25") }, nil},
		"amount beyond 64 bits":     {`"123.450"`, `"12345678901234567890.123"`, func(c *cardwire.Card) { c.Available = wiretest.Dec("12345678901234567890.123") }, nil},
		"status that is not listed": {`"status":1,`, `"status":9,`, func(c *cardwire.Card) { c.Status = 9 }, nil},
		"status below zero":         {`"status":1,`, `"status":-1,`, func(c *cardwire.Card) { c.Status = cardwire.CardLocked }, nil},
		"amount as a number":        {`"123.450"`, `123.450`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].available", "number for string"}}},
		"fee as a number":           {`"1.50"`, `1.5`, func(c *cardwire.Card) { c.Fee = wiretest.Dec("1.5") }, []cardwire.Drift{{"data.data[].fee", "number for string"}}},
		"number as an amount":       {`7.25`, `"7.25"`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].pending", "string for number"}}},
		"id as a number":            {`"card-1"`, `12`, func(c *cardwire.Card) { c.ID = "12" }, []cardwire.Drift{{"data.data[].id", "number for string"}}},
		"trade id as a number":      {`"trade-2"`, `12`, func(c *cardwire.Card) { c.TradeID = "12" }, []cardwire.Drift{{"data.data[].trade_id", "number for string"}}},
		"card BIN as a number":      {`"493193"`, `493193`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].card_bin", "number for string"}}},
		"card number as a number":   {`"4931930000001234"`, `4931930000001234`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].card_no", "number for string"}}},
		"phone as a number":         {`"912345678"`, `912345678`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].holder_phone", "number for string"}}},
		"phone code as a number":    {`"+351"`, `351`, func(c *cardwire.Card) { c.HolderPhoneCode = "351" }, []cardwire.Drift{{"data.data[].holder_phone_code", "number for string"}}},
		"postal code as a number":   {`"1100-048"`, `1100`, func(c *cardwire.Card) { c.HolderAddress.PostalCode = "1100" }, []cardwire.Drift{{"data.data[].holder_address.postalCode", "number for string"}}},
		"BIN identifier as text":    {`37`, `"37"`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].bin_id", "string for number"}}},
		"BIN identifier as null":    {`37`, `null`, func(c *cardwire.Card) { c.BINID = 0 }, []cardwire.Drift{{"data.data[].bin_id", "null for number"}}},
		"status as text":            {`"status":1,`, `"status":"1",`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].status", "string for number"}}},
		"flag 0":                    {`"physical":1`, `"physical":0`, func(c *cardwire.Card) { c.Physical = false }, nil},
		"flag as text":              {`"physical":1`, `"physical":"1"`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].physical", "string for number"}}},
		"flag 0 as text":            {`"physical":1`, `"physical":"0"`, func(c *cardwire.Card) { c.Physical = false }, []cardwire.Drift{{"data.data[].physical", "string for number"}}},
		"flag true":                 {`"physical":1`, `"physical":true`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].physical", "boolean for number"}}},
		"flag false":                {`"physical":1`, `"physical":false`, func(c *cardwire.Card) { c.Physical = false }, []cardwire.Drift{{"data.data[].physical", "boolean for number"}}},
		"flag 2":                    {`"physical":1`, `"physical":2`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].physical", "flag other than 0 and 1"}}},
		"flag null":                 {`"physical":1`, `"physical":null`, func(c *cardwire.Card) { c.Physical = false }, []cardwire.Drift{{"data.data[].physical", "null for number"}}},
		"empty expiry":              {`"08/2027"`, `""`, func(c *cardwire.Card) { c.Expiry = cardwire.Expiry{} }, []cardwire.Drift{{"data.data[].expire_date", "empty string"}}},
		"empty creation time":       {`"2026-01-02 03:04:05"`, `""`, func(c *cardwire.Card) { c.CreateTime = cardwire.DateTime{} }, []cardwire.Drift{{"data.data[].create_time", "empty string"}}},
		"date of zeros": {
			`"2026-01-02 03:04:05"`, `"0000-00-00"`, func(c *cardwire.Card) { c.CreateTime = cardwire.DateTime{} },
			[]cardwire.Drift{{"data.data[].create_time", "invalid date"}},
		},
		"date and time of zeros": {
			`"2026-06-07 08:09:10"`, `"0000-00-00 00:00:00"`, func(c *cardwire.Card) { c.UpdateTime = cardwire.DateTime{} },
			[]cardwire.Drift{{"data.data[].update_time", "invalid date"}},
		},
		"day that there is not": {
			`"2026-06-07 08:09:10"`, `"2026-06-31 08:09:10"`, func(c *cardwire.Card) { c.UpdateTime = cardwire.DateTime{} },
			[]cardwire.Drift{{"data.data[].update_time", "invalid date"}},
		},
		"leap second": {
			`"2026-01-02 03:04:05"`, `"2026-01-02 23:59:60"`, func(c *cardwire.Card) { c.CreateTime = cardwire.DateTime{} },
			[]cardwire.Drift{{"data.data[].create_time", "invalid date"}},
		},
		"day without a time": {
			`"2026-01-02 03:04:05"`, `"2026-01-02"`, func(c *cardwire.Card) { c.CreateTime = cardwire.DateTime{} },
			[]cardwire.Drift{{"data.data[].create_time", "invalid date"}},
		},
		"month that there is not": {
			`"08/2027"`, `"13/2027"`, func(c *cardwire.Card) { c.Expiry = cardwire.Expiry{} },
			[]cardwire.Drift{{"data.data[].expire_date", "invalid date"}},
		},
		"half a masked month": {
			`"08/2027"`, `"**/2027"`, func(c *cardwire.Card) { c.Expiry = cardwire.Expiry{} },
			[]cardwire.Drift{{"data.data[].expire_date", "invalid date"}},
		},
		"null time":                 {`"2026-06-07 08:09:10"`, `null`, func(c *cardwire.Card) { c.UpdateTime = cardwire.DateTime{} }, []cardwire.Drift{{"data.data[].update_time", "null for string"}}},
		"empty time":                {`"2026-06-07 08:09:10"`, `""`, func(c *cardwire.Card) { c.UpdateTime = cardwire.DateTime{} }, []cardwire.Drift{{"data.data[].update_time", "empty string"}}},
		"null expiry":               {`"08/2027"`, `null`, func(c *cardwire.Card) { c.Expiry = cardwire.Expiry{} }, []cardwire.Drift{{"data.data[].expire_date", "null for string"}}},
		"missing nickname":          {`"nickname":"travel",`, ``, func(c *cardwire.Card) { c.Nickname = "" }, []cardwire.Drift{{"data.data[].nickname", "missing field"}}},
		"missing status":            {`"status":1,`, ``, func(c *cardwire.Card) { c.Status = 0 }, []cardwire.Drift{{"data.data[].status", "missing field"}}},
		"unknown field":             {`"fee":`, `"4931930000001234":[{"a":null}],"fee":`, func(*cardwire.Card) {}, []cardwire.Drift{{"data.data[].*", "unknown field"}}},
		"field in upper case":       {`"nickname"`, `"Nickname"`, func(c *cardwire.Card) { c.Nickname = "" }, []cardwire.Drift{{"data.data[].*", "unknown field"}, {"data.data[].nickname", "missing field"}}},
		"fields of the single form": {`"fee":`, `"account_status":5,"fee":`, func(c *cardwire.Card) { c.AccountStatus = 5 }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := listedCardWanted(t)
			tc.change(&want)
			page := &cardwire.CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []cardwire.Card{want}}
			wiretest.ReadsQuirk(t, wiretest.Anything, wiretest.Page(wiretest.Edited(t, wiretest.ListedCard, tc.old, tc.replacement)), listAll, page, tc.drift)
		})
	}
}

// listAll and ofCard give methods with a parameter the form of those without.

func listAll(c *cardwire.Client, ctx context.Context, opts ...cardwire.CallOption) (*cardwire.CardPage, error) { //nolint:revive // a method's form
	return c.ListCards(ctx, cardwire.ListCardsParams{}, opts...)
}

func ofCard[T any](read func(*cardwire.Client, context.Context, string, ...cardwire.CallOption) (T, error)) func(*cardwire.Client, context.Context, ...cardwire.CallOption) (T, error) {
	return func(c *cardwire.Client, ctx context.Context, opts ...cardwire.CallOption) (T, error) {
		return read(c, ctx, "card-1", opts...)
	}
}

func TestSingleCardQuirks(t *testing.T) {
	t.Parallel()
	const scenes = `[{"name":"online","channel_id":71},{"name":"shop","channel_id":72}]`
	cases := map[string]struct {
		old, replacement string
		change           func(*cardwire.Card)
		drift            []cardwire.Drift
	}{
		"no scenes": {scenes, `[]`, func(c *cardwire.Card) { c.ConsumptionSceneConfig = []cardwire.ConsumptionScene{} }, nil},
		"null scenes": {scenes, `null`, func(c *cardwire.Card) { c.ConsumptionSceneConfig = nil },
			[]cardwire.Drift{{"data.consumption_scene_config", "null for array"}}},
		"channel as text": {`"channel_id":71`, `"channel_id":"71"`, func(*cardwire.Card) {},
			[]cardwire.Drift{{"data.consumption_scene_config[].channel_id", "string for number"}}},
		"scene without a name": {`"name":"shop",`, ``, func(c *cardwire.Card) { c.ConsumptionSceneConfig[1].Name = "" },
			[]cardwire.Drift{{"data.consumption_scene_config[].name", "missing field"}}},
		"missing account status": {`"account_status":5,`, ``, func(c *cardwire.Card) { c.AccountStatus = 0 },
			[]cardwire.Drift{{"data.account_status", "missing field"}}},
		"fields of the list": {`"fee":`, `"bin_id":37,"nickname":"travel","fee":`, func(c *cardwire.Card) { c.BINID, c.Nickname = 37, "travel" }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := singleCardWanted(t)
			tc.change(&want)
			response := wiretest.Success(wiretest.Edited(t, wiretest.SingleCard, tc.old, tc.replacement))
			wiretest.ReadsQuirk(t, wiretest.Anything, response, ofCard((*cardwire.Client).GetCard), &want, tc.drift)
		})
	}
}

func TestFieldsMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, wiretest.Anything, `{"data":{"data":[{"platform_waybill_company":"CTT","nickname":"travel","id":"card-1",`+
		`"status":1,"pending":7.25,"trade_id":"trade-2","frozen":3,"label":"team A","available":"123.450",`+
		`"physical_status":2,"bin_id":37,"fee":"1.50","card_bin":"493193","cvv":"123","card_no":"4931930000001234",`+
		`"holder_address":{"addressLine2":"2 Esq","state":"Lisboa","city":"Lisbon","addressLine1":"Rua Augusta 5","postalCode":"1100-048","country":"PT"},`+
		`"currency":"USD","update_time":"2026-06-07 08:09:10","create_time":"2026-01-02 03:04:05","expire_date":"08/2027",`+
		`"holder_username":"Maria Silva","holder_phone_code":"+351","remark":"keep","destory_reason":"lost",`+
		`"holder_email":"maria@example.com","platform_waybill_number":"WB-9","deliver_status":3,"physical":1,`+
		`"holder_phone":"912345678"}],"last_page":3,"current_page":1,"total":41,"per_page":20},"msg":"success","code":200}`,
		cardwire.WithStrictDrift())
	got, err := c.ListCards(t.Context(), cardwire.ListCardsParams{})
	require.NoError(t, err)
	assert.Equal(t, &cardwire.CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []cardwire.Card{listedCardWanted(t)}}, got)
}

func TestCardSecretsQuirks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		old, replacement string
		change           func(*cardwire.CardSecrets)
		drift            []cardwire.Drift
	}{
		"escaped ciphertext": {`q83vAQ==`, `q8\/vAQ==`, func(s *cardwire.CardSecrets) { s.PAN = wiretest.EncryptedPAN(t, "q8/vAQ==") }, nil},
		"null number":        {`"493193******1234"`, `null`, func(s *cardwire.CardSecrets) { s.Number = cardwire.CardNumber{} }, []cardwire.Drift{{"data.card_no", "null for string"}}},
		"missing CVV":        {`"cvv":"***",`, ``, func(s *cardwire.CardSecrets) { s.CVV = cardwire.CVV{} }, []cardwire.Drift{{"data.cvv", "missing field"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := secretsWanted(t)
			tc.change(&want)
			response := wiretest.Success(wiretest.Edited(t, wiretest.CardSecrets, tc.old, tc.replacement))
			wiretest.ReadsQuirk(t, wiretest.Anything, response, ofCard((*cardwire.Client).GetCardSecrets), &want, tc.drift)
		})
	}
}

// A page that lacks one of these is no page, and a card without them no card:
// a zero in their place would be a lie about money.
func TestUnreadableCards(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ old, replacement, path string }{
		"card without id":         {`"id":"card-1",`, ``, "data.data[].id"},
		"null id":                 {`"id":"card-1"`, `"id":null`, "data.data[].id"},
		"empty id":                {`"id":"card-1"`, `"id":""`, "data.data[].id"},
		"id blank":                {`"id":"card-1"`, `"id":" "`, "data.data[].id"},
		"id true":                 {`"id":"card-1"`, `"id":true`, "data.data[].id"},
		"id 1.5":                  {`"id":"card-1"`, `"id":1.5`, "data.data[].id"},
		"available missing":       {`"available":"123.450",`, ``, "data.data[].available"},
		"available null":          {`"123.450"`, `null`, "data.data[].available"},
		"available empty":         {`"123.450"`, `""`, "data.data[].available"},
		"available no number":     {`"123.450"`, `"1,234.50"`, "data.data[].available"},
		"available with exponent": {`"123.450"`, `"1e3"`, "data.data[].available"},
		"available of 41 digits":  {`"123.450"`, `"12345678901234567890123456789012345678.901"`, "data.data[].available"},
		"pending missing":         {`"pending":7.25,`, ``, "data.data[].pending"},
		"pending null":            {`7.25`, `null`, "data.data[].pending"},
		"pending true":            {`7.25`, `true`, "data.data[].pending"},
		"pending no number":       {`7.25`, `"seven"`, "data.data[].pending"},
		"frozen missing":          {`"frozen":3,`, ``, "data.data[].frozen"},
		"frozen null":             {`"frozen":3`, `"frozen":null`, "data.data[].frozen"},
		"frozen a list":           {`"frozen":3`, `"frozen":[3]`, "data.data[].frozen"},
		"fee missing":             {`"fee":"1.50",`, ``, "data.data[].fee"},
		"fee null":                {`"1.50"`, `null`, "data.data[].fee"},
		"fee no number":           {`"1.50"`, `"free"`, "data.data[].fee"},
		"letters in the number":   {`4931930000001234`, `49319300000012ab`, "data.data[].card_no"},
		"number of 32 digits":     {`4931930000001234`, strings.Repeat("4", 32), "data.data[].card_no"},
		"letters in the CVV":      {`"123"`, `"12a"`, "data.data[].cvv"},
		"CVV of eight digits":     {`"123"`, `"12345678"`, "data.data[].cvv"},
		"month as a number":       {`"08/2027"`, `82027`, "data.data[].expire_date"},
		"time as a number":        {`"2026-06-07 08:09:10"`, `1780819750`, "data.data[].update_time"},
		"status no number":        {`"status":1,`, `"status":"frozen",`, "data.data[].status"},
		"status with a fraction":  {`"status":1,`, `"status":1.0,`, "data.data[].status"},
		"flag as other text":      {`"physical":1`, `"physical":"2"`, "data.data[].physical"},
		"address with a row":      {`{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"}`, `["Lisbon"]`, "data.data[].holder_address[]"},
		"address as text":         {`{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"}`, `""`, "data.data[].holder_address"},
		"total missing":           {`"total":41,`, ``, "data.total"},
		"total null":              {`"total":41`, `"total":null`, "data.total"},
		"total below zero":        {`"total":41`, `"total":-1`, "data.total"},
		"current page missing":    {`"current_page":1,`, ``, "data.current_page"},
		"current page null":       {`"current_page":1`, `"current_page":null`, "data.current_page"},
		"last page missing":       {`"last_page":3,`, ``, "data.last_page"},
		"last page null":          {`"last_page":3`, `"last_page":null`, "data.last_page"},
		"rows missing":            {`,"data":[` + wiretest.ListedCard + `]`, ``, "data.data"},
		"rows null":               {`[` + wiretest.ListedCard + `]`, `null`, "data.data"},
		"rows an object":          {`[` + wiretest.ListedCard + `]`, `{}`, "data.data"},
		"a row that is null":      {wiretest.ListedCard, `null`, "data.data[]"},
		"the page an array":       {wiretest.Page(wiretest.ListedCard), wiretest.Success(`[]`), "data"},
		"the page null":           {wiretest.Page(wiretest.ListedCard), wiretest.Success(`null`), "data"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, wiretest.Anything, wiretest.Edited(t, wiretest.Page(wiretest.ListedCard), tc.old, tc.replacement))
			got, err := c.ListCards(t.Context(), cardwire.ListCardsParams{})
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			wiretest.UnreadableAt(t, err, tc.path)
		})
	}
}

func TestUnreadableSingleCardsAndSecrets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ old, replacement, path string }{
		"card without id":     {`"id":"card-1",`, ``, "data.id"},
		"available missing":   {`"available":"123.450",`, ``, "data.available"},
		"fee null":            {`"1.50"`, `null`, "data.fee"},
		"scenes as an object": {`[{"name":"online","channel_id":71},{"name":"shop","channel_id":72}]`, `{}`, "data.consumption_scene_config"},
		"the card an array":   {wiretest.SingleCard, `[]`, "data"},
		"the card false":      {wiretest.SingleCard, `false`, "data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(wiretest.Edited(t, wiretest.SingleCard, tc.old, tc.replacement))).GetCard(t.Context(), "card-1")
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			wiretest.UnreadableAt(t, err, tc.path)
		})
	}
	for name, tc := range map[string]struct{ old, replacement, path string }{
		"no ciphertext":         {`,"pan":"q83vAQ=="`, ``, "data.pan"},
		"empty ciphertext":      {`"q83vAQ=="`, `""`, "data.pan"},
		"null ciphertext":       {`"q83vAQ=="`, `null`, "data.pan"},
		"ciphertext a number":   {`"q83vAQ=="`, `12`, "data.pan"},
		"letters in the number": {`493193******1234`, `493193xxxxxx1234`, "data.card_no"},
		"the secrets null":      {wiretest.CardSecrets, `null`, "data"},
	} {
		t.Run("secrets, "+name, func(t *testing.T) {
			t.Parallel()
			got, err := wiretest.Respond(t, wiretest.Anything, wiretest.Success(wiretest.Edited(t, wiretest.CardSecrets, tc.old, tc.replacement))).GetCardSecrets(t.Context(), "card-1")
			assert.Nil(t, got)
			require.ErrorIs(t, err, cardwire.ErrUnreadable)
			wiretest.UnreadableAt(t, err, tc.path)
		})
	}
}

const (
	cardEncoded = `{"id":"card-1","trade_id":"trade-2","label":"team A","bin_id":37,"card_bin":"493193",` +
		`"card_no":"493193******1234","cvv":"***","currency":"USD","available":"123.450","pending":7.25,"frozen":3,` +
		`"expire_date":"08/2027","holder_username":"Maria Silva",` +
		`"holder_address":{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"},` +
		`"create_time":"2026-01-02 03:04:05","update_time":"2026-06-07 08:09:10","status":1,"remark":"keep",` +
		`"holder_phone":"912345678","holder_phone_code":"+351","holder_email":"maria@example.com","fee":"1.50",` +
		`"destory_reason":"lost","nickname":"travel","physical":1,"physical_status":2,"deliver_status":3,` +
		`"platform_waybill_number":"WB-9","platform_waybill_company":"CTT","account_status":5,"consumption_scene_type":6,` +
		`"consumption_scene_config":[{"name":"online","channel_id":71}]}`
	zeroCardEncoded = `{"id":"","trade_id":"","label":"","bin_id":0,"card_bin":"","card_no":"","cvv":"","currency":"",` +
		`"available":"0","pending":0,"frozen":0,"expire_date":"**/****","holder_username":"","holder_address":[],` +
		`"create_time":"","update_time":"","status":0,"remark":"","holder_phone":"","holder_phone_code":"","holder_email":"",` +
		`"fee":"0","destory_reason":"","nickname":"","physical":0,"physical_status":0,"deliver_status":0,` +
		`"platform_waybill_number":"","platform_waybill_company":"","account_status":0,"consumption_scene_type":0,` +
		`"consumption_scene_config":[]}`
)

func TestCardTypesEncodeUnderTheWireNames(t *testing.T) {
	t.Parallel()
	card := listedCardWanted(t)
	card.AccountStatus, card.ConsumptionSceneType = 5, 6
	card.ConsumptionSceneConfig = []cardwire.ConsumptionScene{{Name: "online", ChannelID: 71}}
	wiretest.NoZeroField(t, card)
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"card":      {card, cardEncoded},
		"pointer":   {&card, cardEncoded},
		"zero card": {cardwire.Card{}, zeroCardEncoded},
		"page": {
			cardwire.CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []cardwire.Card{card}},
			`{"total":41,"per_page":20,"current_page":1,"last_page":3,"data":[` + cardEncoded + `]}`,
		},
		"empty page": {cardwire.CardPage{}, `{"total":0,"per_page":0,"current_page":0,"last_page":0,"data":[]}`},
		"scene":      {cardwire.ConsumptionScene{Name: "online", ChannelID: 71}, `{"name":"online","channel_id":71}`},
		"secrets":    {secretsWanted(t), `{"card_no":"493193******1234","cvv":"***","expire_date":"**/****","pan":"***"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(tc.value)
			require.NoError(t, err)
			assert.Equal(t, tc.want, string(text))
		})
	}
}

func TestCardTypesDecodeAsStrictlyAsAResponse(t *testing.T) {
	t.Parallel()
	t.Run("listed card", func(t *testing.T) {
		t.Parallel()
		var card cardwire.Card
		require.NoError(t, json.Unmarshal([]byte(wiretest.ListedCard), &card))
		assert.Equal(t, listedCardWanted(t), card)
	})
	t.Run("single card", func(t *testing.T) {
		t.Parallel()
		var card cardwire.Card
		require.NoError(t, json.Unmarshal([]byte(wiretest.SingleCard), &card))
		assert.Equal(t, singleCardWanted(t), card)
	})
	t.Run("page", func(t *testing.T) {
		t.Parallel()
		var page cardwire.CardPage
		require.NoError(t, json.Unmarshal([]byte(`{"total":41,"per_page":20,"current_page":2,"last_page":3,"data":[`+wiretest.ListedCard+`]}`), &page))
		assert.Equal(t, cardwire.CardPage{Total: 41, PerPage: 20, CurrentPage: 2, LastPage: 3, Cards: []cardwire.Card{listedCardWanted(t)}}, page)
	})
	t.Run("secrets", func(t *testing.T) {
		t.Parallel()
		var secrets cardwire.CardSecrets
		require.NoError(t, json.Unmarshal([]byte(wiretest.CardSecrets), &secrets))
		assert.Equal(t, secretsWanted(t), secrets)
	})
	t.Run("scene", func(t *testing.T) {
		t.Parallel()
		var scene cardwire.ConsumptionScene
		require.NoError(t, json.Unmarshal([]byte(`{"name":"online","channel_id":71}`), &scene))
		assert.Equal(t, cardwire.ConsumptionScene{Name: "online", ChannelID: 71}, scene)
	})
	for name, tc := range map[string]struct {
		into any
		text string
	}{
		"card without id":       {&cardwire.Card{}, `{"available":"1.000","pending":0,"frozen":0,"fee":"0.00"}`},
		"card with a repeat":    {&cardwire.Card{}, wiretest.ShortCard("a", `,"id":"b"`)},
		"page without rows":     {&cardwire.CardPage{}, `{"total":41,"per_page":20,"current_page":2,"last_page":3}`},
		"secrets without a PAN": {&cardwire.CardSecrets{}, `{"card_no":"493193******1234","cvv":"***","expire_date":"**/****"}`},
		"scene as a list":       {&cardwire.ConsumptionScene{}, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.ErrorIs(t, json.Unmarshal([]byte(tc.text), tc.into), cardwire.ErrUnreadable)
		})
	}
}

func TestCardStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[cardwire.CardStatus]struct {
		text    string
		blocked bool
	}{
		cardwire.CardLocked: {"locked", false}, cardwire.CardActive: {"active", false}, cardwire.CardFrozen: {"frozen", true},
		cardwire.CardClosed: {"closed", false}, cardwire.CardClosing: {"closing", false}, cardwire.CardSuspended: {"suspended", true},
		-2: {"CardStatus(-2)", false}, 5: {"CardStatus(5)", false},
	} {
		t.Run(want.text, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want.text, status.String())
			assert.Equal(t, want.blocked, status.Blocked())
		})
	}
}

func TestDecryptPAN(t *testing.T) {
	t.Parallel()
	errCipher := errors.New("bad padding in 4931930000001234")
	cases := map[string]struct {
		masked, pan string // as the service sent them
		decrypted   string
		err         error
		want        string // "": an error
		says        string
	}{
		"the card's number":       {"493193******1234", "q83vAQ==", "4931930000001234", nil, "4931930000001234", ""},
		"masked altogether":       {"****************", "q83vAQ==", "4931930000001234", nil, "4931930000001234", ""},
		"no number to compare":    {"", "q83vAQ==", "4931930000001234", nil, "4931930000001234", ""},
		"a number in the clear":   {"4931930000001234", "q83vAQ==", "4931930000001234", nil, "4931930000001234", ""},
		"another last digit":      {"493193******1234", "q83vAQ==", "4931930000001235", nil, "", "another card"},
		"another first digit":     {"493193******1234", "q83vAQ==", "5931930000001234", nil, "", "another card"},
		"another in the clear":    {"4931930000001234", "q83vAQ==", "4931930000101234", nil, "", "another card"},
		"another length":          {"493193******1234", "q83vAQ==", "493193000001234", nil, "", "another card"},
		"too short for a number":  {"", "q83vAQ==", "49319300000", nil, "", "not a card number"},
		"too long for a number":   {"", "q83vAQ==", "49319300000000000000", nil, "", "not a card number"},
		"no digits":               {"", "q83vAQ==", "\x03\xa7!random bytes.", nil, "", "not a card number"},
		"still masked":            {"493193******1234", "q83vAQ==", "493193******1234", nil, "", "not a card number"},
		"nothing":                 {"493193******1234", "q83vAQ==", "", nil, "", "not a card number"},
		"the function fails":      {"493193******1234", "q83vAQ==", "4931930000001234", errCipher, "", "could not be decrypted"},
		"ciphertext is no base64": {"493193******1234", "***", "4931930000001234", nil, "", "not base64"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var secrets cardwire.CardSecrets
			require.NoError(t, json.Unmarshal([]byte(`{"card_no":"`+tc.masked+`","cvv":"***","expire_date":"**/****","pan":"`+tc.pan+`"}`), &secrets))
			pan := []byte(tc.decrypted)
			got, err := secrets.DecryptPAN(func(ciphertext []byte) ([]byte, error) {
				assert.Equal(t, []byte{0xab, 0xcd, 0xef, 0x01}, ciphertext)
				return pan, tc.err
			})
			if tc.pan == "q83vAQ==" {
				assert.Equal(t, make([]byte, len(tc.decrypted)), pan, "what the function returns is cleared")
			}
			assert.Equal(t, tc.want, got.Reveal())
			if tc.want != "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
			for _, verb := range []string{"%v", "%+v", "%#v"} {
				printed := fmt.Sprintf(verb, err)
				assert.NotContains(t, printed, "493193")
				assert.NotContains(t, printed, "00001234")
			}
			if tc.err != nil {
				assert.ErrorIs(t, err, errCipher)
			}
		})
	}
}

func TestDecryptPANNeedsAFunction(t *testing.T) {
	t.Parallel()
	got, err := secretsWanted(t).DecryptPAN(nil)
	require.EqualError(t, err, "cardwire: DecryptPAN: the function is nil")
	assert.Zero(t, got)
}

// 0 is the status of an active card: no value must not look like it.
func TestACardWhoseStatusIsNullIsUnreadable(t *testing.T) {
	t.Parallel()
	_, err := wiretest.Respond(t, wiretest.Anything, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"status":null`))).ListCards(t.Context(), cardwire.ListCardsParams{})
	require.ErrorIs(t, err, cardwire.ErrUnreadable)
	require.ErrorContains(t, err, "data.data[].status: expected a status")
}
