// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// The states of a task, as status shows them.
const (
	stateStopped   = "Stopped"
	stateStarting  = "Starting"
	stateRunning   = "Running"
	stateSucceeded = "Succeeded"
	stateFailed    = "Failed"
)

// readyLine is what a program prints on a line of its own when it can serve.
const readyLine = "ready"

// runningTask is one task of a pipeline, whether it runs or not.
type runningTask struct {
	pipeline   *pipeline
	name       string
	spec       manifest.TaskSpec
	placements []placement // descriptors it gets at its start
	perSession []placement // descriptors each of its workers gets with a session
	subject    subject     // unused by a task with parameters, whose workers have their own
	idleCount  atomic.Int64

	mu       sync.Mutex
	state    string
	message  string
	since    time.Time
	restarts int
	started  sandbox.Task
	endpoint *endpoint
	ready    chan struct{} // closed when it can serve or has ended
	ended    chan struct{} // closed when it has ended and is not restarted
	stopping bool
}

func newRunningTask(p *pipeline, task manifest.Task) (*runningTask, error) {
	t := &runningTask{pipeline: p, name: task.Metadata.Name, spec: task.Spec, state: stateStopped}
	all, err := layout(p.spec, t.name, t.spec)
	if err != nil {
		return nil, err
	}
	for _, place := range all {
		switch {
		case place.directory != "" || len(t.spec.Parameters) == 0 || p.currentMode() == wire.ModeBaseline:
			t.placements = append(t.placements, place)
		case place.end.slot == 0:
			t.perSession = append(t.perSession, place)
		}
	}
	if len(t.spec.Parameters) > 0 {
		return t, nil // its instances have taints, the zygote has read nothing
	}
	taint, err := p.taintOf(t.spec, t.name, nil)
	if err != nil {
		return nil, err
	}
	t.subject = subject{
		task: t.name, instance: t.name, taint: taint, session: &policy.Session{Principal: "task/" + t.name},
	}
	return t, nil
}

// idle counts workers that wait for a connection; the first one makes the task
// ready.
func (t *runningTask) idle(change int64) {
	if t.idleCount.Add(change) > 0 && change > 0 {
		t.markReady()
	}
}

func (t *runningTask) markReady() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == stateStarting {
		t.state = stateRunning
		close(t.ready)
	}
}

// channelAt is the channel whose checked end has this number in the task.
func (t *runningTask) channelAt(number int) (policy.Conduit, bool) {
	for _, place := range t.placements {
		if int(place.capability.Number) == number && place.end.checked {
			return t.pipeline.channelConduit(place.end.conduit, place.end.slot)
		}
	}
	return policy.Conduit{}, false
}

// channelConduit is a pipe or channel as the policies see it.
func (p *pipeline) channelConduit(name string, slot int) (policy.Conduit, bool) {
	for _, conduit := range p.spec.Conduits {
		if conduit.Name != name || conduit.Policy == nil {
			continue
		}
		kind, err := policy.ParseConduitKind(conduit.Kind)
		if err != nil {
			return policy.Conduit{}, false
		}
		bound, err := p.monitor.bindPolicy(conduit.Policy.Name, conduit.Policy.Arguments)
		if err != nil {
			return policy.Conduit{}, false
		}
		return policy.Conduit{
			Name: fmt.Sprintf("%s/%s/%d", p.name, name, slot), Kind: kind, Internal: true, Policy: bound,
		}, true
	}
	return policy.Conduit{}, false
}

// checkFlows decides the flows over the task's own pipes and channels before it
// starts: a descriptor for a forbidden one is never given.
func (t *runningTask) checkFlows(who subject, places []placement) error {
	state, now := t.pipeline.monitor.state(), time.Now()
	for _, place := range places {
		if place.directory != "" {
			continue
		}
		conduit, found := t.pipeline.channelConduit(place.end.conduit, place.end.slot)
		if !found {
			return fmt.Errorf("conduit %s has no policy; nobody may use it", place.end.conduit)
		}
		what := opRead
		if place.end.writer {
			what = opWrite
		}
		if decision := decide(who, what, conduit, state, now); !decision.Allowed {
			return fmt.Errorf("%s may not %s %s: %s", who.instance, what, place.end.conduit, decision.Reason)
		}
	}
	return nil
}

// start launches the task unless it runs. It returns when the program has begun,
// not when it is ready.
func (t *runningTask) start(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started != nil {
		return nil
	}
	t.state, t.message, t.since = stateStarting, "", time.Now()
	t.ready, t.ended, t.stopping = make(chan struct{}), make(chan struct{}), false
	err := t.launch(ctx)
	if err != nil {
		t.state, t.message = stateFailed, err.Error()
		close(t.ready)
		close(t.ended)
	}
	return err
}

// launch builds the specification and starts the program. Called with mu held.
func (t *runningTask) launch(ctx context.Context) error {
	p := t.pipeline
	confined := p.currentMode() != wire.ModeBaseline
	if confined && len(t.spec.Parameters) == 0 {
		if err := t.checkFlows(t.subject, t.placements); err != nil {
			return err
		}
	}
	descriptors, release, err := t.descriptors(confined)
	if err != nil {
		return err
	}
	defer release()
	perimeter, err := t.perimeter(confined)
	if err != nil {
		return err
	}
	output, log, err := t.output()
	if err != nil {
		return err
	}
	defer output.Close()
	go t.follow(log)
	spec := sandbox.Spec{
		Name: t.name, Command: t.spec.Command, Environment: t.environment(), WorkingDirectory: "/",
		Runtime:   append(slices.Clone(t.spec.Runtime), p.monitor.options.Library),
		Perimeter: perimeter, Capabilities: t.directories(), Descriptors: descriptors,
		Stdout: output, Stderr: output, Confined: confined, CPUs: p.monitor.options.CPUs,
	}
	started, err := p.monitor.backend.Start(ctx, spec, p)
	if err != nil {
		t.endpoint.close()
		t.endpoint = nil
		return fmt.Errorf("start task %s/%s: %w", p.name, t.name, err)
	}
	t.started = started
	go t.serveMessages(t.endpoint)
	go t.supervise(started, t.endpoint)
	p.record(audit.Event{Kind: audit.Task, Task: t.name, Operation: "start", Allowed: true,
		Reason: fmt.Sprintf("process %d, mode %s", started.PID(), modes[p.currentMode()])})
	return nil
}

// directories are the directory capabilities in the order of their numbers. A task
// with parameters gets none at its start: each worker is given the view with its
// user (wire.BoundView).
func (t *runningTask) directories() []sandbox.Capability {
	var list []sandbox.Capability
	if len(t.spec.Parameters) > 0 && t.pipeline.currentMode() != wire.ModeBaseline {
		return nil
	}
	for _, place := range t.placements {
		if place.directory != "" {
			list = append(list, sandbox.Capability{
				Prefix: place.capability.Prefix, Path: t.pipeline.monitor.directoryPath(place.directory),
			})
		}
	}
	return list
}

// perimeter is what the kernel lets the task itself open natively: what the
// policies allow its taint now. A zygote may read nothing of any user; each worker
// is given its user's set, inside what the zygote's perimeter still allows.
func (t *runningTask) perimeter(confined bool) ([]sandbox.Directory, error) {
	m := t.pipeline.monitor
	if len(t.spec.Parameters) > 0 {
		return []sandbox.Directory{{Path: m.directoryPath(viewPrefix), Rights: sandbox.Read}}, nil
	}
	var list []sandbox.Directory
	for _, place := range t.placements {
		switch place.directory {
		case "":
		case viewPrefix:
			readable, err := t.readableView()
			if err != nil {
				return nil, err
			}
			list = append(list, readable...)
		default:
			directory := m.directoryPath(place.directory)
			if err := os.MkdirAll(directory, 0o700); err != nil {
				return nil, fmt.Errorf("make directory conduit %s: %w", place.directory, err)
			}
			rights, err := t.directoryRights(place)
			if confined && err != nil {
				return nil, err
			}
			list = append(list, sandbox.Directory{Path: directory, Rights: rights})
		}
	}
	return list, nil
}

// directoryRights decides reading and writing of a directory conduit.
func (t *runningTask) directoryRights(place placement) (sandbox.Rights, error) {
	m := t.pipeline.monitor
	conduit, found := m.conduitNamed(place.directory + "/any")
	if !found {
		return 0, fmt.Errorf("directory %s is no conduit of the pipeline", place.directory)
	}
	var rights sandbox.Rights
	for _, wanted := range []struct {
		right     uint16
		what      operation
		operation sandbox.Rights
	}{{wire.RightRead, opRead, sandbox.Read}, {wire.RightWrite, opWrite, sandbox.Write}} {
		if place.capability.Rights&wanted.right == 0 {
			continue
		}
		decision := decide(t.subject, wanted.what, conduit, m.state(), time.Now())
		if !decision.Allowed {
			t.pipeline.refused(t.subject, string(wanted.what), place.directory, decision.Reason)
			return 0, fmt.Errorf("%s may not %s %s: %s", t.name, wanted.what, place.directory, decision.Reason)
		}
		rights |= wanted.operation
	}
	return rights, nil
}

// descriptors are those placed at the task's start. release closes the originals
// that are the task's alone.
func (t *runningTask) descriptors(confined bool) (_ map[int]*os.File, release func(), err error) {
	p := t.pipeline
	var own []*os.File
	release = func() {
		for _, file := range own {
			file.Close()
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	descriptors := map[int]*os.File{}
	mine, theirs, err := newEndpoint()
	if err != nil {
		return nil, nil, err
	}
	t.endpoint, own = mine, append(own, theirs)
	descriptors[wire.FDMonitor] = theirs
	classes, err := p.monitor.catalog.ClassTable().File()
	if err != nil {
		return nil, nil, err
	}
	own = append(own, classes)
	descriptors[wire.FDClasses] = classes
	counters, err := newCountersPage()
	if err != nil {
		return nil, nil, err
	}
	own = append(own, counters)
	descriptors[wire.FDCounters] = counters
	for _, place := range t.placements {
		if place.directory == "" {
			descriptors[int(place.capability.Number)] = p.endFile(place, place.end.slot, wire.ModeShai)
		}
	}
	listener, err := t.listener()
	if err != nil {
		return nil, nil, err
	}
	if listener != nil {
		own = append(own, listener)
		descriptors[wire.FDListen] = listener
	}
	return descriptors, release, nil
}

// listener opens the pipeline's listening socket for the task that has a connection
// conduit. It stays the monitor's, across restarts of the task; only in mode
// baseline, where workers accept natively, does the task hold it as well.
func (t *runningTask) listener() (*os.File, error) {
	p := t.pipeline
	for _, conduit := range p.spec.Conduits {
		if conduit.Kind != manifest.KindConnection || conduit.Task != t.name {
			continue
		}
		if p.currentMode() == wire.ModeBaseline {
			return p.sharedListener(conduit.Listen)
		}
		if p.acceptor != nil {
			return nil, nil
		}
		acceptor, err := listen(conduit.Listen)
		p.acceptor = acceptor
		return nil, err
	}
	return nil, nil
}

// sharedListener is a listening socket that workers block on by themselves.
func (p *pipeline) sharedListener(address string) (*os.File, error) {
	listener, err := openListener(address)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return nil, fmt.Errorf("share the listening socket: %w", err)
	}
	file.Fd() // makes it blocking
	return file, nil
}

// newCountersPage is the shared page of wire.Counters.
func newCountersPage() (*os.File, error) {
	number, err := unix.MemfdCreate("shai-counters", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make counters page: %w", err)
	}
	file := os.NewFile(uintptr(number), "counters")
	if err := file.Truncate(int64(os.Getpagesize())); err != nil {
		file.Close()
		return nil, fmt.Errorf("make counters page: %w", err)
	}
	return file, nil
}

// environment is the whole environment of the program.
func (t *runningTask) environment() []string {
	library := filepath.Join(t.pipeline.monitor.options.Library, "libshai.so")
	list := []string{
		"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/nonexistent",
		"LD_PRELOAD=" + library, "LD_LIBRARY_PATH=" + t.pipeline.monitor.options.Library,
		"SHAI_INSTANCE=" + t.name, "SHAI_MODE=" + modes[t.pipeline.currentMode()],
	}
	for _, variable := range t.spec.Environment {
		list = append(list, variable.Name+"="+variable.Value)
	}
	return list
}

// output is the pipe for the program's standard output and error, and the end the
// monitor reads.
func (t *runningTask) output() (program, log *os.File, err error) {
	log, program, err = os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make output pipe: %w", err)
	}
	return program, log, nil
}

// follow copies the program's output to the task's log file and watches for the
// line that says it is ready.
func (t *runningTask) follow(output *os.File) {
	defer output.Close()
	log, err := t.pipeline.monitor.openLog(t.pipeline.name, t.name)
	if err != nil {
		t.pipeline.monitor.logger.Error("task output is discarded", "task", t.name, "error", err)
		log = nil
	} else {
		defer log.Close()
	}
	reader := bufio.NewReaderSize(output, 64<<10)
	for {
		line, err := reader.ReadSlice('\n')
		if bytes.Equal(bytes.TrimSpace(line), []byte(readyLine)) {
			t.markReady()
		}
		if log != nil && len(line) > 0 {
			if _, failure := log.Write(line); failure != nil {
				t.pipeline.monitor.logger.Error("task output is discarded", "task", t.name, "error", failure)
				log = nil
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// serveMessages answers the task's own messages (not its workers').
func (t *runningTask) serveMessages(e *endpoint) {
	buffer := make([]byte, 1024)
	for {
		size, err := e.receive(buffer)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				t.pipeline.refused(t.subject, "message", "", err.Error())
			}
			return
		}
		if err := t.handle(e, buffer[:size]); err != nil {
			t.pipeline.refused(t.subject, "message", "", err.Error())
			e.close()
			return
		}
	}
}

func (t *runningTask) handle(e *endpoint, record []byte) error {
	begun := time.Now()
	sequence, message, err := wire.DecodeFromTask(record)
	if err != nil {
		return err
	}
	request, ok := message.(wire.Register)
	if !ok {
		return fmt.Errorf("message %d is not one for a task", message.Type())
	}
	answer := t.register(request)
	out, err := wire.Encode(sequence, answer)
	if err != nil {
		return err
	}
	t.pipeline.intercepted(interceptRegister, time.Since(begun))
	return e.send(out)
}

// register answers with the capability table. A task that names another instance
// than the one the monitor started is refused: what it holds was decided for that
// one.
func (t *runningTask) register(request wire.Register) wire.Registered {
	answer := wire.Registered{Mode: t.pipeline.currentMode(), ConduitCount: t.pipeline.monitor.conduitCount()}
	if request.Instance != t.name {
		answer.Status = int32(unix.EACCES)
		answer.Reason = wire.Truncate(fmt.Sprintf("this is task %s, it cannot register as %s", t.name, request.Instance), wire.ReasonMax)
		t.pipeline.refused(t.subject, "register", request.Instance, answer.Reason)
		return answer
	}
	for _, place := range t.placements {
		answer.Capabilities = append(answer.Capabilities, place.capability)
	}
	return answer
}

// supervise waits for the program's end and starts it again when it should run
// always.
func (t *runningTask) supervise(started sandbox.Task, e *endpoint) {
	<-started.Done()
	e.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started != started {
		return
	}
	t.started = nil
	err := started.Err()
	t.since = time.Now()
	ranFor := t.state == stateRunning
	if t.state == stateStarting {
		close(t.ready)
	}
	switch {
	case t.stopping:
		t.state, t.message = stateStopped, ""
	case t.spec.Run == "Once" && err == nil:
		t.state, t.message = stateSucceeded, ""
	default:
		t.state, t.message = stateFailed, describeEnd(err)
	}
	t.pipeline.record(audit.Event{Kind: audit.Task, Task: t.name, Operation: "end", Allowed: true, Reason: t.state + " " + t.message})
	if t.state == stateFailed && t.spec.Run == "Always" && ranFor {
		t.restart()
		return
	}
	close(t.ended)
}

// restart starts a task that had been ready and then died. One that never became
// ready is left alone: it would fail the same way again. Called with mu held.
func (t *runningTask) restart() {
	t.restarts++
	t.pipeline.monitor.metrics.restarts.WithLabelValues(t.pipeline.name, t.name).Inc()
	t.state, t.ready = stateStarting, make(chan struct{})
	if err := t.launch(t.pipeline.monitor.context); err != nil {
		t.state, t.message = stateFailed, err.Error()
		close(t.ready)
		close(t.ended)
	}
}

func describeEnd(err error) string {
	if err == nil {
		return "ended by itself"
	}
	return strings.TrimSpace(err.Error())
}

// stop ends the program and all it forked.
func (t *runningTask) stop(ctx context.Context) error {
	t.mu.Lock()
	started := t.started
	t.stopping = true
	t.mu.Unlock()
	if started == nil {
		return nil
	}
	return started.Stop(ctx)
}

// status is the task as the API shows it.
func (t *runningTask) status() api.TaskStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	status := api.TaskStatus{
		Name: t.name, Run: t.spec.Run, State: t.state, Restarts: t.restarts, Message: t.message,
		Enforcement: t.pipeline.monitor.enforcement(t.pipeline.currentMode()),
	}
	if t.started != nil {
		status.PID = t.started.PID()
	}
	if !t.since.IsZero() {
		since := t.since
		status.Since = &since
	}
	return status
}
