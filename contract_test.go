package cardwire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// Programs outside this repository are compiled against the names below. What
// stands here must not change within a major version: this file then no longer
// compiles, and that is the test.

// The functions.
var (
	_ func(baseURL, apiKey string, opts ...cardwire.Option) (*cardwire.Client, error) = cardwire.New
	_ func(opts ...cardwire.Option) (*cardwire.Client, error)                         = cardwire.NewFromEnv

	_ func(cardwire.Doer) cardwire.Option                         = cardwire.WithHTTPClient
	_ func(*http.Transport) cardwire.Option                       = cardwire.WithTransport
	_ func(func(context.Context) (string, error)) cardwire.Option = cardwire.WithKeySource
	_ func(cardwire.RetryPolicy) cardwire.Option                  = cardwire.WithRetry
	_ func(cardwire.Limiter) cardwire.Option                      = cardwire.WithLimiter
	_ func(*slog.Logger) cardwire.Option                          = cardwire.WithLogger
	_ func(cardwire.Observer) cardwire.Option                     = cardwire.WithObserver
	_ func(cardwire.Journal) cardwire.Option                      = cardwire.WithJournal
	_ func(cardwire.Profile) cardwire.Option                      = cardwire.WithProfile
	_ func() cardwire.Option                                      = cardwire.WithMaskedCards
	_ func() cardwire.Option                                      = cardwire.WithFreshConnections
	_ func(product string) cardwire.Option                        = cardwire.WithUserAgent
	_ func(n int64) cardwire.Option                               = cardwire.WithMaxResponseBytes
	_ func(time.Duration) cardwire.Option                         = cardwire.WithTimeout
	_ func() cardwire.Option                                      = cardwire.WithInsecureHTTP
	_ func() cardwire.Option                                      = cardwire.WithStrictDrift
	_ func(*cardwire.Response) cardwire.CallOption                = cardwire.WithResponse
	_ func(name, value string) cardwire.CallOption                = cardwire.WithHeader
	_ func() cardwire.CallOption                                  = cardwire.WithoutRetry
	_ func(int) cardwire.CallOption                               = cardwire.WithPrefetch
	_ func() cardwire.RetryPolicy                                 = cardwire.DefaultRetryPolicy
	_ func() cardwire.Profile                                     = cardwire.DefaultProfile
	_ func(*slog.Logger) cardwire.Observer                        = cardwire.DriftLogger
	_ contractCall[int64]                                         = cardwire.Call[int64]
	_ contractCall[map[string]any]                                = cardwire.Call[map[string]any]
	_ func(string) (cardwire.CardNumber, error)                   = cardwire.NewCardNumber
	_ func(string) (cardwire.CVV, error)                          = cardwire.NewCVV
	_ func(time.Time) cardwire.Date                               = cardwire.DateOf
	_ func(string) (cardwire.Date, error)                         = cardwire.ParseDate
	_ func(path string) (cardwire.UploadImageParams, error)       = cardwire.ImageFile
	_ func(filename string, b []byte) cardwire.UploadImageParams  = cardwire.ImageBytes
)

type contractCall[T any] func(context.Context, *cardwire.Client, cardwire.Request, ...cardwire.CallOption) (T, error)

// The operations.
var (
	_ func(*cardwire.Client) = (*cardwire.Client).CloseIdleConnections

	_ contractOpWith[cardwire.ListCardsParams, *cardwire.CardPage]                                                              = (*cardwire.Client).ListCards
	_ contractOpWith[string, *cardwire.Card]                                                                                    = (*cardwire.Client).GetCard
	_ contractOpWith[string, *cardwire.Card]                                                                                    = (*cardwire.Client).GetCardByOrder
	_ contractOpWith[string, *cardwire.CardSecrets]                                                                             = (*cardwire.Client).GetCardSecrets
	_ contractOpWith[cardwire.FreezeCardParams, *cardwire.CardOperation]                                                        = (*cardwire.Client).FreezeCard
	_ contractOpWith[cardwire.TransferParams, *cardwire.Transfer]                                                               = (*cardwire.Client).CreateTransfer
	_ contractOpWith[cardwire.UploadImageParams, *cardwire.UploadedImage]                                                       = (*cardwire.Client).UploadImage
	_ contractOp[[]cardwire.BIN]                                                                                                = (*cardwire.Client).ListBINs
	_ contractOp[[]string]                                                                                                      = (*cardwire.Client).ListBINsUnderMaintenance
	_ contractOp[int64]                                                                                                         = (*cardwire.Client).CardCapacity
	_ contractOp[[]cardwire.RemittanceState]                                                                                    = (*cardwire.Client).ListRemittanceStates
	_ contractOp[[]cardwire.RemittanceCurrency]                                                                                 = (*cardwire.Client).ListRemittanceCurrencies
	_ func(*cardwire.Client, context.Context, string, ...cardwire.CallOption) error                                             = (*cardwire.Client).CancelOperation
	_ func(*cardwire.Client, context.Context, string, ...cardwire.CallOption) error                                             = (*cardwire.Client).RetryOperation
	_ func(*cardwire.Client, context.Context, cardwire.ListCardsParams, ...cardwire.CallOption) iter.Seq2[cardwire.Card, error] = (*cardwire.Client).AllCards
)

type (
	contractOp[R any]        func(*cardwire.Client, context.Context, ...cardwire.CallOption) (R, error)
	contractOpWith[P, R any] func(*cardwire.Client, context.Context, P, ...cardwire.CallOption) (R, error)
)

// The other methods. Those of values must be callable on what is not addressable,
// a map's element say, so they are named without a pointer.
var (
	_ func(*cardwire.Response) []byte = (*cardwire.Response).RevealBody

	_ func(cardwire.Outcome) string          = cardwire.Outcome.String
	_ func(*cardwire.Error) string           = (*cardwire.Error).Error
	_ func(*cardwire.Error) error            = (*cardwire.Error).Unwrap
	_ func(*cardwire.Error, error) bool      = (*cardwire.Error).Is
	_ func(*cardwire.DuplicateIntent) string = (*cardwire.DuplicateIntent).Error

	_ func(cardwire.CardNumber) string = cardwire.CardNumber.Reveal
	_ func(cardwire.CardNumber) string = cardwire.CardNumber.Masked
	_ func(cardwire.CardNumber) string = cardwire.CardNumber.Last4
	_ func(cardwire.CardNumber) string = cardwire.CardNumber.BIN
	_ func(cardwire.CardNumber) bool   = cardwire.CardNumber.IsMasked
	_ func(cardwire.CVV) string        = cardwire.CVV.Reveal
	_ func(cardwire.CVV) bool          = cardwire.CVV.IsMasked

	_ func(cardwire.EncryptedPAN) string          = cardwire.EncryptedPAN.Reveal
	_ func(cardwire.EncryptedPAN) ([]byte, error) = cardwire.EncryptedPAN.Ciphertext

	_ func(cardwire.Expiry) bool                                 = cardwire.Expiry.IsMasked
	_ func(cardwire.Expiry) string                               = cardwire.Expiry.String
	_ func(cardwire.Date) bool                                   = cardwire.Date.IsZero
	_ func(cardwire.Date) string                                 = cardwire.Date.String
	_ func(cardwire.DateTime, *time.Location) time.Time          = cardwire.DateTime.In
	_ func(cardwire.DateTime) string                             = cardwire.DateTime.String
	_ func(cardwire.CardStatus) string                           = cardwire.CardStatus.String
	_ func(cardwire.CardStatus) bool                             = cardwire.CardStatus.Blocked
	_ func(cardwire.AuthRequirement, map[string]string) []string = cardwire.AuthRequirement.Missing

	_ func(cardwire.CardSecrets, func([]byte) ([]byte, error)) (cardwire.CardNumber, error) = cardwire.CardSecrets.DecryptPAN
)

// contractSealed is what every sealed value does, whoever prints, marshals or logs it.
type contractSealed interface {
	fmt.Stringer
	fmt.Formatter
	json.Marshaler
	slog.LogValuer
	MarshalText() ([]byte, error)
}

var _ = []contractSealed{cardwire.CardNumber{}, cardwire.CVV{}, cardwire.EncryptedPAN{}}

// A transfer can be kept before it is sent, and read again, but not by accident.
var (
	_ json.Marshaler   = cardwire.TransferParams{}
	_ json.Unmarshaler = (*cardwire.TransferParams)(nil)

	_ func(cardwire.TransferParams) ([]byte, error) = cardwire.TransferParams.RevealJSON
)

// The interfaces have these methods, no more and no fewer: each can be
// assigned to the other.
func _() {
	type (
		doer interface {
			Do(*http.Request) (*http.Response, error)
		}
		limiter interface{ Wait(context.Context) error }
		journal interface {
			Begin(context.Context, cardwire.Intent) error
			End(context.Context, cardwire.Intent, cardwire.IntentResult) error
		}
	)
	var (
		_ doer             = cardwire.Doer(nil)
		_ cardwire.Doer    = doer(nil)
		_ cardwire.Doer    = (*http.Client)(nil)
		_ limiter          = cardwire.Limiter(nil)
		_ cardwire.Limiter = limiter(nil)
		_ journal          = cardwire.Journal(nil)
		_ cardwire.Journal = journal(nil)
	)
}

// The sentinels.
var _ = []*error{
	&cardwire.ErrOutcomeUnknown, &cardwire.ErrNotSent, &cardwire.ErrRefused, &cardwire.ErrExecuted,
	&cardwire.ErrUnauthorized, &cardwire.ErrNotFound, &cardwire.ErrRateLimited,
	&cardwire.ErrInvalidParams, &cardwire.ErrUnreadable, &cardwire.ErrResponseTooLarge, &cardwire.ErrRedirect,
	&cardwire.ErrParameterIgnored, &cardwire.ErrDuplicateIntent, &cardwire.ErrOtherBody, &cardwire.ErrDrift,
}

// exactly has the exact type of its argument, where an untyped constant would fit
// many.
func exactly[T any](v T) *T { return &v }

// The constants: typed, but for the codes that are texts.
var (
	_ = []*cardwire.Outcome{
		exactly(cardwire.OutcomeUnknown), exactly(cardwire.OutcomeNotSent), exactly(cardwire.OutcomeRefused), exactly(cardwire.OutcomeExecuted),
	}
	_ = []*cardwire.CardStatus{
		exactly(cardwire.CardLocked), exactly(cardwire.CardActive), exactly(cardwire.CardFrozen),
		exactly(cardwire.CardClosed), exactly(cardwire.CardClosing), exactly(cardwire.CardSuspended),
	}
	_ = []*cardwire.TransferStatus{exactly(cardwire.TransferWaitProcess)}
)

type contractText string

const (
	_ contractText = cardwire.TransferTypeC2C
	_ contractText = cardwire.PayoutMethodBankTransfer
)

// Values that are fit to be map keys and to be compared.
func mustCompare[T comparable]() bool { return true }

var _ = []bool{
	mustCompare[cardwire.CardNumber](), mustCompare[cardwire.CVV](), mustCompare[cardwire.EncryptedPAN](),
	mustCompare[cardwire.Expiry](), mustCompare[cardwire.Date](), mustCompare[cardwire.DateTime](),
	mustCompare[cardwire.Address](), mustCompare[cardwire.RemittanceState](), mustCompare[cardwire.Transfer](),
}

var _ = contractCompiles

// contractCompiles is never called: that it compiles says that the structs have
// these fields. The variables have the exact types of the fields: unlike a
// constant, a variable does not take another type on.
func contractCompiles() {
	var (
		text     string
		truth    bool
		number   int
		number64 int64
		amount   decimal.Decimal
		moment   time.Time
		span     time.Duration
		texts    []string
		numbers  []int
		byText   map[string]string
		raw      json.RawMessage
		raws     []json.RawMessage
		values   url.Values
		anything any
		failure  error
		header   http.Header

		outcome  cardwire.Outcome
		status   cardwire.CardStatus
		attempts []cardwire.Attempt
		date     cardwire.Date
	)

	_ = cardwire.RetryPolicy{MaxRetries: number, MinDelay: span, MaxDelay: span, MaxRetryAfter: span, Attempt: span}
	_ = cardwire.Request{
		Op: text, Method: text, Path: text, Query: values, Form: values, JSON: anything, Write: truth, Reference: text,
	}
	_ = cardwire.Response{HTTPStatus: number, Header: header, Code: number, Message: text, Attempts: attempts}
	_ = cardwire.Profile{
		LimitParam: text, PageParam: text, StatusParam: text, CardBINParam: text, SubAccountParam: text,
		CreatedFromParam: text, CreatedToParam: text, TransactedFromParam: text, TransactedToParam: text,
		CardIDParam: text, RetryAction: text, RefusedCodes: numbers, RefusedStatuses: numbers,
		TrustReplies: truth, ServerDeduplicates: truth,
	}
	_ = cardwire.Observer{
		CallStart:    (func(context.Context, cardwire.CallInfo) context.Context)(nil),
		CallEnd:      (func(context.Context, cardwire.CallInfo, cardwire.CallResult))(nil),
		Attempt:      (func(context.Context, cardwire.CallInfo, cardwire.Attempt))(nil),
		Drift:        (func(context.Context, cardwire.CallInfo, cardwire.Drift))(nil),
		JournalError: (func(context.Context, cardwire.CallInfo, error))(nil),
	}
	_ = cardwire.CallInfo{Op: text, Method: text, Path: text, Reference: text, Write: truth}
	_ = cardwire.CallResult{
		HTTPStatus: number, Code: number, Outcome: outcome, Duration: span, Attempts: number, Err: failure,
	}
	_ = cardwire.Drift{Path: text, Kind: text}
	_ = cardwire.Error{
		Op: text, Outcome: outcome, HTTPStatus: number, Code: number, Message: text, RequestID: text,
		Reference: text, Page: number, RetryAfter: span, Attempts: attempts,
	}
	_ = cardwire.Attempt{Start: moment, Duration: span, Phase: text, HTTPStatus: number, Wait: span}
	_ = cardwire.Expiry{Year: number, Month: time.January}
	_ = cardwire.Date{Year: number, Month: time.January, Day: number}
	_ = cardwire.DateTime{Date: date, Hour: number, Minute: number, Second: number}
	_ = cardwire.Address{City: text, State: text, Country: text, PostalCode: text, Line1: text, Line2: text}
	_ = cardwire.Card{
		ID: text, TradeID: text, Label: text, BINID: number64, CardBIN: text,
		Number: cardwire.CardNumber{}, CVV: cardwire.CVV{}, Expiry: cardwire.Expiry{}, Currency: text,
		Available: amount, Pending: amount, Frozen: amount, Fee: amount,
		HolderUsername: text, HolderAddress: (*cardwire.Address)(nil), HolderPhone: text, HolderPhoneCode: text,
		HolderEmail: text, CreateTime: cardwire.DateTime{}, UpdateTime: cardwire.DateTime{}, Status: status,
		Remark: text, DestroyReason: text, Nickname: text, Physical: truth, PhysicalStatus: number,
		DeliverStatus: number, PlatformWaybillNumber: text, PlatformWaybillCompany: text, AccountStatus: number,
		ConsumptionSceneType: number, ConsumptionSceneConfig: ([]cardwire.ConsumptionScene)(nil),
	}
	_ = cardwire.ConsumptionScene{Name: text, ChannelID: number64}
	_ = cardwire.CardPage{
		Total: number, PerPage: number, CurrentPage: number, LastPage: number, Cards: ([]cardwire.Card)(nil),
	}
	_ = cardwire.ListCardsParams{
		Limit: number, Page: number, SubAccountID: text, Status: exactly(status), CardBIN: text,
		CreatedFrom: date, CreatedTo: date, TransactedFrom: date, TransactedTo: date,
	}
	_ = cardwire.CardSecrets{
		Number: cardwire.CardNumber{}, CVV: cardwire.CVV{}, Expiry: cardwire.Expiry{}, PAN: cardwire.EncryptedPAN{},
	}
	_ = cardwire.FreezeCardParams{CardID: text, ClientTransactionID: text}
	_ = cardwire.CardOperation{ID: text, ClientTransactionID: text}
	_ = cardwire.BIN{
		ID: number64, BIN: text, Type: text, Name: text, Network: text, Country: text, Currency: text,
		AVS: truth, ThreeDS: truth, DayPurchaseLimit: amount, SinglePurchaseLimit: amount,
		LifetimePurchaseLimit: amount, Maintain: truth, Status: truth, API: truth, Physical: truth, Weight: number64,
		ForeignFees: ([]cardwire.FeeTier)(nil), AuthFeeConfig: raw, RefundFeeConfig: raw, ReversalFeeConfig: raw,
		CashbackFeeConfig: raws, ApplePay: truth, GoogleWallet: truth, CardCount: number64, CardCountLimited: truth,
		BusinessModes: texts, AuthLevel: number, CreateAmount: amount, CardDepositFee: amount,
		AllowCreate: truth, AllowIn: truth, AllowOut: truth, AllowSuspend: truth,
		AllowEnable: truth, AllowFrozen: truth, AllowUnfrozen: truth, AllowDestroy: truth,
		CreateMinAmount: amount, CreateMaxAmount: amount, RechargeMinAmount: amount, RechargeMaxAmount: amount,
		WithdrawMinAmount: amount, WithdrawMaxAmount: amount, RefuseTimes: amount, RefuseRate: amount,
		Scenes: texts, AuthRequirement: cardwire.AuthRequirement{},
	}
	_ = cardwire.FeeTier{
		Range: text, Low: amount, High: amount, Fee: amount, FeeRate: amount, ExtraFee: amount, ExtraFeeRate: amount,
		Bounded: truth,
	}
	_ = cardwire.AuthRequirement{Level: text, Fields: ([]cardwire.AuthField)(nil)}
	_ = cardwire.AuthField{Field: text, Required: truth, Description: text}
	_ = cardwire.RemittanceState{Code: text, Name: text, Country: text, CountryStandardCode: text}
	_ = cardwire.RemittanceCurrency{
		ID: number64, PayoutCurrency: text, TransferTypeID: number64, TransferType: text, PayoutMethodID: number64,
		PayoutMethod: text, Country: text, CountryCode: text, FeeRate: amount, FixedFee: amount, MinQuota: amount,
		MaxQuota: amount, YearTransferAmountQuota: amount,
	}
	_ = cardwire.TransferParams{
		MerchantOrderNo: text, PayoutCurrency: text, TransferType: text, PayoutMethod: text,
		SenderBeneficiaryRelationship: text, TransferAmount: amount, SenderSourceOfFund: text,
		PurposeOfRemittance: text, SenderFirstName: text, SenderLastName: text, SenderGender: text,
		SenderMobileNumber: text, SenderIDType: text, SenderIDNumber: text, SenderDateOfBirth: date,
		SenderNationality: text, SenderIDIssueCountry: text, SenderCountry: text, SenderAddress: text,
		ReceiverNativeFirstName: text, ReceiverNativeLastName: text, ReceiverIDType: text, ReceiverIDNumber: text,
		ReceiverMobileNumber: text, ReceiverBankAccountNumber: text, Extra: byText,
	}
	_ = cardwire.Transfer{MerchantOrderNo: text, APIOrderNo: text, Status: cardwire.TransferStatus("")}
	_ = cardwire.UploadImageParams{
		Filename: text, ContentType: text, Size: number64, Open: (func() (io.ReadCloser, error))(nil),
	}
	_ = cardwire.UploadedImage{AttachmentKey: text}
	_ = cardwire.Intent{Op: text, Reference: text, BodySHA256: text, Time: moment, Unique: truth}
	_ = cardwire.IntentResult{Outcome: outcome, ServiceID: text}
	_ = cardwire.DuplicateIntent{Outcome: outcome}
}

func TestTheConstantsKeepTheirValues(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []int{0, 1, 2, 3}, []int{
		int(cardwire.OutcomeUnknown), int(cardwire.OutcomeNotSent), int(cardwire.OutcomeRefused), int(cardwire.OutcomeExecuted),
	})
	assert.Equal(t, []int{-1, 0, 1, 2, 3, 4}, []int{
		int(cardwire.CardLocked), int(cardwire.CardActive), int(cardwire.CardFrozen),
		int(cardwire.CardClosed), int(cardwire.CardClosing), int(cardwire.CardSuspended),
	})
	assert.Equal(t, "3", cardwire.TransferTypeC2C)
	assert.Equal(t, "1", cardwire.PayoutMethodBankTransfer)
	assert.Equal(t, cardwire.TransferStatus("wait_process"), cardwire.TransferWaitProcess)
}

// What an option changes is no caller's to name, so that options can grow.
func TestOptionsAreFunctionsOfThisPackageOnly(t *testing.T) {
	t.Parallel()
	option := reflect.TypeFor[cardwire.Option]()
	require.Equal(t, "func(*cardwire.config) error", underlying(option))
	callOption := reflect.TypeFor[cardwire.CallOption]()
	require.Equal(t, "func(*cardwire.call)", underlying(callOption))
}

func underlying(f reflect.Type) string {
	var in, out []reflect.Type
	for i := range f.NumIn() {
		in = append(in, f.In(i))
	}
	for i := range f.NumOut() {
		out = append(out, f.Out(i))
	}
	return reflect.FuncOf(in, out, f.IsVariadic()).String()
}
