// Package measure contains what the benchmarks and the programs that measure share:
// responses of the service, the code that one would write by hand to read them, and a
// service in memory.
//
// The responses are written field by field, contain every field, and are the same in
// each run.
package measure

import (
	"bytes"
	"fmt"
	"strings"
)

// Script is how a service writes its strings.
type Script bool

// The two common ones. PHP's encoder escapes slashes and everything beyond ASCII.
const (
	UTF8 Script = false
	PHP  Script = true
)

// String returns "utf8" or "php".
func (s Script) String() string {
	if s == PHP {
		return "php"
	}
	return "utf8"
}

// write returns text as the service would write it. Slashes and é are the only
// characters in the payloads that PHP escapes.
func (s Script) write(text []byte) []byte {
	if s == PHP {
		text = bytes.ReplaceAll(text, []byte("/"), []byte(`\/`))
		text = bytes.ReplaceAll(text, []byte("é"), []byte(`\u00e9`))
	}
	return text
}

func success(s Script, format string, args ...any) []byte {
	text := append([]byte(`{"code":200,"msg":"success","data":`), fmt.Appendf(nil, format, args...)...)
	return s.write(append(text, '}'))
}

// Capacity is the response to Get card capacity: the smallest one.
func Capacity() []byte { return success(UTF8, "%d", 250) }

// Cards is how the cards of a page are written. The zero value is the usual way.
type Cards struct {
	// Script is how the service writes its strings.
	Script Script
	// Distinct makes every amount of the page another one.
	Distinct bool
	// Long is the card, from 1, that is several times as long as the others; 0: none.
	Long int
}

// CardPage is the response to List cards: page number of last pages, each of n cards.
func CardPage(s Script, number, last, n int) []byte { return Cards{Script: s}.Page(number, last, n) }

// Page is [CardPage] with such cards.
func (s Cards) Page(number, last, n int) []byte {
	cards := make([]byte, 0, n*800)
	for i := range n {
		if i > 0 {
			cards = append(cards, ',')
		}
		cards = s.appendListedCard(cards, (number-1)*n+i, i+1 == s.Long)
	}
	return success(s.Script, `{"total":%d,"per_page":%d,"current_page":%d,"last_page":%d,"data":[%s]}`,
		last*n, n, number, last, cards)
}

// SingleCard is the response to Get card.
func SingleCard(s Script) []byte { return success(s, "%s", appendSingleCard(nil, 6)) }

// BINs is the response to List available BINs.
func BINs(s Script, n int) []byte {
	var bins []byte
	for i := range n {
		if i > 0 {
			bins = append(bins, ',')
		}
		bins = appendBIN(bins, i)
	}
	return success(s, "[%s]", bins)
}

func (s Cards) appendListedCard(b []byte, i int, long bool) []byte {
	b = appendIdentity(b, i)
	b = fmt.Appendf(b, `"bin_id":%d,"card_bin":"493193","card_no":"493193%010d","cvv":"%03d",`, i%40+1, i*7919, i%1000)
	if s.Distinct {
		b = appendDistinctAmounts(b, i)
	} else {
		b = appendAmounts(b, i)
	}
	b = fmt.Appendf(b, `"expire_date":"%02d/20%02d",`, i%12+1, i%10+27)
	b = appendHolder(b, i)
	b = fmt.Appendf(b, `"create_time":"2026-%02d-%02d %02d:11:12","update_time":"2026-%02d-%02d %02d:21:22","remark":%s,`+
		`"destory_reason":%s,"nickname":"card %d",`,
		i%12+1, i%28+1, i%24, i%12+1, i%28+1, i%24, orNull(i%10 == 4 || long, remark(long)), orNull(i%50 == 7, "lost"), i)
	return append(appendState(b, i), '}')
}

func appendSingleCard(b []byte, i int) []byte {
	b = appendIdentity(b, i)
	b = fmt.Appendf(b, `"card_bin":"493193","card_no":"493193******%04d","cvv":"***",`, i*7919%10000)
	b = appendAmounts(b, i)
	b = append(b, `"expire_date":"**/****",`...)
	b = appendHolder(b, i)
	b = fmt.Appendf(b, `"create_time":"2026-%02d-%02d %02d:11:12",`, i%12+1, i%28+1, i%24)
	b = appendState(b, i)
	return append(b, `,"account_status":1,"consumption_scene_type":2,"consumption_scene_config":[`+
		`{"name":"advertising","channel_id":3},{"name":"travel","channel_id":11}]}`...)
}

func appendIdentity(b []byte, i int) []byte {
	return fmt.Appendf(b, `{"id":"c%015d","trade_id":"t%015d","label":%s,`, i, i*7, orNull(i%3 != 0, fmt.Sprintf("team %d", i%17)))
}

// Few amounts are zero, unlike on a real page: that is the harder case.
func appendAmounts(b []byte, i int) []byte {
	return fmt.Appendf(b, `"currency":"USD","available":"%d.%03d","pending":%d.%02d,"frozen":%d,"fee":"%d.%02d",`,
		i*13%5000, i%1000, i%50, i%100, i%3, i%5, i%100)
}

func appendDistinctAmounts(b []byte, i int) []byte {
	return fmt.Appendf(b, `"currency":"USD","available":"%d.%03d","pending":%d.%02d,"frozen":%d.5,"fee":"%d.%02d",`,
		i*13, i%1000, 100+i, i%100, 300_000+i, 500_000+i, i%100)
}

func remark(long bool) string {
	if long {
		return strings.Repeat("for advertising ", 200)
	}
	return "for advertising"
}

func appendHolder(b []byte, i int) []byte {
	name := "Maria"
	if i%4 == 1 {
		name = "José"
	}
	b = fmt.Appendf(b, `"holder_username":"%s %d Silva","holder_address":`, name, i)
	if i%4 == 3 {
		b = append(b, "[]"...)
	} else {
		b = fmt.Appendf(b, `{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-%03d",`+
			`"addressLine1":"Rua Augusta %d","addressLine2":"%d Esq"}`, i%1000, i, i%9)
	}
	return fmt.Appendf(b, `,"holder_phone":"9%08d","holder_phone_code":"+351","holder_email":"maria.%d@example.com",`, i*31, i)
}

func appendState(b []byte, i int) []byte {
	shipped := i%8 == 6
	return fmt.Appendf(b, `"status":%d,"physical":%d,"physical_status":%d,"deliver_status":%d,`+
		`"platform_waybill_number":%s,"platform_waybill_company":%s`,
		i%6-1, i%2, i%3, i%4, orNull(shipped, fmt.Sprintf("WB%09d", i)), orNull(shipped, "Post/Parcel"))
}

func appendBIN(b []byte, i int) []byte {
	b = fmt.Appendf(b, `{"id":%d,"bin":"49%04d","type":"%s","name":"Travel/Ads %d","network":"VISA","country":"US",`+
		`"avs":%d,"3ds":1,"day_purchase_limit":%d.5,"single_purchase_limit":%d.25,"lifetime_purchase_limit":90000,`+
		`"maintain":false,"weigh":%d,"status":true,"api":true,"physical":%d,"currency":"USD","foreign_fee_config":{`,
		i+1, i*37, [2]string{"share", "PrepaidCard"}[i%2], i, i%2, 1000+i, 200+i, i%9, i%2)
	for tier, bounds := range []string{"0-99.99", "100-999.99", "1000-50000"} {
		if tier > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"%s":{"fee":0.%02d,"fee_rate":0.0%d,"extra_fee":0.%02d,"extra_fee_rate":0.0%d}`,
			bounds, i%50+11, tier+1, i%40+13, tier+2)
	}
	b = fmt.Appendf(b, `},"auth_fee_config":null,"refund_fee_config":{"fee":0.%02d},"reversal_fee_config":null,`+
		`"cashback_fee_config":[],"apple_pay":%d,"google_wallet":1,"card_nums":%d,"is_card_count_limited":1,`+
		`"business_mode":["B2B","B2C"],"auth_level":2,"create_amount":1.05,"card_depost_fee":0.02,`,
		i%50+10, i%2, i*3)
	b = append(b, `"allow_create":true,"allow_in":true,"allow_out":true,"allow_suspend":true,"allow_enable":true,`+
		`"allow_frozen":true,"allow_unfrozen":true,"allow_destory":true,`...)
	b = fmt.Appendf(b, `"create_min_amount":10.01,"create_max_amount":%d,"recharge_min_amount":10.03,"recharge_max_amount":%d,`+
		`"withdraw_min_amount":10.05,"withdraw_max_amount":%d,"refuse_times":3,"refuse_rate":0.25,"scenes":["ads","travel"],`,
		5000+i, 6000+i, 7000+i)
	return append(b, `"auth_requirement":{"level":"advanced","fields":[`+
		`{"field":"idType","required":true,"desc":"kind of document"},`+
		`{"field":"idFrontAttachmentKey","required":true,"desc":"front of the document"},`+
		`{"field":"selfieAttachmentKey","required":true,"desc":"photo of the holder"}]}}`...)
}

func orNull(there bool, text string) string {
	if !there {
		return "null"
	}
	return `"` + text + `"`
}
