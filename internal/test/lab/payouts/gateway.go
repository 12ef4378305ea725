//go:build unix

package payouts

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/cardwire/cardwire-go/internal/test/lab/chaos"
)

const operation = "CreateTransfer"

// kinds are the faults that a transfer can meet, but for the two of a gateway that
// delivers a request twice: to read their responses rightly takes
// cardwire.Profile.DuplicateCodes, which the program as it is does not set.
func kinds() []chaos.Kind {
	return append(chaos.KindsOf([]string{operation}), chaos.GatewayKinds()[2:]...)
}

// gateway lets one client, with one address, meet all kinds: it draws one for each
// connection, and the client makes a new connection for each transfer.
type gateway struct {
	listener net.Listener
	bases    map[string]string
	names    []string
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func startGateway(ctx context.Context, service *chaos.Running) (*gateway, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gateway{listener: listener, bases: service.Base(), conns: map[net.Conn]bool{}}
	for _, k := range kinds() {
		g.names = append(g.names, k.Name, "ok") // half of all calls go well
	}
	g.open.Go(func() { g.accept(ctx) })
	return g, nil
}

// base is the service's URL, for the replicas.
func (g *gateway) base() string { return "http://" + g.listener.Addr().String() + "/ok/api/v1" }

func (g *gateway) stop() {
	_ = g.listener.Close() // accept ends
	g.mu.Lock()
	for conn := range g.conns {
		_ = conn.Close()
	}
	g.mu.Unlock()
	g.open.Wait()
}

func (g *gateway) accept(ctx context.Context) {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.open.Go(func() { g.pass(ctx, conn) })
	}
}

func (g *gateway) keep(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[conn] = true
}

func (g *gateway) drop(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
	_ = conn.Close()
}

// pass delivers one request to the kind that it draws, and the response to the client.
func (g *gateway) pass(ctx context.Context, client net.Conn) {
	g.keep(client)
	defer g.drop(client)
	name := g.names[rand.N(len(g.names))] //nolint:gosec // any kind will do
	base, err := url.Parse(g.bases[name])
	if err != nil {
		return
	}
	in := bufio.NewReader(client)
	line, err := in.ReadString('\n')
	if err != nil {
		return
	}
	server, err := new(net.Dialer).DialContext(ctx, "tcp", base.Host)
	if err != nil {
		return // of what is down
	}
	g.keep(server)
	defer g.drop(server)
	if _, err := io.WriteString(server, strings.Replace(line, "/ok/", "/"+name+"/", 1)); err != nil {
		return
	}
	go func() { // ends when either side does
		_, _ = io.Copy(server, in)
		_ = server.Close() // the client has gone
	}()
	if _, err := io.Copy(client, server); err != nil {
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset stays one
		}
	}
}
