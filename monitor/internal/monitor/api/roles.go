// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"crypto/tls"
	"net/http"
	"slices"
)

// A client certificate may name one role: a URI among its subject's alternative names. A
// certificate without a URI has all rights, as the operator's and those for the command
// line. One with another URI, or with several, has none: its authority meant to limit it
// in a way that this monitor does not know.

// roleMetrics is the role of programs that collect metrics.
const roleMetrics = "urn:shai:role:metrics"

// requestsOf lists all requests that a role may make, by their patterns in the table of
// requests.
var requestsOf = map[string][]string{
	roleMetrics: {"GET /metrics", "GET /healthz", "GET /readyz"},
}

// mayRequest says whether a client may make the requests of a pattern. A connection
// without TLS comes through the socket, whose mode has let the client in.
func mayRequest(connection *tls.ConnectionState, pattern string) bool {
	if connection == nil {
		return true
	}
	if len(connection.VerifiedChains) == 0 {
		return false
	}
	uris := connection.VerifiedChains[0][0].URIs
	return len(uris) == 0 || len(uris) == 1 && slices.Contains(requestsOf[uris[0].String()], pattern)
}

// authorized lets requests through that their client may make.
func authorized(requests *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := requests.Handler(r); !mayRequest(r.TLS, pattern) {
			refuse(w, Denied(r.Method+" "+r.URL.Path, "use a certificate without a role, such as the operator's",
				"the role in the client certificate does not allow this"))
			return
		}
		requests.ServeHTTP(w, r)
	})
}
