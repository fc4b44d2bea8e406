// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import "sync"

// errReserved is the reason for which a process gets no further connection.
const errReserved = refusal("the process already waits for a user or has served one; it gets no other and must exit")

// errServes is the reason for which a supervisor gives a process no connection.
const errServes = refusal("a worker serves one user, then it must exit; no other process of the task serves any")

// reservations are the processes of one task that wait for a session or have had one. A
// process is reserved from its accept4 until it has ended, or until it turns out that it
// gets no session.
type reservations struct {
	repeated bool // any number of sessions for a process

	mutex sync.Mutex
	held  map[int]*worker // by process
}

// reserve reserves a process, unless it is reserved already. If the process that held the
// number has ended, the number belongs to another process and is free.
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

// forget ends the reservation of a process that has ended or has no session.
func (r *reservations) forget(w *worker) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.held[w.pid] == w {
		delete(r.held, w.pid)
	}
}
