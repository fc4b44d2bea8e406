// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// choosing is a pipeline with one path, and one choice for it.
func choosing(conduit, choice string) string {
	const head = "---\napiVersion: shai.dev/v1alpha1\nkind: "
	return "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: mine}\n" +
		"spec: {text: \"policy mine(owner) { read :- sKeyIs(owner). }\"}\n" +
		head + "Task\nmetadata: {name: one}\nspec: {command: [/bin/true], taint: {name: mine, arguments: {owner: a}}, reads: [in]}\n" +
		head + fmt.Sprintf("Pipeline\nmetadata: {name: p}\nspec:\n  tasks: [one]\n  conduits:\n"+
		"    - name: in\n      %s\n      paths:\n        - path: \"/in/{owner}/**\"\n"+
		"          policy: {name: mine, arguments: {owner: \"{owner}\"}}\n          choices: [%s]\n", conduit, choice)
}

func TestChoices(t *testing.T) {
	const file, good = "kind: file\n      ingress: true", `{by: "{owner}", policy: {name: mine, arguments: {owner: x}}}`
	for name, test := range map[string]struct{ conduit, choice, want string }{
		"good":            {file, good, ""},
		"a fixed name":    {file, strings.Replace(good, "{owner}", "moderator", 1), ""},
		"not ingress":     {"kind: file", good, "only single files of ingress conduits have choices"},
		"a directory":     {file + "\n      directory: true", good, "only single files of ingress conduits have choices"},
		"unknown hole":    {file, strings.Replace(good, "{owner}", "{user}", 1), "the path has no placeholder {user}"},
		"unmatched brace": {file, strings.Replace(good, "{owner}", "{owner", 1), "is no principal"},
		"a line break":    {file, strings.Replace(good, "{owner}", `a\nb`, 1), "is no principal"},
		"no principal":    {file, `{policy: {name: mine, arguments: {owner: x}}}`, "by"},
		"no policy":       {file, `{by: a}`, "policy"},
		"unknown policy":  {file, strings.Replace(good, "mine", "none", 1), "none"},
		"no argument":     {file, `{by: a, policy: {name: mine}}`, `parameter "owner" of policy mine gets no value`},
		"unknown field":   {file, strings.Replace(good, "by:", "from: x, by:", 1), "from"},
	} {
		err := check(choosing(test.conduit, test.choice))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
	}
}
