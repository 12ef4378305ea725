package measure

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Key is the key of the calls.
const Key = "sk-test-7f3a"

// Bare is the call that one would write by hand: a request with the headers
// that the service wants, the whole body, and decode.
func Bare(ctx context.Context, hc *http.Client, url string, decode func(body []byte) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+Key)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "bare/1.0")
	resp, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("measure: status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return decode(body)
}

// Memory responds to every request with itself, without a network and with hardly
// any cost of its own: one allocation.
type Memory string

type memoryResponse struct {
	http.Response
	body memoryBody
}

type memoryBody struct{ strings.Reader }

func (*memoryBody) Close() error { return nil }

// header is shared: no reader of a response writes to it.
var header = http.Header{"Content-Type": {"application/json"}}

// RoundTrip responds to r.
func (m Memory) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &memoryResponse{Response: http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(m)), Request: r,
	}}
	response.body.Reset(string(m))
	response.Body = &response.body
	return &response.Response, nil
}

// Do makes Memory a doer that is no http.Client.
func (m Memory) Do(r *http.Request) (*http.Response, error) { return m.RoundTrip(r) }
