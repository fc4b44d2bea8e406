// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shai.dev/devcluster/internal/directory"
)

func note(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"is": "kept"}}
}

func TestUpTwiceIsUpOnce(t *testing.T) {
	d := newDevcluster(t)
	first := d.up(t)
	second := d.must(t, "up")
	if want := string(d.directory.Kubeconfig()) + "\n"; second.stdout != want {
		t.Errorf("up prints %q, want the kubeconfig %q", second.stdout, want)
	}
	contains(t, second.stderr, "up already")
	status, code := d.status(t)
	if code != 0 || !status.Ready || status.Endpoint != first {
		t.Errorf("status shows %+v (exit status %d), want %+v", status, code, first)
	}
	if got := d.must(t, "kubeconfig").stdout; got != first.Kubeconfig+"\n" {
		t.Errorf("kubeconfig prints %q, want %q", got, first.Kubeconfig)
	}
	if info, err := os.Stat(first.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has the mode %v (%v), want 0600", info.Mode().Perm(), err)
	}
	got := d.run("up", "--port", "1")
	if got.code != 1 {
		t.Errorf("up at another port than the one in use: %v", got)
	}
	contains(t, got.stderr, "instead of 1", "devcluster down")
}

func TestObjectsAndPortSurviveARestart(t *testing.T) {
	d := newDevcluster(t)
	before := d.up(t)
	if _, err := clientOf(t, d.administrator(t)).CoreV1().ConfigMaps("default").Create(t.Context(), note("kept"),
		creating); err != nil {
		t.Fatal(err)
	}
	contains(t, d.must(t, "down").stderr, "stopped")
	if status, code := d.status(t); code != notRunning || status.Running {
		t.Errorf("after down, status shows %+v (exit status %d)", status, code)
	}
	after := d.up(t)
	if after.Server != before.Server || after.Process == before.Process {
		t.Errorf("up again at %+v, was at %+v", after, before)
	}
	found, err := clientOf(t, d.administrator(t)).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", getting)
	if err != nil || found.Data["is"] != "kept" {
		t.Errorf("the object of before: %v, %v", found, err)
	}
}

// A watch that hangs on must not hold a stop up until the process is killed.
func TestDownWithAnOpenWatch(t *testing.T) {
	d := newDevcluster(t)
	d.up(t)
	watch, err := clientOf(t, d.administrator(t)).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	contains(t, d.must(t, "down").stderr, "stopped") // not killed
	if entries, err := os.ReadDir(d.directory.Run()); err != nil || len(entries) > 0 {
		t.Errorf("left in the run folder: %v (%v)", entries, err)
	}
	for range watch.ResultChan() { // ends, since the server has gone
	}
}

func TestATakenPort(t *testing.T) {
	d := newDevcluster(t)
	stranger, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	port := stranger.Addr().(*net.TCPAddr).Port
	got := d.run("up", "--port", fmt.Sprint(port))
	if got.code != 1 {
		t.Errorf("up on a taken port: %v", got)
	}
	contains(t, got.stderr, fmt.Sprint(port), "address already in use", "choose another --port")
	// The same port from an earlier run gives way without a word.
	if err := d.directory.Remember(directory.State{Port: port}); err != nil {
		t.Fatal(err)
	}
	if at := d.up(t); strings.HasSuffix(at.Server, fmt.Sprintf(":%d", port)) {
		t.Errorf("up on a port that a stranger has: %+v", at)
	}
}

func TestUpFromSeveralSidesIsUpOnce(t *testing.T) {
	d := newDevcluster(t)
	results := make([]result, 3)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = d.run("up", "--output", "json") })
	}
	all.Wait()
	for _, got := range results {
		if got.code != 0 || got.stdout != results[0].stdout {
			t.Errorf("started side by side:\n%v\nbut the first was:\n%v", got, results[0])
		}
	}
}

func TestDownWithNothingThere(t *testing.T) {
	d := newDevcluster(t)
	contains(t, d.must(t, "down").stderr, "no devcluster was running")
	if _, err := os.Stat(string(d.directory)); !os.IsNotExist(err) {
		t.Errorf("down has made the directory: %v", err)
	}
	got := d.run("kubeconfig")
	if got.code != 1 {
		t.Error(got)
	}
	contains(t, got.stderr, "devcluster up")
}

func TestAKilledOneIsSaidSoAndComesBack(t *testing.T) {
	d := newDevcluster(t)
	at := d.up(t)
	if _, err := clientOf(t, d.administrator(t)).CoreV1().ConfigMaps("default").Create(t.Context(), note("kept"),
		creating); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(at.Process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the killed process is gone", func() error {
		process, err := d.directory.Holder()
		if process != 0 {
			err = fmt.Errorf("it is still process %d", process)
		}
		return err
	})
	status, code := d.status(t)
	if code != notRunning {
		t.Errorf("status of a killed one has the exit status %d", code)
	}
	contains(t, status.Reason, "was killed", "devcluster up", d.directory.Log())
	contains(t, d.must(t, "down").stderr, "was killed")
	d.up(t)
	if _, err := clientOf(t, d.administrator(t)).CoreV1().ConfigMaps("default").Get(t.Context(), "kept",
		getting); err != nil {
		t.Error(err)
	}
}

// A process id in a file is not enough to signal the process.
func TestAStrangersProcessIsLeftAlone(t *testing.T) {
	d := newDevcluster(t)
	stranger := exec.Command("cat")
	input, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	if err := d.directory.Create(); err != nil {
		t.Fatal(err)
	}
	if err := d.directory.Remember(directory.State{Port: 1, Ready: true, Process: stranger.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	if status, code := d.status(t); code != notRunning || status.Running {
		t.Errorf("status takes a stranger for a devcluster: %+v (exit status %d)", status, code)
	}
	contains(t, d.must(t, "down").stderr, "no devcluster was running")
	input.Close()
	if err := stranger.Wait(); err != nil {
		t.Errorf("the stranger ended with: %v", err)
	}
}

func TestOneThatDoesNotStopIsKilled(t *testing.T) {
	d := newDevcluster(t)
	at := d.up(t)
	if err := syscall.Kill(at.Process, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	contains(t, d.must(t, "down", "--patience", "100ms").stderr, "killed the devcluster", "did not stop in time")
	if status, _ := d.status(t); status.Running {
		t.Errorf("after it was killed, status shows %+v", status)
	}
}

// foreground starts one and waits until it serves.
func foreground(t *testing.T, d *devcluster) *exec.Cmd {
	t.Helper()
	command := d.command("up", "--foreground")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || line != d.directory.Kubeconfig()+"\n" {
		t.Fatalf("up --foreground prints %q (%v), want the kubeconfig", line, err)
	}
	return command
}

func TestForeground(t *testing.T) {
	d := newDevcluster(t)
	command := foreground(t, d)
	if got := d.run("up", "--foreground"); got.code != 1 ||
		!strings.Contains(got.stderr, "another devcluster (process") {
		t.Errorf("a second one in the foreground: %v", got)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("when it is told to stop it ends with: %v", err)
	}
	contains(t, d.must(t, "down").stderr, "no devcluster was running in "+string(d.directory)+"\n") // not killed
}

func TestForegroundLeavesNothingWhenItIsKilled(t *testing.T) {
	d := newDevcluster(t)
	command := foreground(t, d)
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // says that it was killed
	eventually(t, "the devcluster has ended, and in order", func() error {
		process, err := d.directory.Holder()
		if err == nil && process != 0 {
			err = fmt.Errorf("process %d still runs", process)
		}
		return err
	})
	if state, err := d.directory.State(); err != nil || state.Process != 0 {
		t.Errorf("it has not stopped in order: %+v (%v)", state, err)
	}
}

func TestAnInterruptedStartLeavesNothing(t *testing.T) {
	d := newDevcluster(t)
	for _, step := range []string{"starting etcd", "starting the API server", "starting the controllers"} {
		t.Run(step, func(t *testing.T) { interruptStart(t, d, step) })
	}
	d.up(t)
}

func interruptStart(t *testing.T, d *devcluster, step string) {
	command := d.command("up")
	read, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(read)
	for lines.Scan() && !strings.HasSuffix(lines.Text(), step) {
	}
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil {
		t.Error("an interrupted up ends as if all were well")
	}
	contains(t, string(rest), "stopped again")
	if process, err := d.directory.Holder(); err != nil || process != 0 {
		t.Errorf("process %d is left behind (%v)", process, err)
	}
}
