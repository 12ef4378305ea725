package contract

import (
	"encoding/json"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

func day(year int, month time.Month, d int) cardwire.Date {
	return cardwire.Date{Year: year, Month: month, Day: d}
}

// fullTransfer fills in every field of the API.
func fullTransfer() cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: "order-7", PayoutCurrency: "EUR", TransferType: "3", PayoutMethod: "1",
		SenderBeneficiaryRelationship: "4", TransferAmount: dec("100.25"), SenderSourceOfFund: "2", PurposeOfRemittance: "7",
		SenderFirstName: "Ada", SenderLastName: "Lovelace", SenderGender: "F", SenderMobileNumber: "447000000000",
		SenderIDType: "1", SenderIDNumber: "X1234567", SenderDateOfBirth: day(1990, 12, 10), SenderNationality: "GB",
		SenderIDIssueCountry: "826", SenderCountry: "GB", SenderAddress: "12 St James's Square",
		ReceiverNativeFirstName: "Jörg", ReceiverNativeLastName: "Weiß", ReceiverIDType: "1", ReceiverIDNumber: "L01X00T47",
		ReceiverMobileNumber: "491700000000", ReceiverBankAccountNumber: "DE89370400440532013000",
	}
}

// The expected results of the calls.

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

// must unwraps a constructor that fails only if the literal given to it is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func at(date cardwire.Date, hour, minute, second int) cardwire.DateTime {
	return cardwire.DateTime{Date: date, Hour: hour, Minute: minute, Second: second}
}

// wantSingle is card-1 as Get card gives it.
func wantSingle() *cardwire.Card {
	return &cardwire.Card{
		ID: "card-1", TradeID: "trade-1", Label: "marketing/1", CardBIN: "428837",
		Number: must(cardwire.NewCardNumber("428837******0003")), CVV: must(cardwire.NewCVV("***")),
		Currency: "USD", Available: dec("1250.500"), Pending: dec("12.5"), Frozen: dec("0.25"), Fee: dec("1.50"),
		HolderUsername: `Zoë "Z" Ødegård`,
		HolderAddress: &cardwire.Address{
			City: "Oslo", State: "OS", Country: "NO", PostalCode: "0150", Line1: "Karl Johans gate 1", Line2: "H0201",
		},
		HolderPhone: "40012345", HolderPhoneCode: "+47", HolderEmail: "zoe@example.no",
		CreateTime: at(day(2025, 1, 2), 3, 4, 5), Status: cardwire.CardSuspended,
		Physical: true, PhysicalStatus: 2, DeliverStatus: 3, PlatformWaybillNumber: "WB1", PlatformWaybillCompany: "DHL",
		AccountStatus: 4, ConsumptionSceneType: 5,
		ConsumptionSceneConfig: []cardwire.ConsumptionScene{{Name: "Ads", ChannelID: 7}},
	}
}

func wantFrozen() *cardwire.Card {
	card := wantSingle()
	card.Status = cardwire.CardFrozen
	return card
}

// wantPage is the second of the two cards that the filters admit.
func wantPage() *cardwire.CardPage {
	card := *wantSingle()
	card.AccountStatus, card.ConsumptionSceneType, card.ConsumptionSceneConfig = 0, 0, nil
	card.Number, card.CVV = must(cardwire.NewCardNumber(canary)), must(cardwire.NewCVV("907"))
	card.Expiry = cardwire.Expiry{Year: 2028, Month: 9}
	card.BINID, card.UpdateTime = 101, at(day(2025, 2, 3), 4, 5, 6)
	card.Remark, card.DestroyReason, card.Nickname = "checked", "lost", "travel"
	return &cardwire.CardPage{Total: 2, PerPage: 1, CurrentPage: 2, LastPage: 2, Cards: []cardwire.Card{card}}
}

// wantNumbers are total, per_page, current_page and last_page, and the cards of that page.
var wantNumbers = []any{10, 4, 2, 3, "other-status", "other-bin", "made-before", "made-after"}

// wantSingleEmpty is card-2, which holds as little as a card can.
func wantSingleEmpty() *cardwire.Card {
	return &cardwire.Card{
		ID: "card-2", TradeID: "trade-2", CardBIN: "49387519",
		Number: must(cardwire.NewCardNumber("493875******0013")), CVV: must(cardwire.NewCVV("***")),
		Currency: "USD", Available: dec("0.000"), Pending: dec("0"), Frozen: dec("0"), Fee: dec("0.00"),
		CreateTime: at(day(2025, 3, 1), 0, 0, 0), Status: cardwire.CardSuspended,
		ConsumptionSceneConfig: []cardwire.ConsumptionScene{},
	}
}

// wantCards are all cards, card-2 in full.
func wantCards() []any {
	card := *wantSingleEmpty()
	card.ConsumptionSceneConfig = nil
	card.Number, card.CVV = must(cardwire.NewCardNumber("4938751977000013")), must(cardwire.NewCVV("917"))
	card.Expiry = cardwire.Expiry{Year: 2030, Month: 12}
	card.BINID, card.UpdateTime = 102, at(day(2025, 3, 1), 0, 0, 0)
	return []any{
		"card-0", "card-1", card, "other-account", "other-status",
		"other-bin", "made-before", "made-after", "used-before", "used-after",
	}
}

// wantSecrets are the number, the CVV and the expiry as masked, and the ciphertext.
var wantSecrets = []string{"428837******0003", "***", "**/****", "dNud+1a/g5Eo0hyr6C5yZiY91GZ87tJyoveCBTNTkJo="}

func wantOperation() *cardwire.CardOperation {
	return &cardwire.CardOperation{ID: "f95a25ef-fd1d-47d4-baab-0c4635e18050", ClientTransactionID: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"}
}

// wantBINs are the first two BINs.
func wantBINs() []cardwire.BIN {
	return []cardwire.BIN{
		{
			ID: 101, BIN: "428837", Type: "share", Name: "Business/US", Network: "VISA", Country: "US", Currency: "USD",
			AVS: true, ThreeDS: true,
			DayPurchaseLimit: dec("10000.5"), SinglePurchaseLimit: dec("2500.5"), LifetimePurchaseLimit: dec("3000000"),
			Maintain: true, Status: true, API: true, Physical: true, Weight: 98,
			ForeignFees: []cardwire.FeeTier{
				{
					Range: "0-100", Low: dec("0"), High: dec("100"), Bounded: true,
					Fee: dec("0.5"), FeeRate: dec("0.015"), ExtraFee: dec("0.2"), ExtraFeeRate: dec("0.003"),
				},
				{
					Range: "100-1000", Low: dec("100"), High: dec("1000"), Bounded: true,
					Fee: dec("1"), FeeRate: dec("0.0125"), ExtraFee: dec("0.25"), ExtraFeeRate: dec("0.001"),
				},
				{
					Range: "1000-999999999", Low: dec("1000"), High: dec("999999999"), Bounded: true,
					Fee: dec("2.5"), FeeRate: dec("0.01"), ExtraFee: dec("0.75"), ExtraFeeRate: dec("0.0005"),
				},
			},
			AuthFeeConfig: json.RawMessage(`{"fee":0.3,"fee_rate":0.02}`), RefundFeeConfig: json.RawMessage(`{"fee":0.4}`),
			ReversalFeeConfig: json.RawMessage(`{"fee":0.1}`),
			CashbackFeeConfig: []json.RawMessage{json.RawMessage(`{"rate":0.05}`)},
			ApplePay:          true, GoogleWallet: true, CardCount: 5, CardCountLimited: true,
			BusinessModes: []string{"B2B", "B2C"}, AuthLevel: 2, CreateAmount: dec("1.5"), CardDepositFee: dec("0.01"),
			AllowCreate: true, AllowIn: true, AllowOut: true, AllowSuspend: true,
			AllowEnable: true, AllowFrozen: true, AllowUnfrozen: true, AllowDestroy: true,
			CreateMinAmount: dec("10"), CreateMaxAmount: dec("5000"),
			RechargeMinAmount: dec("5"), RechargeMaxAmount: dec("20000"),
			WithdrawMinAmount: dec("12"), WithdrawMaxAmount: dec("13"), RefuseTimes: dec("3"), RefuseRate: dec("0.15"),
			Scenes: []string{"Advertising"},
			AuthRequirement: cardwire.AuthRequirement{Level: "advanced", Fields: []cardwire.AuthField{
				{Field: "idType", Required: true, Description: "Type of the document"},
			}},
		},
		{
			ID: 102, BIN: "440102", Country: "US", Currency: "USD", AuthLevel: 1,
			DayPurchaseLimit: dec("0"), SinglePurchaseLimit: dec("0"), LifetimePurchaseLimit: dec("0"),
			CashbackFeeConfig: []json.RawMessage{}, BusinessModes: []string{}, Scenes: []string{},
			CreateAmount: dec("0"), CardDepositFee: dec("0"), CreateMinAmount: dec("0"), CreateMaxAmount: dec("0"),
			RechargeMinAmount: dec("0"), RechargeMaxAmount: dec("0"), WithdrawMinAmount: dec("0"), WithdrawMaxAmount: dec("0"),
			RefuseTimes: dec("0"), RefuseRate: dec("0"),
			AuthRequirement: cardwire.AuthRequirement{Level: "base", Fields: []cardwire.AuthField{}},
		},
	}
}

// wantDigits are the digits of all BINs, wantMaintained of those under maintenance.
var (
	wantDigits     = []string{"428837", "440102", "531847", "53270366", "601187", "65312478", "559666"}
	wantMaintained = []string{"428837", "53270366", "65312478"}
)

var wantStates = []cardwire.RemittanceState{
	{Code: "CA", Name: "California", Country: "US", CountryStandardCode: "USA"},
	{Code: "NY", Name: "New York", Country: "US", CountryStandardCode: "USA"},
	{Code: "TX", Name: "Texas", Country: "US", CountryStandardCode: "USA"},
	{Code: "11", Name: "北京市", Country: "CN", CountryStandardCode: "CHN"},
	{Code: "31", Name: "上海市", Country: "CN", CountryStandardCode: "CHN"},
	{Code: "BY", Name: "Bayern", Country: "DE", CountryStandardCode: "DEU"},
	{Code: "NW", Name: "Nordrhein-Westfalen", Country: "DE", CountryStandardCode: "DEU"},
	{Code: "00", Name: "Metro Manila / NCR", Country: "PH", CountryStandardCode: "PHL"},
	{Code: "07", Name: "Cebu", Country: "PH", CountryStandardCode: "PHL"},
	{Code: "MH", Name: "Maharashtra", Country: "IN", CountryStandardCode: "IND"},
	{Code: "SG", Name: "Singapore", Country: "SG", CountryStandardCode: "SGP"},
}

func wantCurrencies() []cardwire.RemittanceCurrency {
	entry := func(id int64, currency, country, code, rate, fixed, least, most, year string) cardwire.RemittanceCurrency {
		return cardwire.RemittanceCurrency{
			ID: id, PayoutCurrency: currency, Country: country, CountryCode: code,
			TransferTypeID: "3", TransferType: "C2C", PayoutMethodID: "1", PayoutMethod: "Bank Transfer",
			FeeRate: dec(rate), FixedFee: dec(fixed),
			MinQuota: dec(least), MaxQuota: dec(most), YearTransferAmountQuota: dec(year),
		}
	}
	return []cardwire.RemittanceCurrency{
		entry(1, "EUR", "DEU", "DE", "0.0035", "1.5", "10", "50000", "500000"),
		entry(2, "EUR", "FRA", "FR", "0.004", "1.5", "10", "45000.5", "500000"),
		entry(3, "GBP", "GBR", "GB", "0.0035", "1.2", "10", "40000", "400000"),
		entry(4, "PHP", "PHL", "PH", "0.008", "90", "500", "2500000", "25000000"),
		entry(5, "INR", "IND", "IN", "0.0075", "0", "1000", "1000000", "10000000"),
		entry(6, "CNY", "CHN", "CN", "0.006", "50", "100", "300000", "600000"),
		entry(7, "USD", "USA", "US", "0.0025", "25", "50", "100000", "1000000"),
	}
}

func wantTransfer() *cardwire.Transfer {
	return &cardwire.Transfer{MerchantOrderNo: "order-7", APIOrderNo: "AO3af6bb8dc2eb0488", Status: "wait_process"}
}

func wantImage() *cardwire.UploadedImage {
	return &cardwire.UploadedImage{AttachmentKey: "att/2cbe658a702bf36eefd40af0"}
}
