package check

import (
	"net/netip"
	"strings"
)

// loopback says whether the host is this machine, judged without a look-up:
// a name could be answered with any address.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
