// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/content"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/typedfile"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// Tasks write typed conduits through the monitor only: no capability, no grant of the key-value
// store and no open gives them the right. The monitor reads what is to be written, decides with
// it, and writes exactly the bytes that it has read, all or nothing.

// largestRecord is the size of the largest record of a task.
const largestRecord = wire.ContentMax + 1024

// maxWrites limits the writes of a task that wait at the same time.
const maxWrites = 16

// writes orders writes to conduits that are not logs, by conduit. Logs have the order of changes.
type writes struct {
	shards  [64]sync.Mutex
	running sync.WaitGroup
}

var writeSeed = maphash.MakeSeed()

func (w *writes) shard(conduit string) *sync.Mutex {
	return &w.shards[maphash.String(writeSeed, conduit)%uint64(len(w.shards))]
}

// LogWrite makes one write to a log, and returns what it says. end ends the write: it keeps it, or
// takes it back.
type LogWrite func() (facts []policy.Fact, end func(keep bool) error, err error)

// unwritten is why a write was not made. Both reasons are for people; the task's user may not know
// what decisions depend on, and the readers of the audit log not what the task has read.
type unwritten struct {
	status   unix.Errno
	why      metrics.Reason
	told     string // to the task
	recorded string // in the audit log; empty: it is recorded already
}

func (u *unwritten) Error() string { return u.told }

// refusal is an unwritten whose reason may be known to both.
func refusal(status unix.Errno, why metrics.Reason, format string, arguments ...any) *unwritten {
	reason := fmt.Sprintf(format, arguments...)
	return &unwritten{status, why, reason, reason}
}

// typedWrite is one write that a task asks for.
type typedWrite struct {
	pipeline *Pipeline
	asked    *metrics.Interception
	who      actor
	replace  bool
	content  []byte
	conduit  policy.Conduit
	kind     *content.Type
	facts    []policy.Fact // that the content says, at offsets in the content
}

// write makes a write, and returns the answer to the task.
func (p *Pipeline) write(asked *metrics.Interception, who actor, request wire.Write) wire.Written {
	w := &typedWrite{pipeline: p, asked: asked, who: who, replace: request.Flags&wire.WriteReplace != 0,
		content: request.Content}
	err := w.find(request.Conduit)
	if err == nil {
		err = w.read()
	}
	if err == nil {
		err = w.make()
	}
	if err == nil {
		return wire.Written{}
	}
	var why *unwritten
	if !errors.As(err, &why) {
		why = w.failed(err)
	}
	if why.recorded != "" {
		p.refused(why.why, who.Subject, policy.Write.String(), request.Conduit, why.recorded, asked)
	}
	return wire.Written{Status: int32(why.status), //nolint:gosec // errno values are small
		Reason: wire.Truncate(why.told, wire.ReasonMax)}
}

// failed returns why a write that is allowed could not be made. The task learns no paths.
func (w *typedWrite) failed(err error) *unwritten {
	status := unix.EIO
	for _, full := range []unix.Errno{unix.ENOSPC, unix.EDQUOT} {
		if errors.Is(err, full) || errors.Is(err, catalog.ErrDiskFull) {
			status = unix.ENOSPC
		}
	}
	w.pipeline.services.Logger.Error("a write was not made", "pipeline", w.pipeline.name, "conduit", w.conduit.Name,
		"error", err)
	return &unwritten{status, metrics.Unavailable, "it could not be written", "it could not be written: " + err.Error()}
}

// find finds the conduit. It must be one of the pipeline's own.
func (w *typedWrite) find(name string) error {
	p := w.pipeline
	unknown := refusal(unix.ENOENT, metrics.Unknown, "no conduit of the pipeline that has a type is called so")
	if !catalog.IsName(name) || typedfile.IsUnfinished(name) {
		return unknown
	}
	state := p.services.state()
	found, known := state.ConduitNamed(name)
	if !known || found.Type == "" || !p.owns(state.SetOf(found)) {
		return unknown
	}
	kind, err := content.Find(found.Type)
	if err != nil {
		return err
	}
	w.conduit, w.kind = found, kind
	return nil
}

// owns reports whether a set of the catalog is one of the pipeline's.
func (p *Pipeline) owns(set string) bool {
	for _, conduit := range p.spec.Conduits {
		if catalog.NameIn(p.name, conduit.Name) == set {
			return true
		}
	}
	return false
}

// hasDocument reports whether a name is that of a document of the pipeline, which has not gone. Those of other
// pipelines are none: the answers to tasks would tell which exist.
func (p *Pipeline) hasDocument(name string) bool {
	state := p.services.state()
	found, known := state.ConduitByName(name)
	return known && found.Policy != nil && p.owns(state.SetOf(found))
}

// read reads what is to be written.
func (w *typedWrite) read() error {
	switch {
	case w.replace && w.kind.Log:
		return refusal(unix.EINVAL, metrics.Content, "what a conduit of type %s contains is never replaced", w.kind.Name)
	case !w.replace && len(w.content) == 0:
		return refusal(unix.EINVAL, metrics.Content, "there is nothing to add")
	}
	facts, err := w.kind.Parse(w.content, 0)
	var wrong *content.Error
	if errors.As(err, &wrong) {
		return &unwritten{unix.EBADMSG, metrics.Content, err.Error(),
			fmt.Sprintf("line %d of what was to be written is not in the form of type %s", wrong.Line, w.kind.Name)}
	}
	if err != nil {
		return err
	}
	for i, fact := range facts {
		if w.kind.About < 0 {
			break
		}
		about := fact.Arguments[w.kind.About].Text()
		if !w.pipeline.hasDocument(about) {
			return &unwritten{unix.EBADMSG, metrics.Content,
				fmt.Sprintf("line %d: there is no document %q", i+1, about),
				fmt.Sprintf("line %d of what was to be written names no document", i+1)}
		}
	}
	w.facts = facts
	return nil
}

// place is where a conduit's content is.
type place interface {
	Length() int64 // in bytes
	Append(content []byte) error
	Replace(content []byte) error
	Close()
}

// make decides and writes while nobody else writes the conduit.
func (w *typedWrite) make() error {
	if w.kind.Log {
		return w.pipeline.services.Log(w.conduit.Name, w.addToLog)
	}
	shard := w.pipeline.services.writes.shard(w.conduit.Name)
	shard.Lock()
	defer shard.Unlock()
	at, err := w.place()
	if err != nil {
		return err
	}
	defer at.Close()
	if err := w.decide(at.Length()); err != nil {
		return err
	}
	if w.replace {
		return at.Replace(w.content)
	}
	if at.Length()+int64(len(w.content)) > content.MaxSize {
		return refusal(unix.EFBIG, metrics.Limit, "it would become longer than %d bytes", content.MaxSize)
	}
	return at.Append(w.content)
}

// decide decides on the write to a conduit of a length, with what it contains.
func (w *typedWrite) decide(length int64) error {
	conduit := w.conduit
	conduit.Length, conduit.Measured = length, true
	begins := length
	if w.replace {
		begins = 0
	}
	for i := range w.facts {
		w.facts[i].Conduit = conduit.Name
		w.facts[i].Offset += begins
	}
	flow := decision.Flow{Who: w.who.Subject, What: policy.Write, Conduit: conduit,
		Update: &policy.Update{Facts: w.facts, NewLength: begins + int64(len(w.content))}}
	if found := w.pipeline.decideFlow(w.asked, w.who, flow); !found.Allowed {
		return &unwritten{unix.EACCES, metrics.ByPolicy,
			"the policy of the conduit, or of what the task may have read, forbids it", ""}
	}
	return nil
}
