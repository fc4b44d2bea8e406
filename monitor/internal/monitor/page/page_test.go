// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
)

// host is that of the fixture's page.
const host = "7xq2.localhost:8650"

// data are the requests whose answers only administrators may see.
var data = []string{
	"/data/pipelines", "/data/explain?principal=bob&conduit=/x", "/data/readers?conduit=/x",
	"/data/decisions?conduit=/corpus/private/alice/3.txt", "/data/denials",
}

// fixture is a page behind a gate.
type fixture struct {
	t       *testing.T
	service *apitest.Service
	handler http.Handler
	gate    *Gate
	tickets []string
	clock   time.Time
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, service: new(apitest.Service), clock: apitest.Began}
	f.gate = NewGate(&Site{Host: host}, func(ticket string) { f.tickets = append(f.tickets, ticket) })
	f.gate.now = func() time.Time { return f.clock }
	f.handler = New(source(t, f.service), f.gate)
	return f
}

func source(t *testing.T, service *apitest.Service) Source {
	return struct {
		*apitest.Service
		*audit.Log
	}{service, apitest.Log(t)}
}

// do makes a request, with "name: value" headers. A stream is ended once it has begun.
func (f *fixture) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	f.t.Helper()
	ctx := f.t.Context()
	if strings.HasPrefix(path, "/data/denials") {
		ended, cancel := newEnded(ctx)
		defer cancel()
		ctx = ended
	}
	request := httptest.NewRequestWithContext(ctx, method, "http://"+host+path, strings.NewReader(body))
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
		if name == "Host" {
			request.Host = value
		}
	}
	recorder := httptest.NewRecorder()
	f.handler.ServeHTTP(deadlines{recorder}, request)
	return recorder
}

// enter exchanges a ticket and returns the token, or "".
func (f *fixture) enter(ticket string, headers ...string) string {
	f.t.Helper()
	text, _ := json.Marshal(map[string]string{"ticket": ticket})
	var answer struct{ Token string }
	recorder := f.do("POST", "/session", string(text), headers...)
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		f.t.Fatal(err)
	}
	return answer.Token
}

// Who has no token learns nothing, and each link gives one token.
func TestOnlyWithAToken(t *testing.T) {
	f := newFixture(t)
	refused := func(token string) {
		t.Helper()
		for _, path := range data {
			got := f.do("GET", path, "", "Authorization: Bearer "+token)
			if got.Code != 401 && got.Code != 429 || strings.Contains(got.Body.String(), "alice") {
				t.Errorf("%s with token %q: %d %s", path, token, got.Code, got.Body)
			}
		}
	}
	refused("")
	refused(f.tickets[0])
	if f.enter("") != "" || f.enter(f.tickets[0]+"x") != "" || len(f.tickets) != 1 {
		t.Error("a wrong ticket was exchanged")
	}
	if calls := f.service.Calls(); len(calls) > 0 {
		t.Errorf("the monitor was asked: %v", calls)
	}
	token := f.enter(f.tickets[0])
	for _, path := range data {
		if got := f.do("GET", path, "", "Authorization: Bearer "+token); got.Code != 200 {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
		if got := f.do("GET", path, "", "Cookie: token="+token, "Authorization: Basic "+token); got.Code == 200 {
			t.Errorf("%s is answered without the header", path)
		}
	}
	refused(token[1:])
	if f.enter(f.tickets[0]) != "" {
		t.Error("a ticket was exchanged twice")
	}
	if other := f.enter(f.tickets[1]); other == "" || other == token {
		t.Errorf("the next ticket gives %q", other)
	}
}

// Windows that are not used, and the oldest of many, need another link.
func TestTokensEnd(t *testing.T) {
	f := newFixture(t)
	known := func(token string) bool {
		return f.do("GET", data[0], "", "Authorization: Bearer "+token).Code == 200
	}
	first := f.enter(f.tickets[0])
	f.clock = f.clock.Add(maxIdle)
	if !known(first) {
		t.Fatal("a window is forgotten too early")
	}
	f.clock = f.clock.Add(maxIdle + time.Second)
	for range 2 { // asking does not make it known again
		if known(first) {
			t.Error("an idle window is known")
		}
	}
	kept, lost := f.enter(f.tickets[1]), f.enter(f.tickets[2])
	for i := range maxWindows - 1 {
		if !known(kept) {
			t.Fatal("a window in use is forgotten")
		}
		f.enter(f.tickets[3+i])
	}
	if known(lost) || !known(kept) {
		t.Error("it is not the window unused for longest that is forgotten")
	}
}

// Who guesses is slowed down. Who holds the token is not.
func TestWrongTokensAreLimited(t *testing.T) {
	f := newFixture(t)
	token := f.enter(f.tickets[0])
	guess := func() int { return f.do("GET", data[0], "", "Authorization: Bearer guess").Code }
	codes := map[int]int{}
	for range 50 {
		codes[guess()]++
	}
	if codes[401] != 10 || codes[429] != 40 {
		t.Errorf("answers: %v", codes)
	}
	if got := f.do("POST", "/session", `{"ticket":"guess"}`); got.Code != 429 || got.Header().Get("Retry-After") == "" {
		t.Errorf("a guessed ticket: %d", got.Code)
	}
	if got := f.do("GET", data[0], "", "Authorization: Bearer "+token); got.Code != 200 {
		t.Errorf("with the token: %d", got.Code)
	}
	f.clock = f.clock.Add(time.Minute)
	if got := guess(); got != 401 {
		t.Errorf("later: %d", got)
	}
}

// A site whose name resolves to this machine (DNS rebinding), who had the port before, or
// another page of the browser gets nothing, not even with the token.
func TestOtherSites(t *testing.T) {
	f := newFixture(t)
	token := "Authorization: Bearer " + f.enter(f.tickets[0])
	for _, host := range []string{"evil.example", "evil.example:8650", "10.0.0.1:8650", "127.0.0.1.evil.example", "",
		"localhost.evil.example:1", "evil.localhost:8650", "0.0.0.0", "shai", "localhost", "localhost:8650",
		"127.0.0.1:8650", "127.0.0.1", "127.3.2.1:8650", "[::1]:8650", "[::1]", "7xq2.localhost", "7xq2.localhost:8651",
		"7xq2.localhost.:8650", "7XQ2.localhost:8650", "a.7xq2.localhost:8650", "evil@7xq2.localhost:8650"} {
		for _, path := range append([]string{"/", "/page.js"}, data...) {
			if got := f.do("GET", path, "", token, "Host: "+host); got.Code != 421 {
				t.Errorf("%s of host %q: %d", path, host, got.Code)
			}
		}
		if f.enter(f.tickets[1], "Host: "+host) != "" {
			t.Errorf("host %q exchanges a ticket", host)
		}
	}
	if got := f.do("GET", data[0], "", token, "Origin: http://"+host); got.Code != 200 {
		t.Errorf("the page's host: %d %s", got.Code, got.Body)
	}
	for _, header := range []string{"Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:8650",
		"Origin: http://evil@" + host, "Origin: https://" + host, "Origin: http://" + host + "/",
		"Origin: http://[::1]:8650",
		"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		for _, path := range data {
			if got := f.do("GET", path, "", token, header); got.Code != 403 {
				t.Errorf("%s with %s: %d", path, header, got.Code)
			}
		}
		if f.enter(f.tickets[1], header) != "" {
			t.Errorf("%s exchanges a ticket", header)
		}
	}
	if got := f.do("GET", data[0], "", token, "Sec-Fetch-Site: same-origin"); got.Code != 200 {
		t.Errorf("the page itself: %d", got.Code)
	}
}

// Nothing that changes something can be asked of the page, with the token or not.
func TestReadOnly(t *testing.T) {
	f := newFixture(t)
	token := "Authorization: Bearer " + f.enter(f.tickets[0])
	for _, path := range append([]string{"/", "/index.html", "/v1/facts", "/v1/bundles", "/v1/status", "/metrics",
		"/v1/pipelines/syse/mode", "/v1/pipelines/syse/tasks/worker:stop", "/page/", "/../../etc/passwd"}, data...) {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS"} {
			if got := f.do(method, path, "{}", token); got.Code < 300 {
				t.Errorf("%s %s: %d", method, path, got.Code)
			}
		}
		if got := f.do("GET", path, "", token); got.Code < 300 && !slices.Contains(data, path) && path != "/" {
			t.Errorf("GET %s: %d", path, got.Code)
		}
	}
	for _, call := range f.service.Calls() {
		if verb, _, _ := strings.Cut(call, " "); !slices.Contains([]string{"status", "explain", "readers"}, verb) {
			t.Errorf("the monitor was asked to %s", call)
		}
	}
}

// Every answer keeps browsers from taking it for something else.
func TestHeaders(t *testing.T) {
	f := newFixture(t)
	for _, path := range append([]string{"/", "/page.js", "/page.css", "/look.css", "/icon.svg", "/nothing"}, data...) {
		header := f.do("GET", path, "").Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
		} {
			if got := header.Get(name); got != want && (path != "/nothing" || got != "") {
				t.Errorf("%s: %s: %q, want %q", path, name, got, want)
			}
		}
	}
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
		"base-uri 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy has no %s", part)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("the policy is lax: %s", policy)
	}
}

// The page needs nothing that the policy forbids: nothing inline, nothing from elsewhere, and no
// function that makes markup or code of a text.
func TestAssets(t *testing.T) {
	forbidden := regexp.MustCompile(`(?i)<script(?:>| [^>]*>[^<])|<style|\son\w+=|style="|https?://(?:[^w]|w[^w])|` +
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setTimeout\(["']|javascript:`)
	err := fs.WalkDir(assets, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(assets, path)
		if found := forbidden.Find(text); found != nil {
			t.Errorf("%s has %s", path, found)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Texts of users arrive as JSON in which no markup is left, and are not looked up elsewhere.
func TestHostileNames(t *testing.T) {
	f := newFixture(t)
	token := "Authorization: Bearer " + f.enter(f.tickets[0])
	for _, name := range []string{`</script><img src=x onerror=alert(1)>`, "\"'\n\r\t\x00", "\u202egnp.exe",
		strings.Repeat("a", 15<<10), "🙂"} {
		question := url.Values{"principal": {name}, "conduit": {name}}.Encode()
		got := f.do("GET", "/data/explain?"+question, "", token)
		if got.Code != 200 || got.Header().Get("Content-Type") != "application/json" ||
			strings.ContainsAny(got.Body.String(), "<>") {
			t.Errorf("%.20q: %d %.200s", name, got.Code, got.Body)
		}
		var answer api.Explanation
		if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil ||
			answer.Question.Principal != name {
			t.Errorf("%.20q comes back as %.20q: %v", name, answer.Question.Principal, err)
		}
	}
}

// Without a gate, on the monitor's socket, the page answers whoever reaches it.
func TestWithoutAGate(t *testing.T) {
	f := newFixture(t)
	f.handler = New(source(t, f.service), nil)
	for _, host := range []string{"localhost", "127.0.0.1:8650", "[::1]:8650"} {
		if got := f.do("GET", data[0], "", "Host: "+host, "Origin: http://"+host); got.Code != 200 {
			t.Errorf("host %q: %d %s", host, got.Code, got.Body)
		}
	}
	if got := f.do("GET", data[0], "", "Host: evil.example"); got.Code != 421 {
		t.Error(got.Code, got.Body)
	}
}

// What a question lacks, and what the monitor cannot answer, comes as a problem.
func TestProblems(t *testing.T) {
	f := newFixture(t)
	token := "Authorization: Bearer " + f.enter(f.tickets[0])
	for _, path := range []string{"/data/explain?principal=bob&conduit=%ff", "/data/readers?conduit=/x%ed%a0%80",
		"/data/decisions?conduit=/%c3"} {
		if got := f.do("GET", path, "", token); got.Code != 400 || !strings.Contains(got.Body.String(), "not UTF-8") {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	for _, path := range []string{"/data/explain", "/data/explain?principal=bob", "/data/explain?conduit=/x",
		"/data/decisions"} {
		if got := f.do("GET", path, "", token); got.Code != 422 || !strings.Contains(got.Body.String(), "missing") {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	f.service.Err = api.NotFound("explain", "apply manifests first", "there is no pipeline")
	for _, path := range data[:3] {
		if got := f.do("GET", path, "", token); got.Code != 404 || !strings.Contains(got.Body.String(), "no pipeline") {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
}

// The page listens where no other machine reaches it.
func TestListen(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:80", ":8650", "localhost:0", "127.0.0.1", "",
		"127.3.2.1:0", "[::1]:0"} {
		if site, err := Listen(address); err == nil {
			site.Close()
			t.Errorf("it listens at %q", address)
		}
	}
	site, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	port := site.Listeners[0].Addr().(*net.TCPAddr).Port
	if !regexp.MustCompile(`^[a-z2-7]{26}\.localhost:` + strconv.Itoa(port) + `$`).MatchString(site.Host) {
		t.Errorf("the host is %s", site.Host)
	}
	link := site.Link("TICKET", api.Question{Principal: "o'hara&x=1", Conduit: "/a b#c"})
	parsed, err := url.Parse(link)
	if err != nil || parsed.RawQuery != "" || parsed.Host != site.Host {
		t.Errorf("%s: %v", link, err)
	}
	values, err := url.ParseQuery(parsed.EscapedFragment())
	if err != nil || values.Get("ticket") != "TICKET" || values.Get("principal") != "o'hara&x=1" ||
		values.Get("conduit") != "/a b#c" || len(values) != 3 {
		t.Errorf("%s: %v, %v", link, values, err)
	}
	for _, listener := range site.Listeners {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		connection.Close()
	}
}

// Who connects to the page again and again leaves the monitor its descriptors.
func TestConnectionsAreLimited(t *testing.T) {
	site, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	listener := site.Listeners[0]
	var accepted atomic.Int64
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Listener.Close()
	server.Listener = listener
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	dial := func() net.Conn {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	ask := func(connection net.Conn) {
		if _, err := connection.Write([]byte("GET / HTTP/1.1\r\nHost: page\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := connection.Read(make([]byte, 1024)); err != nil {
			t.Fatal(err)
		}
	}
	first := dial()
	for range connectionsAtATime - 1 {
		ask(dial())
	}
	for range 8 {
		dial()
	}
	ask(first)
	if now := accepted.Load(); now > connectionsAtATime {
		t.Errorf("%d connections are open", now)
	}
}

// Browsers may try either address of the loopback network first: the page has both, or none.
func TestNobodyElseHasTheOtherAddress(t *testing.T) {
	other, err := net.Listen("tcp6", "[::1]:0")
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		site, err := Listen("127.0.0.1:0")
		if err != nil || len(site.Listeners) != 1 {
			t.Fatalf("without IPv6: %v, %v", site, err)
		}
		site.Close()
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	address := at("127.0.0.1", other.Addr().(*net.TCPAddr).Port)
	if site, err := Listen(address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("it listens at %s, although ::1 is another's: %v, %v", address, site, err)
	}
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatalf("the first address is kept: %v", err)
	}
	listener.Close()
	site, err := Listen("127.0.0.1:0")
	if err != nil || len(site.Listeners) != 2 {
		t.Fatalf("%v, %v", site, err)
	}
	again, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(site.Host, ":"); strings.HasPrefix(again.Host, first) {
		t.Errorf("two starts have the host %s", first)
	}
	site.Close()
	again.Close()
}
