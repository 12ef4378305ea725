package transport

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/cardwire/cardwire-go/internal/measure"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// What the engine costs by itself, beside a bare http.Client; neither decodes what
// it reads. The program scripts/bench compares whole calls.

// capacity is the smallest response that there is.
var capacity = measure.Capacity()

const benchmarkURL = "http://service.test/api/v1/account/capacity"

var benchmarkPolicy = Policy{MaxRetries: 2, Attempt: 10 * time.Second}

func BenchmarkMemory(b *testing.B) {
	hc := &http.Client{Transport: measure.Memory(capacity)}
	b.Run("bare", func(b *testing.B) { benchmarkBare(b, hc) })
	b.Run("engine", func(b *testing.B) {
		benchmarkEngine(b, New(Config{Doer: hc, Policy: benchmarkPolicy}), Read)
	})
	b.Run("engine-no-deadline", func(b *testing.B) {
		benchmarkEngine(b, New(Config{Doer: hc, Policy: Policy{MaxRetries: benchmarkPolicy.MaxRetries}}), Read)
	})
}

func BenchmarkDialled(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		hc := &http.Client{Transport: &http.Transport{DialContext: pipeTo(serveCapacity)}}
		defer hc.CloseIdleConnections()
		benchmarkBare(b, hc)
	})
	b.Run("engine", func(b *testing.B) {
		e := New(Config{Transport: &http.Transport{DialContext: pipeTo(serveCapacity)}, Policy: benchmarkPolicy})
		defer e.CloseIdleConnections()
		benchmarkEngine(b, e, Read)
	})
	b.Run("write", func(b *testing.B) {
		benchmarkEngine(b, New(Config{Transport: &http.Transport{DialContext: pipeTo(serveCapacity)}}), Write)
	})
}

func benchmarkBare(b *testing.B, hc *http.Client) {
	b.Helper()
	measure.Loop(b, func() error {
		return measure.Bare(context.Background(), hc, benchmarkURL, isCapacity)
	})
}

func benchmarkEngine(b *testing.B, e *Engine, class Class) {
	b.Helper()
	u, err := url.Parse(benchmarkURL)
	if err != nil {
		b.Fatal(err)
	}
	h := http.Header{"Authorization": {"Bearer " + measure.Key}, "Accept": {"application/json"}}
	measure.Loop(b, func() error {
		r := e.Do(context.Background(), &Request{
			Class: class, Method: http.MethodGet, URL: u, Header: fixed(h), MaxBytes: 1 << 20, Deadline: time.Now().Add(30 * time.Second),
		})
		if r.Err != nil {
			return r.Err
		}
		defer r.Release()
		return isCapacity(r.Body)
	})
}

func isCapacity(body []byte) error {
	if len(body) != len(capacity) {
		return fmt.Errorf("%d bytes instead of %d", len(body), len(capacity))
	}
	return nil
}

func serveCapacity(conn net.Conn) {
	defer loopback.HangUp(conn)
	response := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(capacity), capacity)
	for in := bufio.NewReader(conn); loopback.ReadRequest(in); {
		say(conn, response)
	}
}
