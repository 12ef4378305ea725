package mask

import "reflect"

// Values calls secret with v, which must be a pointer, and with a pointer to each exported
// value that *v contains or points to. secret masks the value if it is card data, and
// reports whether it is: Values does not look inside that one.
func Values(v any, secret func(pointer any) bool) {
	w := walk{secret: secret, seen: map[visit]bool{}}
	w.mask(reflect.ValueOf(v).Elem())
}

// walk remembers where it was: a caller's type may contain itself.
type walk struct {
	secret func(pointer any) bool
	seen   map[visit]bool
}

type visit struct {
	at     uintptr
	length int
	kind   reflect.Type
}

func (w walk) mask(v reflect.Value) {
	if v.CanSet() {
		if w.secret(v.Addr().Interface()) {
			return
		}
	} else if v.Kind() != reflect.Struct { // one that is embedded may have exported fields
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && w.first(v, 0) {
			w.mask(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(w.copy(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.mask(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 && w.first(v, v.Len()) { // not of json.RawMessage, or bytes
			w.elements(v)
		}
	case reflect.Array:
		w.elements(v)
	case reflect.Map:
		if !v.IsNil() && w.first(v, 0) {
			w.entries(v)
		}
	}
}

// first reports whether what v points to is visited for the first time.
func (w walk) first(v reflect.Value, length int) bool {
	at := visit{v.Pointer(), length, v.Type()}
	seen := w.seen[at]
	w.seen[at] = true
	return !seen
}

func (w walk) elements(v reflect.Value) {
	for i := range v.Len() {
		w.mask(v.Index(i))
	}
}

// entries masks values and keys, neither of which can be set in place.
func (w walk) entries(v reflect.Value) {
	all := reflect.MakeMapWithSize(v.Type(), v.Len())
	for entry := v.MapRange(); entry.Next(); {
		all.SetMapIndex(w.copy(entry.Key()), w.copy(entry.Value()))
	}
	v.Set(all)
}

func (w walk) copy(v reflect.Value) reflect.Value {
	fresh := reflect.New(v.Type()).Elem()
	fresh.Set(v)
	w.mask(fresh)
	return fresh
}
