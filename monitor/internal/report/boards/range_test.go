// SPDX-License-Identifier: BSD-2-Clause

package boards

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/waiting"
)

// begin is when the data of the tests begin.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// prometheus starts a Prometheus with blocks of the samples, and returns its URL.
func prometheus(t *testing.T, openMetrics string) string {
	t.Helper()
	folder := t.TempDir()
	samples, data := filepath.Join(folder, "samples.txt"), filepath.Join(folder, "data")
	configuration := filepath.Join(folder, "prometheus.yml")
	for path, text := range map[string]string{samples: openMetrics + "# EOF\n", configuration: "scrape_configs: []\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", samples, data).
		CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, output)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	command := exec.Command("prometheus", "--config.file="+configuration, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+address)
	waiting.Server(t, command, func() bool {
		response, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return "http://" + address
}

// counter writes a counter with a sample each 15 seconds.
func counter(text *strings.Builder, series string, values []float64) {
	for i, value := range values {
		fmt.Fprintf(text, "%s %g %d\n", series, value, begin.Add(time.Duration(i)*15*time.Second).Unix())
	}
}

func quiet(int, int, string) {}

// find returns a panel.
func find(t *testing.T, r *Range, id string) Reading {
	t.Helper()
	at := slices.IndexFunc(r.Panels, func(p Reading) bool { return p.ID == id })
	if at < 0 {
		t.Fatalf("no panel %s", id)
	}
	return r.Panels[at]
}

// A counter that begins again at zero, as after a restart, is no negative rate and loses
// no more than what was counted between the last sample and the restart.
func TestCounterReset(t *testing.T) {
	var text strings.Builder
	text.WriteString("# TYPE shai_denials counter\n")
	var values []float64
	for i := range 41 { // ten minutes, 2 each second; begins again in the middle
		values = append(values, float64(i%21)*30)
	}
	counter(&text, `shai_denials_total{pipeline="syse",policy="private",reason="policy"}`, values)
	end := begin.Add(10 * time.Minute)
	r, err := Read(t.Context(), Wanted{Server: prometheus(t, text.String()), From: begin, To: end,
		Scrape: 15 * time.Second}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	refused := find(t, r, "refused").Results[0][0].Points[0].Value
	if want := 39.0 * 30; math.Abs(refused-want) > 60 {
		t.Errorf("%g accesses refused, %g were counted", refused, want)
	}
	for _, point := range find(t, r, "stopped").Results[0][0].Points {
		if point.Value < 0 || point.Value > 2.1 {
			t.Errorf("%g refused per second at %s, 2 were", point.Value, point.At)
		}
	}
}

// 500 pipelines with names of any characters over a year: the answer stays small.
func TestManyPipelinesInALongRange(t *testing.T) {
	var text strings.Builder
	text.WriteString("# TYPE shai_denials counter\n")
	for i := range 500 {
		name := fmt.Sprintf(`%d </script>\"\n👩 'x`, i)
		series := fmt.Sprintf(`shai_denials_total{pipeline="%s",policy="p",reason="policy"}`, name)
		counter(&text, series, []float64{0, float64(i), float64(2 * i)})
	}
	r, err := Read(t.Context(), Wanted{Server: prometheus(t, text.String()), From: begin.AddDate(-1, 0, 0),
		To: begin.Add(time.Minute), Scrape: 15 * time.Second}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if found := len(find(t, r, "policies").Results[0]); found < 499 {
		t.Errorf("%d pipelines, want those of 500 in which something was refused", found)
	}
	name := ""
	for _, series := range find(t, r, "policies").Results[0] {
		if strings.HasPrefix(series.Labels["pipeline"], "499 ") {
			name = series.Labels["pipeline"]
		}
	}
	if want := "499 </script>\"\n👩 'x"; name != want {
		t.Errorf("pipeline %q, want %q", name, want)
	}
	for _, panel := range r.Panels {
		for _, result := range panel.Results {
			for _, series := range result {
				if len(series.Points) > 1000 {
					t.Errorf("panel %s: %d points", panel.ID, len(series.Points))
				}
			}
		}
	}
	if r.Step < 36*time.Hour {
		t.Errorf("a step of %s for a year", r.Step)
	}
}

// A range without data has panels without results, and is no error.
func TestEmptyRange(t *testing.T) {
	r, err := Read(t.Context(), Wanted{Server: prometheus(t, ""), Last: time.Hour, Scrape: 15 * time.Second}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if since := time.Since(r.To).Abs(); since > time.Hour {
		t.Errorf("without --to the range ends at %s, %s from now", r.To, since)
	}
	for _, panel := range r.Panels {
		for i, result := range panel.Results {
			for _, series := range result {
				// vector(0) stands for a counter that does not exist yet.
				if len(series.Points) != 1 || series.Points[0].Value != 0 || len(series.Labels) > 0 {
					t.Errorf("panel %s, query %d has data: %v", panel.ID, i, series)
				}
			}
		}
	}
}

// Errors name the server and what to do.
func TestErrors(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://user:secret@" + listener.Addr().String()
	listener.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name   string
		ctx    context.Context
		wanted Wanted
		want   []string
	}{
		{"no server", t.Context(), Wanted{Server: closed, Last: time.Hour},
			[]string{"no Prometheus at http://user:xxxxx@127.0.0.1", "leave --prometheus out"}},
		{"another server", t.Context(), Wanted{Server: other.URL, Last: time.Hour}, []string{other.URL, "Prometheus"}},
		{"no URL", t.Context(), Wanted{Server: "localhost:9090"}, []string{"expected a URL such as"}},
		{"no time", t.Context(), Wanted{Server: other.URL, From: begin, To: begin}, []string{"before it begins"}},
		{"interrupted", cancelled, Wanted{Server: other.URL, Last: time.Hour}, []string{"context canceled"}},
	} {
		_, err := Read(test.ctx, test.wanted, quiet)
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %q, want %q", test.name, err, want)
			}
		}
	}
}

// A redirect is not followed, whichever kind it is: the error names where it leads, without
// a password, and what to do.
func TestRedirect(t *testing.T) {
	followed := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		followed = true
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1772366400,"1772366400"]}}`)
	}))
	defer elsewhere.Close()
	there := elsewhere.URL
	host := strings.TrimPrefix(there, "http://")
	for _, test := range []struct {
		status     int
		to, remedy string
	}{
		{http.StatusMovedPermanently, there + "/prefix/api/v1/query", "--prometheus " + there + "/prefix"},
		{http.StatusFound, there + "/login?next=x", "--prometheus " + there + "/login"},
		{http.StatusSeeOther, there + "/api/v1/query", "--prometheus " + there},
		{http.StatusTemporaryRedirect, "http://user:secret@" + host + "/api/v1/query", "--prometheus " + there},
		{http.StatusPermanentRedirect, "/api/v1/query?again=1", "--prometheus http://127.0.0.1"},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Location", test.to)
			w.WriteHeader(test.status)
		}))
		_, err := Read(t.Context(), Wanted{Server: server.URL, Last: time.Hour}, quiet)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), "redirects to") || !strings.Contains(err.Error(), test.remedy) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: error %v, want one with %s", test.status, err, test.remedy)
		}
		if followed || asked != 1 {
			t.Errorf("%d: asked %d times; followed: %t", test.status, asked, followed)
		}
	}
}

// What is no answer of a Prometheus is an error, whatever it is.
func TestGarbage(t *testing.T) {
	for _, answer := range []string{
		"", "null", "{}", "[]", "<html>", `"text"`, `{"status":"success"}`, `{"status":"success","data":null}`,
		`{"status":"success","data":{"resultType":"scalar","result":null}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1,"x"]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1e300,"1"]}}`,
		`{"status":"success","data":{"resultType":"string","result":[1,"x"]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{}]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1772366400,"1"`,
		`{"status":"success","data":{"resultType":"scalar","result":[1772366400,"1"]}}`, // to each query
		`{"status":"error","errorType":"bad_data","error":"\u001b[2J\nwrote report.html\u2028"}`,
		`{"status":"error","errorType":"bad_data","error":"` + strings.Repeat("é", 100_000) + `"}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, answer)
		}))
		_, err := Read(t.Context(), Wanted{Server: server.URL, Last: time.Hour, Scrape: time.Second}, quiet)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), "Prometheus at "+server.URL) ||
			strings.ContainsAny(err.Error(), "\x1b\n\u2028") || len(err.Error()) > 2000 {
			t.Errorf("%.100s: error %.2000q", answer, err)
		}
	}
}

// An answer that is too large is an error, and does not fill the memory.
func TestLargeAnswer(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[`))
		for part := bytes.Repeat([]byte(" "), 1<<20); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	_, err := Read(t.Context(), Wanted{Server: endless.URL, Last: time.Hour}, quiet)
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("error %v", err)
	}
}

// An answer of more results or instants than were asked for is an error: each could be drawn.
func TestMoreThanAsked(t *testing.T) {
	series := `{"metric":{"mode":"m%d","le":"1"},"value":[1772366400,"1"]}`
	instants := `{"metric":{},"values":[` + strings.Repeat(`[1772366400,"1"],`, 300) + `[1772366400,"1"]]}`
	many := make([]string, crowd+1)
	for i := range many {
		many[i] = fmt.Sprintf(series, i)
	}
	for want, answers := range map[string][2]string{
		"20001 results, more than 20000": {strings.Join(many, ","), ""},
		"301 instants of a result":       {"", instants},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kind, answer := "vector", "["+answers[0]+"]"
			if strings.HasSuffix(r.URL.Path, "query_range") {
				kind, answer = "matrix", "["+answers[1]+"]"
			} else if r.FormValue("query") == "time()" {
				kind, answer = "scalar", `[1772366400,"1772366400"]`
			}
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, answer)
		}))
		_, err := Read(t.Context(), Wanted{Server: server.URL, Last: time.Hour, Scrape: time.Second}, quiet)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Grafana's variables become all values, and windows of at least four samples.
func TestExpression(t *testing.T) {
	query := `sum(rate(x{cluster=~"$cluster",pipeline=~"$pipeline"}[$__rate_interval])) + increase(y[$__range])`
	want := `sum(rate(x{cluster=~"(?s:.*)",pipeline=~"(?s:.*)"}[60s])) + increase(y[3600s])`
	if found := expression(query, time.Hour, 15*time.Second, 15*time.Second); found != want {
		t.Errorf("%s, want %s", found, want)
	}
	overhead, beside := panels()
	for _, panel := range append(overhead, beside...) {
		for _, query := range panel.Queries {
			if left := expression(query.Expr, time.Hour, time.Minute, time.Second); strings.Contains(left, "$") &&
				!strings.Contains(left, `"paper: $1"`) {
				t.Errorf("panel %s: a variable is left in %s", panel.ID, left)
			}
		}
	}
}

func TestName(t *testing.T) {
	labels := map[string]string{"mode": "shai", "a": "{{mode}}"}
	for legend, want := range map[string]string{
		"{{mode}} p50": "shai p50", "{{ mode }}": "shai", "plain": "plain", "{{none}}": "", "{{a}}": "{{mode}}",
		"{{mode": "shai",
	} {
		if found := Name(legend, labels); found != want {
			t.Errorf("%q is %q, want %q", legend, found, want)
		}
	}
}
