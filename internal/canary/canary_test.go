package canary

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFormsHoldEverySpelling(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"4917365624401735", "q83vEjRW+JCrze8S/FZ4kA==", `sk_"Canary"<Zq8&Xv>\T3'm%p`,
	} {
		for name, spelling := range spellings(secret) {
			for _, around := range [][2]string{{}, {"card: ", ", declined"}, {"[", "]"}, {`{"x":"`, `"}`}} {
				text := around[0] + spelling + around[1]
				assert.Contains(t, strings.Join(Forms(text), "\n"), secret, "%s: %s", name, text)
			}
		}
	}
}

// spellings returns what Go makes of the secret, by the way in which it is written.
func spellings(secret string) map[string]string {
	all := map[string]string{
		"as it is": secret, "in a query": url.QueryEscape(secret), "in a path": url.PathEscape(secret),
	}
	for _, verb := range []string{"%q", "%+q", "%#q", "%x", "%X"} {
		all[verb] = fmt.Sprintf(verb, secret)
	}
	for _, verb := range []string{"%v", "%#v", "%x"} {
		all[verb+" of bytes"] = fmt.Sprintf(verb, []byte(secret))
	}
	for name, v := range map[string]any{
		"JSON": secret, "bytes in JSON": []byte(secret), "JSON in JSON": marshalled(json.Marshal(secret)),
	} {
		all[name] = marshalled(json.Marshal(v))
	}
	all["XML"] = marshalled(xml.Marshal(secret))
	for before := range 4 {
		text := []byte(strings.Repeat("-", before) + secret + "?")
		all[fmt.Sprintf("base64 after %d", before)] = base64.StdEncoding.EncodeToString(text)
		all[fmt.Sprintf("base64 of URLs after %d", before)] = "q" + base64.RawURLEncoding.EncodeToString(text)
	}
	return all
}

// marshalled is for strings, which every encoder accepts.
func marshalled(text []byte, _ error) string { return string(text) }

func testSecrets() *Secrets {
	s := new(Secrets)
	s.AddKey("another-key")
	s.AddKey("short")
	s.AddNumber("400000000000")
	s.AddNumber("40000000000")
	s.AddCVV("907")
	s.AddCVV("5555")
	s.AddCVV("12")
	return s
}

func TestFind(t *testing.T) {
	t.Parallel()
	s := testSecrets()
	for text, want := range map[string][]string{
		"":                     nil,
		"4288379977000007":     {"a card number"},
		"4288 3799-7700 0007":  {"a card number"},
		"17428837997700000799": {"a card number"},
		"428837997700000":      nil,
		"4288379977000003":     nil,
		"400000000000":         {"a card number"},
		"40000000000":          nil,
		"key another-key.":     {"an API key"},
		"short":                nil,
		"907":                  nil,
		"cvv 907":              {"a CVV"},
		`{"CVC2": "5555"}`:     {"a CVV"},
		"cvv: 908":             nil,
		"cvv: 12":              nil,
		"cvv *** 907":          nil,
		"security code is 907": nil,
		"cvv=907 of 4288379977000007 by another-key": {"a card number", "a CVV", "an API key"},
	} {
		assert.Equal(t, want, s.Find(text), text)
	}
	assert.True(t, s.IsKey("another-key"))
	assert.False(t, s.IsKey("short"), "shorter ones would be found everywhere")
	assert.Nil(t, new(Secrets).Find("4111111111111111 another-key cvv 907"))
}

// The check digit is wrong: none of these is a number that a card could have.
func TestNumbersAreCanaries(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "4288379977000007", Number("42883799", 0))
	assert.Equal(t, "5327036677123451", Number("53270366", 512345))
	assert.True(t, IsNumber("4288379977000007"))
	assert.True(t, IsNumber(Number("53270366", 99_999)))
	for _, n := range []string{"4288379977000002", "4288379978000007", "4111111111111111"} {
		assert.False(t, IsNumber(n), n)
	}
	for _, eight := range []string{"22883799", "72883799", "99999999"} {
		assert.False(t, IsNumber(Number(eight, 1)), "no network has such numbers")
	}
}
