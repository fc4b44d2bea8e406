// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/internal/content"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// Relation declares facts of a source: friend(name: string), said by conduits friends/{user}.
type Relation struct {
	Name string `json:"name" rule:"required,max=64"`
	// Arguments are the values of each tuple, in order.
	Arguments []RelationArgument `json:"arguments" rule:"required,filled,max=16"`
	// Conduits are the conduits that say such facts: "friends/{user}". Any may if there are none.
	Conduits []string `json:"conduits,omitempty" rule:"max=64,item=1024"`
}

// RelationArgument is one value of a relation's tuples.
type RelationArgument struct {
	Name string `json:"name,omitempty" rule:"max=64"`
	Type string `json:"type,omitempty" rule:"default=string,enum=string|integer|time|any"`
}

// compiled returns the relation in the form in which policies and facts are compared with it.
func (r Relation) compiled(source string) policy.Relation {
	relation := policy.Relation{Name: r.Name, Source: source}
	for _, argument := range r.Arguments {
		kind, _ := policy.ParseType(argument.Type)
		relation.Arguments = append(relation.Arguments, policy.Argument{Name: argument.Name, Type: kind})
	}
	return relation
}

// Declared are the relations that a source declares. It is immutable.
type Declared struct {
	relations map[string]policy.Relation
	conduits  map[string][]pattern.Pattern // by relation; any conduit if there are none
}

// Declared returns what a source declares. Patterns that are wrong match nothing.
func (s FactSourceSpec) Declared() Declared {
	d := Declared{map[string]policy.Relation{}, map[string][]pattern.Pattern{}}
	for _, relation := range s.Relations {
		d.relations[relation.Name] = relation.compiled("spec.relations")
		for _, conduit := range relation.Conduits {
			parsed, err := pattern.Parse(conduit)
			if err == nil {
				d.conduits[relation.Name] = append(d.conduits[relation.Name], parsed)
			}
		}
	}
	return d
}

// Check reports how a fact contradicts the declarations: nil if the source declares none.
func (d Declared) Check(conduit, says string, tuple policy.Tuple) error {
	if len(d.relations) == 0 {
		return nil
	}
	if err := d.speaks(conduit, says); err != nil {
		return err
	}
	if problem := d.relations[says].Check(tuple); problem != "" {
		return fmt.Errorf("%q says %s: %s", conduit, says, problem)
	}
	return nil
}

// speaks checks relation and conduit of facts.
func (d Declared) speaks(conduit, says string) error {
	if _, known := d.relations[says]; !known && len(d.relations) > 0 {
		return fmt.Errorf("%q says %s: spec.relations does not declare relation %s; add it there, or correct the fact",
			conduit, says, says)
	}
	patterns := d.conduits[says]
	if len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p pattern.Pattern) bool {
		_, matches := p.Match(conduit)
		return matches
	}) {
		return fmt.Errorf("%q says %s: spec.relations declares other conduits for relation %s; add this one to their "+
			"patterns, or correct the fact", conduit, says, says)
	}
	return nil
}

// CheckFact reports how a fact that comes from no source contradicts what the sources declare about its
// relation.
func (b *Bundle) CheckFact(conduit, says string, tuple policy.Tuple) error {
	var elsewhere error
	for _, source := range b.FactSources() {
		for _, relation := range source.Spec.Relations {
			if relation.Name != says {
				continue
			}
			name := "FactSource " + source.Metadata.Name
			if problem := relation.compiled(name).Check(tuple); problem != "" {
				return fmt.Errorf("%q says %s: %s", conduit, says, problem)
			}
			if source.Spec.Declared().speaks(conduit, says) == nil {
				return nil // sources that declare it have the same types
			}
			elsewhere = fmt.Errorf("%q says %s: %s declares other conduits for relation %s; add this one to their "+
				"patterns, or correct the fact", conduit, says, name, says)
		}
	}
	return elsewhere
}

// Undeclared reports that no source declares the relation of a fact, though all of them declare theirs: then
// policies are checked as if there were no others.
func (b *Bundle) Undeclared(says string) bool {
	_, known := b.around.Relations[says]
	return b.around.Complete && !known
}

// relations checks the declarations of a source, and its inline facts against them.
func (c *checker) relations(o *object, spec FactSourceSpec) {
	seen := map[string]bool{}
	for i, relation := range spec.Relations {
		at := fmt.Sprintf("spec.relations[%d]", i)
		if seen[relation.Name] {
			c.fail(o, at+".name", "keep one of them", "relation %s is declared twice", relation.Name)
		}
		seen[relation.Name] = true
		for j, conduit := range relation.Conduits {
			if _, err := pattern.Parse(conduit); err != nil {
				c.fail(o, fmt.Sprintf("%s.conduits[%d]", at, j), "", "%v", err)
			}
		}
	}
	declared := spec.Declared()
	for i, statement := range spec.Inline {
		at := fmt.Sprintf("spec.inline[%d]", i)
		if err := declared.speaks(statement.Conduit, statement.Says); err != nil {
			c.fail(o, at, "", "%v", err)
			continue
		}
		for j, tuple := range statement.Tuples {
			if err := declared.Check(statement.Conduit, statement.Says, tuple); err != nil {
				c.fail(o, fmt.Sprintf("%s.tuples[%d]", at, j), "correct the fact, or the declaration", "%v", err)
			}
		}
	}
}

// surroundings returns what the set says about facts and tasks. Sources that declare one relation in
// different ways are reported.
func (c *checker) surroundings(objects []*object) policy.Surroundings {
	around := policy.Surroundings{Relations: map[string]policy.Relation{}}
	speakers := &speakers{names: map[string]bool{}}
	sources := 0
	around.Complete = true
	for _, o := range objects {
		switch value := o.value.(type) {
		case *FactSource:
			sources++
			around.Complete = around.Complete && len(value.Spec.Relations) > 0 && !o.broken
			speakers.open = speakers.open || o.broken
			speakers.source(value.Spec)
			c.declare(o, value.Spec, around.Relations)
		case *Task:
			around.Tasks = append(around.Tasks, o.name)
		case *Principal:
			around.Principals = append(around.Principals, o.name)
			speakers.names[Attributes+o.name] = true
		case *Pipeline:
			speakers.pipeline(value.Spec)
			// What is written to a typed conduit may become facts, which no source declares.
			around.Complete = around.Complete &&
				!slices.ContainsFunc(value.Spec.Conduits, func(c Conduit) bool { return c.Type != "" })
		}
	}
	around.Complete = around.Complete && sources > 0
	if sources > 0 && !speakers.open {
		around.Speaks = speakers.speak
	}
	for _, relation := range []policy.Relation{
		{Name: "attribute", Source: "Principal", Arguments: []policy.Argument{
			{Name: "name", Type: policy.StringValue}, {Name: "value", Type: policy.StringValue}}},
		{Name: "access", Source: "a conduit of type " + content.AccessLog, Arguments: []policy.Argument{
			{Name: "name", Type: policy.StringValue}, {Name: "conduit", Type: policy.StringValue},
			{Name: "time", Type: policy.TimeValue}}},
	} {
		if _, own := around.Relations[relation.Name]; around.Complete && !own {
			around.Relations[relation.Name] = relation
		}
	}
	return around
}

// declare adds the relations of a source to those of the others.
func (c *checker) declare(o *object, spec FactSourceSpec, known map[string]policy.Relation) {
	for i, relation := range spec.Relations {
		own := relation.compiled("FactSource " + o.name)
		first, twice := known[relation.Name]
		if !twice {
			known[relation.Name] = own
			continue
		}
		sameType := func(a, b policy.Argument) bool { return a.Type == b.Type }
		if first.Source != own.Source && !slices.EqualFunc(first.Arguments, own.Arguments, sameType) {
			c.fail(o, fmt.Sprintf("spec.relations[%d]", i), "declare it alike in both, or rename one",
				"%s is declared here, and %s by %s", own, first, first.Source)
		}
	}
}

// speakers are the conduits that may say facts.
type speakers struct {
	names    map[string]bool
	patterns []pattern.Pattern
	open     bool // a source does not say which conduits it speaks for
}

func (s *speakers) source(spec FactSourceSpec) {
	for _, statement := range spec.Inline {
		s.names[statement.Conduit] = true
	}
	if spec.Redis != nil {
		for _, keys := range spec.Redis.Keys {
			s.pattern(keys.Conduit)
		}
	}
	everyPlaced := len(spec.Relations) > 0
	for _, relation := range spec.Relations {
		everyPlaced = everyPlaced && len(relation.Conduits) > 0
		for _, conduit := range relation.Conduits {
			s.pattern(conduit)
		}
	}
	placed := everyPlaced || spec.Inline != nil || spec.Redis != nil && len(spec.Redis.Keys) > 0
	s.open = s.open || !placed
}

// pipeline adds the conduits of a pipeline: what tasks write there may become facts.
func (s *speakers) pipeline(spec PipelineSpec) {
	for _, conduit := range spec.Conduits {
		for _, path := range conduit.Paths {
			s.pattern(path.Path)
		}
	}
}

func (s *speakers) pattern(text string) {
	if parsed, err := pattern.Parse(text); err == nil {
		s.patterns = append(s.patterns, parsed)
	}
}

// speak reports whether a conduit may say facts; without whole, whether one may whose name begins so.
func (s *speakers) speak(conduit string, whole bool) bool {
	if whole {
		return s.names[conduit] || slices.ContainsFunc(s.patterns, func(p pattern.Pattern) bool {
			_, matches := p.Match(conduit)
			return matches
		})
	}
	for name := range s.names {
		if strings.HasPrefix(name, conduit) {
			return true
		}
	}
	return slices.ContainsFunc(s.patterns, func(p pattern.Pattern) bool {
		fixed, _, _ := strings.Cut(p.String(), "{")
		fixed, _, _ = strings.Cut(fixed, "*")
		return strings.HasPrefix(fixed, conduit) || strings.HasPrefix(conduit, fixed)
	})
}
