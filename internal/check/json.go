package check

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"unicode/utf8"
)

// JSON refuses a value that contains a string which is not valid UTF-8 where encoding/json
// would write it, since that package replaces invalid bytes, and its output does not show that
// it did. It also refuses a value with its own marshaler if wrong says why, from the value and
// what it writes; "": it is fine. The value must be one that encoding/json has already written:
// it is then known not to be cyclic.
func JSON(name string, v any, wrong func(v any, text []byte) string) error {
	if v == nil {
		return nil
	}
	if why := wrongJSON(reflect.ValueOf(v), wrong); why != "" {
		return errors.New(name + " " + why)
	}
	return nil
}

const notUTF8 = "is not valid UTF-8"

func wrongJSON(v reflect.Value, wrong func(any, []byte) string) string {
	if v.Kind() == reflect.Interface {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if text, ok := marshalled(v); ok {
		return wrongText(reflect.Indirect(v), text, wrong)
	}
	if v.Kind() == reflect.String && !utf8.ValidString(v.String()) {
		return notUTF8
	}
	for part := range written(v) {
		if why := wrongJSON(part, wrong); why != "" {
			return why
		}
	}
	return ""
}

// written iterates over the values in v that encoding/json writes.
func written(v reflect.Value) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				yield(v.Elem())
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				if v.Type().Elem().Kind() == reflect.Uint8 || !yield(v.Index(i)) { // bytes are base64, or numbers
					return
				}
			}
		case reflect.Map:
			for name, value := range v.Seq2() {
				if !yield(name) || !yield(value) {
					return
				}
			}
		case reflect.Struct:
			for f, value := range v.Fields() {
				if (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" && !yield(value) {
					return
				}
			}
		}
	}
}

// wrongText is wrongJSON of a value that writes text, by its own marshaler or by that of a value
// that it embeds.
func wrongText(v reflect.Value, text []byte, wrong func(any, []byte) string) string {
	if !utf8.Valid(text) {
		return notUTF8
	}
	if v.CanInterface() {
		if why := wrong(v.Interface(), text); why != "" || v.Kind() != reflect.Struct {
			return why
		}
	}
	for f, value := range v.Fields() {
		own, ok := marshalled(value)
		value = reflect.Indirect(value)
		isIts := ok && bytes.Equal(own, text)
		if f.Anonymous && (isIts || value.Kind() == reflect.Struct && !value.CanInterface()) {
			if why := wrongText(value, text, wrong); why != "" {
				return why
			}
		}
	}
	return ""
}

// marshalled returns what a value's own marshaler writes, if encoding/json would call
// it.
func marshalled(v reflect.Value) (text []byte, ok bool) {
	if v.Kind() == reflect.Pointer && v.IsNil() || !v.CanInterface() {
		return nil, false
	}
	if v.CanAddr() && v.Addr().CanInterface() {
		v = v.Addr()
	}
	var err error
	switch m := v.Interface().(type) {
	case json.Marshaler:
		text, err = m.MarshalJSON()
	case encoding.TextMarshaler:
		text, err = m.MarshalText()
	default:
		return nil, false
	}
	return text, err == nil
}
