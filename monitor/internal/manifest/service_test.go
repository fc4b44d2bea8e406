// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"strings"
	"testing"
)

// Clients write a service in one way only, and the manifest has to write it in this way.
func TestService(t *testing.T) {
	long := strings.Repeat("a", 96-len(":443"))
	for _, test := range []struct{ listen, service, want, fails string }{
		{"127.0.0.1:8640", "", "127.0.0.1:8640", ""},
		{"[0:0::1]:80", "", "[::1]:80", ""},
		{"127.0.0.1:8640", "search.example.org:443", "search.example.org:443", ""},
		{"0.0.0.0:8640", "10.0.0.1:8640", "10.0.0.1:8640", ""},
		{"[::]:8640", "[2001:db8::1]:443", "[2001:db8::1]:443", ""},
		{"127.0.0.1:8640", long[1:] + ":443", long[1:] + ":443", ""},
		{"localhost:80", "", "", "listen"},
		{"localhost:80", "localhost:80", "", "listen"},
		{"0.0.0.0:80", "", "", "listen"},
		{"[::]:80", "", "", "listen"},
		{"127.0.0.1:0", "", "", "listen"},
		{"127.0.0.1:80", "search.example.org", "", "service"},
		{"127.0.0.1:80", "Search.example.org:443", "", "service"},
		{"127.0.0.1:80", "search.example.org:0443", "", "service"},
		{"127.0.0.1:80", "search.example.org:0", "", "service"},
		{"127.0.0.1:80", "search.example.org:65536", "", "service"},
		{"127.0.0.1:80", "http://search.example.org:443", "", "service"},
		{"127.0.0.1:80", "search\n.example.org:443", "", "service"},
		{"127.0.0.1:80", "[2001:DB8::1]:443", "", "service"},
		{"127.0.0.1:80", "[::1:443", "", "service"},
		{"127.0.0.1:80", "[127.0.0.1]:443", "", "service"},
		{"127.0.0.1:80", ":443", "", "service"},
		{"127.0.0.1:80", long + ":443", "", "service"},
	} {
		conduit := Conduit{Kind: KindConnection, Listen: test.listen, Service: test.service}
		got, field, err := service(conduit)
		if err != nil && field != test.fails || err == nil && (test.fails != "" || got != test.want) {
			t.Errorf("listen %q, service %q: %q, %s: %v", test.listen, test.service, got, field, err)
		}
	}
}

func TestResolvedPipelineHasItsService(t *testing.T) {
	listen := `listen: "127.0.0.1:8640"`
	for _, test := range []struct{ name, fields, want, fails string }{
		{"default", listen, "127.0.0.1:8640", ""},
		{"variables", `listen: "$(HOST):80", service: "$(NAME):443"`, "example.org:443", ""},
		{"default of variables", `listen: "$(HOST):80"`, "10.0.0.1:80", ""},
		{"undefined", listen + `, service: "$(NOBODY):80"`, "", "service: $(NOBODY) is not defined"},
		{"wrong service", listen + `, service: "$(HOST)"`, "", `service: "10.0.0.1" is not a host and a port`},
		{"wrong address", `listen: "$(NAME):80"`, "", `listen: "example.org:80" is not an address`},
	} {
		fields := strings.ReplaceAll(test.fields, ", ", "\n      ")
		text := strings.Replace(valid(t), listen, fields, 1)
		resolved, err := bundle(t, text).Resolve("demo", map[string]string{
			"BIN": "/bin", "STORE": "/s", "HOST": "10.0.0.1", "NAME": "example.org"})
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), "spec.conduits[3]."+test.fails) {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil || resolved.Pipeline.Spec.Conduits[3].Service != test.want {
			t.Errorf("%s: %+v, %v", test.name, resolved.Pipeline.Spec.Conduits[3], err)
		}
	}
}

// A task has one connection; another task of the pipeline may have its own.
func TestATaskHasOneConnection(t *testing.T) {
	t.Parallel()
	const second = "    - {name: desk, kind: connection, listen: \"127.0.0.1:8641\", task: TASK}\n"
	text := valid(t)
	before, after, found := strings.Cut(text, "  conduits:\n")
	if !found {
		t.Fatal("the manifest has no conduits")
	}
	for task, want := range map[string]string{
		"worker": `users connect to task "worker" through conduit "desk" already; a task has one connection`,
		"reader": "",
	} {
		err := check(before + "  conduits:\n" + strings.Replace(second, "TASK", task, 1) + after)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a second connection, of task %s: %v, want %q", task, err, want)
		}
	}
}
