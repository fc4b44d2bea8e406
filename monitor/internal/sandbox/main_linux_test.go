// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	launchMain()
	if os.Getenv(monitorMarker) != "" {
		playMonitor()
		return
	}
	status := m.Run()
	if path, err := victimPath(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// scripted is a Decider that answers from functions and records what it heard.
// What has no function is denied.
type scripted struct {
	open   func(OpenRequest) Verdict
	accept func(context.Context, Task, Worker) (*Accepted, error)
	send   func(number int) Verdict

	mutex   sync.Mutex
	opens   []OpenRequest
	refused []string
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

func (d *scripted) Send(_ context.Context, _ Task, _ int, number int) Verdict {
	if d.send == nil {
		return Verdict{Errno: unix.EPERM}
	}
	return d.send(number)
}

func (d *scripted) Refused(_ Task, _ int, call string, _ unix.Errno) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.refused = append(d.refused, call)
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
		if beneathAny(request.Path, roots) {
			return Verdict{}
		}
		return Verdict{Errno: unix.EACCES, Reason: "not beneath the test's roots"}
	}
}

// runtimeOf is what a dynamically linked program needs, where it exists.
func runtimeOf(more ...string) []string {
	var present []string
	for _, path := range append([]string{"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives"}, more...) {
		if _, err := os.Stat(path); err == nil {
			present = append(present, path)
		}
	}
	return present
}

// patience bounds how long a test waits for what should happen at once. It is
// generous: no test asserts times.
const patience = 60 * time.Second

// outcome is what a program left behind.
type outcome struct {
	output string
	err    error
}

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
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	task, err := New().Start(ctx, spec, decider)
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
	case <-ctx.Done():
		_ = task.Stop(ctx)
		t.Errorf("%s did not end", spec.Name)
	}
	<-finished
	return outcome{output.String(), task.Err()}
}
