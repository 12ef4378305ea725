//go:build go1.27

package wire_test

import jsonv2 "encoding/json/v2"

// oracleInto has encoding/json/v2 decode text into v.
func oracleInto(text []byte, v any) bool { return jsonv2.Unmarshal(text, v) == nil }
