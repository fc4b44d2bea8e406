// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"os"
	"sync/atomic"
)

// Stats say how a log is doing.
type Stats struct {
	Added   map[Kind]uint64 // records since it was opened
	Backlog int             // events that were accepted and are not in stable storage
	Size    int64           // of all files, in bytes
}

// stats are kept by the writer, and read without a lock.
type stats struct {
	added    [len(kinds)]atomic.Uint64 // as kinds
	unstored atomic.Int64              // records of the writer that are not in stable storage
	others   atomic.Int64              // size of the files before the last one
	last     atomic.Int64              // size of the last one
}

// Stats returns how the log is doing now. It waits for nothing.
func (l *Log) Stats() Stats {
	s := Stats{Added: map[Kind]uint64{}, Size: l.stats.others.Load() + l.stats.last.Load(),
		Backlog: len(l.queue) + l.kept.count() + int(l.stats.unstored.Load())}
	for i, kind := range kinds {
		s.Added[kind] = l.stats.added[i].Load()
	}
	return s
}

// note counts a record that was added to the chain.
func (s *stats) note(added Kind) {
	for i, kind := range kinds {
		if kind == added {
			s.added[i].Add(1)
		}
	}
	s.unstored.Add(1)
}

// measure notes the size of the files but the last one, after files have come or gone.
func (w *writer) measure() {
	files, err := list(w.log.options.Directory)
	if err != nil {
		return // the size stays as it was
	}
	var total int64
	for _, file := range files[:max(0, len(files)-1)] {
		if about, err := os.Stat(file); err == nil {
			total += about.Size()
		}
	}
	w.log.stats.others.Store(total)
	w.log.stats.last.Store(w.size)
}
