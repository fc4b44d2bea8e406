// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"shai.dev/monitor/internal/manifest"
)

// A pipeline serves as many sessions as its connection says, and no more than the pipes and
// channels of its workers have slots.
func TestSessionsOfAConnection(t *testing.T) {
	for name, test := range map[string]struct {
		sessions, slots int
		from            string
		want            int
	}{
		"unless the connection says it": {0, 0, "", manifest.DefaultSessions},
		"many":                          {4096, 0, "", 4096},
		"fewer than slots":              {2, 3, "worker", 2},
		"more than slots":               {100, 3, "worker", 3},
		"slots of others":               {100, 3, "indexer", 100},
	} {
		conduits := []manifest.Conduit{{Kind: manifest.KindConnection, Task: "worker", Sessions: test.sessions}}
		if test.slots > 0 {
			conduits = append(conduits, manifest.Conduit{Kind: manifest.KindPipe, From: test.from, Slots: test.slots})
		}
		worker := &Task{name: "worker", spec: manifest.TaskSpec{Parameters: []string{"user"}},
			pipeline: &Pipeline{spec: manifest.PipelineSpec{Conduits: conduits}}}
		if got := len(worker.newEntrance().slots.channels); got != test.want {
			t.Errorf("%s: %d slots, want %d", name, got, test.want)
		}
	}
}

// No two sessions have the same slot, and every slot is released, however the sessions
// end.
func TestSlotsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 4).Draw(t, "slots")
		all := newSlots(make([][]conduitPair, count))
		var sessions sync.WaitGroup
		var mu sync.Mutex
		occupied := map[int]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "sessions") {
			fails := rapid.Bool().Draw(t, "fails before it is occupied")
			sessions.Go(func() {
				one, err := all.reserve(context.Background())
				if err != nil {
					t.Errorf("reserve: %v", err)
					return
				}
				if !fails {
					number := one.occupy()
					mu.Lock()
					if occupied[number] {
						t.Errorf("slot %d is occupied twice", number)
					}
					occupied[number] = true
					mu.Unlock()
					runtime.Gosched() // others find it occupied
					mu.Lock()
					delete(occupied, number)
					mu.Unlock()
				}
				one.release()
				one.release()
			})
		}
		sessions.Wait()
		if len(all.free) != count || len(all.vacancies) != count {
			t.Fatalf("%d slots and %d vacancies are left of %d", len(all.free), len(all.vacancies), count)
		}
	})
}

// While slots are stopped none is reserved; one that is in use is waited for.
func TestSlotsStop(t *testing.T) {
	all := newSlots(make([][]conduitPair, 2))
	one, err := all.reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := make(chan struct{})
	close(late)
	if left := all.stop(late); left == 0 {
		t.Fatal("nobody is waited for although a slot is in use")
	}
	one.release()
	if left := all.stop(nil); left != 0 {
		t.Fatalf("%d sessions are left", left)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.reserve(ended); err == nil {
		t.Error("a slot is reserved although all are stopped")
	}
	all.resume()
	if _, err := all.reserve(t.Context()); err != nil {
		t.Errorf("after resume: %v", err)
	}
}

// Emptying a channel ends where nobody can write it any more.
func TestClosedChannelIsEmptied(t *testing.T) {
	channel, err := newChannel("results")
	if err != nil {
		t.Fatal(err)
	}
	defer channel.close()
	if _, err := channel.writer.Write([]byte("alice's results")); err != nil {
		t.Fatal(err)
	}
	channel.writer.Close()
	emptied := make(chan struct{})
	go func() {
		channel.drain()
		close(emptied)
	}()
	select {
	case <-emptied:
	case <-time.After(time.Minute):
		t.Fatal("it is still being emptied")
	}
}

// A slot's channels are empty for its next session.
func TestSlotIsEmptied(t *testing.T) {
	channel, err := newChannel("results")
	if err != nil {
		t.Fatal(err)
	}
	defer channel.close()
	all := newSlots([][]conduitPair{{channel}})
	one, err := all.reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one.occupy()
	if _, err := channel.writer.Write([]byte("alice's results")); err != nil {
		t.Fatal(err)
	}
	one.release()
	if n, _, err := unix.Recvfrom(int(channel.reader.Fd()), make([]byte, 64), unix.MSG_DONTWAIT); err != unix.EAGAIN {
		t.Errorf("%d bytes are left, %v", n, err)
	}
}
