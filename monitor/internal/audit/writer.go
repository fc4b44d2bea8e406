// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"fmt"
	"time"
)

// maxTail is the number of bytes that the writer holds while the disk refuses them.
// Beyond it, events stay in the queue; when that is full, they are lost and counted.
const maxTail = 1 << 20

// writer is the goroutine that owns the files. It keeps data that is not in stable
// storage yet in tail, so that it can write it again after a failure: the log then ends
// after the last synced record, and the same bytes follow.
type writer struct {
	log     *Log
	file    file
	heads   heads
	size    int64 // of the file's synced part
	tail    []byte
	written int // bytes of tail that are written to the file
	last    mark
	count   uint64 // records in tail
	urgent  bool   // tail has a record that should not wait
	oldest  time.Time
	told    uint64 // lost events already recorded

	refusing error     // why accesses are refused although records may still have space
	retried  time.Time // last attempt to end that
}

// urgent reports whether records of a kind are synced at once. Records that come with
// every session, or more often, are synced within SyncInterval: a crash of the monitor
// loses none of them, but a crash of the machine can.
func urgent(k Kind) bool { return k != Decision && k != Session && k != Binding }

func (w *writer) run() {
	defer close(w.log.stopped)
	defer w.heads.close()
	ticks := time.NewTicker(w.log.options.SyncInterval)
	defer ticks.Stop()
	w.commit(true)
	for {
		queue := w.log.queue
		if len(w.tail) >= maxTail {
			queue = nil
		}
		select {
		case e := <-queue:
			w.add(e)
			w.drain()
			if w.log.Failing() == nil { // else the next tick tries again, not every event
				w.commit(false)
			}
		case <-ticks.C:
			w.tick()
			w.commit(false)
		case done := <-w.log.flushes:
			done <- w.flush()
		case <-w.log.stop:
			w.end()
			return
		}
	}
}

// drain takes all waiting events, so that one sync serves many, or as many as the tail
// has room for. It returns how many it took.
func (w *writer) drain() (taken int) {
	for ; len(w.tail) < maxTail; taken++ {
		select {
		case e := <-w.log.queue:
			w.add(e)
			continue
		default:
		}
		e, more := w.log.kept.take()
		if !more {
			return taken
		}
		w.add(e)
	}
	return taken
}

// flush stores the events that wait now, which may be more than the tail has room for.
func (w *writer) flush() error {
	for waiting := len(w.log.queue) + w.log.kept.count(); ; {
		waiting -= w.drain()
		if err := w.commit(true); err != nil || waiting <= 0 {
			return err
		}
	}
}

// tick adds records that are due: of counted denials, and of the number of lost events.
func (w *writer) tick() {
	w.recover()
	w.drain()
	w.summarise(false)
	if lost := w.log.lost.Load(); lost > w.told && w.log.Failing() == nil {
		w.note(fmt.Sprintf("%d events were not recorded: the queue was full", lost-w.told))
		w.told = lost
	}
}

func (w *writer) summarise(all bool) {
	now := w.log.options.clock()
	for _, event := range w.log.denials.due(now, all, w.log.Failing() != nil) {
		w.add(entry{event: event, time: now})
	}
}

func (w *writer) end() {
	for {
		before := w.last.sequence
		w.drain()
		w.commit(true)
		if w.last.sequence == before || w.log.Failing() != nil {
			break
		}
	}
	w.summarise(true)
	w.tick()
	w.log.unwritten = w.commit(true)
	w.file.Close()
}

// note adds a record about the log itself.
func (w *writer) note(what string) {
	w.add(entry{event: Event{Kind: Recovery, Reason: boundedText(what, maxText)}, time: w.log.options.clock()})
}

// add puts an event at the end of the chain.
func (w *writer) add(e entry) {
	w.rotate()
	line, seal, err := w.log.key.seal(unsealed{Sequence: w.last.sequence + 1, Time: e.time.UTC(), Previous: w.last.seal,
		Event: e.event})
	if err != nil {
		// Rendering fails only for a time outside of years 0 to 9999.
		w.log.lost.Add(1)
		return
	}
	if len(w.tail) == 0 {
		w.oldest = e.time
	}
	w.last = mark{w.last.sequence + 1, seal}
	w.tail = append(w.tail, line...)
	w.count++
	w.log.stats.note(e.event.Kind)
	for _, told := range e.told {
		told.Recorded(w.last.sequence)
	}
	w.urgent = w.urgent || urgent(e.event.Kind)
}

// commit writes the tail. It syncs it if forced, if it contains an urgent record, or if
// it has waited long enough. On a full disk it does so in the space of the reserve.
func (w *writer) commit(force bool) error {
	err := w.store(force)
	if isFull(err) && w.spend(err) {
		err = w.store(true)
	}
	return err
}

func (w *writer) store(force bool) error {
	if len(w.tail) == 0 {
		return nil
	}
	if w.written < len(w.tail) {
		n, err := w.file.Write(w.tail[w.written:])
		w.written += n
		if err != nil {
			return w.fail("write", err)
		}
		w.log.announce()
	}
	waited := w.log.options.clock().Sub(w.oldest)
	if !force && !w.urgent && waited < w.log.options.SyncInterval && len(w.tail) < maxTail {
		return nil
	}
	if err := w.file.Sync(); err != nil {
		return w.fail("sync", err)
	}
	if err := w.heads.write(w.last); err != nil {
		return w.fail("write head of", err)
	}
	w.size += int64(len(w.tail))
	w.log.stats.last.Store(w.size)
	w.log.stats.unstored.Add(-int64(w.count)) //nolint:gosec // at most maxTail
	w.tail, w.written, w.count, w.urgent = w.tail[:0], 0, 0, false
	w.log.setFailing(w.refusing) // until there is a reserve again, if it is spent
	return nil
}

// fail cuts the file back to its synced part, so that the whole tail will be written
// again. After a failed sync the kernel may have dropped the pages, and another sync
// would succeed without them.
func (w *writer) fail(operation string, err error) error {
	if cut := w.file.Truncate(w.size); cut == nil {
		w.written = 0
	} else {
		err = fmt.Errorf("%w; cut it back: %w", err, cut)
	}
	err = fmt.Errorf("%s audit log %s: %w; free space or choose another --state", operation, w.log.options.Directory,
		err)
	w.log.setFailing(err)
	return err
}

// rotate begins another file if this one is full. After a failure, the file keeps
// growing.
func (w *writer) rotate() {
	if w.size+int64(len(w.tail)) < w.log.options.MaxFileSize || w.log.Failing() != nil {
		return
	}
	if w.commit(true) != nil || w.log.Failing() != nil || w.size == 0 {
		return
	}
	next, err := w.log.options.openFile(fileName(w.log.options.Directory, w.last.sequence+1))
	if err != nil {
		return
	}
	if err := syncDirectory(w.log.options.Directory); err != nil {
		next.Close()
		return
	}
	w.file.Close()
	w.file, w.size = next, 0
	w.retain()
	w.measure()
}

// announce wakes the readers that follow the log.
func (l *Log) announce() {
	l.changeMutex.Lock()
	defer l.changeMutex.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Log) change() <-chan struct{} {
	l.changeMutex.Lock()
	defer l.changeMutex.Unlock()
	return l.changed
}
