package cardwire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/journal"
)

var ctx = context.Background()

// connect returns a client of the service in process. A program of its own calls
// cardwire.New with the base URL and the key of its account, and a journal of sqljournal.
func connect(service http.RoundTripper, opts ...cardwire.Option) *cardwire.Client {
	overHTTP := cardwire.WithHTTPClient(&http.Client{Transport: service})
	opts = append([]cardwire.Option{overHTTP, cardwire.WithJournal(journal.NewMemory())}, opts...)
	client, err := cardwire.New("https://api.example.com/api/v1", cardwiretest.DefaultKey, opts...)
	check(err)
	return client
}

// fake returns a fake service and a client of it.
func fake(opts ...cardwire.Option) (*cardwiretest.Service, *cardwire.Client) {
	service := cardwiretest.New()
	return service, connect(service, opts...)
}

// check stands for what a program does with an error that it does not expect.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// responding is a service with the same response to every request.
func responding(body string) http.RoundTripper { return wiretest.Always(http.StatusOK, body) }

// textLogger logs without what is empty or differs from run to run.
func textLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if v := a.Value.String(); a.Key == slog.TimeKey || a.Key == "duration" || v == "" || v == "0" {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// payout is a transfer that the fake service accepts.
func payout(orderNo string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: orderNo,
		PayoutCurrency:  "EUR",
		TransferType:    cardwire.TransferTypeC2C,
		PayoutMethod:    cardwire.PayoutMethodBankTransfer,
		TransferAmount:  decimal.RequireFromString("125.00"),
	}
}

// One page, of those cards that are frozen.
func ExampleClient_ListCards() {
	client := connect(cardwiretest.New())

	page, err := client.ListCards(ctx, cardwire.ListCardsParams{
		PageSize: 10, Status: new(cardwire.CardFrozen),
	})
	check(err)
	fmt.Printf("page %d of %d, %d cards\n", page.CurrentPage, page.LastPage, page.Total)
	for _, card := range page.Cards {
		fmt.Println(card.Status, card.Status.Blocked())
	}
	// Output:
	// page 1 of 1, 2 cards
	// frozen true
	// frozen true
}

// All pages, one after the other. The loop resumes where the network failed.
func ExampleClient_AllCards() {
	service := cardwiretest.New(cardwiretest.WithCards(25))
	client := connect(service, cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 0}))

	seen, resumeFrom := 0, 0
	for range 2 {
		for _, err := range client.AllCards(ctx, cardwire.ListCardsParams{PageSize: 10, Page: resumeFrom}) {
			var failure *cardwire.Error
			if errors.As(err, &failure) {
				resumeFrom = failure.Page
				fmt.Println("seen", seen, "cards, to resume from page", resumeFrom)
				break
			}
			if seen++; seen == 20 {
				service.Fail(cardwire.OpListCards, cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
			}
		}
	}
	fmt.Println("seen", seen, "cards")
	// Output:
	// seen 20 cards, to resume from page 3
	// seen 25 cards
}

// Pages come with their totals.
func ExampleClient_AllPages() {
	client := connect(cardwiretest.New(cardwiretest.WithCards(25)))

	for page, err := range client.AllPages(ctx, cardwire.ListCardsParams{PageSize: 10, Page: 2}) {
		check(err)
		fmt.Printf("page %d of %d: %d of %d cards\n", page.CurrentPage, page.LastPage, len(page.Cards), page.Total)
	}
	// Output:
	// page 2 of 3: 10 of 25 cards
	// page 3 of 3: 5 of 25 cards
}

// Three pages are read while one is used. The cards come in the same order.
func ExampleWithPrefetch() {
	client := connect(cardwiretest.New(cardwiretest.WithCards(45)))

	cards := 0
	for _, err := range client.AllCards(ctx, cardwire.ListCardsParams{PageSize: 10}, cardwire.WithPrefetch(3)) {
		check(err)
		cards++
	}
	fmt.Println(cards, "cards")
	// Output:
	// 45 cards
}

// GetCard masks what ListCards shows in full.
func ExampleClient_GetCard() {
	service, client := fake()
	service.SetCard(`{"id":"card-1","available":"250.500"}`)

	card, err := client.GetCard(ctx, "card-1")
	check(err)
	fmt.Println(card.ID, card.Status, card.Number.IsMasked(), card.CVV, card.Expiry)
	// Decimal.String leaves zeros out at the end; StringFixed writes what was sent.
	fmt.Println(card.Available, card.Available.StringFixed(-card.Available.Exponent()), card.Currency)
	// Output:
	// card-1 active true *** **/****
	// 250.5 250.500 USD
}

func ExampleClient_GetCardByOrder() {
	service, client := fake()
	service.SetCard(`{"id":"card-1","order_id":"order-7"}`)

	card, err := client.GetCardByOrder(ctx, "order-7")
	check(err)
	fmt.Println(card.ID)
	// Output: card-1
}

// What a card's holder is shown. GetCard has the number masked, which is enough for a list. GetCardSecrets has it
// encrypted, for whoever has the key. Only ListCards has number, CVV and expiry in full: show them once the
// holder has signed in again, and neither store nor log them.
func Example_showACard() {
	service, client := fake()
	service.SetCard(`{"id":"card-1","card_no":"4288379977000254"}`)

	card, err := client.GetCard(ctx, "card-1")
	check(err)
	fmt.Println("GetCard:", card.Number, card.Number.Last4(), card.CVV, card.Expiry)

	secrets, err := client.GetCardSecrets(ctx, "card-1")
	check(err)
	encrypted, err := secrets.PAN.Ciphertext()
	check(err)
	fmt.Println("GetCardSecrets:", secrets.Number, len(encrypted), "bytes to decrypt")

	for card, err := range client.AllCards(ctx, cardwire.ListCardsParams{}) {
		check(err)
		if card.ID == "card-1" {
			fmt.Println("ListCards:", card.Number.Reveal(), len(card.CVV.Reveal()), "digits,", !card.Expiry.IsMasked())
		}
	}
	// Output:
	// GetCard: 428837******0254 0254 *** **/****
	// GetCardSecrets: 428837******0254 32 bytes to decrypt
	// ListCards: 4288379977000254 3 digits, true
}

// Queues, webhooks and agents call again by themselves. The order number is the intent: it was stored before the
// first call, and comes with each of them. A handler that is called twice then pays once.
func Example_callersThatRetry() {
	service, client := fake()
	pay := func(w http.ResponseWriter, r *http.Request) {
		_, err := client.CreateTransfer(r.Context(), payout(r.FormValue("order")))
		w.WriteHeader(map[cardwire.Step]int{
			cardwire.StepDone:      http.StatusOK,
			cardwire.StepFail:      http.StatusUnprocessableEntity,
			cardwire.StepRetry:     http.StatusServiceUnavailable, // the caller calls again
			cardwire.StepWait:      http.StatusServiceUnavailable,
			cardwire.StepReconcile: http.StatusAccepted, // a person finds out: no call helps
		}[cardwire.NextStep(err)])
	}

	for range 2 {
		response := httptest.NewRecorder()
		pay(response, httptest.NewRequestWithContext(ctx, http.MethodPost, "/pay?order=order-1", nil))
		fmt.Println(response.Code)
	}
	fmt.Println("paid:", service.Executions(cardwire.OpCreateTransfer, "order-1"))
	// Output:
	// 200
	// 200
	// paid: 1
}

// Secrets hide themselves, whatever they are printed with.
func ExampleClient_GetCardSecrets() {
	service, client := fake()
	service.SetCard(`{"id":"card-1"}`)

	secrets, err := client.GetCardSecrets(ctx, "card-1")
	check(err)
	ciphertext, err := secrets.PAN.Ciphertext()
	fmt.Println(secrets.Number.IsMasked(), secrets.CVV, secrets.Expiry, secrets.PAN, len(ciphertext), err)
	// Output: true *** **/**** *** 32 <nil>
}

// Whether a card is frozen or suspended afterwards is undocumented: ask Blocked.
func ExampleClient_FreezeCard() {
	service, client := fake()
	service.SetCard(`{"id":"card-1"}`)

	operation, err := client.FreezeCard(ctx, cardwire.FreezeCardParams{
		CardID: "card-1", ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01",
	})
	fmt.Println(cardwire.NextStep(err), operation.ClientTransactionID, operation.ID != "")
	card, err := client.GetCard(ctx, "card-1")
	check(err)
	fmt.Println(card.Status.Blocked())
	// Output:
	// done 5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01 true
	// true
}

func ExampleClient_CancelOperation() {
	const failedTopUp = "0c5b7a1e-2f4d-4c8a-9b3e-6d1f8a7c2e50"
	service, client := fake()
	service.AddFailedOperation(failedTopUp, "transfer_in")

	fmt.Println(cardwire.NextStep(client.CancelOperation(ctx, failedTopUp)))
	// It is no longer a failed one.
	fmt.Println(cardwire.NextStep(client.CancelOperation(ctx, failedTopUp)))
	// Output:
	// done
	// fail
}

func ExampleClient_RetryOperation() {
	const failedClose = "7e9d3b2a-5c1f-4e6b-8a4d-1b2c3d4e5f6a"
	service, client := fake()
	service.AddFailedOperation(failedClose, "close")

	fmt.Println(cardwire.NextStep(client.RetryOperation(ctx, failedClose)))
	// Output: done
}

func ExampleClient_ListBINs() {
	client := connect(cardwiretest.New())

	bins, err := client.ListBINs(ctx)
	check(err)
	fmt.Println(bins[0].BIN, bins[0].Network, bins[0].Currency, bins[0].BusinessModes, bins[0].AuthRequirement.Level)
	for _, tier := range bins[0].ForeignFees {
		fmt.Println("from", tier.Low, "fee", tier.Fee, "rate", tier.FeeRate)
	}
	// Output:
	// 428837 VISA USD [B2B B2C] base
	// from 0 fee 0.5 rate 0.015
	// from 100 fee 1 rate 0.0125
	// from 1000 fee 2.5 rate 0.01
}

func ExampleClient_ListBINsUnderMaintenance() {
	client := connect(cardwiretest.New())

	digits, err := client.ListBINsUnderMaintenance(ctx)
	fmt.Println(digits, err)
	// Output: [53270366 65312478] <nil>
}

func ExampleClient_CardCapacity() {
	client := connect(responding(`{"code":200,"msg":"success","data":500}`))

	capacity, err := client.CardCapacity(ctx)
	fmt.Println(capacity, err)
	// Output: 500 <nil>
}

// Each part of a country is a state of its own.
func ExampleClient_ListRemittanceStates() {
	client := connect(cardwiretest.New())

	states, err := client.ListRemittanceStates(ctx)
	check(err)
	for _, s := range states {
		if s.Country == "DE" {
			fmt.Println(s.Code, s.Name, s.CountryStandardCode)
		}
	}
	// Output:
	// BY Bayern DEU
	// NW Nordrhein-Westfalen DEU
}

// A currency can be paid out in several countries, at different fees.
func ExampleClient_ListRemittanceCurrencies() {
	client := connect(cardwiretest.New())

	currencies, err := client.ListRemittanceCurrencies(ctx)
	check(err)
	for _, c := range currencies {
		if c.PayoutCurrency == "EUR" {
			fmt.Println(c.Country, c.TransferType, c.PayoutMethod, c.FeeRate, c.FixedFee, c.MinQuota)
		}
	}
	// Output:
	// DEU C2C Bank Transfer 0.0035 1.5 10
	// FRA C2C Bank Transfer 0.004 1.5 10
}

// NextStep returns what to do with the order. Here the transfer is executed, and the response
// is lost.
func ExampleClient_CreateTransfer() {
	service, client := fake()
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)

	// The order number was stored before: all calls for the order are made with it.
	transfer, err := client.CreateTransfer(ctx, payout("order-1"))
	switch cardwire.NextStep(err) {
	case cardwire.StepDone:
		fmt.Println("submitted:", transfer) // nil if an earlier call executed it, or if its response is unreadable
	case cardwire.StepRetry:
		fmt.Println("to be sent again later, with the same number:", err)
	case cardwire.StepFail:
		fmt.Println("failed:", err)
	case cardwire.StepWait:
		fmt.Println("in progress:", err)
	case cardwire.StepReconcile:
		fmt.Println("unresolved: ask the service")
	}
	fmt.Println("times it was executed:", service.Executions(cardwire.OpCreateTransfer, "order-1"))
	// Output:
	// unresolved: ask the service
	// times it was executed: 1
}

// A program that does what NextStep returns resolves every order once.
func ExampleNextStep() {
	service, client := fake()
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "7"}, 1)
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultStatus, Status: 422}, 1)
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultHTML, Executed: true}, 1)

	for _, orderNo := range []string{"order-1", "order-2", "order-3", "order-4", "order-4"} {
		_, err := client.CreateTransfer(ctx, payout(orderNo))
		fmt.Println(orderNo, cardwire.NextStep(err))
	}
	// Output:
	// order-1 retry
	// order-2 fail
	// order-3 reconcile
	// order-4 done
	// order-4 done
}

// An outbox keeps a transfer until it is sent. Printed, it shows neither people nor accounts.
func ExampleTransferParams_RevealJSON() {
	kept, err := payout("order-1").RevealJSON()
	check(err)

	var p cardwire.TransferParams
	check(json.Unmarshal(kept, &p))
	fmt.Println(p)
	// Output:
	// cardwire.TransferParams{MerchantOrderNo: order-1, PayoutCurrency: EUR, TransferAmount: 125.00, ...}
}

func ExampleClient_UploadImage() {
	service, client := fake()

	front := []byte("\x89PNG\r\n\x1a\n...") // as os.ReadFile returns it
	image, err := client.UploadImage(ctx, cardwire.UploadImageParams{Filename: "front.png", Data: front})
	fmt.Println(cardwire.NextStep(err), image.AttachmentKey != "", service.Ledger()[0].Size)
	// Output: done true 11
}

// Identity images for a new card: what its BIN requires, an upload for each, and the
// operation that creates the card. The API names that one but does not specify it: its
// path and its fields are made up here.
func ExampleAuthRequirement_Missing() {
	service, client := fake()
	service.Handle(http.MethodPost, "/cards/create", func(r *http.Request) (int, string, any) {
		both := r.FormValue("idFrontAttachmentKey") != "" && r.FormValue("selfieAttachmentKey") != ""
		return 200, "success", map[string]any{"images": both}
	})

	bins, err := client.ListBINs(ctx)
	check(err)
	bin := bins[slices.IndexFunc(bins, func(b cardwire.BIN) bool {
		return b.AuthRequirement.Level == "advanced"
	})]

	identity := map[string]string{"idType": "passport"}
	for _, field := range bin.AuthRequirement.Missing(identity) {
		fromCardholder := []byte("\x89PNG\r\n\x1a\n...")
		uploaded, err := client.UploadImage(ctx, cardwire.UploadImageParams{
			Filename: field + ".png", Data: fromCardholder,
		})
		check(err)
		fmt.Println("uploaded", field)
		identity[field] = uploaded.AttachmentKey
	}

	form := url.Values{"bin_id": {strconv.FormatInt(bin.ID, 10)}}
	for field, value := range identity {
		form.Set(field, value)
	}
	created, err := cardwire.Call[struct{ Images bool }](ctx, client, cardwire.Request{
		Op: "CreateCard", Method: http.MethodPost, Path: "/cards/create", Form: form, Reference: "card-order-1",
	})
	fmt.Println(cardwire.NextStep(err), "with both images:", created.Images)
	// Output:
	// uploaded idFrontAttachmentKey
	// uploaded selfieAttachmentKey
	// done with both images: true
}

// Operations that the API names but does not specify, with the same outcomes as the
// others. Path, fields and names are then yours to know.
func ExampleCall() {
	client := connect(responding(`{"code":200,"msg":"success","data":{"balance":"12.50"}}`))

	type wallet struct{ Balance string }
	w, err := cardwire.Call[wallet](ctx, client, cardwire.Request{
		Op: "Wallet", Method: http.MethodGet, Path: "/wallet",
	})
	fmt.Println(w.Balance, err)
	// Output: 12.50 <nil>
}

func ExampleNewFromEnv() {
	// The surroundings of a program do this.
	check(os.Setenv("CARDWIRE_BASE_URL", "https://api.example.com/api/v1"))
	check(os.Setenv("CARDWIRE_API_KEY", "a-key-from-the-console"))

	client, err := cardwire.NewFromEnv(cardwire.WithMaskedCards())
	fmt.Println(client, err) // no key
	// Output: cardwire.Client(https://api.example.com/api/v1) <nil>
}

// Reads are retried. Writes are not, whatever the policy.
func ExampleWithRetry() {
	service := cardwiretest.New()
	service.Fail(cardwire.OpListBINs, cardwiretest.Fault{Status: http.StatusServiceUnavailable}, 3)
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Status: http.StatusServiceUnavailable}, 3)
	policy := cardwire.DefaultRetryPolicy()
	policy.MaxRetries, policy.MinDelay = 3, time.Millisecond
	client := connect(service, cardwire.WithRetry(policy))

	bins, err := client.ListBINs(ctx)
	fmt.Println(len(bins), err, len(service.Requests()))

	_, err = client.CreateTransfer(ctx, payout("order-1"))
	fmt.Println(cardwire.NextStep(err), len(service.Requests()))
	// Output:
	// 7 <nil> 4
	// reconcile 5
}

func ExampleWithLogger() {
	service, client := fake(cardwire.WithLogger(textLogger()))
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultHTML}, 1)

	_, _ = client.ListBINs(ctx)
	_, _ = client.CreateTransfer(ctx, payout("order-1"))
	// Output:
	// level=DEBUG msg="cardwire: attempt" operation=ListBINs status=200
	// level=DEBUG msg="cardwire: call" operation=ListBINs outcome=success code=200
	// level=DEBUG msg="cardwire: attempt" operation=CreateTransfer status=502
	// level=ERROR msg="cardwire: a write failed" operation=CreateTransfer reference=order-1 outcome=unknown step=reconcile status=502 cause="cardwire: the response is from a gateway in front of the service"
}

// What a counter or a tracer is fed with.
func ExampleWithObserver() {
	service := cardwiretest.New()
	service.Fail(cardwire.OpCardCapacity, cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	client := connect(service, cardwire.WithObserver(cardwire.Observer{
		CallEnd: func(_ context.Context, c cardwire.CallInfo, r cardwire.CallResult) {
			fmt.Println(c.Op, "read only:", c.ReadOnly, "requests:", r.Attempts, "error:", r.Err != nil)
		},
	}))

	_, _ = client.CardCapacity(ctx)
	_, _ = client.CreateTransfer(ctx, payout("order-1"))
	// Output:
	// CardCapacity read only: true requests: 2 error: false
	// CreateTransfer read only: false requests: 1 error: false
}

// Whatever becomes of a client, an order number is not sent a second time while the
// journal is there. One that outlives the program is in a database: see sqljournal.
func ExampleWithJournal() {
	service := cardwiretest.New()
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	memory := journal.NewMemory()

	_, err := connect(service, cardwire.WithJournal(memory)).CreateTransfer(ctx, payout("order-1"))
	fmt.Println(cardwire.NextStep(err), "unresolved:", memory.Unresolved()[0].Amount)

	// Another client knows the order from the journal.
	_, err = connect(service, cardwire.WithJournal(memory)).CreateTransfer(ctx, payout("order-1"))
	fmt.Println(cardwire.NextStep(err), "used before:", errors.Is(err, cardwire.ErrDuplicateIntent))
	fmt.Println("requests:", len(service.Requests()))
	// Output:
	// reconcile unresolved: 125
	// reconcile used before: true
	// requests: 1
}

// The names of the query parameters are undocumented. A wrong one is noticed, and corrected
// here.
func ExampleWithProfile() {
	ignores := responding(`{"code":200,"msg":"success",` +
		`"data":{"total":40,"per_page":20,"current_page":1,"last_page":2,"data":[]}}`)
	_, err := connect(ignores).ListCards(ctx, cardwire.ListCardsParams{Page: 2})
	fmt.Println("ignored:", errors.Is(err, cardwire.ErrParameterIgnored))

	profile := cardwire.DefaultProfile()
	profile.PageParam = "pageNo"
	service := cardwiretest.New(cardwiretest.WithProfile(profile))
	client := connect(service, cardwire.WithProfile(func(p *cardwire.Profile) { p.PageParam = "pageNo" }))
	page, err := client.ListCards(ctx, cardwire.ListCardsParams{Page: 2})
	check(err)
	fmt.Println(page.CurrentPage, service.Requests()[0].Query)
	// Output:
	// ignored: true
	// 2 pageNo=***
}

// Numbers and CVVs never reach the program, not even scrambled.
func ExampleWithMaskedCards() {
	client := connect(cardwiretest.New(), cardwire.WithMaskedCards())

	page, err := client.ListCards(ctx, cardwire.ListCardsParams{PageSize: 1})
	check(err)
	fmt.Println(page.Cards[0].Number.IsMasked(), page.Cards[0].CVV.IsMasked())
	// Output: true true
}
