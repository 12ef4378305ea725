package check

import (
	"net/netip"
	"strings"
)

// loopback reports whether the host is this machine, without a look-up, which could
// return any address for a name.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
