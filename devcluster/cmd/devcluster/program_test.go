// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"shai.dev/devcluster/internal/directory"
	"shai.dev/devcluster/internal/lifecycle"
)

// These tests run the program as users do: the API server cannot run twice in
// one process, and what is tested is that processes come and go.

// patience is how long a condition may take to come true. It is an upper bound
// for a very slow machine and nothing waits for it to pass.
const patience = 2 * time.Minute

// binary is the program under test.
var binary string

// shared is one devcluster for the tests that only use its API, each in
// namespaces and kinds of its own.
var shared *devcluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	top, err := filepath.Abs("../../..")
	if err != nil {
		panic(err)
	}
	build := exec.Command(filepath.Join(top, "scripts", "devcluster.sh"))
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		panic(fmt.Errorf("build the devcluster: %w", err))
	}
	binary = filepath.Join(top, "build", "bin", "devcluster")
	folder, err := os.MkdirTemp("", "devcluster-test-*")
	if err != nil {
		panic(err)
	}
	shared = &devcluster{directory: directory.Directory(folder)}
	defer func() {
		if result := shared.run("down"); result.code != 0 {
			fmt.Fprintln(os.Stderr, result)
			code = 1
		}
		os.RemoveAll(folder)
	}()
	return m.Run()
}

// A devcluster is one directory and the program that is run on it.
type devcluster struct {
	directory directory.Directory
}

// newDevcluster is a directory in which nothing runs, and nothing does after
// the test. Its path is longer than that of a socket may be.
func newDevcluster(t *testing.T) *devcluster {
	t.Helper()
	d := &devcluster{directory.Directory(filepath.Join(t.TempDir(), strings.Repeat("long", 40)))}
	t.Cleanup(func() {
		if result := d.run("down"); result.code != 0 {
			t.Error(result)
		}
		if process, err := d.directory.Holder(); err != nil || process != 0 {
			t.Errorf("process %d is left behind (%v)", process, err)
		}
	})
	return d
}

// A result is the outcome of a command.
type result struct {
	command        string
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("%s: exit status %d\nstandard output: %s\nstandard error: %s", r.command, r.code, r.stdout,
		r.stderr)
}

// command prepares a run of the program on the directory.
func (d *devcluster) command(arguments ...string) *exec.Cmd {
	command := exec.Command(binary, arguments...)
	command.Env = append(os.Environ(), directory.Variable+"="+string(d.directory), "KUBECONFIG=")
	return command
}

func (d *devcluster) run(arguments ...string) result { return outcome(d.command(arguments...)) }

func outcome(command *exec.Cmd) result {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	code := 0
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		code = -1
		stderr.WriteString(err.Error())
	}
	return result{strings.Join(command.Args, " "), stdout.String(), stderr.String(), code}
}

// must runs the program and expects success.
func (d *devcluster) must(t *testing.T, arguments ...string) result {
	t.Helper()
	got := d.run(arguments...)
	if got.code != 0 {
		t.Fatal(got)
	}
	return got
}

// up starts the devcluster.
func (d *devcluster) up(t *testing.T, arguments ...string) lifecycle.Endpoint {
	t.Helper()
	got := d.must(t, append([]string{"up", "--output", "json"}, arguments...)...)
	var at lifecycle.Endpoint
	if err := json.Unmarshal([]byte(got.stdout), &at); err != nil || strings.Count(got.stdout, "\n") != 1 {
		t.Fatalf("up should print one line of JSON (%v), and printed %q", err, got.stdout)
	}
	return at
}

// status asks for it, and also returns the exit status.
func (d *devcluster) status(t *testing.T) (lifecycle.Status, int) {
	t.Helper()
	got := d.run("status", "--output", "json")
	var status lifecycle.Status
	if err := json.Unmarshal([]byte(got.stdout), &status); err != nil {
		t.Fatalf("%v\n%v", err, got)
	}
	return status, got.code
}

// administrator is the configuration that the kubeconfig holds.
func (d *devcluster) administrator(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", d.directory.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func clientOf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// useShared starts the shared devcluster where it is not up yet.
func useShared(t *testing.T) (*devcluster, *rest.Config) {
	t.Helper()
	shared.up(t)
	return shared, shared.administrator(t)
}

// contains fails the test unless the text holds each part.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not hold %q", text, part)
		}
	}
}

// eventually waits until a check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("not within %s: %s: %v", patience, what, last)
	}
}

var (
	getting  = metav1.GetOptions{}
	creating = metav1.CreateOptions{}
)
