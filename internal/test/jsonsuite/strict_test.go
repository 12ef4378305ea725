package jsonsuite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStrict(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	for text, want := range map[string]bool{
		`null`: true, ` 1 `: true, `{"a":{"a":1},"A":1}`: true, deep: true, `"\\ud800"`: true, `"\ud83d\ude00"`: true, `"\\\ud83d\ude00"`: true,
		``: false, `1 2`: false, `[1,]`: false, `{"a":1,"\u0061":1}`: false, `[[{"a":1,"b":2,"a":3}]]`: false, "[" + deep + "]": false,
		"\"\xff\"": false, `"\ud800"`: false, `"\uDC00\uD800"`: false, `"\ud83d\\\ude00"`: false, `"\ud83d\ud83d\ude00"`: false, `"\ud83\u0064\ude00"`: false,
	} {
		assert.Equal(t, want, Strict([]byte(text), 64), "%.60s", text)
	}
}
