package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const tinyReply = `{"code":200,"msg":"ok","data":{"id":"c-1","status":"active"}}`

// memory answers in memory, as cheaply as a RoundTripper can.
type memory struct{}

type memoryBody struct{ strings.Reader }

func (*memoryBody) Close() error { return nil }

func (memory) RoundTrip(r *http.Request) (*http.Response, error) {
	body := new(memoryBody)
	body.Reset(tinyReply)
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, ContentLength: int64(len(tinyReply)), Body: body,
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

func BenchmarkMemory(b *testing.B) {
	target := "http://service.test/api/v1/cards/c-1"
	b.Run("bare", func(b *testing.B) {
		hc := &http.Client{Transport: memory{}}
		b.ReportAllocs()
		for b.Loop() {
			req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, target, nil)
			req.Header.Set("Authorization", "Bearer k")
			req.Header.Set("Accept", "application/json")
			resp, err := hc.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			data, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			var v struct {
				Code int                         `json:"code"`
				Data struct{ ID, Status string } `json:"data"`
			}
			if err := json.Unmarshal(data, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("engine", func(b *testing.B) {
		benchmarkEngine(b, New(Config{Doer: &http.Client{Transport: memory{}}, Policy: Policy{MaxRetries: 2, Attempt: 10 * time.Second}}), target)
	})
	b.Run("engine-no-deadline", func(b *testing.B) {
		benchmarkEngine(b, New(Config{Doer: &http.Client{Transport: memory{}}, Policy: Policy{MaxRetries: 2}}), target)
	})
}

func BenchmarkDialled(b *testing.B) {
	target := "http://service.test/api/v1/cards/c-1"
	b.Run("bare", func(b *testing.B) {
		tr := &http.Transport{DialContext: pipeTo(serveTiny)}
		hc := &http.Client{Transport: tr}
		defer tr.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, target, nil)
			resp, err := hc.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	b.Run("engine", func(b *testing.B) {
		e := New(Config{Transport: &http.Transport{DialContext: pipeTo(serveTiny)}, Policy: Policy{MaxRetries: 2, Attempt: 10 * time.Second}})
		defer e.CloseIdleConnections()
		benchmarkEngine(b, e, target)
	})
}

func benchmarkEngine(b *testing.B, e *Engine, target string) {
	u, _ := url.Parse(target)
	h := http.Header{"Authorization": {"Bearer k"}, "Accept": {"application/json"}}
	b.ReportAllocs()
	for b.Loop() {
		r := e.Do(context.Background(), &Request{Method: http.MethodGet, URL: u, Header: h, MaxBytes: 1 << 20, Deadline: time.Now().Add(30 * time.Second)})
		if r.Err != nil || len(r.Body) != len(tinyReply) {
			b.Fatal(r.Err)
		}
		r.Release()
	}
}

func serveTiny(conn net.Conn) {
	defer hangUp(conn)
	for in := bufio.NewReader(conn); readRequest(in); {
		say(conn, "HTTP/1.1 200 OK\r\nContent-Length: 61\r\n\r\n"+tinyReply)
	}
}

func pipeTo(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}
}
