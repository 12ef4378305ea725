// Worker is the process that is measured, or the service that it calls: what a
// process holds in memory can only be told of a process that does nothing else.
// The program bench starts it.
//
//	worker serve  -latency 20ms -pages 200    prints its base URL; ends with its stdin
//	worker idle   -base URL                   makes a client
//	worker upload -base URL -bytes 268435456  uploads that many bytes
//	worker cards  -base URL -prefetch 8       iterates over all cards
//
// All but the first print one work.Report as JSON.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/measure"
	"github.com/cardwire/cardwire-go/scripts/internal/work"
)

func main() {
	flags := flag.NewFlagSet("worker", flag.ExitOnError)
	var (
		base     = flags.String("base", "", "base `URL` of the service")
		size     = flags.Int64("bytes", 0, "how many bytes are uploaded")
		pages    = flags.Int("pages", 1, "how many pages of cards there are")
		latency  = flags.Duration("latency", 0, "how long the service takes for a response")
		prefetch = flags.Int("prefetch", 0, "how many pages are fetched ahead")
	)
	if len(os.Args) < 2 {
		flags.Usage()
		os.Exit(2)
	}
	_ = flags.Parse(os.Args[2:]) // ExitOnError
	ctx := context.Background()
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(*pages, *latency)
	case "idle":
		err = report(*base, func(*cardwire.Client) (int, error) { return 0, nil })
	case "upload":
		err = report(*base, func(c *cardwire.Client) (int, error) { return 0, upload(ctx, c, *size) })
	case "cards":
		err = report(*base, func(c *cardwire.Client) (int, error) { return cards(ctx, c, *prefetch) })
	default:
		err = errors.New("unknown command " + os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func report(base string, do func(*cardwire.Client) (int, error)) error {
	client, err := cardwire.New(base, measure.Key)
	if err != nil {
		return err
	}
	start := time.Now()
	n, err := do(client)
	elapsed := time.Since(start)
	if err != nil {
		return err
	}
	peak, err := peakResident()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(work.Report{Peak: peak, Elapsed: elapsed, Cards: n})
}

func upload(ctx context.Context, c *cardwire.Client, size int64) error {
	_, err := c.UploadImage(ctx, cardwire.UploadImageParams{
		Filename: "front.jpg", ContentType: "image/jpeg", Size: size,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeros{}, size)), nil },
	})
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func cards(ctx context.Context, c *cardwire.Client, prefetch int) (n int, err error) {
	all := c.AllCards(ctx, cardwire.ListCardsParams{Limit: work.PerPage}, cardwire.WithPrefetch(prefetch))
	for card, err := range all {
		if err != nil {
			return n, err
		}
		if card.ID != "" {
			n++
		}
	}
	return n, nil
}

// peakResident is VmHWM: getrusage's maximum would count the parent's memory,
// as it was between fork and exec.
func peakResident() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte(" kB"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	return kib << 10, err
}

func serve(pages int, latency time.Duration) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // nothing is looked up
	if err != nil {
		return err
	}
	server := &http.Server{Handler: service(pages, latency), ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Printf("http://%s/api/v1\n", listener.Addr())
	// Whoever started it need not stop it: stdin ends with that process.
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, server.Close(), ignoreClosed(<-failed))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func service(pages int, latency time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/cards", pagesOf(pages, latency))
	mux.HandleFunc("POST /api/v1/cards/upload", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the client is gone
		}
		respond(w, []byte(`{"code":200,"msg":"Uploaded","data":{"attachment_key":"a-1"}}`))
	})
	return mux
}

// pagesOf responds with the page that is asked for, when latency has passed since
// the request came. The pages are made beforehand: making one takes time too.
func pagesOf(pages int, latency time.Duration) http.HandlerFunc {
	bodies := make([][]byte, pages)
	for i := range bodies {
		bodies[i] = measure.CardPage(measure.UTF8, i+1, pages, work.PerPage)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		due := time.NewTimer(latency)
		defer due.Stop()
		number, err := strconv.Atoi(r.FormValue("page"))
		if err != nil || number < 1 || number > pages {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		select {
		case <-due.C:
			respond(w, bodies[number-1])
		case <-r.Context().Done():
		}
	}
}

func respond(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // whoever does not listen is gone
}
