// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/tasklog"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// directories returns the directory capabilities in the order of their numbers. A task
// with parameters gets none: each worker gets the directories of its user's set together
// with its user (wire.Bound).
func (t *Task) directories() []plan.Capability {
	var list []plan.Capability
	if len(t.spec.Parameters) > 0 && t.pipeline.Mode() != wire.ModeBaseline {
		return nil
	}
	for _, place := range t.placements {
		if place.directory != "" {
			list = append(list, plan.Capability{
				Prefix: place.capability.Prefix, Path: t.pipeline.services.directoryPath(place.directory),
			})
		}
	}
	return list
}

// perimeter returns what the kernel allows the task itself to open natively, which is
// what the policies allow its taint now. A zygote may read no user's data. Each worker
// gets the directories of its user's set.
func (t *Task) perimeter(confined bool) ([]plan.Directory, error) {
	services := t.pipeline.services
	if len(t.spec.Parameters) > 0 {
		return nil, nil
	}
	var list []plan.Directory
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
			directory := services.directoryPath(place.directory)
			if err := t.provideDirectory(place.directory, place.capability.Rights&wire.RightWrite != 0); err != nil {
				return nil, err
			}
			rights, err := t.directoryRights(place)
			if confined && err != nil {
				return nil, err
			}
			list = append(list, plan.Directory{Path: directory, Rights: rights})
		}
	}
	return list, nil
}

// directoryRights decides on a directory conduit. A task that may write it may also read
// it back, if the policies allow this. If the manifest asks for an access that the
// policies forbid, the task does not start.
func (t *Task) directoryRights(place placement) (plan.Rights, error) {
	services := t.pipeline.services
	conduit, found := services.conduitNamed(place.directory + "/any")
	if !found {
		return 0, fmt.Errorf("directory %s is not a conduit of the pipeline", place.directory)
	}
	// The decision is for every file beneath, even if the bundle is of a version that did not say so.
	conduit.Directory = true
	var rights plan.Rights
	for _, wanted := range []struct {
		asked bool
		what  policy.Operation
		right plan.Rights
	}{
		{place.capability.Rights&wire.RightWrite != 0, policy.Write, plan.Write},
		{place.capability.Rights == wire.RightRead, policy.Read, plan.Read},
	} {
		if !wanted.asked {
			f := decision.Flow{Who: t.subject, What: wanted.what, Conduit: conduit}
			if wanted.what == policy.Read && decision.Decide(f, services.state(), time.Now()).ByEveryPolicy() {
				rights |= wanted.right
			}
			continue
		}
		decision := t.pipeline.decideAhead(t.subject, wanted.what, conduit)
		if !decision.Allowed {
			t.pipeline.refused(t.subject, wanted.what.String(), place.directory, decision.Reason)
			return 0, fmt.Errorf("%s may not %s %s: %s", t.name, wanted.what, place.directory, decision.Reason)
		}
		rights |= wanted.right
	}
	return rights, nil
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

// listener opens the pipeline's listening socket for the task with a connection conduit.
// The monitor keeps it across restarts of the task. The task itself holds it only in mode
// baseline, in which workers accept natively.
func (t *Task) listener() (*os.File, error) {
	p := t.pipeline
	for _, conduit := range p.spec.Conduits {
		if conduit.Kind != manifest.KindConnection || conduit.Task != t.name {
			continue
		}
		if p.Mode() == wire.ModeBaseline {
			return p.sharedListener(conduit.Listen)
		}
		return nil, t.listen(conduit.Listen)
	}
	return nil, nil
}

// listen opens the pipeline's listening socket for the task's supervisor, or for the
// monitor, unless it is open.
func (t *Task) listen(address string) (err error) {
	p := t.pipeline
	switch {
	case p.listening != nil || p.acceptor != nil:
	case t.supervises():
		p.listening, err = p.sharedListener(address)
	default:
		p.acceptor, err = listen(address)
	}
	return err
}

// sharedListener returns a listening socket on which workers block by themselves.
func (p *Pipeline) sharedListener(address string) (*os.File, error) {
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
		"SHAI_PIPELINE=" + t.pipeline.name, "SHAI_SERVICE=" + t.pipeline.service(),
	}
	for _, variable := range t.spec.Environment {
		list = append(list, variable.Name+"="+variable.Value)
	}
	return list
}

// follow copies the program's output to the task's log file and watches for the line that
// says that the program is ready. The channel ready is that of the program's start. Lines
// that cannot be written are lost, and the first of them in a row is reported.
func (t *Task) follow(output *os.File, ready chan struct{}, logPath string) {
	defer output.Close()
	log, failure := tasklog.Open(logPath, tasklog.MaxSize)
	if failure != nil {
		t.pipeline.services.Logger.Error("task output is lost", "task", t.name, "error", failure)
	} else {
		defer log.Close()
	}
	reader := bufio.NewReaderSize(output, 64<<10)
	for {
		line, err := reader.ReadSlice('\n')
		if log != nil && len(line) > 0 {
			before := failure
			if _, failure = log.Write(line); failure != nil && before == nil {
				t.pipeline.services.Logger.Error("task output is lost", "task", t.name, "error", failure)
			}
		}
		if bytes.Equal(bytes.TrimSpace(line), []byte(readyLine)) { // now that it is in the log
			t.saysReady(ready)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// readableView returns the part of the view that a task without parameters may read. It
// lists single classes even if the task may read all of them: a class that appears while
// the task runs has not been decided on, and Landlock cannot revoke what it has granted.
// The task can list the view, which shows it the numbers of classes and conduits.
func (t *Task) readableView() ([]plan.Directory, error) {
	p, services := t.pipeline, t.pipeline.services
	found, err := analysis.RunInstance(p.plan, services.state(), analysis.Instance{Task: t.name}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("analyse task %s: %w", t.name, err)
	}
	readable := p.documentClasses(found.Reads)
	if len(readable) == 0 {
		return nil, nil
	}
	if err := services.View.EnsureClassDirectories(readable); err != nil {
		return nil, err
	}
	list := []plan.Directory{{Path: services.View.Path(), Rights: plan.List}}
	for _, class := range readable {
		list = append(list, plan.Directory{Path: services.View.ClassDirectory(class), Rights: plan.Read})
	}
	return list, nil
}
