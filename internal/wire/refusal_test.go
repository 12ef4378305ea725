package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// duplicates are what frameworks, databases and people say of an order number that exists.
var duplicates = []string{
	// Not even a denial makes these anything else.
	"商户订单号重复", "訂單號重複", "DUPLICATE_ORDER", "DuplicateOrderNo", "duplicate_order_no", "duplicated order",
	`duplicate key value violates unique constraint "orders_no_key"`, "Duplicate entry 'A-1' for key 'orders.no'",
	"UNIQUE constraint failed: orders.no", "must be unique", "This field must be unique.", "not unique",
	"The merchantOrderNo must not be duplicated.", "Do not submit repeatedly", "repeated order number", "REPEAT_SUBMIT",
	"订单号不能重复", "请勿重复提交", "重复下单", "已被占用", "订单号占用", "訂單號已被佔用",
	"Key: 'Transfer.OrderNo' Error:Field validation for 'OrderNo' failed on the 'unique' tag",

	"The merchant order no has already been taken.", "order number taken", "This value is already used.",
	"merchantOrderNo has exists", "order exists", "Order Exist", "order number existed", "merchantOrderNo exists!",
	"ORDER_NO_EXISTS", "ORDER_EXIST", "orderNoExists", "merchantNOExists", "OUT_TRADE_NO_USED", "out-trade-no-used", "TRADE_NO_TAKEN",
	"order no exists", "Order No. exists", "order.no.exists", "the reference no. A-1 is used", "used order number",
	"order number has been used", "reference was used", "The order number cannot be used again",
	"A reference must not be used twice", "order number can't be used more than once",
	"has been submitted", "was submitted", "already submitted", "The transfer has been successfully submitted",
	"invalid request: order exists", "not accepted, order exists", "could not create the transfer because the order exists",
	"No payment: order exists", "no transfer was created since this order number exists",

	"订单号存在", "该订单号存在！", "订单号存在，请更换", "订单已存在", "订单已经存在", "訂單已經存在", "订单号已在存在", "已使用",
	"该商户订单号已使用", "订单号已经使用过", "订单号已被其他订单使用", "被使用", "订单已提交", "订单已被提交", "已成功提交",
	"This order cannot be submitted again", "Payment previously submitted", "订单不能再次提交", "不能再次使用",
	"Remittance No has been used", "Txn no is used", "order already processed", "order has already been paid", "订单已处理",
	"不可用：订单号存在", "系统已有存在的订单号", "请求未处理，订单号存在",

	"Order is being processed", "order in process", "ORDER_IN_PROGRESS", "The transfer is still processing", "订单处理中",
	"Order already succeeded", "already settled", "Order has been paid", "The transfer was processed",
	"Merchant order number is occupied", "order no in use",
}

// ordinary are what the same say of everything else.
var ordinary = []string{
	"refused", "no", "invalid parameters", "account does not exist", "currency not supported", "insufficient balance",
	"must be at least 10", "quota used up", "The daily limit is used up.", "invalid data submitted", "Unprocessable Entity",
	"The given data was invalid.", "The payout currency field is required.", "The selected transfer type is invalid.",
	"The transfer amount must be a number.", "Unauthenticated.", "This action is unauthorized.", "Too Many Attempts.",
	"CSRF token mismatch.", "No query results for model [App\\Models\\Card].", "This field may not be blank.", "Not found.",
	`Invalid pk "5" - object does not exist.`, "Authentication credentials were not provided.", "must not be null",
	"size must be between 1 and 10", "can't be blank", "is not included in the list", "is too short (minimum is 3 characters)",
	"property nickname should not exist", "amount must be a number string", `"note" is not allowed`,
	"must have required property 'amount'", "JSON parse error: Unexpected character", "record not found",
	"Key: 'Transfer.Amount' Error:Field validation for 'Amount' failed on the 'required' tag",
	"relation \"cards\" does not exist", "The card doesn't exist", "card doesn’t exist", "user dont exist", "CARD_NOT_EXIST",
	"cardNotExists", "No such account exists", "no account exists", "account no exist", "NO_SUCH_CARD_EXISTS",
	"The merchant no longer exists", "ACCOUNT_NO_LONGER_EXISTS", "non-existent currency", "a nonexisting card", "NON_EXIST", "quota used-up", "the card was never used",
	"This card cannot be used for payouts", "the currency may not be used", "this channel is not currently used",
	"No action has been taken", "the amount was not taken", "the form has not been submitted", "rate limit exceeded",
	"unused", "mistaken", "has not been paid", "error processing payment", "this card is not in use", "processing fee too high",
	"Too many requests in progress", "KYC verification in progress", "Account verification is in process",
	"declined, no payment was executed", "The transfer is not in progress", "payment processing failed", "订单不在处理中", "请求处理中断",
	"nothing was paid", "No transfer has been processed", "No funds have been settled", "系统升级处理中", "The order is not being processed", "existence of the receiver", "signature mismatch", "IP not in the allowlist", "country is blocked",

	"额度已使用完", "额度已使用盡", "交易存在风险", "该通道暂不可使用", "请使用英文", "账户不存在", "账户已不存在", "收款人不存在。", "余额不足",
	"参数错误", "签名错误", "币种不支持", "金额必须大于0", "该卡尚未被使用", "该卡已被禁止使用", "该卡已停止使用", "无法使用", "无法被使用", "该卡没有被使用", "该卡已暂停使用", "资料未提交",
	"资料尚未被提交", "没有存在的账户", "请先提交资料", "账户已冻结，请使用其他账户", "系统繁忙，请稍后再试", "权限不足",
}

func said(texts ...string) (s wire.Said) {
	for _, t := range texts {
		s.Read(wire.Words(t))
	}
	return s
}

func TestScratch(t *testing.T) {
	for _, s := range duplicates {
		for _, s := range []string{s, "invalid: " + s, s + " (A-1)"} {
			assert.True(t, said(s).Exists, s)
		}
	}
	for _, s := range ordinary {
		x := said(s)
		if x.Exists || !x.Reason || x.Trouble {
			t.Logf("%+v %s | %s", x, s, wire.Words(s))
		}
	}
}

func BenchmarkRead(b *testing.B) {
	w := "The receiver bank account does not exist: receiverBankAccountNumber is invalid"
	long := strings.Repeat(w, 64<<10/len(w))
	hostile := strings.Repeat("单", 21000)
	said(w)
	for name, s := range map[string]string{"short": w, "long": long, "han": hostile, "cannot": strings.Repeat("cannot", 10000), "order": strings.Repeat("order no ", 7000)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				said(s)
			}
		})
	}
}

func TestStringsAreThoseOfTheWholeDocument(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"no", "a", "b", "c", "\u8ba2", ""}, wire.Strings([]byte("\ufeff"+
		`{"code":422,"msg":"no","data":{"errors":{"x":["a",["b"]],"n":null,"t":true}},"sub_code":"c","list":["\u8ba2",1.5,""]}`)))
	assert.Equal(t, []string{"a"}, wire.Strings([]byte(`"a"`)))
}
