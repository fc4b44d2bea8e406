// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// disk is a file system that fills up. It writes half of what does not fit, as real
// ones do.
type disk struct {
	mutex    sync.Mutex
	full     bool
	syncFail bool
	block    chan struct{} // when set, writes wait for it
	pause    time.Duration // how long a write takes
}

func (d *disk) set(full, syncFail bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.full, d.syncFail = full, syncFail
}

// hold makes writes wait until release is called.
func (d *disk) hold() (release func()) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.block = make(chan struct{})
	return sync.OnceFunc(func() { close(d.block) })
}

func (d *disk) open(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return &diskFile{File: f, disk: d}, err
}

type diskFile struct {
	*os.File
	disk *disk
}

func (f *diskFile) Write(p []byte) (int, error) {
	f.disk.mutex.Lock()
	block := f.disk.block
	f.disk.mutex.Unlock()
	if block != nil {
		<-block
	}
	time.Sleep(f.disk.pause)
	f.disk.mutex.Lock()
	defer f.disk.mutex.Unlock()
	if !f.disk.full {
		return f.File.Write(p)
	}
	n, err := f.File.Write(p[:len(p)/2])
	if err == nil {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *diskFile) Sync() error {
	f.disk.mutex.Lock()
	defer f.disk.mutex.Unlock()
	if f.disk.syncFail {
		return syscall.EIO
	}
	return f.File.Sync()
}

func TestFullDisk(t *testing.T) {
	for _, test := range []struct {
		name           string
		full, syncFail bool
		want           error
		records        string // those after the second one, sorted
	}{
		{"no space", true, false, syscall.ENOSPC,
			"[/corpus/1 /corpus/2 /corpus/5 1 omitted 1 omitted friends/alice the disk there is]"},
		{"sync fails", false, true, syscall.EIO,
			"[/corpus/1 /corpus/2 /corpus/5 1 omitted 1 omitted friends/alice]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			directory, d := t.TempDir(), new(disk)
			l := openLog(t, Options{Directory: directory, openFile: d.open, RefuseUnrecorded: true})
			record(t, l, decision("/corpus/1"))
			d.set(test.full, test.syncFail)
			if err := l.Append(denial("/corpus/2")); err != nil {
				t.Errorf("a denial before the failure is known: %v", err)
			}
			if err := l.Flush(context.Background()); !errors.Is(err, test.want) {
				t.Errorf("flush: %v", err)
			}
			if err := l.Append(decision("/corpus/3")); !errors.Is(err, ErrFailing) || !errors.Is(err, test.want) {
				t.Errorf("what is allowed while nothing can be recorded: %v", err)
			}
			if err := l.Append(denial("/corpus/4")); err != nil {
				t.Errorf("a denial while nothing can be recorded: %v", err)
			}
			if err := l.Append(Event{Kind: Bundle, Allowed: true, Conduit: "friends/alice"}); err != nil {
				t.Errorf("a change that has happened while nothing can be recorded: %v", err)
			}
			d.set(false, false)
			waitUntilWritable(t, l)
			record(t, l, decision("/corpus/5"))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			var conduits []string
			for _, r := range search(t, directory, Query{}) {
				switch {
				case r.Omitted > 0:
					conduits = append(conduits, fmt.Sprint(r.Omitted, " omitted"))
				case r.Kind == Recovery:
					conduits = append(conduits, strings.Fields(r.Reason)[0]+" "+strings.Fields(r.Reason)[1])
				default:
					conduits = append(conduits, r.Conduit)
				}
			}
			slices.Sort(conduits[2:])
			if got := fmt.Sprint(conduits); got != test.records {
				t.Errorf("recorded %s", got)
			}
			if v := verified(t, directory); v.Fault != "" {
				t.Error(v.Fault)
			}
		})
	}
}

// What was promised is recorded, whatever the disk does afterwards; and nothing more is
// promised then.
func TestPromisedRecords(t *testing.T) {
	directory, d := t.TempDir(), new(disk)
	l := openLog(t, Options{Directory: directory, openFile: d.open, RefuseUnrecorded: true, Queue: 1})
	if !l.CanPromise() {
		t.Error("nothing is promised although the disk has space")
	}
	d.set(true, false)
	if err := l.Append(denial("/corpus/1")); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(context.Background()); err == nil || l.CanPromise() {
		t.Errorf("records are promised on a full disk, %v", err)
	}
	release := d.hold()
	var want []string
	for i := range 8 { // more than the queue holds
		want = append(want, fmt.Sprint("/corpus/promised/", i))
		if err := l.AppendPromised(decision(want[i])); err != nil {
			t.Errorf("a promised record: %v", err)
		}
	}
	release()
	d.set(false, false)
	waitUntilWritable(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range search(t, directory, Query{}) {
		if r.Kind == Decision {
			got = append(got, r.Conduit)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
	if err := l.AppendPromised(decision("late")); !errors.Is(err, ErrClosed) || l.CanPromise() {
		t.Errorf("a log that is closed: %v", err)
	}
}

// waitUntilWritable waits until the log writes everything again, which it does by itself.
func waitUntilWritable(t testing.TB, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for ; l.Failing() != nil; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("still failing: %v", l.Failing())
		}
	}
}

// Without RefuseUnrecorded, an allow goes through: the twin of the test above.
func TestFullDiskMayBeTolerated(t *testing.T) {
	d := new(disk)
	l := openLog(t, Options{Directory: t.TempDir(), openFile: d.open})
	d.set(true, false)
	record1 := l.Append(denial("/corpus/1"))
	flush := l.Flush(context.Background())
	record2 := l.Append(decision("/corpus/2"))
	if record1 != nil || flush == nil || record2 != nil {
		t.Errorf("append %v, flush %v, append %v", record1, flush, record2)
	}
	if err := l.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close says %v; what was not written is lost without a word", err)
	}
}

func TestStuckDiskDoesNotBlockDecisions(t *testing.T) {
	directory, d := t.TempDir(), new(disk)
	l := openLog(t, Options{Directory: directory, openFile: d.open, Queue: 4, MaxWait: time.Microsecond})
	release := d.hold()
	lost := 0
	for i := range 50 {
		if err := l.Append(denial(fmt.Sprint("/corpus/", i))); err != nil {
			t.Fatal(err) // counted, not lost
		}
		if err := l.Append(Event{Kind: Fact, Conduit: fmt.Sprint("facts/", i)}); err != nil {
			t.Fatal(err)
		}
		if err := l.Append(decision(fmt.Sprint("/corpus/", i))); errors.Is(err, ErrQueueFull) {
			lost++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if lost == 0 || l.lost.Load() != uint64(lost) {
		t.Fatalf("%d events given up, counted %d", lost, l.lost.Load())
	}
	release()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := search(t, directory, Query{Kinds: []Kind{Recovery}})
	if len(got) != 1 || got[0].Reason != fmt.Sprintf("%d events were not recorded: the queue was full", lost) {
		t.Errorf("the loss is recorded as %+v", got)
	}
	if got := search(t, directory, Query{Kinds: []Kind{Fact}}); len(got) != 50 {
		t.Errorf("%d of 50 changes are recorded", len(got))
	}
	var denied uint64
	for _, r := range search(t, directory, Query{Kinds: []Kind{Denial}}) {
		denied += max(1, r.Omitted)
	}
	if denied != 50 {
		t.Errorf("%d of 50 denials are recorded or counted", denied)
	}
}

const writerVariable = "SHAI_TEST_AUDIT_WRITER"

// TestMain makes the test program a monitor that is killed, if a test asks for it.
func TestMain(m *testing.M) {
	if directory := os.Getenv(writerVariable); directory != "" {
		writeForever(directory)
	}
	os.Exit(m.Run())
}

// writeForever prints the number of every record that is in stable storage.
func writeForever(directory string) {
	l, err := Open(Options{Directory: directory, MaxFileSize: 8 << 10})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		l.Append(decision(fmt.Sprintf("/corpus/%d/%d", os.Getpid(), i)))
		if i%10 == 0 {
			if l.Flush(context.Background()) == nil {
				fmt.Println(i)
			}
		}
	}
}

func TestKilledWriterLosesNothingFlushed(t *testing.T) {
	directory := t.TempDir()
	for round := range 3 {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), writerVariable+"="+directory)
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := -1
		for lines := bufio.NewScanner(output); lines.Scan(); {
			fmt.Sscan(lines.Text(), &acknowledged)
			if acknowledged >= 200+37*round {
				break
			}
		}
		command.Process.Kill()
		command.Wait()
		l := openLog(t, Options{Directory: directory})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if v := verified(t, directory); v.Fault != "" {
			t.Fatalf("round %d: %s", round, v.Fault)
		}
		got := search(t, directory, Query{Conduit: fmt.Sprintf("/corpus/%d/%d", command.Process.Pid, acknowledged)})
		if len(got) != 1 {
			t.Fatalf("round %d: record %d was acknowledged and is there %d times", round, acknowledged, len(got))
		}
	}
}
