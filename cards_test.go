package cardwire_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// A card as List cards returns it, and what it is read as.
const listedCard = `{"id":"card-1","trade_id":"trade-2","label":"team A","bin_id":37,"card_bin":"493193",` +
	`"card_no":"4931930000001234","cvv":"123","currency":"USD","available":"123.450","pending":7.25,"frozen":3,` +
	`"expire_date":"08/2027","holder_username":"Maria Silva",` +
	`"holder_address":{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048",` +
	`"addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"},` +
	`"create_time":"2026-01-02 03:04:05","update_time":"2026-06-07 08:09:10","status":1,"remark":"keep",` +
	`"holder_phone":"912345678","holder_phone_code":"+351","holder_email":"maria@example.com","fee":"1.50",` +
	`"destory_reason":"lost","nickname":"travel","physical":1,"physical_status":2,"deliver_status":3,` +
	`"platform_waybill_number":"WB-9","platform_waybill_company":"CTT"}`

func listedCardWanted(t *testing.T) cardwire.Card {
	t.Helper()
	return cardwire.Card{
		ID: "card-1", TradeID: "trade-2", Label: "team A", BINID: 37, CardBIN: "493193",
		Number: wiretest.CardNumber(t, "4931930000001234"), CVV: wiretest.CVV(t, "123"),
		Expiry: cardwire.Expiry{2027, time.August}, Currency: "USD",
		Available: wiretest.Dec("123.450"), Pending: wiretest.Dec("7.25"), Frozen: wiretest.Dec("3"),
		Fee: wiretest.Dec("1.50"), Status: cardwire.CardFrozen,
		HolderUsername: "Maria Silva", HolderAddress: &cardwire.Address{
			City: "Lisbon", State: "Lisboa", Country: "PT", PostalCode: "1100-048",
			Line1: "Rua Augusta 5", Line2: "2 Esq",
		},
		HolderPhone: "912345678", HolderPhoneCode: "+351", HolderEmail: "maria@example.com",
		CreateTime: dateTime(cardwire.Date{2026, time.January, 2}, 3, 4, 5),
		UpdateTime: dateTime(cardwire.Date{2026, time.June, 7}, 8, 9, 10),
		Remark:     "keep", DestroyReason: "lost", Nickname: "travel",
		Physical: true, PhysicalStatus: 2, DeliverStatus: 3,
		PlatformWaybillNumber: "WB-9", PlatformWaybillCompany: "CTT",
	}
}

// onePage is a response of List cards, the first of three pages.
func onePage(cards string) string {
	return `{"code":200,"msg":"success","data":` +
		`{"total":41,"per_page":20,"current_page":1,"last_page":3,"data":[` + cards + `]}}`
}

func TestListCards(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/cards?limit=20&page=1&status=1", onePage(listedCard),
		cardwire.WithStrictDrift())
	got, err := c.ListCards(t.Context(),
		cardwire.ListCardsParams{PageSize: 20, Page: 1, Status: new(cardwire.CardFrozen)})
	require.NoError(t, err)
	want := &cardwire.CardPage{
		Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []cardwire.Card{listedCardWanted(t)},
	}
	assert.Equal(t, want, got)
	wiretest.NoZeroField(t, want, "Cards[].AccountStatus", "Cards[].ConsumptionSceneType",
		"Cards[].ConsumptionSceneConfig")
}

// A card as Get card returns it, and what it is read as.
const singleCard = `{"id":"card-1","trade_id":"trade-2","label":"team A","card_bin":"493193",` +
	`"card_no":"493193******1234","cvv":"***","currency":"USD","available":"123.450","pending":7.25,"frozen":3,` +
	`"expire_date":"**/****","holder_username":"Maria Silva",` +
	`"holder_address":{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048",` +
	`"addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"},` +
	`"create_time":"2026-01-02 03:04:05","status":4,"holder_phone":"912345678","holder_phone_code":"351",` +
	`"holder_email":"maria@example.com","fee":"1.50","physical":1,"physical_status":2,"deliver_status":3,` +
	`"platform_waybill_number":"WB-9","platform_waybill_company":"CTT","account_status":5,` +
	`"consumption_scene_type":6,"consumption_scene_config":[{"name":"online","channel_id":71},` +
	`{"name":"shop","channel_id":72}]}`

func singleCardWanted(t *testing.T) cardwire.Card {
	t.Helper()
	return cardwire.Card{
		ID: "card-1", TradeID: "trade-2", Label: "team A", CardBIN: "493193",
		Number: wiretest.CardNumber(t, "493193******1234"), CVV: wiretest.CVV(t, "***"), Currency: "USD",
		Available: wiretest.Dec("123.450"), Pending: wiretest.Dec("7.25"), Frozen: wiretest.Dec("3"),
		Fee: wiretest.Dec("1.50"), Status: cardwire.CardSuspended,
		HolderUsername: "Maria Silva", HolderAddress: &cardwire.Address{
			City: "Lisbon", State: "Lisboa", Country: "PT", PostalCode: "1100-048",
			Line1: "Rua Augusta 5", Line2: "2 Esq",
		},
		HolderPhone: "912345678", HolderPhoneCode: "351", HolderEmail: "maria@example.com",
		CreateTime: dateTime(cardwire.Date{2026, time.January, 2}, 3, 4, 5),
		Physical:   true, PhysicalStatus: 2, DeliverStatus: 3,
		PlatformWaybillNumber: "WB-9", PlatformWaybillCompany: "CTT",
		AccountStatus: 5, ConsumptionSceneType: 6,
		ConsumptionSceneConfig: []cardwire.ConsumptionScene{{"online", 71}, {"shop", 72}},
	}
}

func TestGetCardAndGetCardByOrder(t *testing.T) {
	t.Parallel()
	type get = func(*cardwire.Client, context.Context, string, ...cardwire.CallOption) (*cardwire.Card, error)
	want := singleCardWanted(t)
	for id, call := range map[string]get{
		"card-1": (*cardwire.Client).GetCard, "order-9": (*cardwire.Client).GetCardByOrder,
	} {
		c := wiretest.Respond(t, "GET /shop/api/v1/cards/info?id="+id,
			`{"code":200,"msg":"success","data":`+singleCard+`}`, cardwire.WithStrictDrift())
		got, err := call(c, t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, &want, got)
	}
	wiretest.NoZeroField(t, want, "BINID", "Expiry", "UpdateTime", "Remark", "DestroyReason", "Nickname")
}

const secretsOfCard = `{"card_no":"493193******1234","cvv":"***","expire_date":"**/****","pan":"q83vAQ=="}`

func secretsWanted(t *testing.T) cardwire.CardSecrets {
	t.Helper()
	return cardwire.CardSecrets{
		Number: wiretest.CardNumber(t, "493193******1234"), CVV: wiretest.CVV(t, "***"),
		PAN: wiretest.EncryptedPAN(t, "q83vAQ=="),
	}
}

func TestGetCardSecrets(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t,
		"POST /shop/api/v1/cards/private\napplication/x-www-form-urlencoded\n\ncardId=card-1",
		`{"code":200,"msg":"success","data":`+secretsOfCard+`}`, cardwire.WithStrictDrift())
	got, err := c.GetCardSecrets(t.Context(), "card-1")
	require.NoError(t, err)
	want := secretsWanted(t)
	assert.Equal(t, &want, got)
}

func freezeRequest(card, reference string) string {
	return "POST /shop/api/v1/cards/suspend\nmultipart/form-data\n\n" +
		"Content-Disposition: form-data; name=\"cardId\"\n\n" + card + "\n\n" +
		"Content-Disposition: form-data; name=\"clientTransactionId\"\n\n" + reference
}

func TestFreezeCard(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, freezeRequest("card-1", "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"),
		`{"code":200,"msg":"success","data":"3f2504e0-4f89-41d3-9a0c-0305e82c3301"}`, cardwire.WithStrictDrift())
	got, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{
		CardID: "card-1", ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01",
	})
	require.NoError(t, err)
	assert.Equal(t, &cardwire.CardOperation{
		ID: "3f2504e0-4f89-41d3-9a0c-0305e82c3301", ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01",
	}, got)
}

const adjustAction = "POST /shop/api/v1/cards/adjustAction\napplication/x-www-form-urlencoded\n\n"

// An identifier is sent in the letter case in which it was given.
func TestCancelAndRetryOperation(t *testing.T) {
	t.Parallel()
	for name, adjust := range adjustments {
		for _, id := range []string{"3f2504e0-4f89-41d3-9a0c-0305e82c3301", "3F2504E0-4F89-41D3-9A0C-0305E82C3301"} {
			c := wiretest.Respond(t, adjustAction+"client_transaction_id="+id+"&type="+name,
				`{"code":200,"msg":"success","data":true}`, cardwire.WithStrictDrift())
			require.NoError(t, adjust(c, t.Context(), id))
		}
	}
}

func TestRetryOperationSendsTheActionOfTheProfile(t *testing.T) {
	t.Parallel()
	named := func(action string) cardwire.Option {
		return cardwire.WithProfile(func(p *cardwire.Profile) { p.RetryAction = action })
	}
	c := wiretest.Respond(t, adjustAction+"client_transaction_id="+wiretest.OperationID+"&type=re+do",
		wiretest.Success(`true`), named("re do"))
	require.NoError(t, c.RetryOperation(t.Context(), wiretest.OperationID))
	err := wiretest.Unasked(t, named("")).RetryOperation(t.Context(), wiretest.OperationID)
	wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, "Profile.RetryAction")
}

func TestGetCardReturnsAnotherCardWithAnError(t *testing.T) {
	t.Parallel()
	want := singleCardWanted(t)
	response := wiretest.Success(singleCard)
	other := wiretest.Exchange{Want: "GET /shop/api/v1/cards/info?id=card-2", Response: response}
	right := other
	right.Response = strings.Replace(response, "card-1", "card-2", 1)
	got, err := wiretest.Converse(t, []wiretest.Exchange{other, right}).GetCard(t.Context(), "card-2")
	require.NoError(t, err)
	assert.Equal(t, "card-2", got.ID, "it is asked for once more")

	got, err = wiretest.Converse(t, []wiretest.Exchange{other}).GetCard(t.Context(), "card-2", cardwire.WithoutRetry())
	require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
	assert.Equal(t, &want, got)

	got, err = wiretest.Converse(t, []wiretest.Exchange{other, other}).GetCard(t.Context(), "card-2")
	require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
	require.ErrorContains(t, err, "CardIDParam")
	assert.Equal(t, cardwire.OutcomeExecuted, wiretest.Failure(t, err).Outcome)
	assert.Equal(t, &want, got)

	got, err = wiretest.Converse(t, []wiretest.Exchange{other}, trusting).GetCard(t.Context(), "card-2")
	require.NoError(t, err)
	assert.Equal(t, &want, got)
}

// trusting switches off the checks of what was asked for.
var trusting = cardwire.WithProfile(func(p *cardwire.Profile) { p.TrustResponses = true })

var freeze = cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: wiretest.FreezeID}

func TestFreezeCardMakesAReference(t *testing.T) {
	t.Parallel()
	const uuid4 = `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	response := wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success(`"` + wiretest.OperationID + `"`)}
	s := wiretest.Script(t, response, wiretest.Exchange{Want: wiretest.Anything, Status: 500, Response: "down"})
	c := wiretest.NewClient(t, s)
	first, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-1"})
	require.NoError(t, err)
	none, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "card-1"})
	assert.Equal(t, unknown, wiretest.Failure(t, err).Outcome)
	assert.Nil(t, none)
	second := wiretest.Failure(t, err).Reference

	assert.Regexp(t, uuid4, first.ClientTransactionID)
	assert.Regexp(t, uuid4, second)
	assert.NotEqual(t, first.ClientTransactionID, second)
	assert.Equal(t, freezeRequest("card-1", first.ClientTransactionID), s.Requests[0])
	assert.Equal(t, freezeRequest("card-1", second), s.Requests[1])
}

// The service's identifiers are read in any form, and without what is invisible.
func TestFreezeCardReadsOtherIdentifiers(t *testing.T) {
	t.Parallel()
	type operation = cardwire.CardOperation
	read := func(c *cardwire.Client, ctx context.Context, opts ...cardwire.CallOption) (*operation, error) {
		return c.FreezeCard(ctx, freeze, opts...)
	}
	for id, want := range map[string]cardwire.Drift{
		`op-1`: {"data", "identifier that is not a UUID"},

		wiretest.OperationID + `\u0000`: {"data", "identifier with invisible characters"},
	} {
		made := &operation{ID: strings.TrimSuffix(id, `\u0000`), ClientTransactionID: wiretest.FreezeID}
		wiretest.ReadsQuirk(t, freezeRequest("card-1", wiretest.FreezeID), wiretest.Success(`"`+id+`"`),
			read, made, []cardwire.Drift{want})
	}
}

// adjustments are the two operations that share one path.
var adjustments = map[string]func(*cardwire.Client, context.Context, string, ...cardwire.CallOption) error{
	"cancel": (*cardwire.Client).CancelOperation,
	"retry":  (*cardwire.Client).RetryOperation,
}

// What is not confirmed may have been done before, by a request whose response was lost.
func TestAdjustmentResponses(t *testing.T) {
	t.Parallel()
	for name, adjust := range adjustments {
		confirmed := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`"1"`))
		require.NoError(t, adjust(confirmed, t.Context(), wiretest.OperationID), name)
		denied := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`false`))
		assert.ErrorContains(t, adjust(denied, t.Context(), wiretest.OperationID),
			"the service did not confirm the change: "+
				"the operation may have been canceled or retried before", name)
	}
}

// What is no identifier, and how others arrive, is in internal/test/hostile.
func TestAnIdentifierThatIsNoneIsNamed(t *testing.T) {
	t.Parallel()
	const bad = "a\u200bb"
	c := wiretest.Unasked(t, cardwire.WithProfile(func(p *cardwire.Profile) { p.SubAccountParam = "sub" }))
	calls := wiretest.MethodsGiven(wiretest.Given{
		Card: bad, Order: bad, Operation: bad, List: cardwire.ListCardsParams{SubAccountID: bad},
		Freeze: cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: bad},
	})
	for op, parameter := range map[string]string{
		"GetCard": "cardID", "GetCardByOrder": "orderID", "GetCardSecrets": "cardID", "ListCards": "SubAccountID",
		"FreezeCard": "ClientTransactionID", "CancelOperation": "clientTransactionID",
		"RetryOperation": "clientTransactionID",
	} {
		err := calls[op](t.Context(), c)
		wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, ": "+parameter+" ")
		assert.NotContains(t, err.Error(), bad)
	}
	_, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: bad, ClientTransactionID: bad})
	wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, ": CardID ") // the first of two
}

// reading is a read whose response contains a document that tests edit.
type reading[T, R any] struct {
	document string
	want     func(*testing.T) T
	path     string                     // of the document in the response
	response func(edited string) string // that contains it
	result   func(T) R
	read     func(*cardwire.Client, context.Context, ...cardwire.CallOption) (R, error)
}

// quirk is an edit of a document that is read all the same.
type quirk struct {
	old, sent string
	field     string // of the value that is then another, as "HolderAddress.City"; "": none
	want      any
	drift     string // "path: kind, path: kind"; "": none
}

// quirks are the forms in which a service in PHP sends the same values. All forms of a value
// are in internal/wire.
func (r reading[T, R]) quirks(t *testing.T, list []quirk) {
	t.Helper()
	for _, q := range list {
		t.Run(q.old+" to "+q.sent, func(t *testing.T) {
			t.Parallel()
			want := r.want(t)
			if q.field != "" {
				set(reflect.ValueOf(&want), q.field, q.want)
			}
			var drift []cardwire.Drift
			for _, deviation := range strings.Split(q.drift, ", ") {
				if path, kind, ok := strings.Cut(deviation, ": "); ok {
					drift = append(drift, cardwire.Drift{Path: r.path + "." + path, Kind: kind})
				}
			}
			response := r.response(wiretest.Edited(t, r.document, q.old, q.sent))
			wiretest.ReadsQuirk(t, wiretest.Anything, response, r.read, r.result(want), drift)
		})
	}
}

// set sets a field by its path, where a number is an index.
func set(v reflect.Value, path string, value any) {
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if i, err := strconv.Atoi(name); err == nil {
			v = v.Index(i)
			continue
		}
		v = v.FieldByName(name)
	}
	if value == nil {
		v.SetZero()
		return
	}
	v.Set(reflect.ValueOf(value).Convert(v.Type()))
}

// unreadable asserts that edits, by the path of the error, make the response unreadable.
func (r reading[T, R]) unreadable(t *testing.T, byPath map[string][][2]string) {
	t.Helper()
	for path, edits := range byPath {
		for _, edit := range edits {
			t.Run(edit[0]+" to "+edit[1], func(t *testing.T) {
				t.Parallel()
				response := wiretest.Edited(t, r.response(r.document), edit[0], edit[1])
				got, err := r.read(wiretest.Respond(t, wiretest.Anything, response), t.Context())
				assert.Zero(t, got)
				wiretest.UnreadableAt(t, err, strings.ReplaceAll(path, "[]", "[0]"))
			})
		}
	}
}

func pointer[T any](v T) *T { return &v }

// Forms of a card: an element of a list, a card alone, and its secrets.
var (
	listedCards = reading[cardwire.Card, *cardwire.CardPage]{
		listedCard, listedCardWanted, "data.data[]", onePage, pageOf,
		func(c *cardwire.Client, ctx context.Context, opts ...cardwire.CallOption) (*cardwire.CardPage, error) {
			return c.ListCards(ctx, cardwire.ListCardsParams{}, opts...)
		},
	}
	singleCards = reading[cardwire.Card, *cardwire.Card]{
		singleCard, singleCardWanted, "data", wiretest.Success, pointer[cardwire.Card],
		func(c *cardwire.Client, ctx context.Context, opts ...cardwire.CallOption) (*cardwire.Card, error) {
			return c.GetCard(ctx, "card-1", opts...)
		},
	}
	cardSecrets = reading[cardwire.CardSecrets, *cardwire.CardSecrets]{
		secretsOfCard, secretsWanted, "data", wiretest.Success, pointer[cardwire.CardSecrets],
		func(c *cardwire.Client, ctx context.Context, opts ...cardwire.CallOption) (*cardwire.CardSecrets, error) {
			return c.GetCardSecrets(ctx, "card-1", opts...)
		},
	}
)

// pageOf is the page of onePage.
func pageOf(card cardwire.Card) *cardwire.CardPage {
	return &cardwire.CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: []cardwire.Card{card}}
}

// holder is the address in listedCard.
const holder = `{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048",` +
	`"addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"}`

func TestCardQuirks(t *testing.T) {
	t.Parallel()
	const missing = "holder_address.state: missing field, holder_address.country: missing field, " +
		"holder_address.postalCode: missing field, holder_address.addressLine1: missing field, " +
		"holder_address.addressLine2: missing field"
	number := func(s string) cardwire.CardNumber { return wiretest.CardNumber(t, s) }
	cvv := func(s string) cardwire.CVV { return wiretest.CVV(t, s) }
	listedCards.quirks(t, []quirk{
		{`"Maria Silva"`, `"Andr\u00e9 \ud83d\ude00"`, "HolderUsername", "André 😀", ""},
		{`"123"`, `"007"`, "CVV", cvv("007"), ""},
		{`"123"`, `"***"`, "CVV", cvv("***"), ""},
		{`4931930000001234`, `493193******1234`, "Number", number("493193******1234"), ""},
		{`4931930000001234`, `4931 93●● ●●●● 1234`, "Number", number("493193******1234"),
			"card_no: other mask characters"},
		{`"123"`, `"###"`, "CVV", cvv("***"), "cvv: other mask characters"},
		{`4931930000001234`, `****-****-****-1234`, "Number", invalidNumber, "card_no: invalid card number"},
		{`4931930000001234`, `49319300000012ab`, "Number", invalidNumber, "card_no: invalid card number"},
		{`4931930000001234`, strings.Repeat("4", 32), "Number", invalidNumber, "card_no: invalid card number"},
		{`"4931930000001234"`, `{"masked":true}`, "Number", invalidNumber, "card_no: invalid card number"},
		{`"123"`, `"12a"`, "CVV", invalidCVV, "cvv: invalid CVV"},
		{`"123"`, `"12345678"`, "CVV", invalidCVV, "cvv: invalid CVV"},
		{`"123"`, `123`, "CVV", invalidCVV, "cvv: invalid CVV"},
		{`"08/2027"`, `{"month":8}`, "Expiry", invalidExpiry, "expire_date: invalid date"},
		{`"08/2027"`, `[]`, "Expiry", nil, "expire_date: empty array for string"},
		{
			`"2026-01-02 03:04:05"`, `{"date":"2026-01-02 03:04:05.000000","timezone_type":3,"timezone":"UTC"}`,
			"CreateTime", invalidTime, "create_time: invalid date",
		},
		{`"2026-01-02 03:04:05"`, `[1]`, "CreateTime", invalidTime, "create_time: invalid date"},
		{`"2026-01-02 03:04:05"`, `false`, "CreateTime", invalidTime, "create_time: invalid date"},
		{`"2026-01-02 03:04:05"`, `[ ]`, "CreateTime", nil, "create_time: empty array for string"},
		{`"2026-01-02 03:04:05"`, `"0001-01-01T00:00:00Z"`, "CreateTime", nil, "create_time: date in another form"},
		{`"2026-01-02 03:04:05"`, `"0001-01-01 00:00:00"`, "CreateTime", nil, "create_time: date in another form"},
		{
			`"2026-01-02 03:04:05"`, `"-0001-11-30T00:00:00.000000Z"`, "CreateTime", nil,
			"create_time: date in another form",
		},
		{`"4931930000001234"`, `4931930000001234`, "", nil, "card_no: number for string"},
		{`"08/2027"`, `"**/****"`, "Expiry", nil, ""},
		{`"08/2027"`, `"**/2027"`, "Expiry", invalidExpiry, "expire_date: invalid date"},
		{`"08/2027"`, `"2027-08"`, "", nil, "expire_date: date in another form"},
		{`"08/2027"`, `"XX/XXXX"`, "Expiry", nil, "expire_date: date in another form"},
		{holder, `[]`, "HolderAddress", nil, ""},
		{holder, `{ }`, "HolderAddress", nil, "holder_address: empty object for array"},
		{holder, `null`, "HolderAddress", nil, "holder_address: null for object"},
		{holder, `""`, "HolderAddress", nil, "holder_address: empty string"},
		{`"2 Esq"`, `false`, "HolderAddress.Line2", nil, "holder_address.addressLine2: false for string"},
		{holder, `{"city":"Porto"}`, "HolderAddress", &cardwire.Address{City: "Porto"}, missing},
		{`"1100-048"`, `1100`, "HolderAddress.PostalCode", "1100", "holder_address.postalCode: number for string"},
		{`"team A"`, `null`, "Label", nil, ""},
		{`"keep"`, `null`, "Remark", nil, ""},
		{`"lost"`, `null`, "DestroyReason", nil, ""},
		{`"WB-9"`, `null`, "PlatformWaybillNumber", nil, ""},
		{`"CTT"`, `null`, "PlatformWaybillCompany", nil, ""},
		{`"WB-9"`, `1.50`, "PlatformWaybillNumber", "1.50", "platform_waybill_number: number for string"},
		{`"keep"`, `"\ud83d!"`, "Remark", "\ufffd!", "remark: invalid character"},
		{`"Maria Silva"`, "\"Andr\xe9\"", "HolderUsername", "Andr\ufffd", "holder_username: invalid character"},
		{`"travel"`, `null`, "Nickname", nil, "nickname: null for string"},
		{`"nickname":"travel",`, ``, "Nickname", nil, "nickname: missing field"},
		{`"nickname"`, `"Nickname"`, "Nickname", nil, "*: unknown field, nickname: missing field"},
		{`"912345678"`, `""`, "HolderPhone", nil, ""},
		{`"+351"`, `351`, "HolderPhoneCode", "351", "holder_phone_code: number for string"},
		{`"maria@example.com"`, `""`, "HolderEmail", nil, ""},
		{`"493193"`, `493193`, "", nil, "card_bin: number for string"},
		{`"123.450"`, `"12345678901234567890.123"`, "Available", wiretest.Dec("12345678901234567890.123"), ""},
		{`"123.450"`, `123.450`, "", nil, "available: number for string"},
		{`7.25`, `"7.25"`, "", nil, "pending: string for number"},
		{`"1.50"`, `1.5`, "Fee", wiretest.Dec("1.5"), "fee: number for string"},
		{`"card-1"`, `12`, "ID", "12", "id: number for string"},
		{`37`, `null`, "BINID", nil, "bin_id: null for number"},
		{`37`, `1e2`, "BINID", 100, "bin_id: decimal for integer"},
		{`"status":1,`, `"status":0.0,`, "Status", cardwire.CardActive, "status: decimal for integer"},
		{`"status":1,`, `"status":-1,`, "Status", cardwire.CardLocked, ""},
		{`"status":1,`, `"status":"1",`, "", nil, "status: string for number"},
		{`"status":1,`, ``, "Status", nil, "status: missing field"},
		{`"physical":1`, `"physical":2`, "", nil, "physical: flag other than 0 and 1"},
		{`"2026-01-02 03:04:05"`, `"2026-01-02"`, "CreateTime", invalidTime, "create_time: invalid date"},
		{`"2026-01-02 03:04:05"`, `"2026-01-02T03:04:05.0"`, "", nil, "create_time: date in another form"},
		{
			`"2026-01-02 03:04:05"`, `4931930000001234`, "CreateTime", invalidTime,
			"create_time: number for string, create_time: invalid date",
		},
		{
			`"2026-06-07 08:09:10"`, `0`, "UpdateTime", nil,
			"update_time: number for string, update_time: date in another form",
		},
		{`2026-06-07`, `2026-06-31`, "UpdateTime", invalidTime, "update_time: invalid date"},
		{`"fee":`, `"4931930000001234":[{"a":null}],"fee":`, "", nil, "*: unknown field"},
		{`"fee":`, `"account_status":5,"fee":`, "AccountStatus", 5, ""}, // a field of the single form
	})
}

func TestSingleCardQuirks(t *testing.T) {
	t.Parallel()
	const scenes = `[{"name":"online","channel_id":71},{"name":"shop","channel_id":72}]`
	const config = "consumption_scene_config"
	sent := func(text string) (d cardwire.DateTime) { require.NoError(t, d.UnmarshalText([]byte(text))); return d }
	singleCards.quirks(t, []quirk{
		{scenes, `[]`, "ConsumptionSceneConfig", []cardwire.ConsumptionScene{}, ""},
		{scenes, `null`, "ConsumptionSceneConfig", []cardwire.ConsumptionScene{}, config + ": null for array"},
		{scenes, `{}`, "ConsumptionSceneConfig", []cardwire.ConsumptionScene{}, config + ": object for array"},
		{
			scenes, `{"0":{"name":"online","channel_id":71},"2":{"name":"shop","channel_id":72}}`, "", nil,
			config + ": object for array",
		},
		{`"name":"shop"`, `"name":7`, "ConsumptionSceneConfig.1.Name", "7", config + "[].name: number for string"},
		{`493193******1234`, `493193XXXXXX1234`, "", nil, "card_no: other mask characters"},
		{`"***"`, `"XXX"`, "", nil, "cvv: other mask characters"},
		{`"2026-01-02 03:04:05"`, `1767323045000`, "CreateTime", sent("2026-01-02T03:04:05Z"),
			"create_time: number for string, create_time: date in another form"},
		{`"channel_id":71`, `"channel_id":"71"`, "", nil, config + "[].channel_id: string for number"},
		{`"name":"shop",`, ``, "ConsumptionSceneConfig.1.Name", nil, config + "[].name: missing field"},
		{`"account_status":5,`, ``, "AccountStatus", nil, "account_status: missing field"},
		{`"fee":`, `"bin_id":37,"fee":`, "BINID", 37, ""}, // fields of the list
		{`"fee":`, `"nickname":"travel","fee":`, "Nickname", "travel", ""},
	})
	cardSecrets.quirks(t, []quirk{
		{`q83vAQ==`, `q8\/vAQ==`, "PAN", wiretest.EncryptedPAN(t, "q8/vAQ=="), ""},
		{`"493193******1234"`, `null`, "Number", nil, "card_no: null for string"},
		{`"cvv":"***",`, ``, "CVV", nil, "cvv: missing field"},
		{`**/****`, `09/2028`, "Expiry", cardwire.Expiry{2028, time.September}, ""}, // which the API masks
		{`**/****`, `0928`, "Expiry", cardwire.Expiry{2028, time.September}, "expire_date: date in another form"},
		{`493193******1234`, `4931 93## #### 1234`, "", nil, "card_no: other mask characters"},
	})
}

// A page that lacks one of these is no page, and a card without them no card:
// a zero in their place would be a lie about money.
var (
	invalidNumber = invalidOf[cardwire.Card](`{"id":"c","available":"0","pending":0,` +
		`"frozen":0,"fee":"0","card_no":"?"}`).Number
	invalidCVV = invalidOf[cardwire.Card](`{"id":"c","available":"0","pending":0,` +
		`"frozen":0,"fee":"0","cvv":"?"}`).CVV
)

func invalidOf[T any](document string) (v T) {
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		panic(err)
	}
	return v
}

// What is invalid is neither absent nor masked, shows nothing of what was sent, and stays so.
func TestInvalidNumbersSaySo(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"invalid", "invalid", "", "invalid", "invalid"}, []string{
		invalidNumber.String(), invalidNumber.Reveal(), invalidNumber.Last4(), invalidCVV.String(), invalidCVV.Reveal(),
	})
	assert.Equal(t, []bool{false, false}, []bool{invalidNumber.IsMasked(), invalidCVV.IsMasked()})
	for _, option := range [][]cardwire.Option{nil, {cardwire.WithMaskedCards()}} {
		response := wiretest.Edited(t, onePage(listedCard), `4931930000001234`, `4931-9300-0000-1234`)
		page, err := wiretest.Respond(t, wiretest.Anything, response, option...).ListCards(t.Context(),
			cardwire.ListCardsParams{})
		require.NoError(t, err)
		text, err := json.Marshal(page.Cards[0])
		require.NoError(t, err)
		assert.Contains(t, string(text), `"card_no":"invalid"`)
		var back cardwire.Card
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, invalidNumber, back.Number)
	}
	read := invalidNumber
	require.NoError(t, read.UnmarshalText([]byte("****0002")))
	require.NoError(t, read.UnmarshalText([]byte("invalid")))
	assert.Equal(t, invalidNumber, read)
}

func TestUnreadableCards(t *testing.T) {
	t.Parallel()
	const card = "data.data[]."
	listedCards.unreadable(t, map[string][][2]string{
		card + "id": {
			{`"id":"card-1",`, ``}, {`"id":"card-1"`, `"id":null`}, {`"id":"card-1"`, `"id":""`},
			{`"id":"card-1"`, `"id":" "`}, {`"id":"card-1"`, `"id":true`}, {`"id":"card-1"`, `"id":1.5`},
		},
		card + "available": {
			{`"available":"123.450",`, ``}, {`"123.450"`, `null`}, {`"123.450"`, `""`}, {`"123.450"`, `"1,234.50"`},
			{`"123.450"`, `"1e3"`}, {`"123.450"`, `"12345678901234567890123456789012345678.901"`},
		},
		card + "pending": {{`"pending":7.25,`, ``}, {`7.25`, `null`}, {`7.25`, `true`}, {`7.25`, `"seven"`}},
		card + "frozen":  {{`"frozen":3,`, ``}, {`"frozen":3`, `"frozen":null`}, {`"frozen":3`, `"frozen":[3]`}},
		card + "fee":     {{`"fee":"1.50",`, ``}, {`"1.50"`, `null`}, {`"1.50"`, `"free"`}},
		// Null is no status: 0 is that of an active card.
		card + "status": {
			{`"status":1,`, `"status":"frozen",`}, {`"status":1,`, `"status":1.5,`}, {`"status":1,`, `"status":null,`},
		},
		card + "physical":         {{`"physical":1`, `"physical":"2"`}},
		card + "holder_address[]": {{holder, `["Lisbon"]`}},
		card + "holder_address":   {{holder, `"Lisbon"`}},
		"data.total":              {{`"total":41,`, ``}, {`"total":41`, `"total":null`}, {`"total":41`, `"total":-1`}},
		"data.current_page":       {{`"current_page":1,`, ``}, {`"current_page":1`, `"current_page":null`}},
		"data.last_page":          {{`"last_page":3,`, ``}, {`"last_page":3`, `"last_page":null`}},
		"data.data": {
			{`,"data":[` + listedCard + `]`, ``}, {`[` + listedCard + `]`, `null`},
			{`[` + listedCard + `]`, `{}`},
		},
		"data.data[]": {{listedCard, `null`}},
		"data": {
			{onePage(listedCard), wiretest.Success(`[]`)},
			{onePage(listedCard), wiretest.Success(`null`)},
		},
	})
	singleCards.unreadable(t, map[string][][2]string{
		"data.id":        {{`"id":"card-1",`, ``}},
		"data.available": {{`"available":"123.450",`, ``}},
		"data.fee":       {{`"1.50"`, `null`}},
		"data.consumption_scene_config": {
			{`[{"name":"online","channel_id":71},{"name":"shop","channel_id":72}]`, `{"message":"none"}`},
		},
		"data": {{singleCard, `[]`}, {singleCard, `false`}},
	})
	cardSecrets.unreadable(t, map[string][][2]string{
		"data.pan": {{`,"pan":"q83vAQ=="`, ``}, {`"q83vAQ=="`, `""`}, {`"q83vAQ=="`, `null`}, {`"q83vAQ=="`, `12`}},
		"data":     {{secretsOfCard, `null`}},
	})
}

func TestCardsAsJSON(t *testing.T) {
	t.Parallel()
	card := listedCardWanted(t)
	card.AccountStatus, card.ConsumptionSceneType = 5, 6
	card.ConsumptionSceneConfig = []cardwire.ConsumptionScene{{"online", 71}}
	wiretest.NoZeroField(t, card)
	cardEncoded := strings.NewReplacer("4931930000001234", "493193******1234", `"123"`, `"***"`).Replace(
		strings.TrimSuffix(listedCard, "}") + `,"account_status":5,"consumption_scene_type":6,` +
			`"consumption_scene_config":[{"name":"online","channel_id":71}]}`)
	page := `{"total":41,"per_page":20,"current_page":1,"last_page":3,"data":[`
	encodes(t, card, cardEncoded)
	encodes(t, &card, cardEncoded)
	zero, err := json.Marshal(cardwire.Card{})
	require.NoError(t, err)
	for _, field := range []string{
		`"bin_id":0`, `"card_no":""`, `"cvv":""`, `"available":"0","pending":0,"frozen":0,"expire_date":"**/****"`,
		`"holder_address":[]`, `"create_time":""`, `"status":0`, `"fee":"0"`, `"physical":0`,
		`"consumption_scene_config":[]`,
	} {
		assert.Contains(t, string(zero), field)
	}
	encodes(t, *pageOf(card), page+cardEncoded+`]}`)
	encodes(t, cardwire.CardPage{}, `{"total":0,"per_page":0,"current_page":0,"last_page":0,"data":[]}`)
	encodes(t, secretsWanted(t), `{"card_no":"493193******1234","cvv":"***","expire_date":"**/****","pan":"***"}`)

	decodes(t, listedCard, listedCardWanted(t), `{"available":"1.000","pending":0,"frozen":0,"fee":"0.00"}`)
	decodes(t, singleCard, singleCardWanted(t), wiretest.ShortCard("a", `,"id":"b"`))
	onePage := page + listedCard + `]}`
	decodes(t, onePage, *pageOf(listedCardWanted(t)), `{"total":1,"current_page":1,"last_page":1}`)
	decodes(t, secretsOfCard, secretsWanted(t), `{"card_no":"493193******1234","cvv":"***"}`)

	operation := cardwire.CardOperation{ID: wiretest.OperationID, ClientTransactionID: wiretest.FreezeID}
	text := `{"id":"` + wiretest.OperationID + `","clientTransactionId":"` + wiretest.FreezeID + `"}`
	encodes(t, operation, text)
	encodes(t, &operation, text)
	decodes(t, text, operation, `{"id":{}}`)
}

// encodes asserts that v is text in JSON.
func encodes(t *testing.T, v any, text string) {
	t.Helper()
	got, err := json.Marshal(v)
	require.NoError(t, err)
	assert.Equal(t, text, string(got))
}

// decodes asserts that text is read as want, and that what is wrong is as unreadable as a
// response, and changes nothing.
func decodes[T any](t *testing.T, text string, want T, wrong string) {
	t.Helper()
	var got T
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	assert.Equal(t, want, got)
	require.ErrorIs(t, json.Unmarshal([]byte(wrong), &got), cardwire.ErrUnreadable)
	assert.Equal(t, want, got)
}

// What a program keeps itself is not a response, and has no base URL.
func TestAMalformedCardOfACacheIsNoResponse(t *testing.T) {
	t.Parallel()
	for cached, want := range map[string]string{
		`{"id":"c1"}`:                  "available is missing",
		`[]`:                           "expected an object",
		`{"id":"c1","id":"c2"}`:        "not strict JSON: a field name appears twice",
		`<!doctype html><html></html>`: "not strict JSON: HTML",
		`{"id":"c1"`:                   "not strict JSON: it ends too early",
	} {
		err := new(cardwire.Card).UnmarshalJSON([]byte(cached))
		require.EqualError(t, err, "cardwire: cannot unmarshal Card: "+want, cached)
		require.ErrorIs(t, err, cardwire.ErrUnreadable, cached)
	}
	err := new(cardwire.BIN).UnmarshalJSON([]byte(`{"id":1,"bin":""}`))
	require.EqualError(t, err, "cardwire: cannot unmarshal BIN: bin: expected an identifier")
}

func TestCardStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[cardwire.CardStatus]string{
		cardwire.CardLocked: "locked", cardwire.CardActive: "active", cardwire.CardFrozen: "frozen",
		cardwire.CardClosed: "closed", cardwire.CardClosing: "closing", cardwire.CardSuspended: "suspended",
		-2: "CardStatus(-2)", 5: "CardStatus(5)",
	} {
		assert.Equal(t, want, status.String())
		assert.Equal(t, want == "frozen" || want == "suspended", status.Blocked(), want)
	}
	assert.Equal(t, []cardwire.CardStatus{-1, 0, 1, 2, 3, 4}, []cardwire.CardStatus{
		cardwire.CardLocked, cardwire.CardActive, cardwire.CardFrozen,
		cardwire.CardClosed, cardwire.CardClosing, cardwire.CardSuspended,
	})
}
