package check

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"unicode/utf8"
)

// JSON refuses a value that contains a string which is not valid UTF-8 where
// encoding/json would write it. That package replaces invalid bytes, and its output
// does not show that it did. The value must be one that encoding/json has already
// written: it is then known not to be cyclic.
func JSON(name string, v any) error {
	if v != nil && !validJSON(reflect.ValueOf(v)) {
		return errors.New(name + " is not valid UTF-8")
	}
	return nil
}

func validJSON(v reflect.Value) bool {
	if text, ok := marshalled(v); ok {
		return utf8.Valid(text)
	}
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || validJSON(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if v.Type().Elem().Kind() != reflect.Uint8 && !validJSON(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for name, value := range v.Seq2() {
			if !validJSON(name) || !validJSON(value) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			written := (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-"
			if written && !validJSON(v.Field(i)) {
				return false
			}
		}
	}
	return true
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
