//go:build !go1.27

package wire_test

import (
	"bytes"
	"encoding/json"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
)

// oracleIsV2 says that the oracle is encoding/json/v2, which is stricter.
const oracleIsV2 = false

// oracle reads text with encoding/json, as far as that can tell: it replaces
// bytes and halves of pairs that are no characters, and takes the last of repeated
// names, so those are looked for beforehand.
func oracle(text []byte) (v any, ok bool) {
	if !jsonsuite.Strict(text, len(text)) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// oracleInto has encoding/json decode text into v.
func oracleInto(text []byte, v any) bool {
	_, ok := oracle(text)
	return ok && json.Unmarshal(text, v) == nil
}
