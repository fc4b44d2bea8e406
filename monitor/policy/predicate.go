// SPDX-License-Identifier: BSD-2-Clause

package policy

// operation is a predicate; the prover dispatches on it.
type operation uint8

const (
	opInvalid operation = iota
	opAdd
	opSub
	opMul
	opDiv
	opRem
	opConcat
	opType
	opEq
	opNeq
	opLt
	opLe
	opGt
	opGe
	opKey
	opIP
	opPrefix
	opRegion
	opTime
	opName
	opID
	opExists
	opKind
	opLength
	opNewLength
	opInternal
	opHasPolicy
	opContentType
	opAtLeast
	opSays
	opWillsay
	opEach
	opEachWillsay
	operations // their number
)

// signature is the compiler's information about a predicate.
type signature struct {
	name  string
	arity int
	// modes are sets of arguments (bit i for argument i) that suffice, if bound, to
	// compute the others. Without modes, all arguments have to be bound.
	modes []uint8
	// functional predicates hold for exactly one value in a given session, target and
	// state, so two of them in a clause have the same value.
	functional bool
	// words are the values that argument word (if words is set) may have without quotes.
	words []string
	word  int
}

var signatures = [operations]signature{
	opAdd:         {name: "add", arity: 3, modes: []uint8{0b110, 0b101, 0b011}},
	opSub:         {name: "sub", arity: 3, modes: []uint8{0b110, 0b101, 0b011}},
	opMul:         {name: "mul", arity: 3, modes: []uint8{0b110}},
	opDiv:         {name: "div", arity: 3, modes: []uint8{0b110}},
	opRem:         {name: "rem", arity: 3, modes: []uint8{0b110}},
	opConcat:      {name: "concat", arity: 3, modes: []uint8{0b110, 0b101, 0b011}},
	opType:        {name: "vType", arity: 2, modes: []uint8{0b01}, words: typeNames[StringValue:], word: 1},
	opEq:          {name: "eq", arity: 2, modes: []uint8{0b10, 0b01}},
	opNeq:         {name: "neq", arity: 2},
	opLt:          {name: "lt", arity: 2},
	opLe:          {name: "le", arity: 2},
	opGt:          {name: "gt", arity: 2},
	opGe:          {name: "ge", arity: 2},
	opKey:         {name: "sKeyIs", arity: 1, modes: []uint8{0}},
	opIP:          {name: "sIpIs", arity: 1, modes: []uint8{0}, functional: true},
	opPrefix:      {name: "ipPrefix", arity: 2},
	opRegion:      {name: "sRegionIs", arity: 1, modes: []uint8{0}, functional: true},
	opTime:        {name: "timeIs", arity: 1, modes: []uint8{0}, functional: true},
	opName:        {name: "cNameIs", arity: 1, modes: []uint8{0}, functional: true},
	opID:          {name: "cIdIs", arity: 1, modes: []uint8{0}, functional: true},
	opExists:      {name: "cIdExists", arity: 1},
	opKind:        {name: "cKindIs", arity: 1, modes: []uint8{0}, functional: true, words: conduitKinds[1:]},
	opLength:      {name: "cCurrLenIs", arity: 1, modes: []uint8{0}, functional: true},
	opNewLength:   {name: "cNewLenIs", arity: 1, modes: []uint8{0}, functional: true},
	opInternal:    {name: "cIsInternal", arity: 0},
	opHasPolicy:   {name: "hasPol", arity: 2, modes: []uint8{0b01}},
	opContentType: {name: "cTypeIs", arity: 1, modes: []uint8{0}, functional: true},
	opAtLeast:     {name: "isAsRestrictive", arity: 2},
	opSays:        {name: "says"},
	opWillsay:     {name: "willsay"},
	opEach:        {name: "each … says"},
	opEachWillsay: {name: "each … willsay"},
}

// predicates maps names to operations; predicateNames lists them for hints.
var predicates, predicateNames = func() (map[string]operation, []string) {
	byName := make(map[string]operation)
	var names []string
	for op := opInvalid + 1; op < opSays; op++ {
		byName[signatures[op].name] = op
		names = append(names, signatures[op].name)
	}
	return byName, names
}()

func (op operation) relational() bool { return op >= opEq && op <= opGe }

func (op operation) arithmetic() bool { return op >= opAdd && op <= opRem }

// speaksOfFlow reports whether the predicate is about the session or the target conduit,
// which are open in a comparison.
func (op operation) speaksOfFlow() bool {
	switch op {
	case opKey, opIP, opRegion, opName, opID, opKind, opLength, opNewLength, opInternal, opContentType:
		return true
	}
	return false
}
