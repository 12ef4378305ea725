package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// serveUntil serves until ctx is done. What is in progress then has patience to come to its
// end, and is cut off after that.
func serveUntil(ctx context.Context, server *http.Server, listener net.Listener, patience time.Duration) error {
	ended := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err := server.Shutdown(ending)
		if err != nil {
			err = fmt.Errorf("requests in progress were cut off: %w", errors.Join(err, server.Close()))
		}
		ended <- err
	})()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

// secured keeps browsers from doing what no page here needs. It refuses hosts that are not
// served: another site may give its own name this address, and read the pages as its own.
func secured(next http.Handler, served func(host string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !served(r.Host) {
			http.Error(w, "This host is not served here: open the address that the program printed, "+
				"and let a proxy pass on the Host header.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether a host, with or without a port, is this machine by any network.
func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	address, _ := netip.ParseAddr(name) // the zero Addr is no loopback
	return strings.EqualFold(name, "localhost") || address.IsLoopback()
}
