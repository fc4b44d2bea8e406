// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/waiting"
)

// scripted is a Decider that answers with functions and records its calls. A request
// without a function is denied.
type scripted struct {
	open   func(OpenRequest) Verdict
	accept func(context.Context, Task, Worker) (*Accepted, error)
	send   func(number int) Verdict

	mutex   sync.Mutex
	opens   []OpenRequest
	refused []string
	reasons []string

	unavailable []RefusedCall
}

func (d *scripted) Open(_ context.Context, request OpenRequest) Verdict {
	d.mutex.Lock()
	d.opens = append(d.opens, request)
	d.mutex.Unlock()
	if d.open == nil {
		return Verdict{Errno: unix.EACCES}
	}
	return d.open(request)
}

func (d *scripted) Accept(ctx context.Context, task Task, worker Worker) (*Accepted, error) {
	if d.accept == nil {
		return nil, unix.EACCES
	}
	return d.accept(ctx, task, worker)
}

func (d *scripted) Send(_ context.Context, _ Task, _ Caller, number int) Verdict {
	if d.send == nil {
		return Verdict{Errno: unix.EPERM}
	}
	return d.send(number)
}

func (d *scripted) Refused(refused RefusedCall) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.refused = append(d.refused, refused.Call)
	d.reasons = append(d.reasons, refused.Reason)
	if refused.Unavailable {
		d.unavailable = append(d.unavailable, refused)
	}
}

func (d *scripted) heard(call string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, refused := range d.refused {
		if refused == call {
			return true
		}
	}
	return false
}

// allowBeneath allows every open beneath the roots.
func allowBeneath(roots ...string) func(OpenRequest) Verdict {
	return func(request OpenRequest) Verdict {
		if plan.Beneath(request.Path, roots...) {
			return Verdict{}
		}
		return Verdict{Errno: unix.EACCES, Reason: "not beneath the test's roots"}
	}
}

// outcome is the result of a program.
type outcome struct {
	output string
	err    error
	worker int // the first status other than 0 of a worker of a task that serves users
}

// workerSucceeded is WORKER_SUCCEEDED of the victim.
const workerSucceeded = 100

// run starts a program, waits for its end and returns its output.
func run(t *testing.T, spec Spec, decider Decider) outcome {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	spec.Stdout, spec.Stderr = write, write
	if spec.Name == "" {
		spec.Name = t.Name()
	}
	ctx, cancel := context.WithTimeout(t.Context(), waiting.Limit)
	defer cancel()
	workers := withSessions(t, &spec)
	task, err := newBackend(t).Start(ctx, spec, decider)
	write.Close()
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	var output strings.Builder
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		buffer := make([]byte, 4096)
		for {
			count, err := read.Read(buffer)
			output.Write(buffer[:count])
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-task.Done():
	case <-workers.over:
		check(t, task.Stop(ctx))
	case <-ctx.Done():
		_ = task.Stop(ctx)
		t.Errorf("%s did not end", spec.Name)
	}
	<-finished
	return outcome{output.String(), task.Err(), workers.decided()}
}

// ground is a small world for a victim: what it is granted, what it may write, what it
// may write but not read, a secret, and a runtime in which the secret has another name.
type ground struct{ granted, written, dropped, secret, runtime string }

func newGround(t *testing.T) ground {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := ground{filepath.Join(root, "granted"), filepath.Join(root, "written"), filepath.Join(root, "dropped"),
		filepath.Join(root, "secret"), filepath.Join(root, "runtime")}
	for _, directory := range []string{g.granted, g.written, g.dropped, g.secret, g.secret + "/empty", g.runtime} {
		check(t, os.Mkdir(directory, 0o755))
	}
	check(t, os.WriteFile(g.granted+"/allowed.txt", []byte("allowed"), 0o644))
	check(t, os.WriteFile(g.written+"/old.txt", []byte("old"), 0o644))
	check(t, os.WriteFile(g.dropped+"/box.txt", []byte("box"), 0o644))
	check(t, os.WriteFile(g.secret+"/secret.txt", []byte("secret"), 0o644))
	check(t, os.WriteFile(g.runtime+"/allowed.txt", []byte("allowed"), 0o644))
	check(t, os.Link(g.secret+"/secret.txt", g.runtime+"/linked.txt"))
	check(t, unix.Mkfifo(g.runtime+"/pipe", 0o644))
	check(t, os.Symlink("secret.txt", g.secret+"/link"))
	check(t, os.Symlink("allowed.txt", g.granted+"/link"))
	check(t, os.Symlink(g.secret+"/secret.txt", g.granted+"/escape"))
	return g
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expand replaces $G, $W, $D, $S and $R by the directories.
func (g ground) expand(words []string) []string {
	replacer := strings.NewReplacer("$G", g.granted, "$W", g.written, "$D", g.dropped, "$S", g.secret, "$R", g.runtime)
	expanded := make([]string, len(words))
	for i, word := range words {
		expanded[i] = replacer.Replace(word)
	}
	return expanded
}

func (g ground) decider() *scripted {
	return &scripted{open: func(request OpenRequest) Verdict {
		if request.Flags&(accessMode|changing) == unix.O_RDONLY || request.Flags&openPath != 0 {
			return allowBeneath(g.granted, g.written)(request)
		}
		return allowBeneath(g.written, g.dropped)(request)
	}}
}

// attempt runs the victim. It returns whether it succeeded, and the error with which it
// failed; -1 is a signal.
func attempt(t *testing.T, spec Spec, decider Decider) (succeeded bool, errno syscall.Errno, got outcome) {
	t.Helper()
	got = run(t, spec, decider)
	switch {
	case got.worker == workerSucceeded:
		return true, 0, got
	case got.worker != 0:
		return false, syscall.Errno(got.worker), got
	}
	if got.err == nil {
		return true, 0, got
	}
	if _, err := fmt.Sscanf(lastLine(got.output), "errno %d", &errno); err != nil ||
		got.err.Error() != "exited with status 1" {
		return false, killed, got
	}
	return false, errno, got
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// leakFree runs something a few times and checks that no descriptor stays open. It turns
// the garbage collector off, which would close forgotten files.
func leakFree(t *testing.T, round func(t *testing.T)) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	once := func() { t.Run("round", round) } // its cleanups run before we count
	once()                                   // warms the runtime's own up
	before := openDescriptors(t)
	for range 3 {
		once()
	}
	waiting.Until(t, "as many descriptors as before", func() bool { return openDescriptors(t) <= before })
}

// monitorMarker makes this test binary play a monitor that starts one task, so
// that a test can kill it.
const (
	monitorMarker      = "SHAI_TEST_MONITOR"
	supervisorVariable = "SHAI_TEST_SUPERVISOR"
)

func playMonitor(prepare func(spec *Spec)) {
	spec := Spec{Spec: plan.Spec{
		Name: "victim", Command: strings.Fields(os.Getenv(monitorMarker)), WorkingDirectory: "/", Confined: true},
		Stdout: os.Stdout}
	spec.Runtime = []string{filepath.Dir(spec.Command[0])}
	prepare(&spec)
	backend := New(Options{Supervisor: os.Getenv(supervisorVariable)})
	task, err := backend.Start(context.Background(), spec, &scripted{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	<-task.Done()
}
