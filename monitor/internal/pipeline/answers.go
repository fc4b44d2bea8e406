// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// A pipeline decides for the sandboxes of its tasks.
var _ sandbox.Decider = (*Pipeline)(nil)

// Open decides on a path that the kernel did not open natively.
func (p *Pipeline) Open(_ context.Context, request sandbox.OpenRequest) sandbox.Verdict {
	opening := p.counts.Begin(metrics.Path)
	defer opening.End()
	verdict := p.open(opening, request)
	p.counts.Opened(metrics.ByMonitor, verdict.Errno == 0, 1)
	return verdict
}

func (p *Pipeline) open(opening *metrics.Interception, request sandbox.OpenRequest) sandbox.Verdict {
	who := p.actorOf(request.Task, request.Caller)
	if err := p.mayAct(request.Task, request.Caller); err != nil {
		p.refused(metrics.Protocol, who.Subject, "open", request.Path, err.Error(), opening)
		return sandbox.Verdict{Errno: unix.EACCES, Reason: err.Error()}
	}
	if request.Shared != nil {
		return p.openShared(opening, who.Subject, request)
	}
	conduit, known := p.services.conduitAt(request.Path)
	if !known {
		// Interpreters probe for such files when they start. The probes are refused, and
		// counted instead of recorded.
		p.counts.Refused("path")
		p.counts.Denied(who.Task, "", metrics.Unknown)
		return sandbox.Verdict{Errno: unix.EACCES, Reason: "neither a conduit nor part of the task's runtime"}
	}
	if !request.New && !p.services.View.IsCatalogued(conduit.Name, request.Device, request.Inode) {
		reason := "this file is not a document that was catalogued; shai ingest catalogues it"
		p.refused(metrics.Changed, who.Subject, "open", conduit.Name, reason, opening)
		return sandbox.Verdict{Errno: unix.EACCES, Reason: reason}
	}
	if conduit.Type != "" && slices.Contains(operationsOf(request), policy.Write) {
		reason := "the conduit has the type " + conduit.Type + ": tasks write it through the monitor only; call shai_write"
		p.refused(metrics.Content, who.Subject, "open", conduit.Name, reason, opening)
		return sandbox.Verdict{Errno: unix.EACCES, Reason: reason}
	}
	return p.decideOpen(opening, request, conduit)
}

// decideOpen decides by the mode that is in force until it has decided.
func (p *Pipeline) decideOpen(
	opening *metrics.Interception, request sandbox.OpenRequest, conduit policy.Conduit,
) sandbox.Verdict {
	p.switching.RLock()
	defer p.switching.RUnlock()
	who, reason := p.actorOf(request.Task, request.Caller), ""
	for _, what := range operationsOf(request) {
		decision := p.decide(opening, who, what, conduit)
		if !decision.Allowed {
			return sandbox.Verdict{Errno: unix.EACCES, Reason: decision.Reason}
		}
		reason = decision.Reason
	}
	return sandbox.Verdict{Reason: reason}
}

// openShared decides on a file of the task's runtime that has other names too. If one of
// them is in the data directory, the name in the runtime would bypass that conduit's
// policy.
func (p *Pipeline) openShared(
	opening *metrics.Interception, who decision.Subject, request sandbox.OpenRequest,
) sandbox.Verdict {
	isData, err := p.services.shared.hold(*request.Shared)
	switch {
	case err != nil:
		p.refused(metrics.Unavailable, who, "open", request.Path, "cannot check whether it is a document by another name: "+
			err.Error(), opening)
		return sandbox.Verdict{Errno: unix.EACCES, Reason: "the data directory cannot be searched"}
	case isData:
		p.refused(metrics.Changed, who, "open", request.Path, "this file of the task's runtime is also a document (a hard link); "+
			"remove one of the names", opening)
		return sandbox.Verdict{Errno: unix.EACCES, Reason: "a document by another name"}
	}
	return sandbox.Verdict{}
}

// operationsOf returns what an open does and what its descriptor can be used for. An open
// for reading and writing is decided on as both. Creating or truncating counts as
// writing, whatever the descriptor is for.
func operationsOf(request sandbox.OpenRequest) []policy.Operation {
	var list []policy.Operation
	access := request.Flags & unix.O_ACCMODE
	if access != unix.O_WRONLY {
		list = append(list, policy.Read)
	}
	if access != unix.O_RDONLY || request.New || request.Flags&(unix.O_TRUNC|unix.O_CREAT) != 0 {
		list = append(list, policy.Write)
	}
	return list
}

// mayAct refuses a process that a worker has forked, since nobody knows what it has read.
// The zygote and a worker without a session have read no user's data. Where a task has a
// supervisor, no worker forks.
func (p *Pipeline) mayAct(started sandbox.Task, caller sandbox.Caller) error {
	task := p.taskOf(started)
	if task == nil || len(task.spec.Parameters) == 0 || task.supervises() || caller.PID == started.PID() ||
		p.sessionOf(caller) != nil {
		return nil
	}
	return forkedBy(started.PID(), caller.PID)
}

// Send decides on one write by which data leaves a task in a dynamic mode: to the user's
// connection, or to a descriptor channel.
func (p *Pipeline) Send(_ context.Context, started sandbox.Task, caller sandbox.Caller, number int) sandbox.Verdict {
	sending := p.counts.Begin(metrics.Send)
	defer sending.End()
	if number == wire.FDConnectionChecked {
		s := p.sessionOf(caller)
		if s == nil {
			return sandbox.Verdict{Errno: unix.EPERM, Reason: "no session"}
		}
		if s.bound() == nil {
			return sandbox.Verdict{} // no user's data has been read yet
		}
		decision := p.decide(sending, s.actor(), policy.Leave, s.task.entrance.egress())
		return verdict(decision.Allowed, decision.Reason)
	}
	task := p.taskOf(started)
	if task == nil {
		return sandbox.Verdict{Errno: unix.EPERM, Reason: "unknown task"}
	}
	conduit, ok := task.channelAt(number)
	if !ok {
		return sandbox.Verdict{Errno: unix.EPERM, Reason: "no channel has this number"}
	}
	decision := p.decide(sending, task.actor(wire.ModeDynamic), policy.Write, conduit)
	return verdict(decision.Allowed, decision.Reason)
}

func verdict(allowed bool, reason string) sandbox.Verdict {
	if allowed {
		return sandbox.Verdict{Reason: reason}
	}
	return sandbox.Verdict{Errno: unix.EPERM, Reason: reason}
}

// Refused records a system call that the sandbox refused by itself, or could not answer.
func (p *Pipeline) Refused(call sandbox.RefusedCall) {
	who := p.actorOf(call.Task, call.Caller).Subject
	reason := "system call refused with " + unix.ErrnoName(call.Errno)
	if call.Reason != "" {
		reason += ": " + call.Reason
	}
	why := metrics.SystemCall
	if call.Unavailable {
		why = metrics.Unavailable
		reason = "the monitor has run out of descriptors or memory: " + call.Errno.Error()
	}
	p.refused(why, who, call.Call, "", reason)
}
