// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/policy"
)

// checker finds errors between the objects of a set. Every rule that concerns more than
// one field is a method of it, in this file, conduits.go, factsources.go, paths.go,
// policies.go and programs.go.
type checker struct {
	objects map[string]*object // by key
	// templates holds the policies whose text is correct.
	templates map[string]*policy.Template
	used      map[string]bool // keys of the objects that others refer to
	library   map[string]bool // names of the standard library's policies to which objects refer
	around    policy.Surroundings
	composed  []*object       // policies that include others of the set
	stored    bool            // they are of a bundle that was in force
	logs      map[string]bool // names of conduits that are logs; nil: see isLog
	facts     knownfacts.Checker
	errors    Errors
	warnings  Errors
}

func newChecker() *checker {
	return &checker{objects: map[string]*object{}, templates: map[string]*policy.Template{}, used: map[string]bool{},
		library: map[string]bool{}}
}

// fail reports an error at a field, or, if the manifest does not have it, at the nearest
// field around it.
func (c *checker) fail(o *object, path, hint, format string, arguments ...any) {
	c.errors = append(c.errors, o.error(Malformed, path, hint, format, arguments...))
}

func (o *object) error(code Code, path, hint, format string, arguments ...any) *Error {
	return &Error{
		Position: o.position(path), Code: code, Kind: o.kind, Name: o.name, Field: path,
		Message: fmt.Sprintf(format, arguments...), Hint: hint,
	}
}

func (o *object) position(path string) Position {
	for {
		if p, ok := o.positions[path]; ok {
			return p
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return o.positions[""]
		}
		path = path[:cut]
	}
}

// index registers the objects by name and reports duplicates.
func (c *checker) index(objects []*object) {
	for _, o := range objects {
		if o.name == "" {
			continue // reported as a missing field
		}
		if first, exists := c.objects[o.key()]; exists {
			c.fail(o, "metadata.name", "rename or remove one of them",
				"the object is given twice; the first is at %s", first.position(""))
			continue
		}
		c.objects[o.key()] = o
	}
}

// check runs every rule, in the order of the kinds: tasks refer to policies,
// pipelines to both.
func (c *checker) check(objects []*object) {
	c.policies(objects)
	for _, o := range objects {
		switch value := o.value.(type) {
		case *FactSource:
			c.factSource(o, value)
		case *Principal:
			c.principal(o, value)
		case *Task:
			c.task(o, value)
		case *Pipeline:
			c.pipeline(o, value)
		}
	}
	c.overlaps(objects)
	c.suspicions(objects)
}

func (c *checker) principal(o *object, principal *Principal) {
	if key := principal.Spec.PublicKey; !o.broken && !isHexadecimal(key, 64) {
		c.fail(o, "spec.publicKey", "", "%q is not an Ed25519 public key; expected 64 hexadecimal digits", shorten(key))
	}
	seen := map[string]bool{}
	for i, attribute := range principal.Spec.Attributes {
		if seen[attribute.Name] && attribute.Name != "" {
			c.fail(o, fmt.Sprintf("spec.attributes[%d].name", i), "keep one of them", "%q is given twice",
				attribute.Name)
		}
		seen[attribute.Name] = true
	}
}

func isHexadecimal(s string, length int) bool {
	return len(s) == length && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

func (c *checker) task(o *object, task *Task) {
	spec := task.Spec
	c.unique(o, "spec.parameters", spec.Parameters)
	c.unique(o, "spec.reads", spec.Reads)
	c.unique(o, "spec.writes", spec.Writes)
	c.unique(o, "spec.raisesTo", spec.RaisesTo)
	c.raisesToItself(o, task)
	c.variables(o, "spec.environment", spec.Environment)
	c.program(o, spec)
	c.reference(o, "spec.taint", spec.Taint, spec.Parameters)
	c.supplied(o, "spec.taint", spec.Taint, policy.GrantTyped) // it is an update rule of nothing
}

func (c *checker) pipeline(o *object, pipeline *Pipeline) {
	spec := pipeline.Spec
	c.variables(o, "spec.variables", spec.Variables)
	c.unique(o, "spec.tasks", spec.Tasks)
	c.parameters(o, spec.Parameters)
	conduits := c.conduits(o, spec)
	for i, name := range spec.Tasks {
		at := fmt.Sprintf("spec.tasks[%d]", i)
		if task, ok := c.refer(o, at, "Task", name); ok {
			c.flows(o, task, conduits)
			c.raises(o, task, spec.Tasks)
			c.valued(o, task, spec.Parameters)
		}
	}
	c.starts(o, spec.Tasks)
	for i, expectation := range spec.Expect {
		c.expectation(o, fmt.Sprintf("spec.expect[%d]", i), expectation, spec)
	}
}

// expectation checks that an instance gets exactly the parameters of its task whose values do not
// follow from others, and none of the attributes of a principal: results of analyses name instances,
// and who reads them on Kubernetes has no right to read Principals.
func (c *checker) expectation(o *object, at string, e Expectation, spec PipelineSpec) {
	c.member(o, at+".task", e.Task, spec.Tasks)
	if strings.HasPrefix(e.From.Conduit, Attributes) {
		c.fail(o, at+".from.conduit", "name what a FactSource says",
			"%q says the attributes of a principal, which give no instances", e.From.Conduit)
	}
	task, ok := c.objects["Task/"+e.Task]
	if !ok || task.broken {
		return
	}
	parameters := task.value.(*Task).Spec.Parameters
	c.unique(o, at+".from.parameters", e.From.Parameters)
	for i, name := range e.From.Parameters {
		switch {
		case !contains(parameters, name):
			c.fail(o, fmt.Sprintf("%s.from.parameters[%d]", at, i), c.didYouMean(name, parameters),
				"task %s has no parameter %q", e.Task, name)
		case declares(spec.Parameters, name):
			c.fail(o, fmt.Sprintf("%s.from.parameters[%d]", at, i), "remove it",
				"the value of %q follows from what spec.parameters says", name)
		}
	}
	for _, name := range parameters {
		if !contains(e.From.Parameters, name) && !declares(spec.Parameters, name) {
			c.fail(o, at+".from.parameters", "", "parameter %q of task %s gets no value", name, e.Task)
		}
	}
}

// hintedErrors is the number of errors that get a hint about what may have been meant.
// The search for hints takes longer than the check, and nobody reads more.
const hintedErrors = 100

func (c *checker) hints() bool { return len(c.errors) < hintedErrors }

func (c *checker) didYouMean(word string, candidates []string) string {
	if !c.hints() {
		return ""
	}
	return didYouMean(word, candidates)
}

// refer records a reference to an object and reports one that does not exist.
func (c *checker) refer(o *object, at, kind, name string) (*object, bool) {
	if name == "" {
		return nil, false // reported where the name was decoded
	}
	key := kind + "/" + name
	c.used[key] = true
	found, exists := c.objects[key]
	if !exists {
		hint := ""
		if c.hints() {
			hint = didYouMean(name, c.namesOf(kind))
		}
		c.errors = append(c.errors, o.error(Reference, at, hint, "there is no %s %q", kind, name))
	}
	return found, exists
}

// member reports a task that is not one of the pipeline's.
func (c *checker) member(o *object, at, name string, tasks []string) {
	if name != "" && !contains(tasks, name) {
		c.fail(o, at, c.didYouMean(name, tasks), "%q is not one of the pipeline's tasks", name)
	}
}

func (c *checker) namesOf(kind string) []string {
	var list []string
	for _, o := range c.objects {
		if o.kind == kind {
			list = append(list, o.name)
		}
	}
	slices.Sort(list)
	return list
}

// unique reports repeated names.
func (c *checker) unique(o *object, at string, list []string) {
	for i, name := range list {
		if name != "" && slices.Index(list, name) < i {
			c.fail(o, fmt.Sprintf("%s[%d]", at, i), "keep one of them", "%q is listed twice", name)
		}
	}
}

// variables reports names that are repeated or that $(NAME) cannot refer to.
func (c *checker) variables(o *object, at string, list []Variable) {
	seen := map[string]bool{}
	for i, variable := range list {
		path := fmt.Sprintf("%s[%d].name", at, i)
		switch {
		case variable.Name == "":
		case !isVariableName(variable.Name):
			c.fail(o, path, "", "%q is not a variable name; expected letters, digits and underscores", variable.Name)
		case seen[variable.Name]:
			c.fail(o, path, "keep one of them", "%q is given twice", variable.Name)
		}
		seen[variable.Name] = true
	}
}
