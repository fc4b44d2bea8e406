// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Errors of Append. None of them may turn a denial into an allowed access.
var (
	// ErrQueueFull says that records come faster than the disk can store them. The event
	// is counted, and its loss is recorded.
	ErrQueueFull = errors.New("the audit queue is full")
	// ErrFailing says that records cannot be written, and that the log is configured to
	// refuse accesses that would not be recorded.
	ErrFailing = errors.New("the audit log cannot be written")
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("the audit log is closed")
)

// defaultMaxSize is enough for eleven days of a task that is denied accesses all the time.
const defaultMaxSize = 4 << 30

// Options configure a log. Zero fields have usable defaults.
type Options struct {
	Directory    string        // made when it does not exist, mode 0700
	MaxSize      int64         // size of the log at which its oldest files are removed; 4 GiB
	MaxFileSize  int64         // size at which a new file is begun; an eighth of MaxSize, at most 64 MiB
	Queue        int           // events that may wait for the disk; 8192
	MaxWait      time.Duration // how long Append waits when the queue is full; 5 ms
	SyncInterval time.Duration // time limit for a decision to reach stable storage; 100 ms
	RepeatWindow time.Duration // identical denials within it are counted; 1 s
	// RefuseUnrecorded makes Append fail for allowed events while records cannot be
	// written. The caller then has to refuse the access.
	RefuseUnrecorded bool

	clock    func() time.Time
	openFile func(path string) (file, error)
}

// file is the part of a file's interface that the log uses.
type file interface {
	Write(p []byte) (int, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

func (o Options) withDefaults() Options {
	if o.MaxSize <= 0 {
		o.MaxSize = defaultMaxSize
	}
	if o.MaxFileSize <= 0 {
		o.MaxFileSize = min(64<<20, o.MaxSize/8)
	}
	if o.Queue <= 0 {
		o.Queue = 8192
	}
	if o.MaxWait <= 0 {
		o.MaxWait = 5 * time.Millisecond
	}
	if o.SyncInterval <= 0 {
		o.SyncInterval = 100 * time.Millisecond
	}
	if o.RepeatWindow <= 0 {
		o.RepeatWindow = time.Second
	}
	if o.clock == nil {
		o.clock = time.Now
	}
	if o.openFile == nil {
		o.openFile = func(path string) (file, error) {
			return openRegular(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
		}
	}
	return o
}

// Log is an open audit log. Its methods may be called concurrently.
type Log struct {
	options  Options
	key      *Key
	denials  *denials
	queue    chan entry
	kept     overflow
	flushes  chan chan error
	stop     chan struct{}
	stopped  chan struct{}
	recovery string

	closing sync.RWMutex // held for reading while an event is put into the queue
	closed  bool

	stats     stats
	failure   atomic.Pointer[error]
	lost      atomic.Uint64
	unwritten error // set before stopped is closed

	changeMutex sync.Mutex
	changed     chan struct{} // closed and replaced when records were written
}

type entry struct {
	event Event
	time  time.Time
	told  []Told
}

// Open opens or begins a log and repairs its end: it moves a torn last line to a file of
// its own, and the chain continues after the last good record. A log may be open only
// once.
func Open(options Options) (*Log, error) {
	options = options.withDefaults()
	if err := os.MkdirAll(options.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	kept, err := openHeads(options.Directory)
	if err != nil {
		return nil, err
	}
	l := &Log{
		options: options,
		key:     kept.key,
		denials: newDenials(options.RepeatWindow),
		queue:   make(chan entry, options.Queue),
		flushes: make(chan chan error),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		changed: make(chan struct{}),
	}
	w, err := l.begin(kept)
	if err != nil {
		kept.close()
		return nil, err
	}
	go w.run()
	return l, nil
}

// openHeads locks the log, and opens its heads and its key.
func openHeads(directory string) (heads, error) {
	inside, err := lockHead(directory)
	if err != nil {
		return heads{}, err
	}
	key, err := ownKey(directory)
	if err != nil {
		inside.Close()
		return heads{}, err
	}
	witness, err := os.OpenFile(witnessFile(directory), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		inside.Close()
		return heads{}, fmt.Errorf("open audit log: %w", err)
	}
	return heads{key, inside, witness}, nil
}

// lockPatience limits the wait for a lock that another process holds. If a monitor is
// killed while it starts a process, that process holds the lock until its exec, and a
// monitor that is restarted at once has to wait for it.
const lockPatience = time.Second

// lockHead opens the head with an exclusive lock, which is the right to write. The kernel
// releases the lock when the process ends in any way.
func lockHead(directory string) (*os.File, error) {
	head, err := openRegular(filepath.Join(directory, headName), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	err = syscall.Flock(int(head.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for begun := time.Now(); errors.Is(err, syscall.EWOULDBLOCK) && time.Since(begun) < lockPatience; {
		time.Sleep(lockPatience / 100)
		err = syscall.Flock(int(head.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		head.Close()
		return nil, fmt.Errorf("open audit log %s: %w; another monitor writes to it, stop that one or choose another --state",
			directory, err)
	}
	return head, nil
}

// begin finds the end of the log and makes the writer that continues there.
func (l *Log) begin(kept heads) (*writer, error) {
	directory := l.options.Directory
	found, err := findEnd(directory, l.key)
	if err != nil {
		return nil, err
	}
	w := &writer{log: l, heads: kept, last: found.last, size: found.size}
	var repairs []string
	if found.torn > 0 {
		name, err := found.setAside(directory, l.options.clock())
		if err != nil {
			return nil, err
		}
		repairs = append(repairs, fmt.Sprintf("%d bytes after record %d were not a record; they are in %s",
			found.torn, found.last.sequence, name))
	}
	last, contradictions, err := l.compare(found)
	if err != nil {
		return nil, err
	}
	if err := kept.cut(); err != nil {
		return nil, err
	}
	w.last = last
	if repairs = append(repairs, contradictions...); len(repairs) > 0 {
		l.recovery = strings.Join(repairs, "; ")
	}
	path := found.file
	if path == "" {
		path = fileName(directory, w.last.sequence+1)
	}
	if w.file, err = l.options.openFile(path); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	if err := syncDirectory(directory); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	if found.last.sequence > 0 && !found.keyed {
		w.note("the records up to here have no seal with a key; those that follow have one")
	}
	if l.recovery != "" {
		w.note(l.recovery)
	}
	if err := w.makeReserve(); err != nil {
		w.refuse(err)
	}
	w.retain()
	w.measure()
	if len(w.tail) > 0 {
		_ = w.commit(true) // a failure is kept, and the writer tries again
		return w, nil
	}
	if err := errors.Join(w.file.Sync(), w.heads.write(w.last)); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	return w, nil
}

// compare returns where the chain continues, and what its heads say that is not in the log.
// Numbers that are missing stay missing, and a record that was replaced leaves a gap, so
// that Verify keeps reporting them.
func (l *Log) compare(found end) (last mark, contradictions []string, err error) {
	directory := l.options.Directory
	inside, insideError := readHead(filepath.Join(directory, headName), l.key)
	witness, witnessError := readWitness(directory, l.key)
	last = found.last
	for _, failure := range []error{insideError, witnessError} {
		if failure != nil {
			contradictions = append(contradictions, failure.Error())
		}
	}
	for _, said := range []head{inside, witness} {
		what, err := found.contradiction(directory, l.key, said.mark)
		if err != nil {
			return last, nil, err
		}
		if what == "" || slices.Contains(contradictions, what) {
			continue
		}
		contradictions = append(contradictions, what)
		last = mark{max(last.sequence+1, said.sequence), said.seal}
	}
	return last, contradictions, nil
}

// Recovery describes what was repaired when the log was opened, "" if nothing was.
func (l *Log) Recovery() string { return l.recovery }

// Omitted returns the number of denials that are recorded in summaries only.
func (l *Log) Omitted() uint64 { return l.denials.total() }

// Flush returns when all events appended before are in stable storage, or the error that
// prevents this.
func (l *Log) Flush(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case l.flushes <- done:
	case <-l.stopped:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Failing returns why records cannot be written at present, or only those of refusals and
// changes; nil if all can.
func (l *Log) Failing() error {
	if failure := l.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

func (l *Log) setFailing(err error) {
	if err == nil {
		l.failure.Store(nil)
		return
	}
	l.failure.Store(&err)
}

// Close writes the waiting events and closes the log. The error says why some of them
// could not be written.
func (l *Log) Close() error {
	l.closing.Lock()
	already := l.closed
	l.closed = true
	l.closing.Unlock()
	if already {
		return ErrClosed
	}
	close(l.stop)
	<-l.stopped
	return l.unwritten
}
