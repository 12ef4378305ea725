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
	"商户订单号重复", "訂單號重複", "DUPLICATE_ORDER", "DuplicateOrderNo", "duplicate_order_no",
	"duplicated order", `duplicate key value violates unique constraint "orders_no_key"`,
	"Duplicate entry 'A-1' for key 'orders.no'", "UNIQUE constraint failed: orders.no", "must be unique",
	"This field must be unique.", "not unique", "The merchantOrderNo must not be duplicated.",
	"Do not submit repeatedly", "repeated order number", "REPEAT_SUBMIT", "订单号不能重复", "请勿重复提交",
	"重复下单", "已被占用", "订单号占用", "訂單號已被佔用",
	"Key: 'Transfer.OrderNo' Error:Field validation for 'OrderNo' failed on the 'unique' tag",

	"The merchant order no has already been taken.", "order number taken", "This value is already used.",
	"merchantOrderNo has exists", "order exists", "Order Exist", "order number existed", "merchantOrderNo exists!",
	"ORDER_NO_EXISTS", "ORDER_EXIST", "orderNoExists", "merchantNOExists", "OUT_TRADE_NO_USED", "out-trade-no-used",
	"TRADE_NO_TAKEN", "order no exists", "Order No. exists", "order.no.exists", "the reference no. A-1 is used",
	"used order number", "order number has been used", "reference was used", "The order number cannot be used again",
	"A reference must not be used twice", "order number can't be used more than once",
	"has been submitted", "was submitted", "already submitted", "The transfer has been successfully submitted",
	"invalid request: order exists", "not accepted, order exists",
	"could not create the transfer because the order exists", "No payment: order exists",
	"no transfer was created since this order number exists",

	"订单号存在", "该订单号存在！", "订单号存在，请更换", "订单已存在", "订单已经存在",
	"訂單已經存在", "订单号已在存在", "已使用", "该商户订单号已使用",
	"订单号已经使用过", "订单号已被其他订单使用", "被使用", "订单已提交",
	"订单已被提交", "已成功提交", "This order cannot be submitted again", "Payment previously submitted",
	"订单不能再次提交", "不能再次使用", "Remittance No has been used", "Txn no is used",
	"order already processed", "order has already been paid", "订单已处理", "不可用：订单号存在",
	"系统已有存在的订单号", "请求未处理，订单号存在",

	"Order is being processed", "order in process", "ORDER_IN_PROGRESS", "The transfer is still processing",
	"订单处理中", "Order already succeeded", "already settled", "Order has been paid",
	"The transfer was processed", "Merchant order number is occupied", "order no in use",

	"幂等校验错误", "冪等號錯誤", "请求冲突，参数错误", "訂單衝突", "违反唯一约束",
	"重複/重復", "疑似重放", "多次提交", "请勿重新提交", "請勿連續提交", "replay detected",
	"Replayed request", "same transfer within 5 minutes", "identical request", "double submission", "double-spend",
	"A transfer can only be submitted once", "cannot be sent twice", "can't be done more than once", "a prior transfer",
	"repetition", "funds have been transferred", "amount was debited", "wallet has been charged",
	"funds were disbursed", "used previously", "请求已接收", "已发起", "已生成", "已登記", "已下单",
	"已發送", "已放款", "已出款", "已代付", "已下发", "汇款已取消", "匯款已關閉",
	"汇款不存在", "支付状态错误", "待处理", "排队中", "正在执行", "正在轉帳",
	"相同的交易", "同一笔转账", "相同请求", "order queued", "transfer in flight", "in transit",
	"order awaiting approval", "The transfer is on hold", "the order's been canceled", "order got canceled",
	"tx was mined", "trx has been closed", "expired order", "no order matches", "unknown order", "could not find order",
	"can't find the order", "cannot find this transaction", "找不到订单", "未找到订单", "订单未找到",
	"无此订单", "没有该订单", "查無此單", "未查到交易", "找不到該筆訂單",
}

// escaped are duplicates as something in between writes them.
var escaped = []string{
	"al\u200bready", "al\u00adready used", "ｏｒｄｅｒ ＥＸＩＳＴＳ", "ａｌｒｅａｄｙ",
	"order &#101;xists", "&#24050;&#25903;&#20184;", "订单&#x5DF2;完结", `{"e":"\u8ba2\u5355\u5df2\u5b58\u5728"}`,
	"has&nbsp;been&nbsp;paid", "has <b>been</b> <i>paid</i>", "was<br/>paid",
}

func TestWhatARefusalSaysInEscapes(t *testing.T) {
	t.Parallel()
	for _, s := range escaped {
		assert.Equal(t, "exists", said(s), s)
		assert.Equal(t, "exists", said("invalid: "+s), s)
	}
	for _, s := range []string{"ｉｎｖａｌｉｄ　ａｍｏｕｎｔ", "The card doesn&#39;t exist",
		"余额&nbsp;不足", "in\u200bvalid", "<b>invalid</b> amount"} {
		assert.Equal(t, "reason", said(s), s)
	}
}

// sayings are what a refusal says: "exists", or whether it has a "reason", "trouble", or both.
var sayings = map[string][]string{
	"exists": {
		"already", "exist", "dup", "duplicat", "repeat", "unique", "taken", "in use", "occupied", "success", "conflict",
		"idempot", "has been used", "was submitted", "has been paid", "was processed", "been settled", "was executed",
		"has created", "been received", "was completed", "order was not declined", "transfer is not refused",
		"was not executed: invalid account",
		"has not yet been paid: insufficient balance", "in process", "in progress", "being processed", "processing",
		"pending", "Successful", "DUP_ORDER", "dupOrder", "DUPORDER", "ORDER_EXISTS", "orderExists", "ORDEREXISTS",
		"xxEXISTSxx", "IDEMPOTENCYKEY", "CONFLICTING", "aLrEaDy", "ORDERPAID", "ORDERCLOSED",
		"merchantOrderNo is invalid", "invalid order number", "order_no must be a string", "orderId format",
		"订单号错误", "單號格式不正確", "out_trade_no is required", "MERCHANTORDERNO", "order status",
		"order state is invalid", "transferStatus", "payment state", "transaction status", "订单状态不正确",
		"訂單狀態錯誤", "The order is closed", "order has been canceled", "the payment was expired",
		"orders are blocked", "Transaction is currently suspended", "transfer was not accepted: limit",
		"The order with number 7 was voided", "ORDER_EXPIRED", "处理中", "進行中", "该订单已创建",
		"订单已付款", "交易已关闭", "單已失效", "用户已被列入黑名单", "转账已拒绝",
		"付款已受理", "轉賬已受理", "已存在", "已使用", "已提交", "已支付", "已付款",
		"已处理", "已受理", "已创建", "已完成", "已成功", "存在", "重复", "重複", "占用",
		"佔用", "已 存 在", "已經存在", "已被使用", "must not exist", "should not exist", "may not exist",
		"must not be duplicated", "not unique", "order does not exist", "The order was not found",
		"order no. 7 not found", "ORDER_NOT_FOUND", "ORDERNOTFOUND", "orderId doesn't exist", "transfer not found",
		"payment ID does not exist", "transaction number did not exist", "Transaction could not be found",
		"订单不存在", "訂單號不存在", "交易不存在", "订单编号不存在", "order cannot be found",
		"the reference number does not exist", "order number is wrong", "order status not found", "record exists",
		"The record does exist: invalid", "record exists not found",
	},
	"record": {"record not found", "Record does not exist", "RECORD_NOT_FOUND", "record id 7 was not found",
		"记录不存在", "操作記錄不存在"},
	"trouble": {
		"again", "later", "retry", "busy", "timeout", "timed out", "time out", "deadline", "temporar", "unavailable",
		"review", "requests", "frequen", "runtime", "pointer", "character", "literal", "argument", "syntax", "parse",
		"unmarshal", "JSON", "SQL", "column", "stream", "socket", "input string", "internal", "system", "server",
		"network", "connection", "response", "upstream", "gateway", "unexpected", "exception", "went wrong",
		"unknown error", "database", "concurrent", "retries", "temporarily", "frequently", "NullPointerException",
		"SQLSTATE[23000]", "SystemError", "REQUEST_TIMEOUT", "Request timeout", "频繁", "繁忙", "超时", "稍后",
		"重试", "系统", "服务器", "服务异常", "网络", "未知", "内部", "数据库", "通道返回",
		"审核", "系統繁忙", "請求超時",

		"list index out of range", "String index out of range: -1",
		"Index was out of range. Must be non-negative and less than the size.",
		"java.lang.String cannot be cast to java.lang.Integer", "Specified cast is not valid.",
		"Maximum call stack size exceeded", "Operation is not valid due to the current state of the object.",
		"Illegal string offset 'id'", "Illegal offset type", "unsupported operand type(s) for +: 'int' and 'str'",
		"not enough values to unpack (expected 2, got 1)", "too many values to unpack",
		"maximum recursion depth exceeded", "string indices must be integers",
		"a bytes-like object is required, not 'str'", "must be real number, not NoneType",
		"permission denied for table transfers", "EMFILE: too many open files", "The EntityManager is closed.",
		"version mismatch", "Optimistic locking: invalid", "Concurrency limit exceeded", "status unknown: invalid",
		"unknown result: invalid", "wrong kind of value", "Value cannot be null. (Parameter 'source')",
		"x509: certificate has expired", "SSL: certificate has expired", "ETIMEDOUT: invalid", "SERVICEUNAVAILABLE",
		"deserialization: invalid", "XML malformed", "redis: permission denied", "伺服器錯誤", "網路錯誤",
		"連線逾時", "資料庫錯誤", "请再试，错误", "程序错误", "程式錯誤", "服务错误",
		"服務暫時不可用，錯誤", "接口调用错误", "通讯错误", "连接错误", "空指针错误",
		"数组越界错误", "网关错误", "上游错误", "响应错误", "渠道返回错误",
		"银行返回错误", "并发错误", "解析错误",
	},
	"reason": {
		"商户没有汇款权限", "沒有付款權限", "没有交易的权限", "無此交易權限", "同一付款人单日限额", "通訊地址不能为空",
		"Unknown payment method: not supported", "invalid: no such transfer type", "账户正在注销，不允许",
		"amount out of bounds: minimum 10", "请修改后重新提交，金额格式错误", "Invalid name: Cast Iron Ltd",
		"invalid", "illegal", "incorrect", "malformed", "missing", "required", "must be", "must not be", "may not be",
		"cannot be", "at least", "at most", "greater than", "less than", "limit", "refused", "empty", "blank",
		"not valid", "not allowed", "not permitted", "not supported", "not enough", "unsupported",
		"account does not exist", "card doesn't exist", "The card doesn’t exist", "receiver not found",
		"Bank was not found", "wallet could not be found", "insufficient", "exceed", "too small", "too large",
		"too long", "too short", "too many", "minimum", "maximum", "out of range", "mismatch", "does not match",
		"format", "expired", "closed", "frozen", "inactive", "suspended", "disabled", "blocked", "denied", "declined",
		"rejected", "param error", "parameter error", "validation failed", "unauthorized", "permission", "signature",
		"API key", "whitelist", "wrong currency", "无效", "非法", "不合法", "错误", "有误", "不正确",
		"缺少", "必填", "必须", "不能为空", "账户不存在", "不支持", "不允许", "不足", "超过",
		"超出", "限额", "格式", "不匹配", "不符", "过期", "冻结", "禁用", "拒绝", "未开通",
		"黑名单", "签名", "权限", "白名单", "超限", "未授权", "無效", "錯誤", "有誤", "不正確",
		"必須", "不能為空", "帳戶不存在", "超過", "限額", "過期", "凍結", "拒絕", "未開通",
		"黑名單", "簽名", "權限", "未授權",

		"payment method does not exist", "PAYMENT_METHOD_NOT_FOUND", "transfer type does not exist",
		"order currency does not exist", "receiverBankAccountNumber does not exist", "交易类型不存在",
		"付款方式不存在", "ACCOUNTNOTFOUND", "bankAccountDoesNotExist", "The transfer was declined",
		"payment is rejected", "The transaction has been refused", "order is denied", "transfer is not allowed",
		"the payment is not supported", "receiverState is invalid", "订单金额错误", "账户已冻结",

		"INSUFFICIENT_BALANCE", "Insufficient funds in wallet", "limits exceeded", "Daily limit is exceeded",
		"The daily limit is used up.", "currency not supported", "must be at least 10",
		"The payout currency field is required.", "The selected transfer type is invalid.",
		"The transfer amount must be a number.", "This field may not be blank.", "must not be null",
		"size must be between 1 and 10", "amount must not be greater than 100", `"note" is not allowed`,
		"must have required field 'amount'", "is not a valid country",
		"Key: 'Transfer.Amount' Error:Field validation for 'Amount' failed on the 'required' tag", "balance too low",
		"This card cannot be used for payouts", "signature mismatch", "IP is not in the whitelist",
		"country is blocked", "Too Many Attempts.", "CSRF token mismatch.", "This action is unauthorized.",
		"Permission denied", "Access denied", "The account is closed", "KYC expired", "spending limit",
		"suspending: limit", "mistaken: invalid", "beneficiary name does not match", "wrong account number",
		"invalid request", "余额不足", "参数错误", "签名错误", "币种不支持", "金额必须大于0",
		"收款人不存在。", "权限不足", "单笔限额", "金额超出范围", "账户已不存在",
		"姓名不匹配", "银行卡号格式不正确", "该国家不支持", "证件已过期", "账户被禁用",
		"IP不在白名单", "黑名单用户", "错误码1001：余额不足", "错误的请求参数",
		"请求参数错误", "操作错误：金额无效", "汇款金额超限", "支付密码错误",
		"收款账户无效", "币种有误", "請先開通權限",
	},
	"": {
		"", "no", "failed", "失败", "Bad Request", "Unprocessable Entity", "Not found", "error", "does not exist",
		"data not found", "resource does not exist", "result not found", "object doesn't exist", "数据不存在",
		"not included in the list", "page not found", "404 page not found", "The requested URL was not found",
		"CARD_NOT_EXIST", "spending", "something", "Unauthenticated.", "rejection?", "资料尚未被提交",
		"操作失败", "发生错误", "出现了错误", "错误码:1001", "出現錯誤", "處理錯誤",
		"運行錯誤", "調用錯誤", "处理错误", "请求错误", "错误请求", "错误的请求",
		"操作错误", "record found", "unused", "unknown", "The resource cannot be found.",
	},
}

func said(text string) string {
	var s wire.Said
	s.Read(wire.Words(text))
	for _, is := range []struct {
		true bool
		name string
	}{{s.Exists, "exists"}, {s.Record, "record"}, {s.Trouble, "trouble"}, {s.Reason, "reason"}} {
		if is.true {
			return is.name
		}
	}
	return ""
}

func TestWhatARefusalSays(t *testing.T) {
	t.Parallel()
	for _, s := range append(duplicates, sayings["exists"]...) {
		for _, around := range []string{"%", "invalid: %", "% (A-1)", "\"%\"", "422:%!", "账户%"} {
			assert.Equal(t, "exists", said(strings.Replace(around, "%", s, 1)), around+s)
			assert.Equal(t, "exists", said(strings.ToUpper(strings.Replace(around, "%", s, 1))), around+s)
		}
	}
	for want, texts := range sayings {
		for _, s := range texts {
			assert.Equal(t, want, said(s), s)
			assert.Equal(t, want, said(strings.ToUpper(s)), s)
			assert.Equal(t, want, said(strings.ReplaceAll(s, " ", "_")), s)
		}
	}
}

func TestWordsWithoutTheRequests(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"remark: no limit!": " remark .", "NO-LIMIT NoLimit no limit": " . . .",
		"no limits": " no limits", "the limit": " the limit",
		"不足余额不足": " 不 足 .", "abc": " abc", "no limit please": " .",
	} {
		own := wire.Own([]string{"no limit", "no limit please", "餘額不足", "abc", "1234", "!!!!", "&nbsp;",
			"<strong>"})
		assert.Equal(t, want, wire.Without(wire.Words(text), own), text)
	}
}

func TestStringsAreThoseOfTheWholeDocument(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"no", "a", "b", "c", "\u8ba2", ""}, wire.Strings([]byte("\ufeff"+
		`{"code":422,"msg":"no","data":{"errors":{"x":["a",["b"]],"n":null,"t":true}},`+
		`"sub_code":"c","list":["\u8ba2",1.5,""]}`)))
	assert.Equal(t, []string{"a"}, wire.Strings([]byte(`"a"`)))
}
