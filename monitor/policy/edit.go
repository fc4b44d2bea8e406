// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// Edit is a change of a policy's syntax tree. Positions in the result are those of the clauses'
// own texts.
type Edit func(*Declaration) (changed bool)

// Edited returns a copy of a file that holds one policy, with the edits made one after the
// other. ok is false if one of them changes nothing.
func (f *File) Edited(edits ...Edit) (edited *File, ok bool) {
	if len(f.Policies) != 1 {
		return nil, false
	}
	declaration := *f.Policies[0]
	declaration.clauses = slices.Clone(declaration.clauses)
	for _, edit := range edits {
		if !edit(&declaration) {
			return nil, false
		}
	}
	return &File{Name: f.Name, Policies: []*Declaration{&declaration}, trailing: f.trailing}, true
}

// Adding returns the edit that adds clauses. A declassify clause is one more exit, if it restricts to the same
// rule as those that are there; otherwise the policy does not compile any more.
func Adding(text string) (Edit, error) {
	added, err := Parse("the clauses to add", []byte(text))
	if err != nil {
		return nil, err
	}
	return func(d *Declaration) bool {
		d.clauses = append(d.clauses, added.Policies[0].clauses...)
		return true
	}, nil
}

// Narrowing returns the edit that adds the conditions of a clause to every read clause.
func Narrowing(conditions string) (Edit, error) {
	narrower, err := Parse("the conditions to add", []byte("read :- "+conditions+"."))
	if err != nil {
		return nil, err
	}
	return func(d *Declaration) (changed bool) {
		for i, clause := range d.clauses {
			if clause.head == readRule {
				narrowed := *clause
				narrowed.body = slices.Concat(clause.body, narrower.Policies[0].clauses[0].body)
				d.clauses[i], changed = &narrowed, true
			}
		}
		return changed
	}, nil
}

// Closing is the edit that removes every read clause, so that nobody may read.
func Closing(d *Declaration) (changed bool) {
	before := len(d.clauses)
	d.clauses = slices.DeleteFunc(d.clauses, func(c *clauseSyntax) bool { return c.head == readRule })
	return len(d.clauses) < before
}
