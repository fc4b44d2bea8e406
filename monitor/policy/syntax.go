// SPDX-License-Identifier: BSD-2-Clause

package policy

// File is a parsed policy file.
type File struct {
	Name     string // as given to Parse
	Policies []*Declaration
	trailing []string // comments after the last policy
}

// Declaration is one policy of a file: `policy name(parameters) { clauses }`, or
// the bare clauses of a file without such blocks (Name is then "").
type Declaration struct {
	Name       string
	Parameters []string
	Types      []ValueKind // of the parameters; StringValue unless written, as in `end: time`
	Position   Position

	comments []string
	clauses  []*clauseSyntax
	trailing []string // comments after the last clause
}

// clauseSyntax is `head :- body.` in its source form.
type clauseSyntax struct {
	position Position
	comments []string // before the clause or inside it
	head     ruleName
	body     []*literalSyntax // empty for true
}

// ruleName is one of a policy's three rules.
type ruleName uint8

const (
	readRule ruleName = iota
	updateRule
	declassifyRule
)

var ruleNames = [...]string{"read", "update", "declassify"}

func (r ruleName) String() string { return ruleNames[r] }

func parseRuleName(text string) (ruleName, bool) {
	for i, name := range ruleNames {
		if text == name {
			return ruleName(i), true
		}
	}
	return 0, false
}

type literalForm uint8

const (
	predicateForm literalForm = iota // name(arguments)
	saysForm                         // conduit says name(arguments)
	eachForm                         // each in conduit says name(arguments) { inner }
	untilForm                        // left until inner
	groupForm                        // ( inner )
)

// literalSyntax is one literal in its source form.
type literalSyntax struct {
	position  Position
	form      literalForm
	name      string // predicate or relation
	arguments []termSyntax
	willsay   bool // says and each
	conduit   termSyntax
	offset    *termSyntax // after @
	rangeEnd  *termSyntax // after ..
	left      []*literalSyntax
	inner     []*literalSyntax
}

type termForm uint8

const (
	constantTerm termForm = iota
	variableTerm
	anonymousTerm
	nameTerm      // a parameter, or a word such as descriptor
	thisTerm      // this
	referenceTerm // read, this.read, P.read
)

// termSyntax is one argument in its source form.
type termSyntax struct {
	position Position
	form     termForm
	name     string   // of a variable or word; of a reference's base: "", "this" or a variable
	value    Value    // of a constant
	rule     ruleName // of a reference
}

// reserved words cannot name parameters, since they have a meaning in terms.
var reserved = map[string]bool{
	"policy": true, "read": true, "update": true, "declassify": true, "true": true, "this": true,
	"each": true, "in": true, "says": true, "willsay": true, "until": true,
	"file": true, "tuple": true, "connection": true, "pipe": true, "descriptor": true,
	"string": true, "integer": true, "time": true,
}
