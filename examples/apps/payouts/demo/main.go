// Demo runs the service of examples/apps/payouts, with its page, against the fake service: no
// money moves.
//
//	go run -C examples/apps ./payouts/demo               # the page, until Ctrl-C
//	go run -C examples/apps ./payouts/demo -orders 200   # orders through a service that fails, to the end
//
// The program is the one that merchants copy, built by go build. Its base URL is that of the
// fake service, which is all that it knows about it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	orders := flag.Int("orders", 0,
		"how many orders to send through faults, to compare with the service's ledger; 0: open the page instead")
	db := flag.String("db", "", "the `database`: postgres://..., or an SQLite file (default: a temporary file)")
	flag.Parse()
	if err := run(ctx, os.Stdout, *db, *orders); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1) //nolint:gocritic // what is deferred was done
	}
}

const operation = "CreateTransfer"

// faults are what the service does to orders: the demonstration gives every second order
// one of them.
var faults = []struct {
	name  string
	fault cardwiretest.Fault
}{
	{"the response is lost, and it was executed", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}},
	{"the response is lost, and it was not executed", cardwiretest.Fault{Kind: cardwiretest.FaultReset}},
	{"it is refused", cardwiretest.Fault{Kind: cardwiretest.FaultStatus, Status: 422, Message: "no"}},
	{"there are too many requests", cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}},
	{"a page as response, and it was executed", cardwiretest.Fault{Kind: cardwiretest.FaultHTML, Executed: true}},
	{"a page as response", cardwiretest.Fault{Kind: cardwiretest.FaultHTML}},
	{"half of the response", cardwiretest.Fault{Kind: cardwiretest.FaultTruncated, Executed: true}},
	{"garbage", cardwiretest.Fault{Kind: cardwiretest.FaultGarbage, Executed: true}},
	{"503, and it was executed", cardwiretest.Fault{Kind: cardwiretest.FaultStatus, Status: 503, Executed: true}},
}

// shop is the program, and the fake service that it uses.
type shop struct {
	fake   *cardwiretest.Service
	client http.Client // of the program
	base   string      // the program's address
	wait   func() error
}

func run(ctx context.Context, out io.Writer, db string, orders int) (err error) {
	directory, err := os.MkdirTemp("", "payouts-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if db == "" {
		db = filepath.Join(directory, "payouts.db")
	}
	s := &shop{fake: cardwiretest.New()}
	service := httptest.NewServer(s.fake)
	defer service.Close()
	if err := s.start(ctx, directory, service.URL, db); err != nil {
		return err
	}
	defer func() {
		stop()
		if ended := s.wait(); err == nil {
			err = ended
		}
	}()
	if orders > 0 {
		return s.compare(ctx, out, orders)
	}
	return s.show(ctx, out)
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start builds and starts the program, which ends in order when ctx is done.
func (s *shop) start(ctx context.Context, directory, service, db string) error {
	program := filepath.Join(directory, "payouts")
	const neighbor = "github.com/cardwire/cardwire-go/examples/apps/payouts"
	build := exec.CommandContext(ctx, "go", "build", "-o", program, neighbor)
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program: %w: %s", err, text)
	}
	command := exec.CommandContext(ctx, program, "-db", db, "-migrate", "-listen", "127.0.0.1:0",
		"-timeout", "1s", "-late", "0s", "-brake", "0", "-log", "ERROR+4")
	command.Env = append(os.Environ(),
		"CARDWIRE_BASE_URL="+service+"/api/v1", "CARDWIRE_API_KEY="+cardwiretest.DefaultKey)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	var complaint bytes.Buffer
	command.Stderr = &complaint
	said, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(said)
	first, _ := lines.ReadString('\n') // without an address it has failed, and says why
	s.base = address.FindString(first)
	s.wait = func() error {
		_, _ = io.Copy(io.Discard, lines) // of a program that ends
		err := command.Wait()
		if complaint.Len() > 0 {
			return fmt.Errorf("%s", strings.TrimSpace(complaint.String()))
		}
		if ctx.Err() != nil {
			return nil // it was told to
		}
		return err
	}
	if s.base == "" {
		return errors.Join(errors.New("the program did not start"), s.wait())
	}
	return nil
}

// show sends an order for each fault, and says where the page is.
func (s *shop) show(ctx context.Context, out io.Writer) error {
	if err := s.deliver(ctx, "ok"); err != nil {
		return err
	}
	for i, f := range faults {
		number := fmt.Sprintf("sample-%d", i+1)
		s.fake.Fail(operation, f.fault, 1)
		if err := s.deliver(ctx, number); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%s: %s\n", number, f.name)
	}
	_, _ = fmt.Fprintf(out, "This is the fake service: no money moves. Open %s/ in a browser. Ctrl-C ends it.\n",
		s.base)
	<-ctx.Done()
	return nil
}

// row is an order as the program's API has it.
type row struct {
	Order    string `json:"order"`
	State    string `json:"state"`
	Call     string `json:"call"`
	DenyFrom string `json:"deny_from"`
}

// call calls the program.
func (s *shop) call(ctx context.Context, method, path string, body, into any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	response, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if into != nil && response.StatusCode < http.StatusBadRequest {
		err = json.NewDecoder(response.Body).Decode(into)
	}
	return response.StatusCode, err
}

func (s *shop) send(ctx context.Context, number string) error {
	status, err := s.call(ctx, http.MethodPost, "/payouts", map[string]any{
		"order": number, "transfer": map[string]string{"payoutCurrency": "EUR", "transferAmount": "12.50"},
	}, nil)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("order %s: status %d", number, status)
	}
	return err
}

// deliver sends an order, and waits for what becomes of it: the next has its own fault.
func (s *shop) deliver(ctx context.Context, number string) error {
	err := s.send(ctx, number)
	for state := "queued"; err == nil && (state == "queued" || state == "sending"); state = s.state(ctx, number) {
		err = pause(ctx)
	}
	return err
}

func (s *shop) state(ctx context.Context, number string) string {
	var o row
	if _, err := s.call(ctx, http.MethodGet, "/payouts/"+number, nil, &o); err != nil {
		return ""
	}
	return o.State
}

// compare sends orders through faults, responds as support, and compares what became of
// them with the service's ledger. Every tenth comes twice.
func (s *shop) compare(ctx context.Context, out io.Writer, orders int) error {
	_, _ = fmt.Fprintf(out, "%d orders go to the fake service. Every second call meets a fault, "+
		"every tenth order comes twice.\n", orders)
	batch := "demo-" + strings.ToLower(rand.Text()[:8])
	for i := range orders {
		if i%2 == 1 {
			s.fake.Fail(operation, faults[i/2%len(faults)].fault, 1)
		}
		for range 1 + (i%10)/9 {
			if err := s.send(ctx, fmt.Sprintf("%s-%06d", batch, i)); err != nil {
				return err
			}
		}
	}
	for {
		left, err := s.support(ctx, batch)
		if err != nil {
			return err
		}
		if left == 0 {
			return s.judge(ctx, out, batch, orders)
		}
		if err := pause(ctx); err != nil {
			return errors.New("the demonstration was interrupted")
		}
	}
}

// list returns the orders of a batch in a state.
func (s *shop) list(ctx context.Context, state, batch string) (all []row, err error) {
	var page struct {
		Payouts []row  `json:"payouts"`
		Next    string `json:"next"`
	}
	for path := "/payouts?state=" + state; path != ""; path = page.Next {
		page.Next = ""
		if _, err := s.call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return nil, err
		}
		for _, o := range page.Payouts {
			if strings.HasPrefix(o.Order, batch+"-") {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// support does what people do: it looks into the ledger for each unresolved order. Of those
// that are not there it has every second one sent again. It returns how many have not ended.
func (s *shop) support(ctx context.Context, batch string) (left int, err error) {
	for _, state := range []string{"queued", "sending", "unresolved", "forgotten"} {
		list, err := s.list(ctx, state, batch)
		if err != nil {
			return 0, err
		}
		left += len(list)
		for _, o := range list {
			if state != "unresolved" {
				continue
			}
			found := map[string]string{
				"call": o.Call, "outcome": "executed", "by": "support", "why": "looked into the ledger",
			}
			if s.fake.Executions(operation, o.Order) == 0 {
				found["as_of"], found["outcome"] = time.Now().UTC().Format(time.RFC3339Nano), "not_executed"
				if len(o.Call)%2 == 0 {
					found["outcome"] = "send_again"
				}
			}
			if _, err := s.call(ctx, http.MethodPost, "/payouts/"+o.Order+"/resolve", found, nil); err != nil {
				return 0, err // where it is too early, it is asked again
			}
		}
	}
	return left, nil
}

var errDisagree = errors.New("orders and ledger disagree")

// judge compares each order with the ledger.
func (s *shop) judge(ctx context.Context, out io.Writer, batch string, orders int) error {
	n, wrong := map[string]int{}, 0
	for i := range orders {
		number := fmt.Sprintf("%s-%06d", batch, i)
		state := s.state(ctx, number)
		times, want := s.fake.Executions(operation, number), 0
		if state == "submitted" {
			want = 1
		}
		if n[state]++; times != want {
			wrong++
			_, _ = fmt.Fprintf(out, "%s is %s, and was executed %d times\n", number, state, times)
		}
	}
	_, _ = fmt.Fprintf(out, "submitted %d\nfailed    %d\n", n["submitted"], n["failed"])
	if wrong > 0 || n["submitted"]+n["failed"] != orders {
		return fmt.Errorf("%w on %d orders", errDisagree, wrong)
	}
	_, _ = fmt.Fprintln(out, "Orders and ledger agree: what was submitted was executed once, and nothing else was.")
	return nil
}

// pause waits a moment.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}
