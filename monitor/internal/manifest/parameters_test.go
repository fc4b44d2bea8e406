// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"strings"
	"testing"
)

// A pipeline's declarations of parameters, and the tasks that use them.
func TestParameters(t *testing.T) {
	const (
		role   = "{name: role, from: {conduit: employees, says: role}}"
		shift  = `{name: shift, window: {start: "2026-01-01T00:00:00Z", every: 8h}}`
		plain  = "parameters: [user, region]"
		listed = "parameters: [user, region, role, shift]"
	)
	both := strings.Replace(role, "}}", `}, window: {start: "2026-01-01T00:00:00Z", every: 8h}}`, 1)
	attribute := strings.Replace(role, "employees", "principals/a", 1)
	window := func(old, new string) string { return strings.Replace(shift, old, new, 1) }
	for name, test := range map[string]struct{ declared, parameters, want string }{
		"good":             {role + ", " + shift, listed, ""},
		"not used":         {role, "parameters: [user, region]", ""},
		"not declared":     {role, listed, `parameter "shift" gets no value in pipeline demo`},
		"a near miss":      {strings.Replace(role, "role", "rolle", 1) + ", " + shift, listed, `did you mean "rolle"?`},
		"user":             {strings.Replace(role, "role", "user", 1), plain, "each session has a user already"},
		"twice":            {role + ", " + role + ", " + shift, listed, `parameter "role" is declared twice`},
		"neither":          {"{name: role}, " + shift, listed, "from exactly one of them"},
		"both":             {both + ", " + shift, listed, "from exactly one of them"},
		"an attribute":     {attribute + ", " + shift, listed, "says the attributes"},
		"no time":          {role + ", " + window("2026-01-01T00:00:00Z", "today"), listed, `start "today" is not an RFC 3339 time`},
		"a split second":   {role + ", " + window("00:00Z", "00:00.5Z"), listed, "is not a whole second"},
		"too early":        {role + ", " + window("2026", "1926"), listed, "is not a whole second of the years 1970"},
		"no duration":      {role + ", " + window("8h", "soon"), listed, `every "soon" is not a duration`},
		"no length":        {role + ", " + window("8h", "0s"), listed, "is not a whole number of seconds"},
		"backwards":        {role + ", " + window("8h", "-8h"), listed, "is not a whole number of seconds"},
		"too long":         {role + ", " + window("8h", "87601h"), listed, "is not a whole number of seconds"},
		"half a second":    {role + ", " + window("8h", "1500ms"), listed, "is not a whole number of seconds"},
		"nobody's role":    {role, "parameters: [region, role]", `"role" is a fact about a user, and instances of task worker have none`},
		"unknown field":    {strings.Replace(role, "conduit", "conduits", 1), listed, `did you mean "conduit"?`},
		"a name with dots": {strings.Replace(role, "role", "ro.le", 1), plain, "is not the name of a parameter"},
	} {
		text := strings.Replace(valid(t), "  parameters: [user, region]\n", "  "+test.parameters+"\n", 1)
		text = strings.Replace(text, "  expect:\n", "  parameters: ["+test.declared+"]\n  expect:\n", 1)
		if err := check(text); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
	}
	given := strings.Replace(valid(t), "parameters: [user, region]}", "parameters: [user, region, role]}", 1)
	given = strings.Replace(given, "  parameters: [user, region]\n", "  parameters: [user, region, role]\n", 1)
	given = strings.Replace(given, "  expect:\n", "  parameters: ["+role+"]\n  expect:\n", 1)
	if err := check(given); err == nil || !strings.Contains(err.Error(), `the value of "role" follows from what spec.parameters says`) {
		t.Errorf("an expectation gives a derived value: %v", err)
	}
}
