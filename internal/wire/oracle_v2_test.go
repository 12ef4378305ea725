//go:build go1.27

package wire_test

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
	"io"
)

// oracleIsV2 says that the oracle is encoding/json/v2, which is stricter.
const oracleIsV2 = true

// oracle reads text with encoding/json/v2 and its strict defaults. It goes from
// token to token, because an any would make numbers inexact.
func oracle(text []byte) (any, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	v, err := oracleValue(d)
	if err != nil {
		return nil, false
	}
	_, err = d.ReadToken()
	return v, err == io.EOF
}

func oracleValue(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		return oracleObject(d)
	case jsontext.KindBeginArray:
		return oracleArray(d)
	case jsontext.KindString:
		return token.String(), nil
	case jsontext.KindNumber:
		return json.Number(token.String()), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return token.Bool(), nil
	}
	return nil, nil
}

func oracleObject(d *jsontext.Decoder) (any, error) {
	object := map[string]any{}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if object[key], err = oracleValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return object, err
}

func oracleArray(d *jsontext.Decoder) (any, error) {
	list := []any{}
	for d.PeekKind() != jsontext.KindEndArray {
		v, err := oracleValue(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.ReadToken()
	return list, err
}

// oracleInto has encoding/json/v2 decode text into v.
func oracleInto(text []byte, v any) bool { return jsonv2.Unmarshal(text, v) == nil }
