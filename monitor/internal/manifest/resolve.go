// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Resolved is a pipeline with its tasks, with all variables replaced.
type Resolved struct {
	Pipeline Pipeline
	Tasks    []Task    // in the pipeline's order
	Policies []*Policy // that these refer to, by name; callers must not alter them
}

var (
	variable     = regexp.MustCompile(`\$\(([^()]*)\)`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

const (
	// maxAddress is the length of the longest address, a name with its port, in bytes.
	maxAddress = 255
	// maxReplaced is what a text may have with its variables replaced, in bytes: the
	// longest argument of a program (MAX_ARG_STRLEN in execve(2)).
	maxReplaced = 128 << 10
	// maxReplacedTogether is the same for all texts of a pipeline and its tasks.
	maxReplacedTogether = 64 << 20
)

func isVariableName(s string) bool { return variableName.MatchString(s) }

// Resolve replaces $(NAME) in a pipeline and its tasks. Values come from define, else
// from the pipeline's variables. A variable without a value is an error at its position.
// Values are used literally: $( in a value is not replaced again.
func (b *Bundle) Resolve(pipeline string, define map[string]string) (*Resolved, error) {
	index := map[string]*object{}
	for _, o := range b.objects {
		index[o.key()] = o
	}
	o, ok := index["Pipeline/"+pipeline]
	if !ok {
		return nil, Errors{{Code: Malformed, Kind: "Pipeline", Name: pipeline,
			Message: "the bundle has no such pipeline"}}
	}
	r := &resolver{values: map[string]string{}}
	resolved := &Resolved{Pipeline: *o.value.(*Pipeline)}
	resolved.Pipeline.Spec = resolved.Pipeline.Spec.enforced()
	maps.Copy(r.values, resolved.Pipeline.Spec.values())
	maps.Copy(r.values, define)
	r.pipeline(o, &resolved.Pipeline.Spec)
	for _, name := range resolved.Pipeline.Spec.Tasks {
		object := index["Task/"+name]
		task := *object.value.(*Task)
		r.task(object, &task.Spec)
		resolved.Tasks = append(resolved.Tasks, task)
	}
	names := resolved.policyNames()
	for _, p := range b.enforced {
		if slices.Contains(names, p.Metadata.Name) {
			resolved.Policies = append(resolved.Policies, p)
		}
	}
	return resolved, r.errors.inOrder().orNil()
}

// policyNames returns the names of the policies that pipeline and tasks refer to, in order.
func (r *Resolved) policyNames() []string {
	var references []*PolicyReference
	for _, conduit := range r.Pipeline.Spec.Conduits {
		references = append(references, conduit.Policy)
		for _, path := range conduit.Paths {
			references = append(references, path.Policy)
			for _, choice := range path.Choices {
				references = append(references, choice.Policy)
			}
		}
	}
	for _, task := range r.Tasks {
		references = append(references, task.Spec.Taint)
	}
	names := map[string]bool{}
	for _, reference := range references {
		if reference != nil {
			names[reference.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ResolveFactSource replaces $(NAME) in the origin of a source's facts. A source belongs
// to no pipeline, so values come from define alone.
func (b *Bundle) ResolveFactSource(name string, define map[string]string) (FactSourceSpec, error) {
	for _, o := range b.objects {
		source, ok := o.value.(*FactSource)
		if !ok || o.name != name {
			continue
		}
		r := &resolver{values: define}
		spec := source.Spec
		if spec.Redis != nil {
			redis := *spec.Redis
			redis.Socket = r.text(o, "spec.redis.socket", redis.Socket)
			spec.Redis = &redis
		}
		if spec.HTTP != nil {
			http := *spec.HTTP
			http.URL = r.text(o, "spec.http.url", http.URL)
			http.CAFile = r.text(o, "spec.http.caFile", http.CAFile)
			if err := checkURL(http.URL); err != nil && len(r.errors) == 0 {
				r.errors = append(r.errors, o.error(Malformed, "spec.http.url", "", "%v", err))
			}
			spec.HTTP = &http
		}
		return spec, r.errors.inOrder().orNil()
	}
	return FactSourceSpec{}, Errors{{Code: Malformed, Kind: "FactSource", Name: name,
		Message: "the bundle has no such source"}}
}

type resolver struct {
	values   map[string]string
	replaced int // bytes, so far
	errors   Errors
}

// pipeline replaces variables in the fields that may contain them. It copies lists first:
// the bundle's own must not change.
func (r *resolver) pipeline(o *object, spec *PipelineSpec) {
	if spec.KeyValue != nil {
		store := *spec.KeyValue
		store.Socket = r.text(o, "spec.keyValue.socket", store.Socket)
		spec.KeyValue = &store
	}
	spec.Conduits = slices.Clone(spec.Conduits)
	for i := range spec.Conduits {
		if spec.Conduits[i].Kind == KindConnection {
			r.connection(o, fmt.Sprintf("spec.conduits[%d].", i), &spec.Conduits[i])
		}
	}
}

func (r *resolver) connection(o *object, at string, conduit *Conduit) {
	conduit.Listen = r.text(o, at+"listen", conduit.Listen)
	conduit.Service = r.text(o, at+"service", conduit.Service)
	if r.failed(at+"listen") || r.failed(at+"service") {
		return
	}
	dialled, field, err := service(*conduit)
	if err != nil {
		r.errors = append(r.errors, o.error(Malformed, at+field, "", "%v", err))
	}
	conduit.Service = dialled
}

func (r *resolver) task(o *object, spec *TaskSpec) {
	spec.Command = r.list(o, "spec.command", spec.Command)
	spec.Environment = slices.Clone(spec.Environment)
	for i := range spec.Environment {
		at := fmt.Sprintf("spec.environment[%d].value", i)
		spec.Environment[i].Value = r.text(o, at, spec.Environment[i].Value)
	}
	if len(spec.Command) == 0 || r.failed(programField) {
		return
	}
	if err := CheckMachinePath(spec.Command[0]); err != nil {
		r.errors = append(r.errors, o.error(Malformed, programField, "", "%q %v", spec.Command[0], err))
	}
}

// failed reports whether a variable of the field is not defined.
func (r *resolver) failed(field string) bool {
	return slices.ContainsFunc(r.errors, func(e *Error) bool { return e.Field == field })
}

func (r *resolver) list(o *object, at string, texts []string) []string {
	replaced := make([]string, len(texts))
	for i, text := range texts {
		replaced[i] = r.text(o, fmt.Sprintf("%s[%d]", at, i), text)
	}
	return replaced
}

func (r *resolver) text(o *object, at, text string) string {
	length := replacedLength(text, r.values)
	if r.replaced += length; length > maxReplaced || r.replaced > maxReplacedTogether {
		r.errors = append(r.errors, o.error(Malformed, at, "name fewer variables, or shorter ones",
			"with its variables replaced the text has %d bytes; at most %d are allowed, and %d in all texts together",
			length, maxReplaced, maxReplacedTogether))
		return ""
	}
	replaced, undefined := Replace(text, r.values)
	for _, name := range undefined {
		hint := near(name, slices.Sorted(maps.Keys(r.values)))
		if hint == "" {
			hint = fmt.Sprintf("start the monitor with --define %s=…, or add it to the pipeline's spec.variables",
				name)
		}
		r.errors = append(r.errors, o.error(Malformed, at, hint, "$(%s) is not defined", name))
	}
	return replaced
}

// Replace replaces each $(NAME) in a text by its value, which is used literally: $( in a value
// is not replaced again. It also returns the names that have no value.
func Replace(text string, values map[string]string) (replaced string, undefined []string) {
	replaced = variable.ReplaceAllStringFunc(text, func(match string) string {
		name := variableOf(match)
		value, ok := values[name]
		if !ok {
			undefined = append(undefined, name)
		}
		return value
	})
	return replaced, undefined
}

// variableOf returns the name in $(NAME).
func variableOf(match string) string {
	return strings.TrimSuffix(strings.TrimPrefix(match, "$("), ")")
}

// replacedLength returns how long a text is with the variables replaced that have a value,
// in bytes. A short text can name a long value many times, so this is known beforehand.
func replacedLength(text string, values map[string]string) int {
	length := len(text)
	for _, match := range variable.FindAllString(text, -1) {
		if value, ok := values[variableOf(match)]; ok {
			length += len(value) - len(match)
		}
	}
	return length
}

// values returns the values of the pipeline's own variables, by name.
func (s PipelineSpec) values() map[string]string {
	values := make(map[string]string, len(s.Variables))
	for _, v := range s.Variables {
		values[v.Name] = v.Value
	}
	return values
}
