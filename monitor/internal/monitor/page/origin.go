// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"shai.dev/monitor/internal/monitor/api"
)

// named refuses requests to other hosts than the page's: a site whose name was made to resolve to
// the loopback network would count as the page's own origin (DNS rebinding), and a browser may
// keep what others have served at the same port, by another name. Without a gate the host is any
// name of this machine.
func named(gate *Gate, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gate != nil && r.Host != gate.host || gate == nil && !isLoopback(r.Host) {
			fail(w, &api.Problem{Title: "open the page", Status: http.StatusMisdirectedRequest,
				Detail: "this is not its address, which is another after each start", Remedy: openLink})
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
		if site != "" && site != "same-origin" || origin != "" && origin != "http://"+r.Host {
			fail(w, &api.Problem{Title: "open the page", Status: http.StatusForbidden,
				Detail: "another page than this one has asked", Remedy: openLink})
			return
		}
		next.ServeHTTP(w, r)
	})
}
