// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"slices"
)

// Lint compiles the policies of files, which may include each other, and returns everything that is wrong
// with them or probably not meant, by file and place. Errors are diagnostics, too.
func Lint(around Surroundings, files ...*File) []Diagnostic {
	var all []Diagnostic
	for _, one := range Check(around, files...) {
		all = append(all, one.Diagnostics...)
	}
	return inOrder(all)
}

// Checked is what Check found about one policy.
type Checked struct {
	File        string
	Name        string
	Template    *Template // nil if a diagnostic is an error
	Diagnostics []Diagnostic
}

// Check compiles the policies of files, which may include each other, and examines them among their
// surroundings, those of accepted files not. It returns one result for each policy, in order.
func Check(around Surroundings, files ...*File) []Checked {
	var all []Checked
	composer := newComposer(files)
	for _, one := range compileAll(files) {
		checked := Checked{File: one.file.Name, Name: one.declaration.Name, Diagnostics: one.mistakes.Diagnostics()}
		if !slices.ContainsFunc(one.mistakes, hides) {
			checked.Diagnostics = append(checked.Diagnostics, one.template.unsupplied()...)
			if !one.file.Accepted {
				checked.Diagnostics = append(checked.Diagnostics, one.template.diagnose(around)...)
				checked.Diagnostics = append(checked.Diagnostics, composer.diamonds(one.declaration)...)
			}
		}
		refuses := func(d Diagnostic) bool { return d.Severity == SeverityError }
		if !slices.ContainsFunc(checked.Diagnostics, refuses) {
			checked.Template = one.template
		}
		for i := range checked.Diagnostics {
			checked.Diagnostics[i].Policy = checked.Name
		}
		checked.Diagnostics = inOrder(checked.Diagnostics)
		all = append(all, checked)
	}
	return all
}

// hides reports whether a mistake keeps the compiler from understanding the policy's own clauses.
func hides(mistake *Error) bool {
	return !slices.Contains([]Code{CodeUsedOnce, CodeInclude, CodeMissing}, mistake.Code)
}

// unsupplied reports the conditions that no monitor can enforce, however the policy is used.
func (t *Template) unsupplied() []Diagnostic {
	var mistakes Errors
	errors.As(t.CheckSupplied(), &mistakes)
	return mistakes.Diagnostics()
}

// diagnose returns what is wrong with a compiled policy among these surroundings, and what is probably
// not meant. Clauses of policies that it includes are not examined.
func (t *Template) diagnose(around Surroundings) []Diagnostic {
	l := &linter{template: t, around: around}
	l.parameters()
	own := map[ruleName]int{}
	for _, clause := range t.declaration.clauses {
		own[clause.head]++
	}
	l.rule(readRule, t.read[:own[readRule]])
	l.rule(updateRule, t.update[:own[updateRule]])
	l.declassify(t.declaration.clauses)
	l.kept()
	if len(t.declaration.Includes) == 0 || own[declassifyRule] > 0 {
		l.obligations(t.obligations)
	}
	return l.found
}

// linter examines one template. It reports what the compiler accepts.
type linter struct {
	template *Template
	around   Surroundings
	found    []Diagnostic
}

func (l *linter) report(severity Severity, code Code, at Range, remedy, format string, arguments ...any) {
	if at.From == (Position{}) {
		return
	}
	d := newError(l.template.file, at, code, "", remedy, format, arguments...).Diagnostic()
	d.Severity = severity
	l.found = append(l.found, d)
}

// parameters reports those that nothing uses: the policy then treats all values alike.
func (l *linter) parameters() {
	used := map[string]bool{}
	visit := func(term termSyntax) {
		if term.form == nameTerm {
			used[term.name] = true
		}
	}
	d := l.template.declaration
	for _, clause := range d.clauses {
		eachTerm(clause.body, visit)
	}
	for _, include := range d.Includes {
		for _, argument := range include.arguments {
			visit(argument)
		}
	}
	for i, name := range d.Parameters {
		if !used[name] {
			l.report(SeverityWarning, CodeUnusedParameter, d.parameters[i], "use it in a clause, or remove it",
				"parameter %s is not used", name)
		}
	}
}

// eachTerm calls visit with every term of a body.
func eachTerm(body []*literalSyntax, visit func(termSyntax)) {
	for _, literal := range body {
		visit(literal.conduit)
		for _, offset := range []*termSyntax{literal.offset, literal.rangeEnd} {
			if offset != nil {
				visit(*offset)
			}
		}
		for _, argument := range literal.arguments {
			visit(argument)
		}
		eachTerm(literal.left, visit)
		eachTerm(literal.inner, visit)
	}
}

// rule examines the clauses of a read or update rule.
func (l *linter) rule(name ruleName, clauses []lowered) {
	seen := map[string]Position{}
	for _, one := range clauses {
		sound := l.clause(one)
		arranged, satisfiable := one.bind(l.values())
		if !satisfiable {
			if sound {
				l.never(one)
			}
			continue
		}
		written := string(arranged.appendTo(nil))
		if first, twice := seen[written]; twice {
			l.report(SeverityWarning, CodeDuplicate, one.rangeOf(), "remove it, or correct what should be different",
				"the clause says the same as the one on line %d", first.Line)
			continue
		}
		seen[written] = one.position
		if sound && l.contradicts(one.body) {
			l.never(one)
		}
	}
}

// values stand for the parameters, whatever they are bound to.
func (l *linter) values() []Value {
	values := make([]Value, len(l.template.parameters))
	for i := range values {
		values[i] = Value{kind: kindParameter, number: int64(i)}
	}
	return values
}

func (l *linter) never(one lowered) {
	l.report(SeverityWarning, CodeNeverHolds, one.rangeOf(), "remove it, or correct the literals that contradict each other",
		"the clause can never hold")
}

// declassify reports clauses that are written twice.
func (l *linter) declassify(clauses []*clauseSyntax) {
	seen := map[string]Position{}
	for _, clause := range clauses {
		if clause.head != declassifyRule {
			continue
		}
		written := formatBody(clause.body, "")
		if first, twice := seen[written]; twice {
			l.report(SeverityWarning, CodeDuplicate, clause.rangeOf(), "remove it, or correct what should be different",
				"the clause says the same as the one on line %d", first.Line)
			continue
		}
		seen[written] = clause.position
	}
}

// kept reports a read rule that no declassify clause keeps. What may be read is decided by the obligations alone.
func (l *linter) kept() {
	keeps := func(o loweredObligation) bool { return o.rule == readRule }
	restricts := func(one lowered) bool { return len(one.body) > 0 }
	if slices.ContainsFunc(l.template.obligations, keeps) || !slices.ContainsFunc(l.template.read, restricts) {
		return
	}
	for _, clause := range l.template.declaration.clauses {
		if clause.head == declassifyRule {
			l.report(SeverityWarning, CodeNotKept, clause.rangeOf(),
				"write isAsRestrictive(read, this.read), perhaps with until, or say that anybody may read: read :- true",
				"the read rule restricts nobody: the declassify rule does not keep it, so tasks may read the data for others, too")
			return
		}
	}
}

func (l *linter) obligations(obligations []loweredObligation) {
	for _, o := range obligations {
		for _, exit := range o.exits {
			sound := l.clause(exit.condition)
			_, satisfiable := exit.condition.bind(l.values())
			if sound && (!satisfiable || l.contradicts(exit.condition.body)) {
				l.report(SeverityWarning, CodeNeverHolds, exit.condition.rangeOf(),
					"remove it, or correct the literals that contradict each other", "the exit can never be taken")
			}
			l.obligations(exit.behind)
		}
	}
}

// clause examines one conjunction. It reports whether types fit together.
func (l *linter) clause(one lowered) bool {
	l.literals(one.body, one.body)
	types := &typing{linter: l, names: one.names, known: map[int64]kinds{}}
	return types.body(one.body)
}

// literals examines each literal by itself. around holds those that may bind its conduit.
func (l *linter) literals(body, around []literal) {
	for i := range body {
		item := &body[i]
		switch item.op {
		case opKey:
			l.principal(item)
		case opSays, opEach:
			l.relation(item)
		}
		if item.op == opEach {
			l.conduit(item, around)
		}
		if item.content != nil {
			l.literals(item.content.condition, append(slices.Clone(around), item.content.condition...))
		}
	}
}

// principal reports a task's name that stands for a principal.
func (l *linter) principal(item *literal) {
	name := item.arguments[0].Text()
	if slices.Contains(l.around.Tasks, name) && !slices.Contains(l.around.Principals, name) {
		l.report(SeverityWarning, CodeTaskName, item.rangeOf(), fmt.Sprintf("write sKeyIs(%q)", "task/"+name),
			"%q is a task; a task without a user is the principal %q", name, "task/"+name)
	}
}

// relation compares a literal about tuples with the declaration of its relation.
func (l *linter) relation(item *literal) {
	name := item.content.relation
	declared, known := l.around.Relations[name]
	if !known {
		l.undeclared(item, name)
		return
	}
	if len(item.arguments) != len(declared.Arguments) {
		l.report(SeverityError, CodeRelation, item.rangeOf(), "give it as many arguments as facts have",
			"relation %s has %s here; %s declares %s", name, counted(len(item.arguments), "argument"), declared.Source,
			declared)
		return
	}
	for i, argument := range item.arguments {
		kind := argument.kind
		switch kind {
		case kindParameter:
			kind = l.template.types[argument.number]
		case kindThis:
			kind = StringValue
		case StringValue, IntegerValue, TimeValue:
		default:
			continue
		}
		if want := declared.Arguments[i].Type; want != Wildcard && want != kind {
			l.report(SeverityError, CodeRelation, item.rangeOf(), "compare it with a value of the declared type",
				"argument %d of relation %s is %s here; %s declares %s", i+1, name, article(kind), declared.Source, declared)
		}
	}
}

func (l *linter) undeclared(item *literal, name string) {
	if !l.around.Complete {
		return
	}
	remedy := "declare it in spec.relations of a FactSource"
	names := make([]string, 0, len(l.around.Relations))
	for declared := range l.around.Relations {
		names = append(names, declared)
	}
	slices.Sort(names)
	if closest := nearest(name, names); closest != "" {
		remedy = "did you mean " + closest + "?"
	}
	l.report(SeverityWarning, CodeUndeclared, item.rangeOf(), remedy, "no source of facts declares relation %s", name)
}

// conduit reports an each over a conduit for which no source speaks: it holds, as for any empty
// list, and admits everybody.
func (l *linter) conduit(item *literal, around []literal) {
	if l.around.Speaks == nil {
		return
	}
	name, whole := item.content.conduit.Text(), true
	if item.content.conduit.kind == kindVariable {
		name, whole = prefixOf(item.content.conduit, around)
	}
	if name == "" || l.around.Speaks(name, whole) {
		return
	}
	if !whole {
		name += "…"
	}
	l.report(SeverityWarning, CodeUnspoken, item.rangeOf(), "correct the conduit's name, or declare it in a FactSource",
		"no source of facts speaks for conduit %q, so the list is empty and each holds for everybody", name)
}

// prefixOf returns what the value of a variable begins with by a concat.
func prefixOf(variable Value, body []literal) (prefix string, whole bool) {
	for i := range body {
		if l := &body[i]; l.op == opConcat && l.arguments[0] == variable {
			return l.arguments[1].Text(), false
		}
	}
	return "", false
}
