// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"strings"
)

// Surroundings are what is known of the facts and tasks among which policies will be used. The
// zero value means that nothing is known: then nothing is said about them.
type Surroundings struct {
	// Relations are those that sources of facts declare, by name.
	Relations map[string]Relation
	// Complete says that facts have no other relations.
	Complete bool
	// Speaks reports whether a source of facts may speak for a conduit. If whole is false, it is
	// asked for a conduit whose name begins like this. Nil: any conduit may speak.
	Speaks func(conduit string, whole bool) bool
	// Tasks and Principals are names.
	Tasks, Principals []string
}

// Relation is the declared form of facts: friend(name: string).
type Relation struct {
	Name      string
	Source    string // who declares it, for people: "FactSource friends"
	Arguments []Argument
}

// Argument is one argument of a relation.
type Argument struct {
	Name string
	Type ValueKind // Wildcard: of any type
}

// ParseType reads a type's name as declarations of relations write it: string, integer, time or any.
func ParseType(name string) (ValueKind, bool) {
	if name == anyType {
		return Wildcard, true
	}
	for kind, known := range typeNames {
		if known == name && known != "" {
			return ValueKind(kind), true
		}
	}
	return Wildcard, false
}

const anyType = "any"

// String writes the relation in the form of declarations: blocked(conduit: string, since: time).
func (r Relation) String() string {
	arguments := make([]string, len(r.Arguments))
	for i, argument := range r.Arguments {
		arguments[i] = typeName(argument.Type)
		if argument.Name != "" {
			arguments[i] = argument.Name + ": " + arguments[i]
		}
	}
	return r.Name + "(" + strings.Join(arguments, ", ") + ")"
}

func typeName(kind ValueKind) string {
	if kind == Wildcard {
		return anyType
	}
	return typeNames[kind]
}

// Check reports how a tuple contradicts the declaration, "" if it does not.
func (r Relation) Check(tuple Tuple) string {
	values := tuple.Values()
	if len(values) != len(r.Arguments) {
		return fmt.Sprintf("the tuple %s has %s; %s declares %s", tuple, counted(len(values), "value"), r.Source, r)
	}
	for i, value := range values {
		if want := r.Arguments[i].Type; want != Wildcard && value.kind != want {
			return fmt.Sprintf("%s in the tuple %s is %s; %s declares %s", value, tuple, article(value.kind), r.Source, r)
		}
	}
	return ""
}

func article(kind ValueKind) string {
	if kind == IntegerValue {
		return "an " + typeNames[kind]
	}
	return "a " + typeNames[kind]
}

func counted(number int, thing string) string {
	if number == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", number, thing)
}
