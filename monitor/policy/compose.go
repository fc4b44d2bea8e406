// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"strings"
)

// LibraryPrefix is what names of the standard library's policies begin with where others refer to
// them.
const LibraryPrefix = "library/"

// composer replaces includes by the clauses of the included policies, with the arguments in
// place of the parameters. What it makes is what an author could have written by hand.
type composer struct {
	known  map[string]*Declaration
	twice  map[string][2]string // the files of policies that are declared in two of them
	files  map[*Declaration]string
	broken map[*Declaration]bool // those with mistakes
	done   map[*Declaration]*composition
	bytes  int // how much was put in the place of includes, of [MaxIncluded]
}

// composition is the result for one declaration.
type composition struct {
	clauses  []*clauseSyntax
	mistakes Errors
	active   bool // it is being made: who includes it now includes itself
}

func newComposer(files []*File) *composer {
	c := &composer{known: map[string]*Declaration{}, files: map[*Declaration]string{},
		twice: map[string][2]string{}, broken: map[*Declaration]bool{}, done: map[*Declaration]*composition{}}
	for _, file := range files {
		for _, declaration := range file.Policies {
			c.files[declaration] = file.Name
			if first := c.known[declaration.Name]; first != nil {
				c.twice[declaration.Name] = [2]string{c.files[first], file.Name}
			} else if declaration.Name != "" {
				c.known[declaration.Name] = declaration
			}
		}
	}
	return c
}

// flat returns the declaration's own clauses and those of the policies that it includes.
func (c *composer) flat(d *Declaration) []*clauseSyntax { return c.compose(d, nil).clauses }

// mistakes returns what is wrong with the includes of a declaration.
func (c *composer) mistakes(d *Declaration) Errors { return c.compose(d, nil).mistakes }

// compose is flat; path holds the declarations that are being composed, from the outermost.
func (c *composer) compose(d *Declaration, path []*Declaration) *composition {
	if made := c.done[d]; made != nil {
		return made
	}
	made := &composition{active: true, clauses: d.clauses}
	c.done[d] = made
	path = append(path, d)
	for i := range d.Includes {
		include := &d.Includes[i]
		clauses, mistakes := c.included(d, include, path)
		made.mistakes = append(made.mistakes, mistakes...)
		made.clauses = append(made.clauses[:len(made.clauses):len(made.clauses)], clauses...)
		if slices.ContainsFunc(mistakes, func(one *Error) bool { return one.Limit != nil }) {
			break
		}
		if len(made.clauses) > MaxClauses {
			made.mistakes = append(made.mistakes, newError(c.files[d], include.Range, CodeLimit, "",
				"include fewer policies",
				"with what it includes, the policy has more than %d clauses", MaxClauses).limited(ErrTooManyClauses))
			made.clauses = made.clauses[:MaxClauses]
			break
		}
	}
	made.active = false
	return made
}

// included returns the clauses that one include stands for.
func (c *composer) included(d *Declaration, include *Include, path []*Declaration) ([]*clauseSyntax, Errors) {
	fail := func(hint, format string, arguments ...any) ([]*clauseSyntax, Errors) {
		return nil, Errors{newError(c.files[d], include.Range, CodeInclude, "", hint, format, arguments...)}
	}
	target := c.target(include.Name)
	if target == nil {
		return nil, Errors{newError(c.files[d], include.Range, CodeMissing, "", c.meant(include.Name),
			"there is no policy %s to include", include.Name)}
	}
	if files, ambiguous := c.twice[include.Name]; ambiguous {
		return fail("rename one of them", "policy %s is declared in %s and in %s", include.Name, files[0], files[1])
	}
	if made := c.done[target]; made != nil && made.active {
		return fail("remove one of these includes", "policy %s includes itself: %s", d.Name, circle(path, target))
	}
	arguments, mistakes := c.arguments(d, include, target)
	made := c.compose(target, path)
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	s := &substitution{target.Parameters, arguments, include.Range}
	size := s.size(made.clauses)
	if c.bytes+size > MaxIncluded {
		return nil, Errors{newError(c.files[d], include.Range, CodeLimit, "", "include fewer or shorter policies",
			"with what policy %s includes here, all policies include more than %d bytes", d.Name, MaxIncluded).
			limited(ErrTooMuchIncluded)}
	}
	c.bytes += size
	return s.clauses(made.clauses), nil
}

func (c *composer) target(name string) *Declaration {
	if ofLibrary, is := strings.CutPrefix(name, LibraryPrefix); is {
		return libraryDeclarations()[ofLibrary]
	}
	return c.known[name]
}

// meant returns the hint for a name that does not exist.
func (c *composer) meant(name string) string {
	var names []string
	for known := range c.known {
		names = append(names, known)
	}
	for known := range libraryDeclarations() {
		names = append(names, LibraryPrefix+known)
		if known == name {
			return "did you mean " + LibraryPrefix + known + "?"
		}
	}
	slices.Sort(names)
	if closest := nearest(name, names); closest != "" {
		return "did you mean " + closest + "?"
	}
	return "declare it in the same files, or include one of the standard library, such as library/friends(owner)"
}

// circle says how the last policy of a path includes itself by including target, which is on the path.
func circle(path []*Declaration, target *Declaration) string {
	names := []string{path[len(path)-1].Name}
	for _, d := range path[slices.Index(path, target):] {
		names = append(names, d.Name)
	}
	return strings.Join(names, " includes ")
}

// arguments checks the arguments of an include against the parameters of its target.
func (c *composer) arguments(d *Declaration, include *Include, target *Declaration) ([]termSyntax, Errors) {
	var mistakes Errors
	fail := func(at Range, hint, format string, arguments ...any) {
		mistakes = append(mistakes, newError(c.files[d], at, CodeInclude, "", hint, format, arguments...))
	}
	if len(include.arguments) != len(target.Parameters) {
		fail(include.Range, "give it "+include.Name+target.signature(),
			"%s takes %s, and gets %d arguments", include.Name, target.signature(),
			len(include.arguments))
		return nil, mistakes
	}
	for i, argument := range include.arguments {
		kind, ok := d.kindOf(argument)
		switch {
		case !ok && argument.form == nameTerm:
			hint := "a text stands in double quotes"
			if closest := nearest(argument.name, d.Parameters); closest != "" {
				hint = "did you mean " + closest + "?"
			}
			fail(argument.rangeOf(), hint, "policy %s has no parameter %s", d.Name, argument.name)
		case !ok:
			fail(argument.rangeOf(), "give a parameter of this policy, a text, a number or a time",
				"%s cannot be the argument of an include", argument)
		case kind != target.Types[i]:
			fail(argument.rangeOf(), "give it a value of this type",
				"parameter %s of %s is %s, and %s is %s", target.Parameters[i], include.Name,
				article(target.Types[i]), argument, article(kind))
		}
	}
	return include.arguments, mistakes
}

// kindOf returns the type of a parameter of the policy, or of a constant.
func (d *Declaration) kindOf(term termSyntax) (ValueKind, bool) {
	switch term.form {
	case constantTerm:
		return term.value.kind, true
	case nameTerm:
		if i := slices.Index(d.Parameters, term.name); i >= 0 {
			return d.Types[i], true
		}
	}
	return Wildcard, false
}

// signature writes the parameters: (owner, end: time).
func (d *Declaration) signature() string {
	parameters := slices.Clone(d.Parameters)
	for i, kind := range d.Types {
		if kind != StringValue {
			parameters[i] += ": " + typeNames[kind]
		}
	}
	return "(" + strings.Join(parameters, ", ") + ")"
}

// blame adds a mistake to the policies that include one with mistakes, so that none is taken for
// sound.
func (c *composer) blame(all []compiled) {
	for changed := true; changed; {
		changed = false
		for i, one := range all {
			if c.broken[one.declaration] {
				continue
			}
			for _, include := range one.declaration.Includes {
				if target := c.target(include.Name); target != nil && c.broken[target] {
					all[i].mistakes = append(all[i].mistakes, newError(c.files[one.declaration], include.Range,
						CodeInclude, "",
						"correct policy "+include.Name+" first", "policy %s, which it includes, has errors", include.Name))
					c.broken[one.declaration], changed = true, true
					break
				}
			}
		}
	}
}

// flattened returns the declaration with these clauses in place of its own and its includes.
func (d *Declaration) flattened(clauses []*clauseSyntax) *Declaration {
	flat := *d
	flat.Includes, flat.clauses = nil, clauses
	return &flat
}

// diamonds reports policies whose clauses a declaration gets twice, by different ways.
func (c *composer) diamonds(d *Declaration) []Diagnostic {
	var found []Diagnostic
	by := map[string]string{} // the include that brings a policy with its arguments
	for i := range d.Includes {
		include := &d.Includes[i]
		for _, brought := range c.brought(*include, nil) {
			first, twice := by[brought]
			by[brought] = include.String()
			if !twice {
				continue
			}
			one := newError(c.files[d], include.Range, CodeDiamond, "", "include it once",
				"%s is included twice: by %s and by %s", brought, first, include).Diagnostic()
			one.Severity = SeverityWarning
			found = append(found, one)
		}
	}
	return found
}

// brought lists the policies that an include brings, with their arguments, each once, after those in
// list. It stops at a number that only hostile policies reach.
func (c *composer) brought(include Include, list []string) []string {
	written := include.String()
	target := c.target(include.Name)
	if slices.Contains(list, written) || len(list) >= MaxClauses || target == nil {
		return list
	}
	list = append(list, written)
	s := &substitution{target.Parameters, include.arguments, include.Range}
	for _, inner := range target.Includes {
		replaced := Include{Name: inner.Name, arguments: slices.Clone(inner.arguments)}
		for i, argument := range inner.arguments {
			replaced.arguments[i] = s.term(argument, nil)
		}
		list = c.brought(replaced, list)
	}
	return list
}

// Composed reports whether the policy includes others.
func (t *Template) Composed() bool { return t.flat != nil }

// Text returns the policy's source without includes: their clauses stand in their place. It
// compiles to the same policy.
func (t *Template) Text() string {
	d := t.declaration
	if t.flat != nil {
		d = t.flat
	}
	return string((&File{Policies: []*Declaration{d}}).Format())
}
