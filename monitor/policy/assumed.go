// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"unique"
)

// Assumed is a taint that names its readers: its one obligation demands a certain principal or
// region of a session, or admits nobody. Whether such a taint covers a label can mostly be told
// by an evaluator, as if the session that is named asked: see [Evaluator.Covers]. The zero Assumed
// covers nothing. It is immutable and safe for concurrent use.
type Assumed struct {
	asker  *Prepared
	nobody bool // nobody reads what is derived, whatever is demanded
	held   duty
	ends   endings
}

// Demanded is a label of one obligation, prepared for [Evaluator.Covers]. The zero Demanded is not
// covered by anything. It is immutable and safe for concurrent use.
type Demanded struct {
	rule Rule
	// program is the rule's. The rule's own one would stay in memory for as long as the policy. It is
	// nil if the label is left to the prover.
	program *program
	duty    duty
	ends    endings
	closed  bool // these are all exits
}

// endings are the exits of an obligation that mean the same under all names and behind which nothing
// remains, as one value; zero if there is none.
type endings = unique.Handle[string]

// Assume prepares a taint for decisions in a state.
func Assume(state State, taint Label) Assumed {
	if len(taint.duties) != 1 {
		return Assumed{}
	}
	held := taint.duties[0]
	session, one := assumedSession(held.rule())
	ends, all := endingsOf(held.obligation, true)
	if !all || !one && len(held.rule().compiled().clauses) > 0 {
		return Assumed{}
	}
	assumed := Assumed{nobody: !one, held: held, ends: ends}
	if one {
		var e Evaluator
		e.finds(state)
		assumed.asker = e.Prepare(Environment{Session: &session})
	}
	return assumed
}

// assumedSession returns the session that a rule names, and nothing else of which is known.
func assumedSession(rule Rule) (session Session, ok bool) {
	clauses := rule.compiled().clauses
	if len(clauses) != 1 || len(clauses[0].body) == 0 {
		return session, false
	}
	for i := range clauses[0].body {
		l := &clauses[0].body[i]
		field := &session.Principal
		switch l.op {
		case opKey:
		case opRegion:
			field = &session.Region
		default:
			return session, false
		}
		if *field != "" || l.arguments[0].Text() == "" {
			return session, false
		}
		*field = l.arguments[0].Text()
	}
	return session, true
}

// endingsOf returns the exits of an obligation that an exit of another one can be compared with at
// once, and whether these are all. Of a taint it does not matter what remains behind an exit.
func endingsOf(o *obligation, anything bool) (ends endings, all bool) {
	var meanings []string
	for i := range o.exits {
		way := &o.exits[i]
		if way.meaning != (meaning{}) && (anything || len(way.behind) == 0) {
			meanings = append(meanings, way.meaning.bytes.Value())
		}
	}
	if len(meanings) == 0 {
		return endings{}, len(o.exits) == 0
	}
	slices.Sort(meanings)
	var bytes []byte
	for _, one := range meanings {
		bytes = appendTerm(bytes, String(one), nil)
	}
	return unique.Make(string(bytes)), len(meanings) == len(o.exits)
}

// Demands prepares labels. Most of many labels have the same exits as another one, which are compared
// once. The zero Demands is ready. It is not safe for concurrent use.
type Demands struct {
	seen map[[mostSeen]meaning]seenEndings
}

// mostSeen is the most exits of an obligation that are remembered.
const mostSeen = 8

type seenEndings struct {
	ends endings
	all  bool
}

// Of prepares a label.
func (d *Demands) Of(label Label) Demanded {
	if len(label.duties) != 1 {
		return Demanded{}
	}
	demanded := label.duties[0]
	found := d.endingsOf(demanded.obligation)
	return Demanded{demanded.rule(), new(program), demanded, found.ends, found.all}
}

func (d *Demands) endingsOf(o *obligation) (found seenEndings) {
	var key [mostSeen]meaning
	same := len(o.exits) <= mostSeen // meanings are all that the endings depend on
	for i := range o.exits {
		if same = same && o.exits[i].meaning != (meaning{}) && len(o.exits[i].behind) == 0; !same {
			break
		}
		key[i] = o.exits[i].meaning
	}
	if same {
		if seen, ok := d.seen[key]; ok {
			return seen
		}
	}
	found.ends, found.all = endingsOf(o, false)
	if same {
		if d.seen == nil {
			d.seen = make(map[[mostSeen]meaning]seenEndings)
		}
		d.seen[key] = found
	}
	return found
}

// Covers shows that a taint covers a label, if it can do so without the prover: then [AtLeast] allows
// it too, under the same conditions, or under some that time brings as well. They are appended.
// Without a proof, conditions are as before, and nothing is known.
func (e *Evaluator) Covers(taint *Assumed, label *Demanded, conditions []Condition) ([]Condition, bool) {
	if label.program == nil ||
		taint.ends != (endings{}) && taint.ends != label.ends && !e.endsEarlier(taint, label) {
		return conditions, false
	}
	if taint.asker == nil {
		return conditions, taint.nobody
	}
	e.ask(label.rule, taint.asker)
	before, all := len(conditions), label.program.of(label.rule.compiled().clauses).code
	for at := 0; at < len(all); at = int(all[at].end) {
		code := all[at:all[at].end]
		var told clauseProof
		conditions, told = e.show(code, conditions[:before])
		switch told {
		case proofHolds:
			return conditions, true
		case proofUnknown:
			return conditions[:before], false
		}
	}
	return conditions[:before], false
}

// exitPair are the exits of a taint and of a label.
type exitPair struct{ taint, label endings }

// endsEarlier reports whether a label has ended, whenever a taint with other exits ends, whatever the
// facts and the clock are. That is the same for all names, so it is asked of the prover once.
func (e *Evaluator) endsEarlier(taint *Assumed, label *Demanded) bool {
	if !label.closed {
		return false
	}
	pair := exitPair{taint.ends, label.ends}
	earlier, known := e.exits[pair]
	if known {
		return earlier
	}
	earlier = true
	for i := range taint.held.obligation.exits {
		earlier = earlier && e.impliesOne(&taint.held.obligation.exits[i], taint.held, label.duty)
	}
	if e.exits == nil || len(e.exits) >= maxLeads {
		e.exits = make(map[exitPair]bool)
	}
	e.exits[pair] = earlier
	return earlier
}

// impliesOne reports whether one of a label's exits, behind which nothing remains, is open whenever a
// taint's exit is.
func (e *Evaluator) impliesOne(way *exit, held, demanded duty) bool {
	p := newProver(e.state, &Environment{})
	defer p.release()
	for i := range demanded.obligation.exits {
		other := &demanded.obligation.exits[i]
		implied := way.meaning.isSame(other.meaning) ||
			p.implied(way.clause(), held.rule(), other.condition, demanded.rule(), maxSplits)
		if implied || len(p.conditions) > 0 || p.budget.err != nil {
			return implied && len(p.conditions) == 0 && p.budget.err == nil
		}
	}
	return false
}

// clauseProof is what an evaluator can tell of a clause.
type clauseProof uint8

const (
	proofUnknown clauseProof = iota
	proofFails
	proofHolds
)

// show runs a clause up to the first literal that is not plain, and appends what its literals rest on.
func (e *Evaluator) show(code []instruction, conditions []Condition) ([]Condition, clauseProof) {
	for i := range code {
		c := &code[i]
		if !c.plain {
			return conditions, proofUnknown
		}
		holds := false
		switch c.op {
		case opKey:
			holds = e.isPrincipal(c)
		case opSays:
			holds = e.says(c)
		case opEach:
			holds = e.each(c)
		default:
			holds = e.holds(c)
		}
		if !e.step() || e.budget.err != nil {
			return conditions, proofUnknown
		}
		if !holds {
			return conditions, proofFails
		}
		if c.relation != "" {
			conditions = append(conditions, e.condition(c))
		}
	}
	return conditions, proofHolds
}

// isPrincipal decides sKeyIs for a session that has one name.
func (e *Evaluator) isPrincipal(c *instruction) bool {
	if c.identity != (unique.Handle[string]{}) {
		return c.identity == e.asker.principal.handle
	}
	return e.isAsker(&c.tested, &e.asker.principal)
}

// condition returns what a literal about tuples, which holds, rests on.
func (e *Evaluator) condition(c *instruction) Condition {
	found := Condition{Kind: FactPresent, Relation: c.relation}
	if c.op == opEach {
		found.Kind = FactAbsent
	}
	if c.joined != nil {
		to, _ := e.lead(c)
		found.Conduit = to.conduit
	} else {
		found.Conduit = e.value(&c.conduit).text
	}
	if c.single {
		found.Tuple = NewTuple(e.value(&c.tested))
		return found
	}
	height := len(e.scratch)
	pattern, _ := e.pattern(c, c.arguments)
	found.Tuple = NewTuple(pattern.Arguments...)
	e.scratch = e.scratch[:height]
	return found
}

// isPlain reports whether the literal holds in one way at most, and rests on nothing but the
// principal, the region and single tuples: neither on the clock nor on what is written.
func (c *instruction) isPlain() bool {
	switch {
	case c.op == opKey, c.op == opRegion, c.op == opConcat, c.op == opEq, c.op == opType,
		c.op.relational(), c.op.arithmetic():
	case c.op == opSays && c.complete, c.op == opEach && c.single:
	default:
		return false
	}
	return c.tested.kind != operandNow && c.conduit.kind != operandNow &&
		!slices.ContainsFunc(c.arguments, func(o operand) bool { return o.kind == operandNow })
}
