// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"shai.dev/monitor/internal/catalog"
)

var (
	scaleDocuments = flag.Int("documents", 0, "documents of BenchmarkScale; 0: 25 for each user")
	scaleOutput    = flag.String("scale-output", "", "file for the result of BenchmarkScale, as JSON")
	scaleFiles     = flag.Bool("files", false, "BenchmarkScale makes a file for each document and the view of links")
	scaleNaive     = flag.Int("naive", 20, "users for whom BenchmarkScale tries every class, as the paper's algorithm does")
)

// phase is what one step cost the process.
type phase struct {
	Name      string  `json:"name"`
	CPU       float64 `json:"cpu_seconds"`
	User      float64 `json:"user_seconds"` // of CPU, without what the kernel did for the process
	Wall      float64 `json:"wall_seconds"`
	Peak      int64   `json:"peak_bytes"`           // resident memory at most, pages of mapped files included
	Anonymous int64   `json:"peak_anonymous_bytes"` // without those pages, which the kernel may drop
}

// scale is the result of BenchmarkScale for one size.
type scale struct {
	Users         int     `json:"users"`
	Friends       int     `json:"friends"`
	Documents     uint32  `json:"documents"`
	Policies      int     `json:"policies"` // different ones: a policy with other arguments is another one
	Classes       uint32  `json:"classes"`
	Processors    int     `json:"processors"`
	Files         bool    `json:"files"` // a file for each document, otherwise a listing
	Phases        []phase `json:"phases"`
	BytesPerUser  int     `json:"bytes_per_user"` // of the stored result
	CatalogBytes  int64   `json:"catalog_bytes"`
	NaiveUsers    int     `json:"naive_users"`     // analysed in the phase naive
	NaivePerUser  float64 `json:"naive_per_user"`  // CPU seconds
	JoinedPerUser float64 `json:"joined_per_user"` // CPU seconds, of the phase analysis
}

// BenchmarkScale measures, once, each step from an empty catalog to the analysis of a whole
// population. Its memory is that of the process: run it alone.
func BenchmarkScale(b *testing.B) {
	if *scaleOutput == "" {
		b.Skip("needs -scale-output; make bench-analysis passes it")
	}
	for b.Loop() {
		measureScale(b)
	}
}

func measureScale(b *testing.B) {
	w := workload{users: *populationSize, friends: min(100, *populationSize/4), seed: 1}
	perUser := 25
	documents := w.users * perUser
	if *scaleDocuments > 0 {
		documents = *scaleDocuments
	}
	out := scale{Users: w.users, Friends: w.friends, Policies: 2*w.users + 1, Processors: runtime.GOMAXPROCS(0),
		Files: *scaleFiles, NaiveUsers: min(*scaleNaive, w.users)}
	step := func(name string, work func() error) {
		out.Phases = append(out.Phases, measured(b, name, work))
	}
	dir := b.TempDir()
	c, err := catalog.Open(filepath.Join(dir, "catalog"))
	if err != nil {
		b.Fatal(err)
	}
	step("bundle", func() error { return failure(c.Apply(w.bundle())) })
	step("facts", func() error {
		for facts := range w.factBatches(100_000) {
			if _, err := addFacts(c, facts...); err != nil {
				return err
			}
		}
		return nil
	})
	data := filepath.Join(dir, "data")
	if *scaleFiles {
		makeFiles(b, data, w.listing(documents))
		view, err := c.AttachView(data, filepath.Join(dir, "view"))
		if err != nil {
			b.Fatal(err)
		}
		defer view.Close()
	}
	step("register", func() error {
		if *scaleFiles {
			_, _, err := c.RegisterFiles(b.Context(), data, nil)
			return err
		}
		_, _, err := c.RegisterListing(b.Context(), listed(w.listing(documents)), nil)
		return err
	})
	out.Documents, out.Classes = c.State().Conduits(), c.State().Classes()
	out.CatalogBytes = size(b, filepath.Join(dir, "catalog"))
	plan := w.plan()
	users := plan.Instances(c.State(), now)[2:] // after indexer and search
	few := *plan
	few.Tasks = few.Tasks[:2]
	step("indexer and search", func() error { return failure(Run(b.Context(), &few, c.State(), Options{Now: now})) })
	var result *Result
	step("analysis", func() (err error) {
		result, err = Run(b.Context(), plan, c.State(), Options{Now: now})
		return err
	})
	out.JoinedPerUser = out.Phases[len(out.Phases)-1].CPU / float64(w.users)
	var stored []byte
	step("store", func() error { stored = result.Encode(); return nil })
	out.BytesPerUser = len(stored) / len(users)
	step("report", func() error { result.Report(now); return nil })
	step("naive", func() error { return naiveSample(b.Context(), plan, c.State(), result, users, out.NaiveUsers) })
	out.NaivePerUser = out.Phases[len(out.Phases)-1].CPU / float64(out.NaiveUsers)
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	result, stored, c = nil, nil, nil
	step("open", func() (err error) { c, err = catalog.Open(filepath.Join(dir, "catalog")); return err })
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err = errors.Join(err, os.WriteFile(*scaleOutput, text, 0o600)); err != nil {
		b.Fatal(err)
	}
}

func failure[T any](_ T, err error) error { return err }

// listed is a listing that does not fail.
func listed(names iter.Seq[string]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// naiveSample decides some users against every class, and compares.
func naiveSample(ctx context.Context, plan *Plan, state *catalog.State, result *Result, users []Instance,
	count int) error {
	e := prepared(plan, state, Options{Now: now})
	for i := range count {
		user := users[i*len(users)/count]
		naive, err := e.naive(ctx, user)
		if err != nil {
			return err
		}
		joined, _ := result.Instance(user)
		if !bytes.Equal(naive.encode(nil), joined.encode(nil)) {
			return fmt.Errorf("%s: the analysis and the naive product differ", user.Name())
		}
	}
	return nil
}

// measured runs one step and returns what it cost.
func measured(b *testing.B, name string, work func() error) phase {
	b.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // resets the peak
		b.Fatal(err)
	}
	sampled := make(chan int64)
	ended := make(chan struct{})
	go func() {
		var most int64
		for {
			most = max(most, statusOf("RssAnon"))
			select {
			case <-ended:
				sampled <- most
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	before, userBefore, begun := cpu(b), user(b), time.Now()
	err := work()
	took := phase{Name: name, Wall: time.Since(begun).Seconds(), CPU: cpu(b) - before, User: user(b) - userBefore,
		Peak: statusOf("VmHWM")}
	close(ended)
	took.Anonymous = <-sampled
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	b.Logf("%-20s %8.2f s CPU %8.2f s %6d MB, %6d MB anonymous", name, took.CPU, took.Wall, took.Peak>>20,
		took.Anonymous>>20)
	return took
}

// statusOf returns a size that the kernel knows of this process, in bytes; 0 where there is
// none.
func statusOf(field string) int64 {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			kilobytes, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// cpu returns the seconds of processor time that the process has used, and user those of them that
// were not the kernel's.
func cpu(b *testing.B) float64 {
	used := usage(b)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

func user(b *testing.B) float64 {
	used := usage(b)
	return time.Duration(used.Utime.Nano()).Seconds()
}

func usage(b *testing.B) (used syscall.Rusage) {
	b.Helper()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used
}

func size(b *testing.B, dir string) (total int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		total += info.Size()
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return total
}

// makeFiles makes an empty file for each document.
func makeFiles(b *testing.B, data string, names iter.Seq[string]) {
	b.Helper()
	directory := ""
	for name := range names {
		path := filepath.Join(data, name)
		if filepath.Dir(path) != directory {
			directory = filepath.Dir(path)
			if err := os.MkdirAll(directory, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}
