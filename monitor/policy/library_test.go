// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"bytes"
	"testing"
	"time"
)

// world is the state in which the library's policies are tried. Conduit 1 is public,
// 2 private to alice, 3 has no policy.
func world(t testing.TB) State {
	return StateOf(mustFacts(t,
		`friends/alice says friend ["bob"]`, `friends/bob says friend ["carol"]`,
		`blacklist/de says blocked ["/doc"]`,
		`employees says employee ["eve"]`, `employees says employee ["frank"]`,
		`log says access ["eve","/doc",{"time":"2026-05-31T00:00:00Z"}]`,
	), NewConduitTable(worldConduits(t)...))
}

func worldConduits(t testing.TB) []Conduit {
	return []Conduit{
		{ID: 1, Name: "/1", Policy: mustLibrary(t, "public")},
		{ID: 2, Name: "/2", Policy: mustLibrary(t, "private", "alice")},
		{ID: 3, Name: "/3"},
	}
}

func TestLibraryReadRules(t *testing.T) {
	tests := []struct {
		policy    string
		arguments []string
		reader    *Session
		now       time.Time
		allowed   bool
	}{
		{"private", []string{"alice"}, session("alice", ""), noon, true},
		{"private", []string{"alice"}, session("bob", ""), noon, false},
		{"private", []string{"alice"}, nil, noon, false},
		{"friends", []string{"alice"}, session("alice", ""), noon, true},
		{"friends", []string{"alice"}, session("bob", ""), noon, true},
		{"friends", []string{"alice"}, session("carol", ""), noon, false},
		{"friends-of-friends", []string{"alice"}, session("carol", ""), noon, true},
		{"friends-of-friends", []string{"alice"}, session("dora", ""), noon, false},
		{"public", nil, nil, noon, true},
		{"region-blacklist", nil, session("", "us"), noon, true},
		{"region-blacklist", nil, session("", "de"), noon, false},
		{"region-blacklist", nil, session("alice", ""), noon, false},
		{"expiry", []string{"2026-06-01T12:00:01Z"}, nil, noon, true},
		{"expiry", []string{"2026-06-01T12:00:00Z"}, nil, noon, false},
		{"expiry", []string{"2026-06-01T12:00:01Z"}, nil, time.Time{}, false},
		{"append-only-log", []string{"alice"}, session("alice", ""), noon, true},
		{"append-only-log", []string{"alice"}, session("eve", ""), noon, false},
		{"mandatory-access-logging", []string{"log"}, session("eve", ""), noon, true},
		{"mandatory-access-logging", []string{"log"}, session("frank", ""), noon, false},
		{"mandatory-access-logging", []string{"other"}, session("eve", ""), noon, false},
		{"search-history", []string{"alice"}, session("alice", ""), noon, true},
		{"search-history", []string{"alice"}, session("bob", ""), noon, false},
		{"conduit-ids", []string{"alice"}, session("alice", ""), noon, true},
		{"conduit-ids", []string{"alice"}, session("bob", ""), noon, false},
		{"conduit-ids-plus", []string{"alice"}, session("alice", ""), noon, true},
		{"conduit-ids-plus", []string{"alice"}, session("bob", ""), noon, false},
		{"descriptor-only", nil, nil, noon, true},
	}
	for _, test := range tests {
		p := mustLibrary(t, test.policy, test.arguments...)
		environment := Environment{Session: test.reader, Now: test.now}
		decision := evaluate(p.Read("/doc"), world(t), environment)
		if decision.Allowed != test.allowed {
			t.Errorf("%s read by %+v: %v, want %v: %s", p, test.reader, decision.Allowed, test.allowed, decision.Reason)
		}
		checkConditions(t, decision, world(t), environment)
	}
}

func TestLibraryUpdateRules(t *testing.T) {
	entry := func(offset int64, who string, when time.Time) Fact {
		return Fact{Relation: "access", Arguments: []Value{String(who), String("/doc"), Time(when)}, Offset: offset,
			Positioned: true}
	}
	log := Conduit{Name: "log", Kind: FileConduit, Length: 100, Measured: true}
	grown := func(facts ...Fact) *Update { return &Update{Facts: facts, NewLength: 150} }
	tests := []struct {
		name      string
		policy    string
		arguments []string
		writer    string
		target    Conduit
		update    *Update
		allowed   bool
	}{
		{"owner", "private", []string{"alice"}, "alice", log, nil, true},
		{"other", "private", []string{"alice"}, "bob", log, nil, false},
		{"owner", "friends", []string{"alice"}, "alice", log, nil, true},
		{"friend", "friends", []string{"alice"}, "bob", log, nil, false},
		{"friend of friend", "friends-of-friends", []string{"alice"}, "carol", log, nil, false},
		{"anybody", "public", nil, "alice", log, nil, false},
		{"anybody", "region-blacklist", nil, "alice", log, nil, false},
		{"anybody", "expiry", []string{"2027-01-01T00:00:00Z"}, "alice", log, nil, false},
		{"owner", "search-history", []string{"alice"}, "alice", log, nil, true},
		{"owner", "conduit-ids", []string{"alice"}, "alice", log, nil, true},
		{"other", "conduit-ids-plus", []string{"alice"}, "bob", log, nil, false},
		{"descriptor", "descriptor-only", nil, "", Conduit{Name: "c", Kind: DescriptorConduit}, nil, true},
		{"text", "descriptor-only", nil, "", Conduit{Name: "c", Kind: PipeConduit}, nil, false},
		{"appends", "append-only-log", []string{"alice"}, "eve", log, grown(entry(100, "eve", noon)), true},
		{"appends twice", "append-only-log", []string{"alice"}, "eve", log,
			grown(entry(100, "eve", noon), entry(120, "eve", noon)), true},
		{"overwrites", "append-only-log", []string{"alice"}, "eve", log,
			grown(entry(100, "eve", noon), entry(99, "eve", noon)), false},
		{"forges", "append-only-log", []string{"alice"}, "eve", log, grown(entry(100, "frank", noon)), false},
		{"logs ahead", "append-only-log", []string{"alice"}, "eve", log,
			grown(entry(100, "eve", noon.Add(time.Second))), false},
		{"truncates", "append-only-log", []string{"alice"}, "eve", log, &Update{NewLength: 50}, false},
		{"writes something else", "append-only-log", []string{"alice"}, "eve", log,
			grown(entry(100, "eve", noon), Fact{Relation: "secret", Arguments: []Value{String("x")}, Offset: 120,
				Positioned: true}), false},
		{"unknown content", "append-only-log", []string{"alice"}, "eve", log, nil, false},
	}
	for _, test := range tests {
		p := mustLibrary(t, test.policy, test.arguments...)
		target := test.target
		target.Policy = p
		environment := Environment{Session: session(test.writer, ""), Now: noon, Target: &target, Update: test.update}
		decision := evaluate(p.Update(target.Name), world(t), environment)
		if decision.Allowed != test.allowed {
			t.Errorf("%s %s: %v, want %v: %s", test.policy, test.name, decision.Allowed, test.allowed, decision.Reason)
		}
		written := StateOf(world(t), NewConduitTable(target))
		checkConditions(t, decision, written, environment)
	}
}

// The flows that leave the protection of a policy by its exits, and those that do not.
func TestLibraryExits(t *testing.T) {
	anybody := mustLibrary(t, "descriptor-only") // read by all, written where it is a descriptor
	open := mustBind(t, `read :- true. update :- true.`)
	onlyAlice := mustBind(t, `read :- sKeyIs("alice"). update :- true. declassify :- true.`)
	ids := func(numbers ...int64) *Update {
		update := &Update{NewLength: 10}
		for _, number := range numbers {
			update.Facts = append(update.Facts, Fact{Relation: "conduit", Arguments: []Value{Integer(number)}})
		}
		return update
	}
	mixed := ids(1)
	mixed.Facts = append(mixed.Facts, Fact{Relation: "text", Arguments: []Value{String("secret")}})
	list := func(p *Policy) Conduit {
		return Conduit{Name: "list", Kind: PipeConduit, Type: "conduit-ids", Policy: p}
	}
	untyped := list(open)
	untyped.Type = ""
	channel := Conduit{Name: "channel", Kind: DescriptorConduit, Policy: anybody}
	pipe := Conduit{Name: "pipe", Kind: PipeConduit, Policy: open}
	tests := []struct {
		policy    string
		arguments []string
		target    Conduit
		update    *Update
		allowed   bool
	}{
		{"private", []string{"alice"}, channel, nil, true},
		{"private", []string{"alice"}, pipe, nil, false},
		{"friends", []string{"alice"}, channel, nil, true},
		{"friends", []string{"alice"}, pipe, nil, false},
		{"friends-of-friends", []string{"alice"}, channel, nil, true},
		{"friends-of-friends", []string{"alice"}, pipe, nil, false},
		{"region-blacklist", nil, channel, nil, true},
		{"region-blacklist", nil, pipe, nil, false},
		{"mandatory-access-logging", []string{"log"}, channel, nil, true},
		{"mandatory-access-logging", []string{"log"}, pipe, nil, false},
		{"public", nil, pipe, nil, true},
		{"descriptor-only", nil, pipe, nil, true},
		{"search-history", []string{"alice"}, channel, nil, false},
		{"append-only-log", []string{"alice"}, channel, nil, false},
		{"expiry", []string{"2027-01-01T00:00:00Z"}, channel, nil, true},
		{"expiry", []string{"2027-01-01T00:00:00Z"}, pipe, nil, false},
		{"conduit-ids", []string{"alice"}, list(open), ids(1, 2), true},
		{"conduit-ids", []string{"alice"}, list(open), ids(1, 99), false},
		{"conduit-ids", []string{"alice"}, list(open), mixed, false},
		{"conduit-ids", []string{"alice"}, list(open), nil, false},
		{"conduit-ids", []string{"alice"}, untyped, ids(1, 2), false},
		{"conduit-ids-plus", []string{"alice"}, list(open), ids(1), true},
		{"conduit-ids-plus", []string{"alice"}, list(open), ids(1, 2), false},
		{"conduit-ids-plus", []string{"alice"}, list(open), ids(3), false},
		{"conduit-ids-plus", []string{"bob"}, list(onlyAlice), ids(1, 2), true},
		{"conduit-ids-plus", []string{"bob"}, list(onlyAlice), ids(1, 2, 3), false},
	}
	for _, test := range tests {
		taint := mustLibrary(t, test.policy, test.arguments...).Label("/doc")
		environment := Environment{Session: session("task/search", ""), Now: noon, Update: test.update}
		decision := mayWrite(taint, test.target, world(t), environment)
		if decision.Allowed != test.allowed {
			t.Errorf("%s %v to %s: %v, want %v: %s", test.policy, test.arguments, test.target.Name, decision.Allowed,
				test.allowed, decision.Reason)
		}
		checkConditions(t, decision, world(t), environment)
	}
}

// The end of an expiring policy is checked when data flow. What was derived before is under the
// policies of its own conduit, and ends only if these say so.
func TestWhatIsDerivedFromExpiringData(t *testing.T) {
	const end = "2026-07-01T00:00:00Z"
	before, after := noon, noon.AddDate(0, 2, 0)
	expiring := Conduit{Name: "/offer", Kind: FileConduit, Policy: mustLibrary(t, "expiry", end)}
	taint := mustLibrary(t, "private", "alice").Label("task")
	ending := mustBind(t, `policy p(end: time) { read :- sKeyIs("alice"), timeIs(T), lt(T, end).
		update :- sKeyIs("task/t"). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor). }`, end)
	notes := mustBind(t, `policy p { read :- sKeyIs("alice"). update :- sKeyIs("task/t"). }`)
	at := func(who string, now time.Time) Environment { return Environment{Session: session(who, ""), Now: now} }
	decide := func(what Operation, taint Label, target Policy, environment Environment) bool {
		return Decide(what, taint, Conduit{Name: "/x", Kind: FileConduit, Policy: &target}, stateOf(t), environment).Allowed
	}
	// Read before the end, and written to a file that has none: alice reads it afterwards, too.
	if !Decide(Read, taint, expiring, stateOf(t), at("task/t", before)).Allowed ||
		!decide(Write, taint, *notes, at("task/t", before)) ||
		!evaluate(notes.Read("/x"), stateOf(t), at("alice", after)).Allowed {
		t.Error("what was derived before the end is not under the policy of its own conduit")
	}
	// After the end nothing is derived any more.
	if Decide(Read, taint, expiring, stateOf(t), at("task/t", after)).Allowed {
		t.Error("expired data are read")
	}
	// A taint with the end does not change this: a write is checked when it is made, too.
	if !decide(Write, ending.Label("task"), *notes, at("task/t", before)) ||
		decide(Write, ending.Label("task"), *notes, at("task/t", after)) {
		t.Error("the end of a taint is not checked when the task writes")
	}
	// What is to end, too, is written to a conduit that ends.
	if !decide(Write, ending.Label("task"), *ending, at("task/t", before)) ||
		evaluate(ending.Read("/x"), stateOf(t), at("alice", after)).Allowed {
		t.Error("a conduit with an end does not end what is derived")
	}
}

// Library files are named as the policies in them and are in canonical format.
func TestLibraryIsFormatted(t *testing.T) {
	for _, template := range Library() {
		text, found := libraryText(template.Name())
		if !found {
			t.Errorf("policy %s is not in a file of its name", template.Name())
			continue
		}
		file, err := Parse(template.Name(), text)
		if err != nil {
			t.Fatal(err)
		}
		if formatted := file.Format(); !bytes.Equal(formatted, text) {
			t.Errorf("%s.pol is not formatted; it should read\n%s", template.Name(), formatted)
		}
	}
}
