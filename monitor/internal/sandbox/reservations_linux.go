// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import "sync"

// errReserved says why a process is given no connection.
const errReserved = refusal("this process waits for a user or has served one, and is given no other; it must exit")

// reservations are the processes of one task that wait for a session or have had one.
// A process is reserved from the moment that its accept4 is looked at until it has
// ended, or until it turns out that it gets no session.
type reservations struct {
	repeated bool // any number of sessions for a process

	mutex sync.Mutex
	held  map[int]*worker // by process
}

// reserve takes a process that nobody has reserved. That a number is held is no reason
// to refuse it when the process that it was has ended: it is then another's.
func (r *reservations) reserve(process int) (*worker, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if before := r.held[process]; before != nil && !before.Ended() && !r.repeated {
		return nil, errReserved
	}
	w, err := newWorker(process, r.forget)
	if err != nil {
		return nil, errGone
	}
	r.held[process] = w
	return w, nil
}

// forget makes a process that has no session, or has ended, a free one.
func (r *reservations) forget(w *worker) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.held[w.pid] == w {
		delete(r.held, w.pid)
	}
}
