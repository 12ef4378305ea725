//go:build !go1.27

package wire_test

import "encoding/json"

// oracleIsV2 says that the oracle is encoding/json/v2, which is stricter.
const oracleIsV2 = false

// oracleInto has encoding/json decode text into v.
func oracleInto(text []byte, v any) bool {
	_, ok := oracle(text)
	return ok && json.Unmarshal(text, v) == nil
}
