// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/edition"
	"shai.dev/monitor/internal/monitor"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/taskid"
)

func TestMonitorOptions(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{"data", "lib"} {
		if err := os.Mkdir(filepath.Join(root, directory), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "lib", "libshai.so"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("data", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	base := []string{"monitor", "--data", root + "/link", "--state", root + "/state", "--socket", root + "/s",
		"--library", root + "/lib", "--supervisor", root + "/supervisor"}
	want := monitor.Options{Data: root + "/data", State: root + "/state", Socket: root + "/s", Library: root + "/lib",
		Supervisor: root + "/supervisor",
		Define:     map[string]string{}, Runtimes: runtimeroot.Named{},
		TaskIDs: taskid.Registry{}.OrDefault(), AuditSize: 4 << 30,
		Sessions: pipeline.SessionLimits{Waiting: 1024, PerWorker: 1024, Login: 10 * time.Second,
			Lifetime: 12 * time.Hour},
		Version: edition.Version()}
	for _, test := range []struct {
		name   string
		words  []string
		change func(*monitor.Options)
		fails  string
	}{
		{name: "least", change: func(*monitor.Options) {}},
		{name: "definitions keep commas and equals signs", words: []string{"--define", "A=1,2=3", "--define=B="},
			change: func(o *monitor.Options) { o.Define = map[string]string{"A": "1,2=3", "B": ""} }},
		{name: "processors", words: []string{"--cpus", "0,2-4"},
			change: func(o *monitor.Options) { o.CPUs = []int{0, 2, 3, 4} }},
		{name: "TLS", words: []string{"--listen", ":1", "--certificate", "/t/c", "--key", "/t/../k", "--client-ca",
			"/t/a"},
			change: func(o *monitor.Options) {
				o.Listen, o.Certificate, o.Key, o.ClientCA = ":1", "/t/c", "/k",
					"/t/a"
			}},
		{name: "users of tasks", words: []string{"--task-ids", "80000-80009", "--task-id-registry", "/r",
			"--give-data"},
			change: func(o *monitor.Options) {
				o.TaskIDs, o.GiveData = taskid.Registry{Path: "/r", Range: taskid.Range{First: 80000, Last: 80009}},
					true
			}},
		{name: "nothing is learnt", words: []string{"--no-learning"},
			change: func(o *monitor.Options) { o.NoLearning = true }},
		{name: "nothing is ingested", words: []string{"--no-ingest"},
			change: func(o *monitor.Options) { o.NoIngest = true }},
		{name: "users of the system", words: []string{"--task-ids", "0-80000"},
			fails: "--task-ids: 0-80000 contains users of the system"},
		{name: "one user", words: []string{"--task-ids", "80000"}, fails: `--task-ids "80000": expected a range`},
		{name: "runtimes have the definitions' values", words: []string{"--runtime", "java=$(HOME),/lib",
			"--define", "HOME=/a,b", "--runtime=c=/lib"},
			change: func(o *monitor.Options) {
				o.Define = map[string]string{"HOME": "/a,b"}
				o.Runtimes = runtimeroot.Named{"java": {"/a,b", "/lib"}, "c": {"/lib"}}
			}},
		{name: "runtime without paths", words: []string{"--runtime", "java"},
			fails: `--runtime "java": expected NAME=PATH,PATH…`},
		{name: "definition without a value", words: []string{"--define", "A"},
			fails: `--define "A": expected NAME=VALUE`},
		{name: "definition twice", words: []string{"--define", "A=1", "--define", "A=2"},
			fails: "--define A is given twice"},
		{name: "sources", words: []string{"--allow-source", "https://facts.example/a,b/",
			"--allow-source=unix:/run/a.sock"},
			change: func(o *monitor.Options) {
				o.Allowed, _ = allowlist.Parse([]string{"https://facts.example/a,b/", "unix:/run/a.sock"})
			}},
		{name: "a source with a user", words: []string{"--allow-source", "https://a@facts.example"},
			fails: `--allow-source "https://a@facts.example" is not an allowed source`},
		{name: "a source that is empty", words: []string{"--allow-source="},
			fails: `--allow-source "" is not an allowed source`},
		{name: "size of the audit log", words: []string{"--audit-size", "500MiB"},
			change: func(o *monitor.Options) { o.AuditSize = 500 << 20 }},
		{name: "a size without a unit", words: []string{"--audit-size", "500"}, fails: `--audit-size "500": expected`},
		{name: "a size that is too small", words: []string{"--audit-size", "15MiB"}, fails: "expected at least 16MiB"},
		{name: "limits of sessions", words: []string{"--sessions-per-user", "3",
			"--connections-per-address", "4", "--waiting-connections", "5", "--login-time", "1s",
			"--session-time", "1h", "--sessions-per-worker", "6"},
			change: func(o *monitor.Options) {
				o.Sessions = pipeline.SessionLimits{PerUser: 3, PerPeer: 4, Waiting: 5, Login: time.Second,
					Lifetime: time.Hour, PerWorker: 6}
			}},
		{name: "no connection may wait", words: []string{"--waiting-connections", "0"},
			fails: "--waiting-connections 0: expected"},
		{name: "workers without sessions", words: []string{"--sessions-per-worker", "0"},
			fails: "--sessions-per-worker 0: expected"},
		{name: "sessions that end at once", words: []string{"--session-time", "0s"}, fails: "expected numbers above 0"},
		{name: "processors backwards", words: []string{"--cpus", "3-1"}, fails: `--cpus "3-1"`},
		{name: "too many processors", words: []string{"--cpus", "0-99999999"}, fails: "--cpus"},
		{name: "no such data", words: []string{"--data", root + "/x"}, fails: "--data: "},
		{name: "data is a file", words: []string{"--data", root + "/lib/libshai.so"}, fails: "is not a directory"},
		{name: "no library", words: []string{"--library", root}, fails: "find libshai.so: it is not in " + root},
		{name: "supervisor", words: []string{"--supervisor", "/a/../b"},
			change: func(o *monitor.Options) { o.Supervisor = "/b" }},
		{name: "log format", words: []string{"--log-format", "xml"}, fails: `--log-format "xml" is not known`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got monitor.Options
			var stderr strings.Builder
			p := &program{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &stderr,
				environment: func(string) string { return "" },
				monitor:     func(_ context.Context, o monitor.Options) error { got = o; return nil }}
			code := p.run(context.Background(), append(append([]string{}, base...), test.words...))
			if test.fails != "" {
				if code != exitFailure || !strings.Contains(stderr.String(), test.fails) {
					t.Errorf("exit %d: %s", code, stderr.String())
				}
				return
			}
			want := want
			test.change(&want)
			lists := reflect.TypeFor[allowlist.List]().PkgPath()
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(monitor.Options{}, "Logger"),
				cmp.Exporter(func(t reflect.Type) bool { return t.PkgPath() == lists })); code != exitOK ||
				diff != "" {
				t.Errorf("exit %d: %s\n%s", code, stderr.String(), diff)
			}
		})
	}
}
