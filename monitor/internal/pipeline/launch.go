// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// sandboxSpec returns what the program is started with, but for its output and what the
// monitor does for it meanwhile, and completes how it acts. It refuses a task that the
// policies forbid what its manifest asks for. release closes the descriptors.
func (t *Task) sandboxSpec(now *acting) (spec sandbox.Spec, release func(), err error) {
	p := t.pipeline
	confined := p.Mode() != wire.ModeBaseline
	if confined && len(t.spec.Parameters) == 0 {
		for _, r := range t.roles {
			if err := t.checkFlows(r.subject, r.placements); err != nil {
				return spec, nil, err
			}
		}
	}
	given, roots, err := t.runtime()
	if err != nil {
		p.refused(metrics.Changed, t.roles[0].subject, "start", "", err.Error())
		return spec, nil, err
	}
	now.asks = p.Mode().IsDynamic() && p.services.Backend.AsksBeneath()
	perimeter, err := t.perimeter(confined, now)
	if err != nil {
		return spec, nil, err
	}
	if len(t.spec.Parameters) == 0 {
		now.tracked = now.track()
	}
	spec.Spec = plan.Spec{
		Name: t.name, Command: t.spec.Command, Environment: t.environment(), WorkingDirectory: "/",
		Runtime: roots, RuntimeNames: given,
		Perimeter: perimeter, Capabilities: t.directories(), User: t.user(), Owned: p.services.owned(),
		Confined: confined, Serving: len(t.spec.Parameters) > 0, Raises: t.raises(),
		Workers: len(t.entrance.slots.channels), Limits: t.limits(),
		CPUs: p.services.Options.CPUs,
	}
	spec.Foreign = t.foreign(roots)
	if spec.Covered, err = p.services.DataOfOthers(); err != nil {
		return spec, nil, fmt.Errorf("hide the data of this machine's other monitors: %w", err)
	}
	spec.Descriptors, release, err = t.descriptors()
	return spec, release, err
}

// limits returns the resources that the task and each of its processes may use.
func (t *Task) limits() plan.Limits {
	resources := t.spec.Resources
	if resources == nil {
		return plan.Limits{}
	}
	return plan.Limits{
		Memory:    uint64(resources.MemoryMegabytes) << 20, //nolint:gosec // manifests bound it, and it is not negative
		OpenFiles: uint64(resources.OpenFiles),             //nolint:gosec // never negative
		Processes: uint64(resources.Processes),             //nolint:gosec // never negative
		CPU:       uint64(resources.CPUMillicores),         //nolint:gosec // never negative

		TotalMemory: uint64(resources.TotalMemoryMegabytes) << 20, //nolint:gosec // manifests bound it
	}
}

// directories returns the directory capabilities in the order of their numbers. A task
// with parameters gets none: each worker gets the directories of its user's set together
// with its user (wire.Bound).
func (t *Task) directories() []plan.Capability {
	var list []plan.Capability
	if len(t.spec.Parameters) > 0 && t.pipeline.Mode() != wire.ModeBaseline {
		return nil
	}
	for _, place := range t.placements {
		// Roles can share a directory: one that is new has the next number.
		if place.directory != "" && int(place.capability.Number) == wire.FDCapability+len(list) {
			list = append(list, plan.Capability{
				Prefix: place.capability.Prefix, Path: t.pipeline.services.directoryPath(place.directory),
			})
		}
	}
	return list
}

// descriptors returns the descriptors that the task gets when it starts. release closes
// the originals that belong to this task alone.
func (t *Task) descriptors() (placed map[int]*os.File, release func(), err error) {
	p := t.pipeline
	var own []*os.File
	closeOwn := func() {
		for _, file := range own {
			file.Close()
		}
	}
	defer func() {
		if err != nil {
			closeOwn()
		}
	}()
	descriptors := map[int]*os.File{}
	mine, theirs, err := newEndpoint()
	if err != nil {
		return nil, nil, err
	}
	t.endpoint, own = mine, append(own, theirs)
	descriptors[wire.FDMonitor] = theirs
	classes, err := p.services.Catalog.ClassTable().File()
	if err != nil {
		return nil, nil, err
	}
	own = append(own, classes)
	descriptors[wire.FDClasses] = classes
	for _, place := range t.placements {
		if place.directory == "" {
			descriptors[int(place.capability.Number)] = p.conduits.end(place, place.end.slot, wire.ModeShai)
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
	return descriptors, closeOwn, nil
}

// listener opens the listening socket of a task to which users connect. The monitor keeps it
// across restarts of the task. The task itself holds it only in mode baseline, in which workers
// accept natively.
func (t *Task) listener() (*os.File, error) {
	address := t.entrance.connection.Listen
	switch {
	case address == "":
		return nil, nil
	case t.pipeline.Mode() == wire.ModeBaseline:
		return sharedListener(address)
	}
	return nil, t.entrance.listen(address, t.supervises())
}

// listen opens the listening socket for the task's supervisor, or for the monitor, unless it is
// open.
func (e *entrance) listen(address string, supervised bool) (err error) {
	switch {
	case e.listening != nil || e.acceptor != nil:
	case supervised:
		e.listening, err = sharedListener(address)
	default:
		e.acceptor, err = listen(address)
	}
	return err
}

// sharedListener returns a listening socket on which workers block by themselves.
func sharedListener(address string) (*os.File, error) {
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

// environment returns the complete environment of the program.
func (t *Task) environment() []string {
	library := filepath.Join(t.pipeline.services.Options.Library, "libshai.so")
	list := []string{
		"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/nonexistent",
		"LD_PRELOAD=" + library, "LD_LIBRARY_PATH=" + t.pipeline.services.Options.Library,
		"SHAI_INSTANCE=" + t.name, "SHAI_MODE=" + t.pipeline.Mode().String(),
		"SHAI_PIPELINE=" + t.pipeline.name, "SHAI_SERVICE=" + t.service(),
	}
	for _, variable := range t.spec.Environment {
		list = append(list, variable.Name+"="+variable.Value)
	}
	return list
}

// follow copies the program's output to the log file of the label that the output has by
// then, and watches for the line that says that the program is ready. The channel ready is
// that of the program's start. Lines that cannot be written are lost, and the first of them in a row is reported.
func (t *Task) follow(output *os.File, ready chan struct{}, now *acting) {
	defer output.Close()
	log := &labelledLog{}
	defer log.close()
	failure := log.follow(t.logPath(now.outputLabel())) // a task that prints nothing has a log, too
	lost := func(before error) {
		if failure != nil && before == nil {
			t.pipeline.services.Logger.Error("task output is lost", "task", t.name, "error", failure)
		}
	}
	lost(nil)
	reader := bufio.NewReaderSize(output, 64<<10)
	for {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 {
			before := failure
			failure = log.write(t.logPath(now.outputLabel()), line)
			lost(before)
		}
		if bytes.Equal(bytes.TrimSpace(line), []byte(readyLine)) { // now that it is in the log
			t.saysReady(ready)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
