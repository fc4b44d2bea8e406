// SPDX-License-Identifier: BSD-2-Clause

package policy

// File is a parsed policy file.
type File struct {
	Name     string // as given to Parse
	Policies []*Declaration
	// Accepted says that the text was accepted before, perhaps by an earlier version: see
	// CompileAccepted.
	Accepted bool
	trailing []string // comments after the last policy
}

// Declaration is one policy of a file: `policy name(parameters) { clauses }`, or
// the bare clauses of a file without such blocks (Name is then "").
type Declaration struct {
	Name       string
	Parameters []string
	Types      []ValueKind // of the parameters; StringValue unless written, as in `end: time`
	Position   Position    // of the word policy, or of the first clause
	Includes   []Include   // the policies whose clauses are part of it, too
	named      Range       // its name
	parameters []Range     // the names of its parameters
	comments   []string
	clauses    []*clauseSyntax
	trailing   []string // comments after the last clause
}

// Include is one policy behind `includes`, with arguments for its parameters.
type Include struct {
	Name      string // of a policy of the same files or manifests, or library/friends
	Range     Range  // of the name
	arguments []termSyntax
}

// clauseSyntax is `head :- body.` in its source form.
type clauseSyntax struct {
	position Position
	end      Position // behind its full stop
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
	end       Position
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
	anonymousTerm // name is "_" or "_Reader"
	nameTerm      // a parameter, or a word such as descriptor
	thisTerm      // this
	referenceTerm // read, this.read, P.read
)

// termSyntax is one argument in its source form.
type termSyntax struct {
	position Position
	end      Position
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

func (l *literalSyntax) rangeOf() Range { return Range{l.position, l.end} }

func (t termSyntax) rangeOf() Range { return Range{t.position, t.end} }

func (c *clauseSyntax) rangeOf() Range { return Range{c.position, c.end} }

// named is where a predicate's name stands.
func (l *literalSyntax) named() Range {
	to := l.position
	to.Column += int32(len(l.name)) //nolint:gosec // a text is limited far below 2^31 bytes
	return Range{l.position, to}
}
