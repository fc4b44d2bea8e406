// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"os"
	"slices"
	"time"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// entrance is where the users of one task connect. Each task of a pipeline that serves users
// has its own, with an address, places and a way out of its own.
type entrance struct {
	connection manifest.Conduit // the zero value if nobody connects
	slots      *slots
	// The task's first start opens the socket: listening if it has a supervisor, else the
	// acceptor's.
	listening *os.File
	acceptor  *acceptor
}

// connectionOf returns the conduit by which users connect to a task; the zero value if there is
// none.
func connectionOf(spec manifest.PipelineSpec, task string) manifest.Conduit {
	at := slices.IndexFunc(spec.Conduits, func(conduit manifest.Conduit) bool {
		return conduit.Kind == manifest.KindConnection && conduit.Task == task
	})
	if at < 0 {
		return manifest.Conduit{}
	}
	return spec.Conduits[at]
}

// newEntrance prepares where a task's users connect. Nothing listens yet.
func (t *Task) newEntrance() entrance {
	e := entrance{connection: connectionOf(t.pipeline.spec, t.name)}
	e.slots = newSlots(t.channelsBySlot(t.places(e.connection)))
	return e
}

// places returns how many sessions a task may have: what its connection says, and no more than
// the slotted conduits of its workers have.
func (t *Task) places(connection manifest.Conduit) int {
	count := manifest.DefaultSessions
	if connection.Sessions > 0 {
		count = connection.Sessions
	}
	for _, conduit := range t.pipeline.spec.Conduits {
		if len(t.spec.Parameters) > 0 && (conduit.From == t.name || conduit.To == t.name) {
			count = min(count, max(conduit.Slots, 1))
		}
	}
	return count
}

// channelsBySlot lists the channels that the session of each slot uses.
func (t *Task) channelsBySlot(count int) [][]conduitPair {
	channels := make([][]conduitPair, count)
	for _, place := range t.perSession {
		if place.capability.Kind != wire.KindChannel {
			continue
		}
		for number := range channels {
			channels[number] = append(channels[number], t.pipeline.conduits.channel(place.end.conduit, number)...)
		}
	}
	return channels
}

// egress returns the connection through which data leaves the task to its users; the zero value
// if none does.
func (e *entrance) egress() policy.Conduit {
	if !e.connection.Egress {
		return policy.Conduit{}
	}
	return policy.Conduit{Name: e.connection.Name, Kind: policy.ConnectionConduit}
}

// service returns where the task's users dial, which they sign when they log in; "" if nobody
// connects.
func (t *Task) service() string { return t.entrance.connection.Service }

// close frees the address at which users connect.
func (e *entrance) close() {
	if e.acceptor != nil {
		e.acceptor.close()
	}
	if e.listening != nil {
		e.listening.Close()
	}
	e.acceptor, e.listening = nil, nil
}

// handOver gives the listening socket to the entrance that is at the same address from now on. In
// mode baseline a task listens by itself, so the address is only freed.
func (e *entrance) handOver(next *entrance, mode wire.Mode) {
	address := e.connection.Listen
	if address == "" || address != next.connection.Listen || next.listening != nil || next.acceptor != nil {
		return
	}
	if mode == wire.ModeBaseline {
		e.close()
		return
	}
	next.listening, next.acceptor = e.listening, e.acceptor
	e.listening, e.acceptor = nil, nil
}

// HandOver gives the listening sockets to the pipeline that listens at the same addresses from
// now on, so that it serves the connections that wait in the kernel's queues. Both pipelines are
// quiesced.
func (p *Pipeline) HandOver(next *Pipeline) {
	for _, task := range p.tasks {
		for _, other := range next.tasks {
			task.entrance.handOver(&other.entrance, next.Mode())
		}
	}
}

// stopSlots takes all places of all tasks within a time, in which their sessions end. It returns
// how many are left.
func (p *Pipeline) stopSlots(within time.Duration) (left int) {
	late := make(chan struct{})
	timer := time.AfterFunc(within, func() { close(late) })
	defer timer.Stop()
	for _, task := range p.tasks {
		left += task.entrance.slots.stop(late)
	}
	return left
}
