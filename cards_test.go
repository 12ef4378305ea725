package cardwire

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
)

const (
	listedCardText = `{"id":"card-1","trade_id":"trade-2","label":"team A","bin_id":37,"card_bin":"493193",` +
		`"card_no":"4931930000001234","cvv":"123","currency":"USD","available":"123.450","pending":7.25,"frozen":3,` +
		`"expire_date":"08/2027","holder_username":"Maria Silva",` +
		`"holder_address":{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"},` +
		`"create_time":"2026-01-02 03:04:05","update_time":"2026-06-07 08:09:10","status":1,"remark":"keep",` +
		`"holder_phone":"912345678","holder_phone_code":"+351","holder_email":"maria@example.com","fee":"1.50",` +
		`"destory_reason":"lost","nickname":"travel","physical":1,"physical_status":2,"deliver_status":3,` +
		`"platform_waybill_number":"WB-9","platform_waybill_company":"CTT"}`

	singleCardText = `{"id":"card-1","trade_id":"trade-2","label":"team A","card_bin":"493193",` +
		`"card_no":"493193******1234","cvv":"***","currency":"USD","available":"123.450","pending":7.25,"frozen":3,` +
		`"expire_date":"**/****","holder_username":"Maria Silva",` +
		`"holder_address":{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"},` +
		`"create_time":"2026-01-02 03:04:05","status":4,"holder_phone":"912345678","holder_phone_code":"351",` +
		`"holder_email":"maria@example.com","fee":"1.50","physical":1,"physical_status":2,"deliver_status":3,` +
		`"platform_waybill_number":"WB-9","platform_waybill_company":"CTT","account_status":5,` +
		`"consumption_scene_type":6,"consumption_scene_config":[{"name":"online","channel_id":71},{"name":"shop","channel_id":72}]}`

	secretsText = `{"card_no":"493193******1234","cvv":"***","expire_date":"**/****","pan":"q83vAQ=="}`
)

func pageText(cards string) string {
	return success(`{"total":41,"per_page":20,"current_page":1,"last_page":3,"data":[` + cards + `]}`)
}

// commonCard is what both forms of a card say.
func commonCard() Card {
	return Card{
		ID: "card-1", TradeID: "trade-2", Label: "team A", CardBIN: "493193", Currency: "USD",
		Available: dec("123.450"), Pending: dec("7.25"), Frozen: dec("3"), Fee: dec("1.50"),
		HolderUsername: "Maria Silva",
		HolderAddress: &Address{
			City: "Lisbon", State: "Lisboa", Country: "PT", PostalCode: "1100-048",
			Line1: "Rua Augusta 5", Line2: "2 Esq",
		},
		HolderPhone: "912345678", HolderEmail: "maria@example.com",
		CreateTime: DateTime{Date{2026, time.January, 2}, 3, 4, 5},
		Physical:   true, PhysicalStatus: 2, DeliverStatus: 3,
		PlatformWaybillNumber: "WB-9", PlatformWaybillCompany: "CTT",
	}
}

func listedCardWanted(t *testing.T) Card {
	t.Helper()
	card := commonCard()
	card.BINID = 37
	card.Number, card.CVV = sealedNumber(t, "4931930000001234"), sealedCVV(t, "123")
	card.Expiry = Expiry{2027, time.August}
	card.HolderPhoneCode = "+351"
	card.UpdateTime = DateTime{Date{2026, time.June, 7}, 8, 9, 10}
	card.Status = CardFrozen
	card.Remark, card.DestroyReason, card.Nickname = "keep", "lost", "travel"
	return card
}

func singleCardWanted(t *testing.T) Card {
	t.Helper()
	card := commonCard()
	card.Number, card.CVV = sealedNumber(t, "493193******1234"), sealedCVV(t, "***")
	card.HolderPhoneCode = "351"
	card.Status = CardSuspended
	card.AccountStatus, card.ConsumptionSceneType = 5, 6
	card.ConsumptionSceneConfig = []ConsumptionScene{{Name: "online", ChannelID: 71}, {Name: "shop", ChannelID: 72}}
	return card
}

func secretsWanted(t *testing.T) CardSecrets {
	t.Helper()
	return CardSecrets{Number: sealedNumber(t, "493193******1234"), CVV: sealedCVV(t, "***"), PAN: sealPAN([]byte("q83vAQ=="))}
}

func TestListCardsReadsEveryMember(t *testing.T) {
	t.Parallel()
	want := &CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []Card{listedCardWanted(t)}}
	noZeroField(t, want, "Cards[].AccountStatus", "Cards[].ConsumptionSceneType", "Cards[].ConsumptionSceneConfig")

	c := answered(t, "GET /shop/api/v1/cards", pageText(listedCardText), WithStrictDrift())
	got, err := c.ListCards(t.Context(), ListCardsParams{})
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, "4931930000001234", got.Cards[0].Number.Reveal())
	assert.Equal(t, "123", got.Cards[0].CVV.Reveal())
}

func TestGetCardReadsEveryMember(t *testing.T) {
	t.Parallel()
	want := singleCardWanted(t)
	noZeroField(t, want, "BINID", "Expiry", "UpdateTime", "Remark", "DestroyReason", "Nickname")

	c := answered(t, "GET /shop/api/v1/cards/info?id=card-1", success(singleCardText), WithStrictDrift())
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
	c := answered(t, "GET /shop/api/v1/cards/info?id=order-9", success(singleCardText), WithStrictDrift())
	got, err := c.GetCardByOrder(t.Context(), "order-9")
	require.NoError(t, err)
	assert.Equal(t, &want, got)
}

func TestGetCardEscapesTheIdentifier(t *testing.T) {
	t.Parallel()
	profile := DefaultProfile()
	profile.CardIDParam = "card id"
	c := answered(t, "GET /shop/api/v1/cards/info?card+id=a%3Fb%26c%3Dd+%23%25%2B%C3%A9",
		success(edited(t, singleCardText, `"id":"card-1"`, `"id":"a?b&c=d #%+é"`)), WithProfile(func(own *Profile) { *own = profile }))
	got, err := c.GetCard(t.Context(), "a?b&c=d #%+é")
	require.NoError(t, err)
	assert.Equal(t, "a?b&c=d #%+é", got.ID)
}

func TestGetCardReturnsAnotherCardWithAnError(t *testing.T) {
	t.Parallel()
	want := singleCardWanted(t)
	c := answered(t, "GET /shop/api/v1/cards/info?id=card-2", success(singleCardText))
	got, err := c.GetCard(t.Context(), "card-2")
	require.ErrorIs(t, err, ErrParameterIgnored)
	require.ErrorContains(t, err, "CardIDParam")
	assert.Equal(t, OutcomeExecuted, failure(t, err).Outcome)
	assert.Equal(t, &want, got)
}

func TestGetCardTrustsRepliesWhereToldTo(t *testing.T) {
	t.Parallel()
	profile := DefaultProfile()
	profile.TrustReplies = true
	c := answered(t, "GET /shop/api/v1/cards/info?id=card-2", success(singleCardText), WithProfile(func(own *Profile) { *own = profile }))
	got, err := c.GetCard(t.Context(), "card-2")
	require.NoError(t, err)
	assert.Equal(t, "card-1", got.ID)
}

func TestGetCardSecretsReadsEveryMember(t *testing.T) {
	t.Parallel()
	want := secretsWanted(t)
	noZeroField(t, want, "Expiry")

	c := answered(t, "POST /shop/api/v1/cards/private\napplication/x-www-form-urlencoded\n\ncardId=card+1%2B",
		success(secretsText), WithStrictDrift())
	got, err := c.GetCardSecrets(t.Context(), "card 1+")
	require.NoError(t, err)
	assert.Equal(t, &want, got)
	assert.Equal(t, "q83vAQ==", got.PAN.Reveal())
	assert.True(t, got.CVV.IsMasked())
}

// The interface masks the expiry. Where it does not, it must be read.
func TestGetCardSecretsReadsAnExpiryThatIsNotMasked(t *testing.T) {
	t.Parallel()
	c := answered(t, anything, success(edited(t, secretsText, `**/****`, `09/2028`)))
	got, err := c.GetCardSecrets(t.Context(), "card-1")
	require.NoError(t, err)
	assert.Equal(t, Expiry{2028, time.September}, got.Expiry)
}

const operationID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

func freezeRequest(card, reference string) string {
	return "POST /shop/api/v1/cards/suspend\nmultipart/form-data\n\n" +
		"Content-Disposition: form-data; name=\"cardId\"\n\n" + card + "\n\n" +
		"Content-Disposition: form-data; name=\"clientTransactionId\"\n\n" + reference
}

func TestFreezeCardSendsTheReferenceThatItIsGiven(t *testing.T) {
	t.Parallel()
	c := answered(t, freezeRequest("card-1", freezeID), success(`"`+operationID+`"`), WithStrictDrift())
	got, err := c.FreezeCard(t.Context(), FreezeCardParams{CardID: "card-1", ClientTransactionID: freezeID})
	require.NoError(t, err)
	assert.Equal(t, &CardOperation{ID: operationID, ClientTransactionID: freezeID}, got)
	noZeroField(t, got)
}

func TestACardOperationHasTheNamesOfTheWire(t *testing.T) {
	t.Parallel()
	const text = `{"id":"` + operationID + `","clientTransactionId":"` + freezeID + `"}`
	want := CardOperation{ID: operationID, ClientTransactionID: freezeID}
	assert.Equal(t, text, marshalledJSON(t, want))
	assert.Equal(t, text, marshalledJSON(t, &want))
	var got CardOperation
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	assert.Equal(t, want, got)
	err := json.Unmarshal([]byte(`{"id":7}`), new(CardOperation))
	require.NoError(t, err)
	err = json.Unmarshal([]byte(`{"id":{}}`), new(CardOperation))
	assert.EqualError(t, err, "cardwire: cannot unmarshal CardOperation: id: expected a string")
}

// What a program keeps itself is not a response, and has no base URL.
func TestAMalformedCardOfACacheIsNoResponse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"id":"c1"}`:                  "cardwire: cannot unmarshal Card: available is missing",
		`[]`:                           "cardwire: cannot unmarshal Card: expected an object",
		`{"id":"c1","id":"c2"}`:        "cardwire: cannot unmarshal Card: not strict JSON: a field name appears twice",
		`<!doctype html><html></html>`: "cardwire: cannot unmarshal Card: not strict JSON: HTML",
		`{"id":"c1"`:                   "cardwire: cannot unmarshal Card: not strict JSON: it ends too early",
	} {
		err := new(Card).UnmarshalJSON([]byte(text))
		require.EqualError(t, err, want, text)
		require.ErrorIs(t, err, ErrUnreadable, text)
	}
	err := new(TransferParams).UnmarshalJSON([]byte(`{"merchantOrderNo":1}`))
	require.EqualError(t, err, "cardwire: cannot unmarshal TransferParams: *: expected a string")
	err = new(BIN).UnmarshalJSON([]byte(`{"id":1,"bin":""}`))
	require.EqualError(t, err, "cardwire: cannot unmarshal BIN: bin: expected an identifier")
}

const uuid4 = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

func TestFreezeCardMakesAReference(t *testing.T) {
	t.Parallel()
	reply := exchange{want: anything, reply: success(`"` + operationID + `"`)}
	s := script(t, reply, reply)
	c := clientOn(t, s)
	first, err := c.FreezeCard(t.Context(), FreezeCardParams{CardID: "card-1"})
	require.NoError(t, err)
	second, err := c.FreezeCard(t.Context(), FreezeCardParams{CardID: "card-1"})
	require.NoError(t, err)

	assert.Regexp(t, "^"+uuid4+"$", first.ClientTransactionID)
	assert.Equal(t, freezeRequest("card-1", first.ClientTransactionID), s.requests[0])
	assert.Equal(t, freezeRequest("card-1", second.ClientTransactionID), s.requests[1])
	assert.NotEqual(t, first.ClientTransactionID, second.ClientTransactionID)
}

func TestFreezeCardReturnsTheReferenceOfAFailure(t *testing.T) {
	t.Parallel()
	s := script(t, exchange{want: anything, status: 500, reply: "down"})
	c := clientOn(t, s)
	got, err := c.FreezeCard(t.Context(), FreezeCardParams{CardID: "card-1"})
	assert.Nil(t, got)
	require.ErrorIs(t, err, ErrOutcomeUnknown)
	reference := failure(t, err).Reference
	assert.Regexp(t, "^"+uuid4+"$", reference)
	assert.Equal(t, freezeRequest("card-1", reference), s.requests[0])
}

func TestFreezeCardWithoutAnOperationIDIsUnknown(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`null`, `""`, `true`, `{}`, `["` + operationID + `"]`} {
		t.Run(data, func(t *testing.T) {
			t.Parallel()
			c := answered(t, anything, success(data))
			got, err := c.FreezeCard(t.Context(), FreezeCardParams{CardID: "card-1", ClientTransactionID: freezeID})
			assert.Nil(t, got)
			require.ErrorIs(t, err, ErrUnreadable)
			require.ErrorIs(t, err, ErrOutcomeUnknown)
			assert.Equal(t, StepReconcile, NextStep(err))
		})
	}
}

func TestCancelAndRetryNameTheirAction(t *testing.T) {
	t.Parallel()
	const upper = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"
	other := DefaultProfile()
	other.RetryAction = "re do"
	cases := map[string]struct {
		call    func(*Client) error
		profile Profile
		want    string
	}{
		"cancel": {
			func(c *Client) error { return c.CancelOperation(t.Context(), operationID) }, DefaultProfile(),
			"client_transaction_id=3f2504e0-4f89-41d3-9a0c-0305e82c3301&type=cancel",
		},
		"cancel, upper case": {
			func(c *Client) error { return c.CancelOperation(t.Context(), upper) }, DefaultProfile(),
			"client_transaction_id=3F2504E0-4F89-41D3-9A0C-0305E82C3301&type=cancel",
		},
		"retry": {
			func(c *Client) error { return c.RetryOperation(t.Context(), operationID) }, DefaultProfile(),
			"client_transaction_id=3f2504e0-4f89-41d3-9a0c-0305e82c3301&type=retry",
		},
		"retry, upper case": {
			func(c *Client) error { return c.RetryOperation(t.Context(), upper) }, DefaultProfile(),
			"client_transaction_id=3F2504E0-4F89-41D3-9A0C-0305E82C3301&type=retry",
		},
		"retry by another name": {
			func(c *Client) error { return c.RetryOperation(t.Context(), operationID) }, other,
			"client_transaction_id=3f2504e0-4f89-41d3-9a0c-0305e82c3301&type=re+do",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answered(t, "POST /shop/api/v1/cards/adjustAction\napplication/x-www-form-urlencoded\n\n"+tc.want,
				success(`true`), WithStrictDrift(), WithProfile(func(own *Profile) { *own = tc.profile }))
			require.NoError(t, tc.call(c))
		})
	}
}

// adjustments are the two operations that share one path.
var adjustments = map[string]func(context.Context, *Client, string) error{
	"CancelOperation": func(ctx context.Context, c *Client, id string) error { return c.CancelOperation(ctx, id) },
	"RetryOperation":  func(ctx context.Context, c *Client, id string) error { return c.RetryOperation(ctx, id) },
}

func TestAdjustmentAnswers(t *testing.T) {
	t.Parallel()
	cases := []struct {
		data    string
		outcome Outcome
		cause   error // nil: a success
		drift   []Drift
	}{
		{data: `true`},
		{data: `1`, drift: []Drift{{"data", "number for boolean"}}},
		{data: `"1"`, drift: []Drift{{"data", "string for boolean"}}},
		// It may have been done before, by a request whose answer was lost.
		{data: `false`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `0`, outcome: OutcomeUnknown, cause: ErrUnreadable, drift: []Drift{{"data", "number for boolean"}}},
		{data: `"0"`, outcome: OutcomeUnknown, cause: ErrUnreadable, drift: []Drift{{"data", "string for boolean"}}},
		{data: `"False"`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `-0`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `0.0`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `0e5`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `" false"`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `"0.0"`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `""`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `null`, outcome: OutcomeUnknown, cause: ErrUnreadable, drift: []Drift{{"data", "null for boolean"}}},
		{data: `2`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `"true"`, outcome: OutcomeUnknown, cause: ErrUnreadable},
		{data: `{}`, outcome: OutcomeUnknown, cause: ErrUnreadable},
	}
	for name, adjust := range adjustments {
		for _, tc := range cases {
			t.Run(name+" "+tc.data, func(t *testing.T) {
				t.Parallel()
				observe, drift := driftsOf()
				err := adjust(t.Context(), answered(t, anything, success(tc.data), observe), operationID)
				assert.Equal(t, tc.drift, *drift)
				if tc.cause == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, tc.cause)
				e := failure(t, err)
				assert.Equal(t, tc.outcome, e.Outcome)
				assert.Equal(t, name, e.Op)
				assert.Equal(t, operationID, e.Reference)
			})
		}
	}
}

func TestRetryOperationNeedsAnAction(t *testing.T) {
	t.Parallel()
	profile := DefaultProfile()
	profile.RetryAction = ""
	err := unasked(t, WithProfile(func(own *Profile) { *own = profile })).RetryOperation(t.Context(), operationID)
	refusedBeforehand(t, err, "Profile.RetryAction")
}

// hostileIDs are no identifiers: they would be another place, or another text,
// when they arrive.
var hostileIDs = map[string]string{
	"empty": "", "dot": ".", "dots": "..", "slash": "a/b", "only a slash": "/", "backslash": `a\b`,
	"nul": "a\x00b", "newline": "a\nb", "tab": "a\tb", "delete": "a\x7fb", "C1 control": "a\u0085b",
	"line separator": "a\u2028b", "direction override": "a\u202eb", "invalid UTF-8": "a\xffb",
	"129 bytes": strings.Repeat("a", 129),
}

func TestHostileIdentifiersAreNotSent(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *Client, string) error{
		"cardID": func(ctx context.Context, c *Client, id string) error {
			_, err := c.GetCard(ctx, id)
			return err
		},
		"orderID": func(ctx context.Context, c *Client, id string) error {
			_, err := c.GetCardByOrder(ctx, id)
			return err
		},
		"cardID of secrets": func(ctx context.Context, c *Client, id string) error {
			_, err := c.GetCardSecrets(ctx, id)
			return err
		},
		"CardID": func(ctx context.Context, c *Client, id string) error {
			_, err := c.FreezeCard(ctx, FreezeCardParams{CardID: id, ClientTransactionID: freezeID})
			return err
		},
		"SubAccountID": func(ctx context.Context, c *Client, id string) error {
			if id == "" {
				id = "." // "" selects all
			}
			_, err := c.ListCards(ctx, ListCardsParams{SubAccountID: id})
			return err
		},
	}
	profile := DefaultProfile()
	profile.SubAccountParam = "sub"
	for parameter, call := range calls {
		for name, id := range hostileIDs {
			t.Run(parameter+", "+name, func(t *testing.T) {
				t.Parallel()
				err := call(t.Context(), unasked(t, WithProfile(func(own *Profile) { *own = profile })), id)
				refusedBeforehand(t, err, strings.Fields(parameter)[0])
				if len(id) > 2 {
					assert.NotContains(t, err.Error(), id)
				}
			})
		}
	}
}

func TestTheLongestIdentifierIsSent(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 128)
	c := answered(t, "GET /shop/api/v1/cards/info?id="+id, success(edited(t, singleCardText, "card-1", id)))
	got, err := c.GetCard(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, id, got.ID)
}

func TestAdjustmentsWantAUUID(t *testing.T) {
	t.Parallel()
	ids := map[string]string{
		"bare": "3f2504e04f8941d39a0c0305e82c3301", "in braces": "{" + operationID + "}", "URN": "urn:uuid:" + operationID,
		"one digit more": operationID + "0", "one digit less": operationID[:35], "no hex": "g" + operationID[1:],
		"hyphen elsewhere": "3f2504e04-f89-41d3-9a0c-0305e82c3301", "nil UUID": "00000000-0000-0000-0000-000000000000",
		"space": " " + operationID[1:],
	}
	for operation, adjust := range adjustments {
		for name, id := range hostileIDs {
			ids[name] = id
		}
		for name, id := range ids {
			t.Run(operation+", "+name, func(t *testing.T) {
				t.Parallel()
				refusedBeforehand(t, adjust(t.Context(), unasked(t), id), "clientTransactionID")
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
			_, err := unasked(t).FreezeCard(t.Context(), FreezeCardParams{CardID: "card-1", ClientTransactionID: id})
			refusedBeforehand(t, err, "ClientTransactionID")
		})
	}
}

// quirks are the forms in which a service in PHP sends the same values.
func TestCardQuirks(t *testing.T) {
	t.Parallel()
	const address = `{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"}`
	cases := map[string]struct {
		old, replacement string
		change           func(*Card) // of the value wanted
		drift            []Drift
	}{
		"escaped slash": {`"08/2027"`, `"08\/2027"`, func(*Card) {}, nil},
		"escaped letter": {`"Maria Silva"`, `"Andr\u00e9 \ud83d\ude00"`, func(c *Card) {
			c.HolderUsername = "André 😀"
		}, nil},
		"number with a zero in front": {`"123"`, `"007"`, func(c *Card) { c.CVV = sealCVV([]byte("007")) }, nil},
		"CVV of four digits":          {`"123"`, `"1234"`, func(c *Card) { c.CVV = sealCVV([]byte("1234")) }, nil},
		"masked number":               {`4931930000001234`, `493193******1234`, func(c *Card) { c.Number = sealNumber([]byte("493193******1234")) }, nil},
		"masked CVV":                  {`"123"`, `"***"`, func(c *Card) { c.CVV = sealCVV([]byte("***")) }, nil},
		"masked expiry":               {`"08/2027"`, `"**/****"`, func(c *Card) { c.Expiry = Expiry{} }, nil},
		"no address":                  {address, `[]`, func(c *Card) { c.HolderAddress = nil }, nil},
		"no address, spaced":          {address, "[ \n]", func(c *Card) { c.HolderAddress = nil }, nil},
		"no address, as {}": {address, `{ }`, func(c *Card) { c.HolderAddress = nil },
			[]Drift{{"data.data[].holder_address", "empty object for array"}}},
		"no address, as null": {address, `null`, func(c *Card) { c.HolderAddress = nil },
			[]Drift{{"data.data[].holder_address", "null for object"}}},
		"address with little in it": {address, `{"city":"Porto"}`, func(c *Card) { c.HolderAddress = &Address{City: "Porto"} }, []Drift{
			{"data.data[].holder_address.state", "missing field"},
			{"data.data[].holder_address.country", "missing field"},
			{"data.data[].holder_address.postalCode", "missing field"},
			{"data.data[].holder_address.addressLine1", "missing field"},
			{"data.data[].holder_address.addressLine2", "missing field"},
		}},
		"null label":           {`"team A"`, `null`, func(c *Card) { c.Label = "" }, nil},
		"null remark":          {`"keep"`, `null`, func(c *Card) { c.Remark = "" }, nil},
		"null reason":          {`"lost"`, `null`, func(c *Card) { c.DestroyReason = "" }, nil},
		"null waybill number":  {`"WB-9"`, `null`, func(c *Card) { c.PlatformWaybillNumber = "" }, nil},
		"null waybill company": {`"CTT"`, `null`, func(c *Card) { c.PlatformWaybillCompany = "" }, nil},
		"null nickname": {`"travel"`, `null`, func(c *Card) { c.Nickname = "" },
			[]Drift{{"data.data[].nickname", "null for string"}}},
		"empty phone":                {`"912345678"`, `""`, func(c *Card) { c.HolderPhone = "" }, nil},
		"empty phone code":           {`"+351"`, `""`, func(c *Card) { c.HolderPhoneCode = "" }, nil},
		"phone code without a plus":  {`"+351"`, `"351"`, func(c *Card) { c.HolderPhoneCode = "351" }, nil},
		"empty mail address":         {`"maria@example.com"`, `""`, func(c *Card) { c.HolderEmail = "" }, nil},
		"BIN of eight digits":        {`"493193"`, `"49319300"`, func(c *Card) { c.CardBIN = "49319300" }, nil},
		"amount of another scale":    {`"123.450"`, `"-0.5"`, func(c *Card) { c.Available = dec("-0.5") }, nil},
		"amount without a fraction":  {`"123.450"`, `"123"`, func(c *Card) { c.Available = dec("123") }, nil},
		"number with an exponent":    {`7.25`, `725e-2`, func(c *Card) { c.Pending = dec("7.25") }, nil},
		"amount beyond 64 bits":      {`"123.450"`, `"12345678901234567890.123"`, func(c *Card) { c.Available = dec("12345678901234567890.123") }, nil},
		"status that is not listed":  {`"status":1,`, `"status":9,`, func(c *Card) { c.Status = 9 }, nil},
		"status below zero":          {`"status":1,`, `"status":-1,`, func(c *Card) { c.Status = CardLocked }, nil},
		"amount as a number":         {`"123.450"`, `123.450`, func(*Card) {}, []Drift{{"data.data[].available", "number for string"}}},
		"fee as a number":            {`"1.50"`, `1.5`, func(c *Card) { c.Fee = dec("1.5") }, []Drift{{"data.data[].fee", "number for string"}}},
		"number as an amount":        {`7.25`, `"7.25"`, func(*Card) {}, []Drift{{"data.data[].pending", "string for number"}}},
		"id as a number":             {`"card-1"`, `12`, func(c *Card) { c.ID = "12" }, []Drift{{"data.data[].id", "number for string"}}},
		"trade id as a number":       {`"trade-2"`, `12`, func(c *Card) { c.TradeID = "12" }, []Drift{{"data.data[].trade_id", "number for string"}}},
		"card BIN as a number":       {`"493193"`, `493193`, func(*Card) {}, []Drift{{"data.data[].card_bin", "number for string"}}},
		"card number as a number":    {`"4931930000001234"`, `4931930000001234`, func(*Card) {}, []Drift{{"data.data[].card_no", "number for string"}}},
		"phone as a number":          {`"912345678"`, `912345678`, func(*Card) {}, []Drift{{"data.data[].holder_phone", "number for string"}}},
		"phone code as a number":     {`"+351"`, `351`, func(c *Card) { c.HolderPhoneCode = "351" }, []Drift{{"data.data[].holder_phone_code", "number for string"}}},
		"postal code as a number":    {`"1100-048"`, `1100`, func(c *Card) { c.HolderAddress.PostalCode = "1100" }, []Drift{{"data.data[].holder_address.postalCode", "number for string"}}},
		"BIN identifier as text":     {`37`, `"37"`, func(*Card) {}, []Drift{{"data.data[].bin_id", "string for number"}}},
		"BIN identifier as null":     {`37`, `null`, func(c *Card) { c.BINID = 0 }, []Drift{{"data.data[].bin_id", "null for number"}}},
		"status as text":             {`"status":1,`, `"status":"1",`, func(*Card) {}, []Drift{{"data.data[].status", "string for number"}}},
		"flag 0":                     {`"physical":1`, `"physical":0`, func(c *Card) { c.Physical = false }, nil},
		"flag as text":               {`"physical":1`, `"physical":"1"`, func(*Card) {}, []Drift{{"data.data[].physical", "string for number"}}},
		"flag 0 as text":             {`"physical":1`, `"physical":"0"`, func(c *Card) { c.Physical = false }, []Drift{{"data.data[].physical", "string for number"}}},
		"flag true":                  {`"physical":1`, `"physical":true`, func(*Card) {}, []Drift{{"data.data[].physical", "boolean for number"}}},
		"flag false":                 {`"physical":1`, `"physical":false`, func(c *Card) { c.Physical = false }, []Drift{{"data.data[].physical", "boolean for number"}}},
		"flag 2":                     {`"physical":1`, `"physical":2`, func(*Card) {}, []Drift{{"data.data[].physical", "flag other than 0 and 1"}}},
		"flag null":                  {`"physical":1`, `"physical":null`, func(c *Card) { c.Physical = false }, []Drift{{"data.data[].physical", "null for number"}}},
		"empty time":                 {`"2026-06-07 08:09:10"`, `""`, func(c *Card) { c.UpdateTime = DateTime{} }, []Drift{{"data.data[].update_time", "empty string"}}},
		"null expiry":                {`"08/2027"`, `null`, func(c *Card) { c.Expiry = Expiry{} }, []Drift{{"data.data[].expire_date", "null for string"}}},
		"missing nickname":           {`"nickname":"travel",`, ``, func(c *Card) { c.Nickname = "" }, []Drift{{"data.data[].nickname", "missing field"}}},
		"missing status":             {`"status":1,`, ``, func(c *Card) { c.Status = 0 }, []Drift{{"data.data[].status", "missing field"}}},
		"unknown field":              {`"fee":`, `"4931930000001234":[{"a":null}],"fee":`, func(*Card) {}, []Drift{{"data.data[].*", "unknown field"}}},
		"member in upper case":       {`"nickname"`, `"Nickname"`, func(c *Card) { c.Nickname = "" }, []Drift{{"data.data[].*", "unknown field"}, {"data.data[].nickname", "missing field"}}},
		"members of the single form": {`"fee":`, `"account_status":5,"fee":`, func(c *Card) { c.AccountStatus = 5 }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := listedCardWanted(t)
			tc.change(&want)
			page := &CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []Card{want}}
			readsQuirk(t, anything, pageText(edited(t, listedCardText, tc.old, tc.replacement)), listAll, page, tc.drift)
		})
	}
}

// listAll and ofCard give methods with a parameter the form of those without.

func listAll(c *Client, ctx context.Context, opts ...CallOption) (*CardPage, error) { //nolint:revive // a method's form
	return c.ListCards(ctx, ListCardsParams{}, opts...)
}

func ofCard[T any](read func(*Client, context.Context, string, ...CallOption) (T, error)) func(*Client, context.Context, ...CallOption) (T, error) {
	return func(c *Client, ctx context.Context, opts ...CallOption) (T, error) {
		return read(c, ctx, "card-1", opts...)
	}
}

func TestSingleCardQuirks(t *testing.T) {
	t.Parallel()
	const scenes = `[{"name":"online","channel_id":71},{"name":"shop","channel_id":72}]`
	cases := map[string]struct {
		old, replacement string
		change           func(*Card)
		drift            []Drift
	}{
		"no scenes": {scenes, `[]`, func(c *Card) { c.ConsumptionSceneConfig = []ConsumptionScene{} }, nil},
		"null scenes": {scenes, `null`, func(c *Card) { c.ConsumptionSceneConfig = nil },
			[]Drift{{"data.consumption_scene_config", "null for array"}}},
		"channel as text": {`"channel_id":71`, `"channel_id":"71"`, func(*Card) {},
			[]Drift{{"data.consumption_scene_config[].channel_id", "string for number"}}},
		"scene without a name": {`"name":"shop",`, ``, func(c *Card) { c.ConsumptionSceneConfig[1].Name = "" },
			[]Drift{{"data.consumption_scene_config[].name", "missing field"}}},
		"missing account status": {`"account_status":5,`, ``, func(c *Card) { c.AccountStatus = 0 },
			[]Drift{{"data.account_status", "missing field"}}},
		"members of the list": {`"fee":`, `"bin_id":37,"nickname":"travel","fee":`, func(c *Card) { c.BINID, c.Nickname = 37, "travel" }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := singleCardWanted(t)
			tc.change(&want)
			reply := success(edited(t, singleCardText, tc.old, tc.replacement))
			readsQuirk(t, anything, reply, ofCard((*Client).GetCard), &want, tc.drift)
		})
	}
}

func TestMembersMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	c := answered(t, anything, `{"data":{"data":[{"platform_waybill_company":"CTT","nickname":"travel","id":"card-1",`+
		`"status":1,"pending":7.25,"trade_id":"trade-2","frozen":3,"label":"team A","available":"123.450",`+
		`"physical_status":2,"bin_id":37,"fee":"1.50","card_bin":"493193","cvv":"123","card_no":"4931930000001234",`+
		`"holder_address":{"addressLine2":"2 Esq","state":"Lisboa","city":"Lisbon","addressLine1":"Rua Augusta 5","postalCode":"1100-048","country":"PT"},`+
		`"currency":"USD","update_time":"2026-06-07 08:09:10","create_time":"2026-01-02 03:04:05","expire_date":"08/2027",`+
		`"holder_username":"Maria Silva","holder_phone_code":"+351","remark":"keep","destory_reason":"lost",`+
		`"holder_email":"maria@example.com","platform_waybill_number":"WB-9","deliver_status":3,"physical":1,`+
		`"holder_phone":"912345678"}],"last_page":3,"current_page":1,"total":41,"per_page":20},"msg":"success","code":200}`,
		WithStrictDrift())
	got, err := c.ListCards(t.Context(), ListCardsParams{})
	require.NoError(t, err)
	assert.Equal(t, &CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []Card{listedCardWanted(t)}}, got)
}

func TestCardSecretsQuirks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		old, replacement string
		change           func(*CardSecrets)
		drift            []Drift
	}{
		"escaped ciphertext": {`q83vAQ==`, `q8\/vAQ==`, func(s *CardSecrets) { s.PAN = sealPAN([]byte("q8/vAQ==")) }, nil},
		"null number":        {`"493193******1234"`, `null`, func(s *CardSecrets) { s.Number = CardNumber{} }, []Drift{{"data.card_no", "null for string"}}},
		"missing CVV":        {`"cvv":"***",`, ``, func(s *CardSecrets) { s.CVV = CVV{} }, []Drift{{"data.cvv", "missing field"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := secretsWanted(t)
			tc.change(&want)
			reply := success(edited(t, secretsText, tc.old, tc.replacement))
			readsQuirk(t, anything, reply, ofCard((*Client).GetCardSecrets), &want, tc.drift)
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
		"no such month":           {`"08/2027"`, `"13/2027"`, "data.data[].expire_date"},
		"half a masked month":     {`"08/2027"`, `"**/2027"`, "data.data[].expire_date"},
		"no such day":             {`2026-06-07`, `2026-06-31`, "data.data[].update_time"},
		"day without a time":      {`"2026-01-02 03:04:05"`, `"2026-01-02"`, "data.data[].create_time"},
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
		"rows missing":            {`,"data":[` + listedCardText + `]`, ``, "data.data"},
		"rows null":               {`[` + listedCardText + `]`, `null`, "data.data"},
		"rows an object":          {`[` + listedCardText + `]`, `{}`, "data.data"},
		"a row that is null":      {listedCardText, `null`, "data.data[]"},
		"the page an array":       {pageText(listedCardText), success(`[]`), "data"},
		"the page null":           {pageText(listedCardText), success(`null`), "data"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answered(t, anything, edited(t, pageText(listedCardText), tc.old, tc.replacement))
			got, err := c.ListCards(t.Context(), ListCardsParams{})
			assert.Nil(t, got)
			require.ErrorIs(t, err, ErrUnreadable)
			unreadableAt(t, err, tc.path)
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
		"the card an array":   {singleCardText, `[]`, "data"},
		"the card false":      {singleCardText, `false`, "data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := answered(t, anything, success(edited(t, singleCardText, tc.old, tc.replacement))).GetCard(t.Context(), "card-1")
			assert.Nil(t, got)
			require.ErrorIs(t, err, ErrUnreadable)
			unreadableAt(t, err, tc.path)
		})
	}
	for name, tc := range map[string]struct{ old, replacement, path string }{
		"no ciphertext":         {`,"pan":"q83vAQ=="`, ``, "data.pan"},
		"empty ciphertext":      {`"q83vAQ=="`, `""`, "data.pan"},
		"null ciphertext":       {`"q83vAQ=="`, `null`, "data.pan"},
		"ciphertext a number":   {`"q83vAQ=="`, `12`, "data.pan"},
		"letters in the number": {`493193******1234`, `493193xxxxxx1234`, "data.card_no"},
		"the secrets null":      {secretsText, `null`, "data"},
	} {
		t.Run("secrets, "+name, func(t *testing.T) {
			t.Parallel()
			got, err := answered(t, anything, success(edited(t, secretsText, tc.old, tc.replacement))).GetCardSecrets(t.Context(), "card-1")
			assert.Nil(t, got)
			require.ErrorIs(t, err, ErrUnreadable)
			unreadableAt(t, err, tc.path)
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
	card.ConsumptionSceneConfig = []ConsumptionScene{{Name: "online", ChannelID: 71}}
	noZeroField(t, card)
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"card":      {card, cardEncoded},
		"pointer":   {&card, cardEncoded},
		"zero card": {Card{}, zeroCardEncoded},
		"page": {
			CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []Card{card}},
			`{"total":41,"per_page":20,"current_page":1,"last_page":3,"data":[` + cardEncoded + `]}`,
		},
		"empty page": {CardPage{}, `{"total":0,"per_page":0,"current_page":0,"last_page":0,"data":[]}`},
		"scene":      {ConsumptionScene{Name: "online", ChannelID: 71}, `{"name":"online","channel_id":71}`},
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

func TestCardTypesDecodeAsStrictlyAsAReply(t *testing.T) {
	t.Parallel()
	t.Run("listed card", func(t *testing.T) {
		t.Parallel()
		var card Card
		require.NoError(t, json.Unmarshal([]byte(listedCardText), &card))
		assert.Equal(t, listedCardWanted(t), card)
	})
	t.Run("single card", func(t *testing.T) {
		t.Parallel()
		var card Card
		require.NoError(t, json.Unmarshal([]byte(singleCardText), &card))
		assert.Equal(t, singleCardWanted(t), card)
	})
	t.Run("page", func(t *testing.T) {
		t.Parallel()
		var page CardPage
		require.NoError(t, json.Unmarshal([]byte(`{"total":41,"per_page":20,"current_page":2,"last_page":3,"data":[`+listedCardText+`]}`), &page))
		assert.Equal(t, CardPage{Total: 41, PerPage: 20, CurrentPage: 2, LastPage: 3, Cards: []Card{listedCardWanted(t)}}, page)
	})
	t.Run("secrets", func(t *testing.T) {
		t.Parallel()
		var secrets CardSecrets
		require.NoError(t, json.Unmarshal([]byte(secretsText), &secrets))
		assert.Equal(t, secretsWanted(t), secrets)
	})
	t.Run("scene", func(t *testing.T) {
		t.Parallel()
		var scene ConsumptionScene
		require.NoError(t, json.Unmarshal([]byte(`{"name":"online","channel_id":71}`), &scene))
		assert.Equal(t, ConsumptionScene{Name: "online", ChannelID: 71}, scene)
	})
	for name, tc := range map[string]struct {
		into any
		text string
	}{
		"card without id":       {&Card{}, `{"available":"1.000","pending":0,"frozen":0,"fee":"0.00"}`},
		"card with a repeat":    {&Card{}, shortCard("a", `,"id":"b"`)},
		"page without rows":     {&CardPage{}, `{"total":41,"per_page":20,"current_page":2,"last_page":3}`},
		"secrets without a PAN": {&CardSecrets{}, `{"card_no":"493193******1234","cvv":"***","expire_date":"**/****"}`},
		"scene as a list":       {&ConsumptionScene{}, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.ErrorIs(t, json.Unmarshal([]byte(tc.text), tc.into), ErrUnreadable)
		})
	}
}

func TestCardStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[CardStatus]struct {
		text    string
		blocked bool
	}{
		CardLocked: {"locked", false}, CardActive: {"active", false}, CardFrozen: {"frozen", true},
		CardClosed: {"closed", false}, CardClosing: {"closing", false}, CardSuspended: {"suspended", true},
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
			secrets := CardSecrets{Number: sealNumber([]byte(tc.masked)), PAN: sealPAN([]byte(tc.pan))}
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
	require.ErrorContains(t, err, "needs a function")
	assert.Zero(t, got)
}

// 0 is the status of an active card: no value must not look like it.
func TestACardWhoseStatusIsNullIsUnreadable(t *testing.T) {
	t.Parallel()
	_, err := answered(t, anything, shortPage(1, 1, shortCard("a", `,"status":null`))).ListCards(t.Context(), ListCardsParams{})
	require.ErrorIs(t, err, ErrUnreadable)
	require.ErrorContains(t, err, "data.data[].status: expected a status")
}
