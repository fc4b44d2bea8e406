// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"shai.dev/monitor/internal/monitor/api"
)

// local refuses requests to other names than this machine's own: a site whose name was made
// to resolve to the loopback network would count as the page's own origin (DNS rebinding). A
// connection with TLS is to the name of the monitor's certificate.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && !isLoopback(r.Host) {
			fail(w, &api.Problem{Title: "open the page", Status: http.StatusMisdirectedRequest,
				Detail: "it answers at addresses of this machine only", Remedy: "use 127.0.0.1 or localhost in the address"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}

// fromPage refuses requests that a browser makes for another page than this one.
func fromPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
		if site != "" && site != "same-origin" || origin != "" && !isHost(origin, r.Host) {
			fail(w, &api.Problem{Title: "open the page", Status: http.StatusForbidden,
				Detail: "another page than this one has asked", Remedy: "open the page itself"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isHost reports whether an origin is that of a host and port.
func isHost(origin, host string) bool {
	address, err := url.Parse(origin)
	return err == nil && host != "" && address.Host == host
}
