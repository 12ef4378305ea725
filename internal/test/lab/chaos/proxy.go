package chaos

import (
	"fmt"
	"strings"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// proxies stand in front of the service: one for each kind, because a toxic
// poisons all connections of its proxy.
type proxies struct {
	list []*toxiproxy.Proxy
	base map[string]string // the base URL of each kind
}

func startProxies(kinds []Kind, upstream string) (*proxies, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := &proxies{base: map[string]string{}}
	for i := range kinds {
		address, err := p.open(server, &kinds[i], upstream)
		if err != nil {
			p.stop()
			return nil, fmt.Errorf("the proxy of %s: %w", kinds[i].Name, err)
		}
		p.base[kinds[i].Name] = "http://" + address + "/" + kinds[i].Name + "/api/v1"
	}
	return p, nil
}

// open returns the address at which the kind is found.
func (p *proxies) open(server *toxiproxy.ApiServer, k *Kind, upstream string) (string, error) {
	if k.direct {
		return upstream, nil
	}
	listen := "127.0.0.1:0"
	if k.down {
		listen = refusedAddress
	}
	proxy := toxiproxy.NewProxy(server, k.Name, listen, upstream)
	// A port that was given back could be given to somebody else, even to the
	// client's own end of a connection: what is down has never been up.
	if err := server.Collection.Add(proxy, !k.down); err != nil {
		return "", err
	}
	p.list = append(p.list, proxy)
	if k.toxic == "" {
		return proxy.Listen, nil
	}
	_, err := proxy.Toxics.AddToxicJson(strings.NewReader(k.toxic))
	return proxy.Listen, err
}

func (p *proxies) stop() {
	for _, proxy := range p.list {
		proxy.Stop()
	}
}
