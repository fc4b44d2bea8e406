// SPDX-License-Identifier: BSD-2-Clause

package api_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
)

const metricsRole = "urn:shai:role:metrics"

// client returns a client whose certificate names these roles.
func (a *authority) client(t *testing.T, roles ...string) *http.Client {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "client"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, role := range roles {
		uri, err := url.Parse(role)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	certificate, err := tls.LoadX509KeyPair(a.issue(template))
	if err != nil {
		t.Fatal(err)
	}
	authorities, err := os.ReadFile(a.path)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authorities)
	transport := &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Every request of the table, with every kind of certificate.
func TestRoles(t *testing.T) {
	ours := newAuthority(t)
	certificate, key := ours.leaf("monitor", x509.ExtKeyUsageServerAuth)
	handler := &api.Handler{Service: new(apitest.Service), Audit: apitest.Log(t),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "shai_up 1\n") })}
	_, listeners := apitest.Serve(t, handler, api.Endpoints{
		Listen: "127.0.0.1:0", Certificate: certificate, Key: key, ClientCA: ours.path,
	})
	base := "https://" + listeners[1].Addr().String()
	patterns := append(handler.Patterns(), "GET /", "GET /nowhere", "DELETE /metrics", "POST /healthz",
		"GET /metrics/../v1/status")
	all := func(string) bool { return true }
	nothing := func(string) bool { return false }
	for _, test := range []struct {
		name  string
		roles []string
		may   func(pattern string) bool
	}{
		{"no role", nil, all},
		{"metrics", []string{metricsRole}, func(pattern string) bool {
			return pattern == "GET /metrics" || pattern == "GET /healthz" || pattern == "GET /readyz"
		}},
		{"an unknown role", []string{"urn:shai:role:auditor"}, nothing},
		{"no role's URI", []string{"https://example.org/"}, nothing},
		{"a longer name", []string{metricsRole + "x"}, nothing},
		{"another spelling", []string{"URN:SHAI:ROLE:METRICS"}, nothing},
		{"two roles", []string{metricsRole, "urn:shai:role:auditor"}, nothing},
		{"a role twice", []string{metricsRole, metricsRole}, nothing},
	} {
		client := ours.client(t, test.roles...)
		for _, pattern := range patterns {
			t.Run(test.name+"/"+pattern, func(t *testing.T) {
				method, path, _ := strings.Cut(pattern, " ")
				status := statusOf(t, client, method, base+path)
				if refused := status == http.StatusForbidden; refused == test.may(pattern) {
					t.Errorf("%s %s: %d", method, path, status)
				}
			})
		}
	}
}

// statusOf makes one request, without following redirections, and returns its status.
func statusOf(t *testing.T, client *http.Client, method, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
