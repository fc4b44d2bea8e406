// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Parameter declares where the monitor takes the value of a parameter of the pipeline's tasks
// from, beside user and region: from a fact about the user, or from the clock. Exactly one of
// From and Window is given. Neither a task nor a user supplies a value.
type Parameter struct {
	Name   string           `json:"name" rule:"required,max=64"`
	From   *ParameterFact   `json:"from,omitempty"`
	Window *ParameterWindow `json:"window,omitempty"`
}

// ParameterFact is the fact conduit says says(user, value). There has to be exactly one about a
// user.
type ParameterFact struct {
	Conduit string `json:"conduit" rule:"required,max=1024"`
	Says    string `json:"says" rule:"required,max=64"`
}

// ParameterWindow divides time into windows of equal length. The value is the begin of the
// current one.
type ParameterWindow struct {
	// Start is the begin of the first window, an RFC 3339 time in whole seconds.
	Start string `json:"start" rule:"required,max=64"`
	// Every is the length of a window, such as 8h or 1h30m: 1s to 87600h, in whole seconds.
	Every string `json:"every" rule:"required,max=32"`
}

// The parameters that each session has.
const (
	ParameterUser   = "user"
	ParameterRegion = "region"
)

const (
	longestWindow = 87600 * time.Hour // ten years
	lastStart     = 2200              // a year: the ends of windows are Unix times in nanoseconds
)

// Parse returns the begin of the first window and the length of each.
func (w ParameterWindow) Parse() (start time.Time, every time.Duration, err error) {
	start, err = time.Parse(time.RFC3339, w.Start)
	switch {
	case err != nil:
		return start, 0, fmt.Errorf("start %q is not an RFC 3339 time, such as 2026-01-01T00:00:00Z", w.Start)
	case start.Nanosecond() != 0 || start.UTC().Year() < 1970 || start.UTC().Year() > lastStart:
		return start, 0, fmt.Errorf("start %q is not a whole second of the years 1970 to %d", w.Start, lastStart)
	}
	every, err = time.ParseDuration(w.Every)
	switch {
	case err != nil:
		return start, 0, fmt.Errorf("every %q is not a duration, such as 8h or 1h30m", w.Every)
	case every < time.Second || every > longestWindow || every%time.Second != 0:
		return start, 0, fmt.Errorf("every %q is not a whole number of seconds from 1s to 87600h", w.Every)
	}
	return start.UTC(), every, nil
}

// parameters checks the declarations of a pipeline.
func (c *checker) parameters(o *object, declared []Parameter) {
	seen := map[string]bool{}
	for i, parameter := range declared {
		at := fmt.Sprintf("spec.parameters[%d]", i)
		switch name := parameter.Name; {
		case name == "":
		case name == ParameterUser || name == ParameterRegion:
			c.fail(o, at+".name", "choose another name", "each session has a %s already, which the monitor verifies", name)
		case !isVariableName(name):
			c.fail(o, at+".name", "", "%q is not the name of a parameter; expected letters, digits and underscores", name)
		case seen[name]:
			c.fail(o, at+".name", "keep one of them", "parameter %q is declared twice", name)
		}
		seen[parameter.Name] = true
		if (parameter.From == nil) == (parameter.Window == nil) {
			c.fail(o, at, "give from or window", "parameter %q gets its value from a fact or from a window of time, "+
				"from exactly one of them", parameter.Name)
		}
		if parameter.From != nil && strings.HasPrefix(parameter.From.Conduit, Attributes) {
			// Instances are named after their values; see expectation.
			c.fail(o, at+".from.conduit", "name what a FactSource says",
				"%q says the attributes of a principal, which no instance is named after", parameter.From.Conduit)
		}
		if parameter.Window != nil && parameter.Window.Start != "" && parameter.Window.Every != "" {
			if _, _, err := parameter.Window.Parse(); err != nil {
				c.fail(o, at+".window", "", "%v", err)
			}
		}
	}
}

// valued checks that each parameter of a pipeline's task gets a value. A stored bundle may be
// older than this rule: sessions of such a task are refused.
func (c *checker) valued(pipeline, o *object, declared []Parameter) {
	task, ok := o.value.(*Task)
	if !ok || o.broken || c.stored {
		return
	}
	names := []string{ParameterUser, ParameterRegion}
	for _, one := range declared {
		names = append(names, one.Name)
	}
	for i, name := range task.Spec.Parameters {
		at := fmt.Sprintf("spec.parameters[%d]", i)
		if name != "" && !contains(names, name) {
			hint := c.didYouMean(name, names)
			if hint == "" {
				hint = fmt.Sprintf("declare it in spec.parameters of pipeline %s, or remove it", pipeline.name)
			}
			c.fail(o, at, hint, "parameter %q gets no value in pipeline %s", name, pipeline.name)
			continue
		}
		if IsAboutUser(declared, name) && !contains(task.Spec.Parameters, ParameterUser) {
			c.fail(o, at, "add the parameter user", "%q is a fact about a user, and instances of task %s have none", name,
				o.name)
		}
	}
}

// IsAboutUser reports whether the value of a parameter follows from a fact about the user.
func IsAboutUser(declared []Parameter, name string) bool {
	return slices.ContainsFunc(declared, func(one Parameter) bool { return one.Name == name && one.From != nil })
}

// declares reports whether a pipeline declares a parameter.
func declares(declared []Parameter, name string) bool {
	return slices.ContainsFunc(declared, func(one Parameter) bool { return one.Name == name })
}
