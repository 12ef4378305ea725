package wiretest

import (
	"fmt"
	"strings"
)

// TransferData is the data of a success of SmallTransfer("M-1").
const TransferData = `{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait_process"}`

// The service's responses to SmallTransfer("M-1").
var (
	TransferDone    = Exchange{Want: SmallTransferRequest("M-1"), Response: Success(TransferData)}
	TransferRefused = Exchange{
		Want: SmallTransferRequest("M-1"), Status: 422, Response: `{"code":422,"msg":"balance too low","data":null}`,
	}
	TransferBroken     = Exchange{Want: SmallTransferRequest("M-1"), Err: ErrBroken}
	TransferUnreadable = Exchange{
		Want:     SmallTransferRequest("M-1"),
		Response: Success(`{"merchant_order_no":"M-1","api_order_no":"A-7","status":[]}`),
	}
)

// SmallTransferRequest is the request of SmallTransfer.
func SmallTransferRequest(orderNo string) string {
	return "POST /shop/api/v1/remittance/transfer\napplication/json\n\n" +
		`{"merchantOrderNo":"` + orderNo + `","payoutCurrency":"EUR","transferAmount":"10.50"}`
}

// RefusalsByNumber are the codes that mean, by the default profile, that a write was not
// executed, with the sentinels that they match.
var RefusalsByNumber = map[int]string{
	400: "Refused", 401: "Refused Unauthorized", 403: "Refused", 404: "Refused NotFound", 405: "Refused",
	413: "Refused", 415: "Refused", 422: "Refused", 429: "Refused RateLimited",
}

// PageRequest is the request of page n.
func PageRequest(n int) string { return fmt.Sprintf("GET /shop/api/v1/cards?page=%d", n) }

// ShortCard is a card with few fields: those that are missing are drift.
func ShortCard(id, more string) string {
	return `{"id":"` + id + `","available":"1.000","pending":0,"frozen":0,"fee":"0.00"` + more + `}`
}

// ShortPage is a response of List cards.
func ShortPage(current, last int, cards ...string) string {
	return Success(fmt.Sprintf(`{"total":%d,"per_page":2,"current_page":%d,"last_page":%d,"data":[%s]}`,
		2*last, current, last, strings.Join(cards, ",")))
}
