package wire

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Strings returns every string value of a document that was read before.
func Strings(document []byte) (list []string) {
	c := NewReader(document, false)
	c.SkipBOM()
	c.visit(func([]byte) {}, func() {
		if c.Kind() != '"' {
			c.Skip()
			return
		}
		list = append(list, string(c.Bytes(Message)))
	})
	return list
}

// Letters returns the letters and digits of s in lower case: some write ORDER_ALREADY_EXISTS.
func Letters(s string) string {
	other := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.ToLower(strings.Join(strings.FieldsFunc(s, other), ""))
}

// SaysExists reports whether s, of a refusal, may say that what was sent exists already. To
// whom it says so wrongly, that costs a question; to whom it fails to, a second payment.
func SaysExists(s string) bool {
	if InsistsItExists(s) {
		return true
	}
	for _, r := range rewrites() {
		s = r.pattern.ReplaceAllString(s, r.with)
	}
	return existing().MatchString(s)
}

// InsistsItExists reports whether s has a phrase that counts wherever it stands. A page of HTML
// has such words in its style.
func InsistsItExists(s string) bool {
	letters := Letters(s)
	isPhrase := func(phrase string) bool { return strings.Contains(letters, phrase) }
	return !strings.HasPrefix(strings.TrimSpace(s), "<") && slices.ContainsFunc(evenDenied, isPhrase)
}

// evenDenied are phrases that count whatever stands before them: a duplicate is often what must
// not be.
var evenDenied = []string{
	"repeat", "duplicat", "unique", "重复", "重複", "占用", "佔用",
	"alreadyexist", "alreadybeen", "alreadyused", "已存在", "已经存在", "已被使用",
}

// existing matches what remains after the rewrites, if it says that something exists.
var existing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:exists?|existed|taken|used|in use|occupied)\b|` +
		`\b(?:order|transfer|transaction|payment|payout|remittance)(?: number)?(?: (?:is|still|already|being|currently))*` +
		` (?:in process|in progress|(?:is|still|already) processing|being processed)\b|` +
		`(?:订单|訂單|单号|交易|付款|转账|汇款|请求)(?:正在|已在|在)?处理中(?:[^\p{L}\p{N}]|$)|` +
		`\b(?:has|have|was|were) (?:been )?(?:processed|paid|settled|executed)\b|` +
		`\b(?:already|been|was|previously)(?: \w+ly)* submitted\b|` +
		`\balready(?: \w+ly| been| being)* (?:processed|paid|created|accepted|received|completed|executed|registered|succeeded|settled|sent|done)\b|` +
		`已经?(?:处理|支付|受理|完成)|` +
		`存在(?:[^\p{L}\p{N}]|$)|已.{0,2}存在|[已被][^，。；：！,.;:!|]*(?:使用|提交)`)
})

type rewrite struct {
	pattern *regexp.Regexp
	with    string
}

// rewrites, in this order, separate the words of a text and remove what is denied.
var rewrites = sync.OnceValue(func() []rewrite {
	const (
		no      = `no(?: such| matching| valid)?(?: [a-z]+)?`
		denied  = `(?:not|cannot|non|never|nothing|\w+n't|(?:do|does|did|is|was|has|ca)nt|` + no + `)`
		between = `(?: (?:be|been|being|is|are|was|were|has|have|had|do|does|did|to|yet|already|ever|\w+ly))*`
		order   = `(?:order|trade|serial|transaction|bill|reference|merchant|request|transfer|payment|invoice|batch|` +
			`remittance|ref|txn|tx|payout|client|biz|out|record)`
	)
	var list []rewrite
	for _, r := range [][2]string{
		{`(\p{Ll})(\p{Lu})`, "${1}_$2"}, // orderNo
		{`(\p{Lu})(\p{Lu}\p{Ll})`, "${1}_$2"},
		{`(?i)no[\s_-]+longer`, " not "},
		{`(?i)(?:_|\b` + order + `[\s-]+)no(?:[^a-z]|$)`, " number "}, // ORDER_NO, order no
		{`[’` + "`" + `´]`, "'"},
		{`[\s_-]+`, " "},
		{`(?i)\b(?:used|taken|exists?|submitted) (?:again|twice|before|more|multiple)\b`, "|exists|"}, // also after "not"
		{`(?i)\b` + denied + between + ` (?:exists?|existed|taken|used|submitted|in use|occupied|processed|paid|settled|executed)\b`, "|"},
		{`(?i)\bused (?:up|out)\b`, "|"},
		{`再次?(?:使用|提交)`, "|存在|"},
		{`[不未无無没沒止停制][已经經被曾可能会會得允许許法以有应應该該需在]*(?:存在|使用|提交|处理中)`, "|"},
		{`使用[完尽盡光]`, "|"},
	} {
		list = append(list, rewrite{regexp.MustCompile(r[0]), r[1]})
	}
	return list
})
