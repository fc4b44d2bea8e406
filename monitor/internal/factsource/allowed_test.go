// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/manifest"
)

// counted is a server on loopback, which counts the requests that reach it.
func counted(t *testing.T, answer http.HandlerFunc) (server *httptest.Server, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server, requests
}

func says(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, statement) }

// isRefused reports whether nothing is opened for a source since it is not allowed.
func isRefused(spec manifest.FactSourceSpec, allowed allowlist.List) bool {
	var refused *allowlist.Refused
	_, err := Open(spec, Login{}, allowed)
	return errors.As(err, &refused)
}

// What is not listed is not fetched, though the server and the store would answer.
func TestOnlyListedSourcesAreFetched(t *testing.T) {
	store, socket := startStore(t)
	do(t, store, "SADD", "friends:alice", "bob", "carol")
	keys := keysOf(socket, manifest.FactKeys{Pattern: "friends:{user}", Conduit: "friends/{user}", Says: "friend"})
	server, requests := counted(t, says)
	host := strings.TrimPrefix(server.URL, "http://")
	for _, list := range [][]string{{}, {"http://facts.example"}, {"https://" + host}, {"http://" + host + "/friends/"},
		{"unix:" + socket + "2"}} {
		for _, spec := range []manifest.FactSourceSpec{keys, streamOf(socket), at(server.URL, ""),
			at("http://facts.example@"+host, ""), at("http://facts.example:80@"+host+"/friends/", "")} {
			if !isRefused(spec, listed(t, list...)) {
				t.Errorf("%+v is opened, with the list %q", spec, list)
			}
		}
	}
	if requests.Load() > 0 {
		t.Errorf("the server got %d requests", requests.Load())
	}
	for _, spec := range []manifest.FactSourceSpec{keys, at(server.URL, "")} {
		source, err := Open(spec, Login{}, listed(t, "unix:"+socket, "http://"+host))
		if err != nil {
			t.Fatal(err)
		}
		if facts, _ := whole(t, source); len(facts) != 2 {
			t.Errorf("%+v, when listed: %q", spec, facts)
		}
	}
}

// A host that is allowed cannot send the monitor elsewhere.
func TestRedirectsLeadToListedSourcesOnly(t *testing.T) {
	inner, requests := counted(t, says)
	var location string
	outer, _ := counted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/friends/a" {
			says(w, r)
			return
		}
		http.Redirect(w, r, location, http.StatusFound)
	})
	allowed := listed(t, outer.URL+"/friends/")
	port := strings.TrimPrefix(outer.URL, "http://127.0.0.1")
	for _, location = range []string{
		inner.URL, "http://169.254.169.254/latest/meta-data/", "http://localhost" + port + "/friends/b",
		"http://[::1]" + port + "/friends/b", "http://x@127.0.0.1" + port + "/secrets", "/secrets",
		"/friends/../secrets", "/friends/%2e%2e/secrets", "//169.254.169.254/", "file:///etc/passwd",
		"https://127.0.0.1" + port + "/friends/b",
	} {
		source, err := Open(at(outer.URL+"/friends/a", ""), Login{}, allowed)
		if err != nil {
			t.Fatal(err)
		}
		fails(t, source, "", "it redirects")
	}
	if requests.Load() > 0 {
		t.Errorf("the other server got %d requests", requests.Load())
	}
	location = "/friends/b"
	source, err := Open(at(outer.URL+"/friends/a", ""), Login{}, allowed)
	if err != nil {
		t.Fatal(err)
	}
	if facts, _ := whole(t, source); len(facts) != 2 {
		t.Errorf("a redirect to what is listed: %q", facts)
	}
}

// That another host is listed as well lets no host speak for it: facts are whose the manifest says.
func TestRedirectsLeadToNoOtherHost(t *testing.T) {
	other, requests := counted(t, says)
	host, _ := counted(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusFound)
	})
	allowed := listed(t, host.URL, other.URL)
	source, err := Open(at(host.URL, ""), Login{}, allowed)
	if err != nil {
		t.Fatal(err)
	}
	fails(t, source, "", "it redirects to "+other.URL)
	if requests.Load() > 0 {
		t.Errorf("the other host got %d requests", requests.Load())
	}
	if source, err = Open(at(other.URL, ""), Login{}, allowed); err != nil {
		t.Fatal(err)
	}
	if facts, _ := whole(t, source); len(facts) != 2 {
		t.Errorf("the other host itself: %q", facts)
	}
}

// resolving returns a resolver that asks a name server of the test's own. It answers every
// name with the addresses.
func resolving(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for buffer := make([]byte, 512); ; {
			count, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := answered(buffer[:count], addresses); answer != nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	dialer := net.Dialer{}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answered answers a query for addresses of one family (RFC 1035).
func answered(query []byte, addresses []string) []byte {
	var message dnsmessage.Message
	if message.Unpack(query) != nil || len(message.Questions) != 1 {
		return nil
	}
	message.Response, message.Additionals = true, nil
	question := message.Questions[0]
	for _, text := range addresses {
		var found dnsmessage.Resource
		found.Header = dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET}
		switch address := netip.MustParseAddr(text); {
		case address.Is4() && question.Type == dnsmessage.TypeA:
			found.Body = &dnsmessage.AResource{A: address.As4()}
		case address.Is6() && question.Type == dnsmessage.TypeAAAA:
			found.Body = &dnsmessage.AAAAResource{AAAA: address.As16()}
		default:
			continue
		}
		message.Answers = append(message.Answers, found)
	}
	answer, err := message.Pack()
	if err != nil {
		return nil
	}
	return answer
}

// Whoever answers for a listed name does not lead the monitor to the machine itself.
func TestNamesDoNotLeadToTheMachineItself(t *testing.T) {
	server, requests := counted(t, says)
	origin, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	named := "http://facts.example:" + origin.Port()
	for _, addresses := range [][]string{{"127.0.0.1"}, {"::ffff:127.0.0.1"}, {"0.0.0.0"}, {"::"},
		{"127.0.0.1", "::1"}, {"::ffff:0.0.0.0"}} {
		source, err := newAddress(*at(named, "").HTTP, listed(t, named), resolving(t, addresses...))
		if err != nil {
			t.Fatal(err)
		}
		fails(t, source, "", "which has to be listed itself")
	}
	if requests.Load() > 0 {
		t.Errorf("the server got %d requests", requests.Load())
	}
	// The same name server, and the address as it is listed.
	for _, literal := range []string{server.URL, "http://localhost:" + origin.Port()} {
		source, err := newAddress(*at(literal, "").HTTP, listed(t, literal), resolving(t, "127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		if facts, _ := whole(t, source); len(facts) != 2 {
			t.Errorf("%s, as it is listed: %q", literal, facts)
		}
	}
}

// With an environment that names a proxy, the monitor goes to the source itself: a proxy
// would resolve names for it.
func TestTheEnvironmentsProxyIsNotAsked(t *testing.T) {
	proxy, requests := counted(t, says)
	for _, variable := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(variable, proxy.URL)
	}
	const name = "http://facts.example"
	source, err := newAddress(*at(name, "").HTTP, listed(t, name), resolving(t, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	fails(t, source, "", "which has to be listed itself")
	if requests.Load() > 0 {
		t.Error("the proxy was asked")
	}
}
