//go:build !go1.27

package wire_test

import "encoding/json"

// oracleInto has encoding/json decode text into v.
func oracleInto(text []byte, v any) bool {
	_, ok := oracle(text)
	return ok && json.Unmarshal(text, v) == nil
}
