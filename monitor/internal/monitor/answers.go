// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// A pipeline answers its tasks' sandboxes.
var _ sandbox.Decider = (*pipeline)(nil)

// Open decides on a path that the kernel did not open natively.
func (p *pipeline) Open(_ context.Context, request sandbox.OpenRequest) sandbox.Verdict {
	begun := time.Now()
	defer func() { p.intercepted(interceptPath, time.Since(begun)) }()
	who, mode := p.subjectOf(request.Task, request.PID)
	if err := p.mayAct(request.Task, request.PID); err != nil {
		p.refused(who, "open", request.Path, err.Error())
		return sandbox.Verdict{Errno: unix.EACCES, Reason: err.Error()}
	}
	if request.Shared != nil {
		return p.openShared(who, request)
	}
	conduit, known := p.services.conduitAt(request.Path)
	if !known {
		// Probes for files that do not concern any policy are part of how
		// interpreters start; they are refused, and counted rather than recorded.
		p.services.metrics.refusals.WithLabelValues(p.name, "path").Inc()
		return sandbox.Verdict{Errno: unix.EACCES, Reason: "no conduit and not part of the task's runtime"}
	}
	var reason string
	for _, what := range operationsOf(request) {
		decision := p.decide(who, what, conduit, mode)
		if !decision.Allowed {
			return sandbox.Verdict{Errno: unix.EACCES, Reason: decision.Reason}
		}
		reason = decision.Reason
	}
	return sandbox.Verdict{Reason: reason}
}

// openShared decides on a file of the task's runtime that has other names too: if one of
// them is in the data directory, the runtime's name is a way around that conduit's policy.
func (p *pipeline) openShared(who subject, request sandbox.OpenRequest) sandbox.Verdict {
	isData, err := p.services.shared.hold(*request.Shared)
	switch {
	case err != nil:
		p.refused(who, "open", request.Path, "whether it is a document by another name cannot be found out: "+
			err.Error())
		return sandbox.Verdict{Errno: unix.EACCES, Reason: "the data directory cannot be searched"}
	case isData:
		p.refused(who, "open", request.Path, "a file of the task's runtime is a document by another name (a hard link); remove one of the names")
		return sandbox.Verdict{Errno: unix.EACCES, Reason: "a document by another name"}
	}
	return sandbox.Verdict{}
}

// operationsOf is what the descriptor of an open can be used for, and what the open
// itself does: a file that is open for reading and writing is decided on as both,
// and creating or truncating is writing whatever the descriptor is for.
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

// mayAct refuses a process for which nobody knows what it has read: one that a worker
// has forked. The zygote and a worker without a session have read nothing of any user.
func (p *pipeline) mayAct(started sandbox.Task, pid int) error {
	task := p.taskOf(started)
	if task == nil || len(task.spec.Parameters) == 0 || pid == started.PID() || p.sessions.of(pid) != nil {
		return nil
	}
	return forkedBy(started.PID(), pid)
}

// Send decides on one write by which data leaves a task in mode dynamic: to the
// user's connection, or into a descriptor channel.
func (p *pipeline) Send(_ context.Context, started sandbox.Task, pid int, number int) sandbox.Verdict {
	begun := time.Now()
	defer func() { p.intercepted(interceptSend, time.Since(begun)) }()
	if number == wire.FDConnectionChecked {
		s := p.sessions.of(pid)
		if s == nil {
			return sandbox.Verdict{Errno: unix.EPERM, Reason: "no session"}
		}
		if s.bound() == nil {
			return sandbox.Verdict{} // nothing of any user has been read yet
		}
		decision := p.decide(s.subject(), policy.Leave, p.egress, s.mode)
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
	decision := p.decide(task.subject, policy.Write, conduit, wire.ModeDynamic)
	return verdict(decision.Allowed, decision.Reason)
}

func verdict(allowed bool, reason string) sandbox.Verdict {
	if allowed {
		return sandbox.Verdict{Reason: reason}
	}
	return sandbox.Verdict{Errno: unix.EPERM, Reason: reason}
}

// Refused hears of a system call that the sandbox refused by itself.
func (p *pipeline) Refused(call sandbox.RefusedCall) {
	who, _ := p.subjectOf(call.Task, call.PID)
	reason := "system call refused with " + unix.ErrnoName(call.Errno)
	if call.Reason != "" {
		reason += ": " + call.Reason
	}
	p.refused(who, call.Call, "", reason)
}
