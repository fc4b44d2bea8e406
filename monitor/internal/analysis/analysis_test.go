// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSysE(t *testing.T) {
	plan, c := village(t)
	r := run(t, plan, c)
	worker := func(user, region string) Instance { return Instance{"worker", []string{user, region}} }
	cases := []struct {
		instance Instance
		document string
		want     bool
	}{
		{worker("alice", "de"), "/corpus/private/alice/1.txt", true},
		{worker("alice", "de"), "/corpus/private/bob/1.txt", false},
		{worker("alice", "de"), "/corpus/friends/bob/1.txt", true},
		{worker("alice", "de"), "/corpus/friends/carol/1.txt", false},
		{worker("alice", "de"), "/corpus/friends/dave/1.txt", false},
		{worker("alice", "de"), "/corpus/circles/dave/1.txt", true}, // a friend's friend
		{worker("alice", "de"), "/corpus/circles/carol/1.txt", false},
		{worker("alice", "de"), "/corpus/public/1.txt", false}, // blocked there
		{worker("alice", "de"), "/corpus/public/2.txt", true},
		{worker("bob", "us"), "/corpus/public/1.txt", true},
		{worker("bob", "us"), "/corpus/friends/dave/1.txt", true},
		{worker("carol", "de"), "/corpus/private/carol/2.txt", true},
		{worker("carol", "de"), "/corpus/friends/alice/1.txt", false},
		{Instance{Task: "indexer"}, "/corpus/private/alice/1.txt", true},
		{Instance{Task: "indexer"}, "/corpus/friends/dave/2.txt", true},
		{Instance{Task: "indexer"}, "/corpus/public/1.txt", true},
	}
	for _, c2 := range cases {
		if got := readable(t, r, c, c2.instance)[c2.document]; got != c2.want {
			t.Errorf("%s reads %s: %v, want %v", c2.instance.Name(), c2.document, got, c2.want)
		}
	}
	alice, _ := r.Instance(worker("alice", "de"))
	held := make(map[string]bool)
	for _, other := range alice.Others {
		held[fmt.Sprintf("%s %v", other.Set, other.Write)] = true
		if other.Set == "profiles" && !strings.HasPrefix(other.Conduit, "profile:alice") {
			t.Errorf("%s may use %s", alice.Instance.Name(), other.Conduit)
		}
	}
	for _, want := range []string{"histories false", "profiles false", "results false", "queries true", "web true"} {
		if !held[want] {
			t.Errorf("%s lacks %s: %+v", alice.Instance.Name(), want, alice.Others)
		}
	}
	indexer, _ := r.Instance(Instance{Task: "indexer"})
	if len(indexer.Writes) != 1 || c.State().Class(indexer.Writes[0]).Set != "syse/index" {
		t.Errorf("the indexer writes %v", indexer.Writes)
	}
}

func TestOutputIsDeterministic(t *testing.T) {
	plan, c := village(t)
	first := run(t, plan, c).Encode()
	for _, parallel := range []int{1, 2, 7} {
		again, err := Run(context.Background(), plan, c.State(), Options{Now: now, Parallel: parallel})
		if err != nil || !bytes.Equal(first, again.Encode()) {
			t.Errorf("with %d goroutines the bytes differ, %v", parallel, err)
		}
	}
}

func TestStoredResult(t *testing.T) {
	plan, c := village(t)
	r := run(t, plan, c)
	text := r.Encode()
	decoded, err := Decode(text, plan, c.State())
	if err != nil || !decoded.equal(r) || !bytes.Equal(decoded.Encode(), text) {
		t.Fatalf("another result was decoded, %v", err)
	}
	for at := 0; at < len(text); at += 7 {
		damaged := slices.Clone(text)
		damaged[at] ^= 1
		if _, err := Decode(damaged, plan, c.State()); err == nil {
			t.Fatalf("byte %d altered and not noticed", at)
		}
	}
	for _, begin := range magicBefore {
		former := slices.Concat([]byte(begin), text[len(magic):])
		if _, err := Decode(former, plan, c.State()); !errors.Is(err, ErrStale) {
			t.Errorf("a result of an earlier version: %v", err)
		}
	}
	other := *plan
	other.Tasks = plan.Tasks[1:]
	if _, err := Decode(text, &other, c.State()); !errors.Is(err, ErrStale) {
		t.Errorf("another plan: %v", err)
	}
	if _, err := addFacts(c, fact("friends/alice", "friend", "carol")); err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(text, plan, c.State()); !errors.Is(err, ErrStale) || r.Current(c.State()) {
		t.Errorf("other facts: %v", err)
	}
}

// exit is allowed by the taints as well: without it nothing could be read.
const exit = `declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`

func TestUnfriendingAffectsTwo(t *testing.T) {
	plan, c := village(t)
	r := run(t, plan, c)
	change, err := removeFacts(c, fact("friends/bob", "friend", "alice"))
	if err != nil {
		t.Fatal(err)
	}
	next, affected, err := r.Update(context.Background(), change, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	// alice loses bob's posts, and those of bob's friends-of-friends circle; dave
	// stays bob's friend, and alice no longer is a friend's friend of dave.
	if len(affected) != 1 || affected[0].Instance.Name() != "worker(alice, de)" || len(affected[0].Lost) == 0 ||
		len(affected[0].Gained) != 0 {
		t.Errorf("affected: %+v", affected)
	}
	if readable(t, next, c, Instance{"worker", []string{"alice", "de"}})["/corpus/friends/bob/1.txt"] {
		t.Error("alice still reads bob's posts")
	}
	if !readable(t, next, c, Instance{"worker", []string{"bob", "us"}})["/corpus/friends/alice/1.txt"] {
		t.Error("bob lost alice's posts, who did not unfriend him")
	}
}

func TestTimeEndsAccess(t *testing.T) {
	plan, bundle := zooBundle(t)
	c := newCatalog(t, bundle)
	if _, _, err := c.Register([]string{"/d/until/a/1", "/d/mine/a/1"}); err != nil {
		t.Fatal(err)
	}
	// The taint's own clause has no time: what it reads must hold whenever it is
	// read, which the comparison shows only under the condition on the clock.
	if _, err := addFacts(c, fact("population", "home", "a", "de")); err != nil {
		t.Fatal(err)
	}
	r := run(t, plan, c)
	at, ok := r.NextExpiry()
	end := time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC)
	if !ok || !at.Equal(end) {
		t.Fatalf("next expiry %v, %v; want %v", at, ok, end)
	}
	next, affected, err := r.Expire(context.Background(), Options{Now: end})
	if err != nil || len(affected) != 1 || len(affected[0].Lost) != 1 {
		t.Fatalf("affected %+v, %v", affected, err)
	}
	if _, ok := next.NextExpiry(); ok {
		t.Error("something still expires")
	}
	full, err := Run(context.Background(), plan, c.State(), Options{Now: end})
	if err != nil || !full.equal(next) {
		t.Errorf("a full run at that time differs, %v", err)
	}
}

func TestStopsWhenAsked(t *testing.T) {
	plan, c := village(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, plan, c.State(), Options{Now: now}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestUnknownInstance(t *testing.T) {
	plan, c := village(t)
	for _, instance := range []Instance{{Task: "nothing"}, {Task: "worker"}, {"indexer", []string{"x"}}} {
		if _, err := RunInstance(plan, c.State(), instance, now); err == nil {
			t.Errorf("%s was analysed", instance.Name())
		}
	}
	// A user that no fact expects has what a stranger has.
	stranger, err := RunInstance(plan, c.State(), Instance{"worker", []string{"eve", "us"}}, now)
	if err != nil || len(stranger.Reads) == 0 {
		t.Fatalf("%+v, %v", stranger, err)
	}
	for _, class := range stranger.Reads {
		if name := c.State().Class(class).Reference.Policy; name != "public" {
			t.Errorf("a stranger reads %s", name)
		}
	}
}

// Progress only grows, to the number of instances, whatever cohorts they are analysed in.
func TestProgressOfCohorts(t *testing.T) {
	plan, c := village(t)
	expected := uint64(len(plan.Instances(c.State(), now)))
	for cohort := range int(expected) + 2 {
		var last uint64
		progress := func(done, total uint64) {
			if done < last || total != expected {
				t.Errorf("cohorts of %d: %d of %d after %d", cohort, done, total, last)
			}
			last = done
		}
		_, err := Run(t.Context(), plan, c.State(), Options{Now: now, cohort: cohort, Progress: progress})
		if err != nil || last != expected {
			t.Errorf("cohorts of %d: ended at %d of %d: %v", cohort, last, expected, err)
		}
	}
}
