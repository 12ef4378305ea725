package cardwiretest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

const (
	failedID = "6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11"
	freezeID = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"
	// canary is the number of card-1. It fails the Luhn check.
	canary = "4288379977000003"
)

// none is the option for a service without cards.
var none = cardwiretest.WithCards(0)

// twoCards adds card-1 with a value of its own in every field, and card-2, which is
// as empty as can be.
func twoCards(s *cardwiretest.Service) {
	s.SetCard(contract.FullCard())
	s.SetCard(contract.EmptyCard())
}

// The document's two cards, as they are listed.
var listedFull, listedEmpty = contract.Element("second", 0), contract.Element("only", 0)

func TestListCards(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		twoCards(w.Service)
		succeeded(t, w.ask(t, "GET /cards"),
			`{"total":2,"per_page":20,"current_page":1,"last_page":1,"data":[`+listedFull+`,`+listedEmpty+`]}`)
		succeeded(t, w.ask(t, "GET /cards?limit=1&page=2"),
			`{"total":2,"per_page":1,"current_page":2,"last_page":2,"data":[`+listedEmpty+`]}`)
		succeeded(t, w.ask(t, "GET /cards?page=7"),
			`{"total":2,"per_page":20,"current_page":7,"last_page":1,"data":[]}`)
		succeeded(t, w.ask(t, "GET /cards?status=3&limit=500"),
			`{"total":0,"per_page":100,"current_page":1,"last_page":1,"data":[]}`)
		assert.Equal(t, 4, w.Executions("ListCards", ""))
	}, none)
}

func idsOf(t *testing.T, v seen) (ids []string) {
	t.Helper()
	var page struct {
		Data struct{ Data []struct{ ID string } }
	}
	require.NoError(t, json.Unmarshal([]byte(v.body), &page), v.body)
	require.Equal(t, 200, v.status)
	for _, c := range page.Data.Data {
		ids = append(ids, c.ID)
	}
	return ids
}

// freezing returns the request that freezes a card.
func freezing(cardID, clientTransactionID string) string {
	return "POST /cards/suspend\nContent-Type: multipart/form-data; boundary=xx\n\n" +
		part("cardId", cardID) + part("clientTransactionId", clientTransactionID) + "--xx--\n"
}

func part(name, value string) string {
	return fmt.Sprintf("--xx\nContent-Disposition: form-data; name=%q\n\n%s\n", name, value)
}

func adjusting(id, action string) string {
	return "POST /cards/adjustAction\nContent-Type: application/x-www-form-urlencoded\n\n" +
		"client_transaction_id=" + id + "&type=" + action
}

const notAdjustable = "the field client_transaction_id is invalid: " +
	"it names no failed operation of a kind that can be adjusted"

func TestFreezeCard(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		twoCards(w.Service)
		first, second := w.ask(t, freezing("card-1", failedID)), w.ask(t, freezing("card-1", failedID))
		ledger := w.Ledger()
		require.Len(t, ledger, 2)
		succeeded(t, first, `"`+ledger[0].ID+`"`)
		succeeded(t, second, `"`+ledger[1].ID+`"`)
		assert.Len(t, ledger[0].ID, 36)
		assert.NotEqual(t, ledger[0].ID, ledger[1].ID)
		assert.NotZero(t, ledger[0].Time)
		ledger[0].ID, ledger[0].Time = "", ledger[1].Time
		assert.NotEmpty(t, w.Ledger()[0].ID, "which is a copy")
		assert.Equal(t, cardwiretest.Execution{
			Op: "FreezeCard", Reference: failedID, CardID: "card-1", Action: "freeze", Time: ledger[1].Time,
		}, ledger[0])
		frozen := strings.Replace(listedFull, `"status":4`, `"status":1`, 1)
		frozen = strings.Replace(frozen, "2025-02-03 04:05:06", "2025-03-03 09:30:02", 1)
		succeeded(t, w.ask(t, "GET /cards?status=1"),
			`{"total":1,"per_page":20,"current_page":1,"last_page":1,"data":[`+frozen+`]}`)
		refused(t, w.ask(t, adjusting(failedID, "cancel")), 422, notAdjustable)
	}, none)
}

func TestFreezeCardRefusals(t *testing.T) {
	w := inProcess(none)
	twoCards(w.Service)
	refused(t, w.ask(t, freezing("card-9", freezeID)), 404, "the field cardId names no card")
	for _, status := range []string{"2", "3"} {
		w.SetCard(`{"id":"card-1","status":` + status + `}`)
		got := w.ask(t, freezing("card-1", freezeID))
		refused(t, got, 422, "the field cardId names a card that is closed or closing")
	}
	assert.Empty(t, w.Ledger())
	unnamed := strings.Replace(freezing("card-2", ""), part("clientTransactionId", ""), "", 1)
	assert.Equal(t, 200, w.ask(t, unnamed).status)
}

func TestAdjust(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		w.AddFailedOperation(failedID, "transfer in")
		succeeded(t, w.ask(t, adjusting(strings.ToUpper(failedID), "cancel")), "true")
		refused(t, w.ask(t, adjusting(failedID, "cancel")), 422, notAdjustable)
		refused(t, w.ask(t, adjusting(failedID, "retry")), 422, notAdjustable)
		w.AddFailedOperation(strings.ToUpper(failedID), "close")
		succeeded(t, w.ask(t, adjusting(failedID, "retry")), "true")
		for _, kind := range []string{"transfer_out", "freeze", "unfreeze"} {
			w.AddFailedOperation(failedID, kind)
			succeeded(t, w.ask(t, adjusting(failedID, "retry")), "true")
		}
		w.AddFailedOperation(failedID, "create")
		refused(t, w.ask(t, adjusting(failedID, "retry")), 422, notAdjustable)
		refused(t, w.ask(t, adjusting("00000000-0000-4000-8000-000000000000", "cancel")), 422, notAdjustable)
		assert.Equal(t, 1, w.Executions("CancelOperation", failedID), "in any letter case")
		assert.Equal(t, 4, w.Executions("RetryOperation", failedID))
		assert.Equal(t, "close retry", w.Ledger()[1].Kind+" "+w.Ledger()[1].Action)
	})
}

const transfer = `POST /remittance/transfer
Content-Type: application/json

{"merchantOrderNo":"order-1","payoutCurrency":"EUR","transferType":"3","payoutMethod":"1",
"senderBeneficiaryRelationship":"4","transferAmount":"100.25","senderSourceOfFund":"2","purposeOfRemittance":"7",
"senderFirstName":"Ada","senderLastName":"Lovelace","senderGender":"F","senderMobileNumber":"447000000000",
"senderIdType":"1","senderIdNumber":"X1234567","senderDateOfBirth":"1990-12-10","senderNationality":"GB",
"senderIdIssueCountry":"826","senderCountry":"GB","senderAddress":"12 St James's Square",
"receiverNativeFirstName":"Jörg","receiverNativeLastName":"Weiß","receiverIdType":"1","receiverIdNumber":"L01X00T47",
"receiverMobileNumber":"491700000000","receiverBankAccountNumber":"DE89370400440532013000"}`

func TestDeduplication(t *testing.T) {
	w := inProcess(cardwiretest.WithDeduplication(), none)
	twoCards(w.Service)
	w.AddFailedOperation(failedID, "freeze")
	for _, request := range []string{transfer, freezing("card-1", freezeID), adjusting(failedID, "cancel")} {
		first, second := w.ask(t, request), w.ask(t, request)
		assert.Equal(t, 200, first.status)
		assert.Equal(t, first.body, second.body)
	}
	assert.Len(t, w.Ledger(), 3)
	w.AddFailedOperation(failedID, "freeze")
	w.ask(t, adjusting(failedID, "cancel"))
	for range 2 {
		w.AddFailedOperation(failedID, "freeze")
		w.ask(t, adjusting(failedID, "retry"))
	}
	assert.Equal(t, 2, w.Executions("CancelOperation", failedID), "it failed again")
	assert.Equal(t, 2, w.Executions("RetryOperation", failedID))
}

const image = "--xx\nContent-Disposition: form-data; name=\"file\"; filename=\"id.png\"\n" +
	"Content-Type: image/png\n\n\x89PNG1\n--xx--\n"

func TestSetBIN(t *testing.T) {
	bothWays(t, func(t *testing.T, w way) {
		w.SetBIN(`{"id":101,"name":"A/B","maintain":true,"day_purchase_limit":1e4}`)
		const changed = `"bin":"428837","type":"share","name":"A/B","network":"VISA","country":"US","avs":0,"3ds":1,` +
			`"day_purchase_limit":1e4,"single_purchase_limit":2500.50,`
		assert.Contains(t, w.ask(t, "GET /bins").body, changed)
		w.SetBIN(`{"currency":"CHF"}`)
		assert.Contains(t, w.ask(t, "GET /bins").body, `{"id":1008,"bin":"441008","type":"share",`)
		succeeded(t, w.ask(t, "GET /bins/maintenance"), `["428837","53270366","65312478","441008"]`)
	})
}
