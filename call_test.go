package cardwire

import (
	"net/http"
	"path"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request goes through the functions that the comment of do names, and no more.
func TestThePathOfARequest(t *testing.T) {
	t.Parallel()
	var frames []string
	c := clientOn(t, nil, WithHTTPClient(carrier(func(r *http.Request) (*http.Response, error) {
		frames = framesOfOurs()
		return httpReply(r, http.StatusOK, `{"code":200,"msg":"success","data":7}`), nil
	})))
	capacity, err := c.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 7, capacity)
	assert.Equal(t, []string{
		"cardwire-go.(*Client).CardCapacity",
		"cardwire-go.do[...]",
		"cardwire-go.(*call).exchange",
		"transport.(*Engine).Do",
		"go-retryablehttp",
		"transport.tripper.RoundTrip",
		"transport.(*call).try",
		"transport.(*Engine).send",
	}, frames)
}

// framesOfOurs are the functions of this module that led to the caller, a test's
// function, from the first to the last; go-retryablehttp stands between them.
func framesOfOurs() (list []string) {
	pc := make([]uintptr, 64)
	stack := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	for frame, more := stack.Next(); more; frame, more = stack.Next() {
		name := path.Base(frame.Function)
		switch {
		case strings.HasSuffix(frame.File, "_test.go"), name == "":
			continue
		case strings.Contains(frame.Function, "hashicorp/go-retryablehttp"):
			name = "go-retryablehttp"
		case !strings.HasPrefix(frame.Function, "github.com/cardwire/cardwire-go"):
			continue
		}
		if len(list) == 0 || list[0] != name {
			list = append([]string{name}, list...)
		}
	}
	return list
}
