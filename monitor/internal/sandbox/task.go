// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// task is a started program and the state of its supervision.
type task struct {
	name       string
	pid        int
	keeper     int    // the parent process
	parent     string // what that is called
	enclosure  enclosure
	control    *net.UnixConn
	terminate  func()     // asks for a SIGTERM to the program
	dismiss    func()     // kills the parent, and with it the task; nil: processes would be left
	attendance attendance // nil if the sandbox asks nothing
	done       chan struct{}
	err        error // valid once done is closed
	using      sync.Mutex
	used       CPU  // at the last look
	forgotten  bool // by the kernel: its numbers may be another's
	stopOnce   sync.Once
}

var _ Task = (*task)(nil)

func (t *task) Name() string          { return t.name }
func (t *task) PID() int              { return t.pid }
func (t *task) Done() <-chan struct{} { return t.done }

func (t *task) Err() error {
	select {
	case <-t.done:
		return t.err
	default:
		return nil
	}
}

// CPU implements [Task]. What has ended keeps what it has used: each part only grows.
func (t *task) CPU() CPU {
	t.using.Lock()
	defer t.using.Unlock()
	t.measure()
	return t.used
}

// measure looks what the task has used. Called with using held.
func (t *task) measure() {
	if !t.forgotten {
		now := t.enclosure.measure(t.keeper)
		t.used = CPU{Task: max(t.used.Task, now.Task), Supervisor: max(t.used.Supervisor, now.Supervisor)}
	}
}

// hasUsed notes the processor time that the parent has reported with the task's end.
func (t *task) hasUsed(total time.Duration) {
	t.using.Lock()
	defer t.using.Unlock()
	t.used.Task = max(t.used.Task, total)
}

// measureLast looks for the last time, before the kernel forgets the task.
func (t *task) measureLast() {
	t.using.Lock()
	defer t.using.Unlock()
	t.measure()
	t.forgotten = true
}

// Stop implements [Task].
func (t *task) Stop(ctx context.Context) error {
	t.stopOnce.Do(func() {
		// The parent sends the signal, since it knows whether the number is still the
		// program's.
		t.terminate()
	})
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
	}
	t.kill()
	if t.dismiss != nil {
		defer time.AfterFunc(dismissLimit, t.dismiss).Stop()
	}
	select {
	case <-t.done:
		return nil
	case <-time.After(endLimit):
		return t.unstoppable()
	}
}

// endLimit is how long the processes of a task may take to end after they were killed.
const endLimit = 10 * time.Second

// dismissLimit is how long a supervisor may take to end its task. One that is stopped, or
// hangs, does not read that it should.
const dismissLimit = time.Second

// unstoppable describes a task whose processes have not ended.
func (t *task) unstoppable() error {
	const examples = 8
	left := childrenOf(t.keeper)
	return fmt.Errorf("task %s has not ended %v after it was killed: its %s, process %d, has %d children %v; "+
		"kill the monitor and start it again, which ends them", t.name, endLimit, t.parent, t.keeper, len(left), left[:min(len(left), examples)])
}

// kill tells the keeper to kill every process of the task. Closing this side of the
// socket is the message, so the monitor's death has the same effect.
func (t *task) kill() { _ = t.control.CloseWrite() }

// attendance answers what a task asks of its sandbox, until it is stopped.
type attendance interface{ stop() }

// attend begins to answer a task that has just started. listener is the descriptor that
// the launcher sent, -1 if it sends none.
type attend func(t *task, listener int) (attendance, error)

// launch is a start in progress.
type launch struct {
	spec     Spec
	todo     launchPlan
	process  parent
	attend   attend // nil if the sandbox asks nothing
	listener bool   // whether the launcher sends a seccomp listener
	keeper   *exec.Cmd
	control  *net.UnixConn
	status   *os.File
}

// parent is the program that starts the launcher and owns all processes of the task: the
// keeper or, for a task with sessions where the backend supervises, the supervisor.
type parent struct {
	name      string // for messages
	program   string
	arguments []string
	receive   func(control *net.UnixConn, messages chan<- received) // until it has ended; closes messages
	terminate func(control *net.UnixConn)                           // asks it for a SIGTERM to the program
	// Whether the monitor finds all processes of the task without it.
	dismissible bool
}

// beginWithKeeper starts the keeper of a task that has no supervisor.
func beginWithKeeper(spec Spec, todo launchPlan) (*launch, error) {
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	return begin(spec, todo, parent{
		name: "keeper", program: self, arguments: []string{keeperName, keeperName}, receive: receiveFromKeeper,
		// It is no error if the keeper has ended.
		terminate: func(control *net.UnixConn) { _, _ = control.Write([]byte(terminateMessage)) },
	})
}

// begin starts the parent.
func begin(spec Spec, todo launchPlan, process parent) (_ *launch, err error) {
	if todo.Enclosure, err = enclose(spec, todo.Plan); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			todo.Enclosure.remove()
		}
	}()
	planFile, err := memoryFile(todo)
	if err != nil {
		return nil, err
	}
	defer planFile.Close()
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create status pipe: %w", err)
	}
	defer statusWrite.Close()
	control, far, err := controlPair()
	if err != nil {
		statusRead.Close()
		return nil, err
	}
	defer far.Close()
	files := []*os.File{planFile, statusWrite, far}
	for _, number := range todo.Numbers {
		if file := spec.Descriptors[number]; file != nil { // a supervisor adds its own
			files = append(files, file)
		}
	}
	keeper := process.command(spec, files)
	keeper.SysProcAttr = todo.Enclosure.attributes()
	if err := keeper.Start(); err != nil {
		statusRead.Close()
		control.Close()
		return nil, fmt.Errorf("start %s: %w", process.name, err)
	}
	return &launch{spec: spec, todo: todo, process: process, keeper: keeper, control: control, status: statusRead}, nil
}

// command runs the parent with these files from planNumber on.
func (p parent) command(spec Spec, files []*os.File) *exec.Cmd {
	command := &exec.Cmd{
		Path: p.program, Args: p.arguments, Env: launcherEnvironment, ExtraFiles: files}
	// A nil *os.File in an interface is not nil.
	if spec.Stdout != nil {
		command.Stdout = spec.Stdout
	}
	if spec.Stderr != nil {
		command.Stderr = spec.Stderr
	}
	return command
}

// memoryFile holds the plan in memory, so that it is visible neither in a file system nor
// in an argument vector.
func memoryFile(todo launchPlan) (*os.File, error) {
	text, err := json.Marshal(todo)
	if err != nil {
		return nil, fmt.Errorf("encode launch plan: %w", err)
	}
	return memoryHolding("plan", text)
}

// memoryHolding makes a file in memory that contains text.
func memoryHolding(name string, text []byte) (*os.File, error) {
	file, err := memory(name)
	if err != nil {
		return nil, err
	}
	err = file.Truncate(int64(len(text)))
	if err == nil {
		_, err = file.WriteAt(text, 0)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return file, nil
}

func controlPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create control socket: %w", err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer near.Close()
	connection, err := net.FileConn(near)
	if err != nil {
		far.Close()
		return nil, nil, fmt.Errorf("use control socket: %w", err)
	}
	return connection.(*net.UnixConn), far, nil
}

// finish waits until the sandbox is in force and the program has begun. After an error,
// no process is left running. It owns the launch.
func (l *launch) finish(ctx context.Context) (*task, error) {
	abandon := context.AfterFunc(ctx, func() { _ = l.control.CloseWrite() })
	defer abandon()
	t := &task{name: l.spec.Name, keeper: l.keeper.Process.Pid, parent: l.process.name, enclosure: l.todo.Enclosure,
		control: l.control, terminate: func() { l.process.terminate(l.control) }, done: make(chan struct{})}
	if l.process.dismissible || t.enclosure.endsWithKeeper() {
		t.dismiss = func() { _ = l.keeper.Process.Kill() }
	}
	messages := make(chan received)
	go l.process.receive(l.control, messages)
	listener := -1
	for t.pid == 0 || l.listener && listener < 0 {
		message, open := <-messages
		if !open || message.Kind == "ended" {
			return nil, l.failed(ctx, t, messages, listener)
		}
		if message.Kind == "started" {
			t.pid = message.PID
		}
		if message.listener >= 0 {
			listener = message.listener
		}
	}
	if l.attend != nil {
		var err error
		if t.attendance, err = l.attend(t, listener); err != nil {
			return nil, errors.Join(err, l.failed(ctx, t, messages, -1))
		}
	}
	text, err := readStatus(l.status)
	if err != nil || text != "" || ctx.Err() != nil {
		return nil, errors.Join(err, l.explain(ctx, text, t, messages))
	}
	l.status.Close()
	go t.wait(l.keeper, messages)
	return t, nil
}

// failed ends a launch before anybody answers its requests.
func (l *launch) failed(ctx context.Context, t *task, messages <-chan received, listener int) error {
	if listener >= 0 {
		unix.Close(listener)
	}
	_ = l.control.CloseWrite()
	text, _ := readStatus(l.status)
	return l.explain(ctx, text, t, messages)
}

// explain waits until all processes of a failed launch have ended, and returns the reason
// for the failure.
func (l *launch) explain(ctx context.Context, text string, t *task, messages <-chan received) error {
	_ = l.control.CloseWrite()
	l.status.Close()
	t.wait(l.keeper, messages)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case text != "":
		return errors.New(text)
	case t.err != nil:
		return t.err
	}
	return errors.New("the launcher ended without an error message")
}

// received is a control message with the descriptor that came with it, or -1.
type received struct {
	controlMessage
	listener int
}

// receiveFromKeeper passes control messages on until the keeper has ended.
func receiveFromKeeper(control *net.UnixConn, messages chan<- received) {
	defer close(messages)
	record, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		size, rightsSize, _, _, err := control.ReadMsgUnix(record, rights)
		if err != nil || size == 0 {
			return
		}
		message := received{listener: descriptorIn(rights[:rightsSize])}
		if json.Unmarshal(record[:size], &message.controlMessage) != nil {
			return
		}
		messages <- message
	}
}

func descriptorIn(rights []byte) int {
	control, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(control) == 0 {
		return -1
	}
	descriptors, err := unix.ParseUnixRights(&control[0])
	if err != nil || len(descriptors) == 0 {
		return -1
	}
	return descriptors[0]
}

// wait waits until a running task ends, and cleans up after it.
func (t *task) wait(keeper *exec.Cmd, messages <-chan received) {
	t.err = errors.New("its " + t.parent + " died")
	reported := false
	for message := range messages {
		if message.Kind == "ended" {
			t.err, reported = endOf(unix.WaitStatus(message.Status)), true
			t.hasUsed(message.Used)
		}
		if message.listener >= 0 {
			unix.Close(message.listener)
		}
	}
	if !reported && t.pid != 0 {
		// The keeper was killed. The program dies with it (by its death signal), but the
		// processes that it forked must be killed here, unless they die with it, too.
		t.enclosure.killWithoutKeeper(t.pid)
	}
	t.measureLast()
	_ = keeper.Wait()
	t.enclosure.remove()
	t.control.Close()
	if t.attendance != nil {
		t.attendance.stop()
	}
	close(t.done)
}

func endOf(status unix.WaitStatus) error {
	switch {
	case status.Signaled():
		return Ended{Signal: unix.SignalName(status.Signal())}
	case status.ExitStatus() != 0:
		return Ended{Status: status.ExitStatus()}
	}
	return nil
}
