// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/plainfile"
)

// shardOfWork is the variable that makes this test program a shard: its number, then the
// file with the work.
const shardOfWork = "SHAI_TEST_SHARD"

func playShard(what string) int {
	number, work, _ := strings.Cut(what, " ")
	shard, err := analysis.ParseShard(number)
	if err == nil {
		var result []byte
		if result, err = RunShard(context.Background(), work, maxWork, shard, nil); err == nil {
			_, err = os.Stdout.Write(result)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const maxWork = 1 << 30

// export writes the work of the monitor's pipeline into a file.
func export(t *testing.T, m *Monitor) string {
	t.Helper()
	work, size, err := m.ExportAnalysis(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(work)
	if err != nil || int64(len(content)) != size {
		t.Fatalf("%d of %d bytes: %v", len(content), size, err)
	}
	if err := work.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "work")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clockOf returns the same work with another clock.
func clockOf(t *testing.T, work string, now time.Time) string {
	t.Helper()
	whole, err := os.ReadFile(work)
	if err != nil {
		t.Fatal(err)
	}
	line, rest, _ := bytes.Cut(whole[:len(whole)-sha256.Size], []byte("\n"))
	var head workHead
	if err := json.Unmarshal(line, &head); err != nil {
		t.Fatal(err)
	}
	head.Now = now
	if line, err = json.Marshal(head); err != nil {
		t.Fatal(err)
	}
	content := slices.Concat(line, []byte("\n"), rest)
	sum := sha256.Sum256(content)
	path := filepath.Join(t.TempDir(), "work")
	if err := os.WriteFile(path, append(content, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// inProcesses runs two shards at the same time, each as a process of its own.
func inProcesses(t *testing.T, work string) [][]byte {
	t.Helper()
	results := make([]bytes.Buffer, 2)
	wait := make([]func() error, 2)
	for i := range results {
		command := ofItself(t, fmt.Sprintf("%s=%d/2 %s", shardOfWork, i+1, work))
		command.Stdout, command.Stderr = &results[i], os.Stderr
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		wait[i] = command.Wait
	}
	for i, done := range wait {
		if err := done(); err != nil {
			t.Fatalf("shard %d: %v", i+1, err)
		}
	}
	return [][]byte{results[0].Bytes(), results[1].Bytes()}
}

// Two processes do a monitor's analysis: their joined result has the bytes of an undivided
// run, and is in force as the monitor's own.
func TestShardsInProcesses(t *testing.T) {
	m, p := bareMonitor(t)
	own, err := m.Analyze(t.Context(), api.AnalyzeRequest{}, func(api.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	work := export(t, m)
	merged, basis, err := analysis.Merge(inProcesses(t, work))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := analysis.Decode(merged, p.Plan(), m.state())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := analysis.Run(t.Context(), p.Plan(), m.state(), analysis.Options{Now: decoded.Analyzed})
	if err != nil || len(whole.Instances()) < 2 || !bytes.Equal(merged, whole.Encode()) {
		t.Fatalf("of %d instances %d bytes were merged, which differ: %v", len(whole.Instances()), len(merged), err)
	}
	before := m.analyses["bare"]
	imported, err := m.ImportAnalysis(t.Context(), "bare", basis, merged)
	if err != nil || m.analyses["bare"] == before {
		t.Fatalf("it is not in force: %v", err)
	}
	own.Started, own.DurationMicroseconds = imported.Started, imported.DurationMicroseconds
	if fmt.Sprint(own) != fmt.Sprint(imported) {
		t.Errorf("%+v\ninstead of %+v", imported, own)
	}
	stored, err := os.ReadFile(m.analysisPath("bare"))
	if err != nil || !bytes.Equal(stored, merged) {
		t.Errorf("stored are %d other bytes: %v", len(stored), err)
	}
}

// What an import grants would be wrong under other facts, in another catalog, or at a later
// time, so it is refused. What is in force stays.
func TestImportsThatAreRefused(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	other, _ := bareMonitor(t)
	work, foreign := export(t, m), export(t, other)
	results := func(work string) (merged []byte, basis string) {
		var shards [][]byte
		for number := 1; number <= 2; number++ {
			shard, err := RunShard(t.Context(), work, maxWork, analysis.Shard{Number: number, Of: 2}, nil)
			if err != nil {
				t.Fatal(err)
			}
			shards = append(shards, shard)
		}
		merged, basis, err := analysis.Merge(shards)
		if err != nil {
			t.Fatal(err)
		}
		return merged, basis
	}
	good, basis := results(work)
	damaged := slices.Clone(good)
	damaged[len(damaged)/2] ^= 1
	known := m.analyses["bare"]
	refused := func(name, basis string, result []byte, status int) {
		t.Helper()
		_, err := m.ImportAnalysis(t.Context(), "bare", basis, result)
		var problem *api.Problem
		if !errors.As(err, &problem) || problem.Status != status || m.analyses["bare"] != known {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused("of another catalog", "another", good, http.StatusConflict)
	refused("damaged", basis, damaged, http.StatusUnprocessableEntity)
	change := api.FactChange{Add: []api.Fact{bareFact("friends/alice", "friend", "carol")}}
	if _, err := m.ChangeFacts(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	known = m.analyses["bare"]
	refused("of earlier facts", basis, good, http.StatusConflict)
	// Its bundle, and the number of its changes, are those of this one.
	theirs, theirBasis := results(foreign)
	if theirBasis != basis {
		t.Fatalf("equal catalogs have the bases %s and %s", basis, theirBasis)
	}
	later, laterBasis := results(clockOf(t, foreign, time.Now().Add(time.Hour)))
	var problem *api.Problem
	if _, err := other.ImportAnalysis(t.Context(), "bare", laterBasis, later); !errors.As(err, &problem) ||
		problem.Status != http.StatusConflict {
		t.Errorf("of a clock that is ahead, at which policies may allow more: %v", err)
	}
	if _, err := other.ImportAnalysis(t.Context(), "bare", theirBasis, theirs); err != nil {
		t.Errorf("the import of its own work: %v", err)
	}
}

// Two catalogs whose bundle and number of changes are equal have other bases, if their facts
// or the numbers of their classes differ.
func TestImportIntoACatalogWithOtherFacts(t *testing.T) {
	one, _ := bareMonitor(t)
	two, _ := bareMonitor(t)
	for m, friend := range map[*Monitor]string{one: "x", two: "y"} {
		fact := bareFact("friends/alice", "friend", friend)
		if _, err := m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{fact}}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := one.state(), two.state(); a.FactsVersion() != b.FactsVersion() || a.BundleHash() != b.BundleHash() {
		t.Fatal("they differ in more than facts")
	}
	shard, err := RunShard(t.Context(), export(t, one), maxWork, analysis.Shard{Number: 1, Of: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	merged, basis, err := analysis.Merge([][]byte{shard})
	if err != nil {
		t.Fatal(err)
	}
	var problem *api.Problem
	if _, err := two.ImportAnalysis(t.Context(), "bare", basis, merged); !errors.As(err, &problem) ||
		problem.Status != http.StatusConflict {
		t.Errorf("it is in force in the other one: %v", err)
	}
	if _, err := one.ImportAnalysis(t.Context(), "bare", basis, merged); err != nil {
		t.Errorf("it is not in force in its own: %v", err)
	}
}

// Work that did not arrive as a whole is refused before any of it is used.
func TestDamagedWork(t *testing.T) {
	m, _ := bareMonitor(t)
	whole, err := os.ReadFile(export(t, m))
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(whole)
	changed[len(changed)/2] ^= 1
	for name, content := range map[string][]byte{"empty": nil, "cut off": whole[:len(whole)-1], "changed": changed,
		"something else": bytes.Repeat([]byte("x"), 100)} {
		path := filepath.Join(t.TempDir(), "work")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := RunShard(t.Context(), path, maxWork, analysis.Shard{Number: 1, Of: 1}, nil); err == nil ||
			!strings.Contains(err.Error(), "not whole") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A sparse file costs nothing to make, and its SHA-256 takes hours: it is refused by its length.
func TestLongWork(t *testing.T) {
	m, _ := bareMonitor(t)
	const long = 1 << 42
	work := export(t, m)
	info, err := os.Stat(work)
	if err != nil {
		t.Fatal(err)
	}
	run := func(most int64) error {
		_, err := RunShard(t.Context(), work, most, analysis.Shard{Number: 1, Of: 1}, nil)
		return err
	}
	if err := run(info.Size()); err != nil {
		t.Errorf("work at the limit: %v", err)
	}
	if err := run(info.Size() - 1); !errors.Is(err, plainfile.ErrTooLong) {
		t.Errorf("work beyond the limit: %v", err)
	}
	if err := os.Truncate(work, long); err != nil {
		t.Skip("this file system has no such files: ", err)
	}
	if err := run(maxWork); !errors.Is(err, plainfile.ErrTooLong) ||
		!strings.Contains(err.Error(), "it has 4194304 MiB, and 1024 are the limit") {
		t.Errorf("long work: %v", err)
	}
	if err := run(long); !errors.Is(err, errDamagedWork) {
		t.Errorf("work that is longer than it says: %v", err)
	}
	if err := errors.Join(os.Truncate(work, 0), os.Truncate(work, long)); err != nil {
		t.Fatal(err)
	}
	if err := run(long); !errors.Is(err, errDamagedWork) {
		t.Errorf("zeros: %v", err)
	}
}
