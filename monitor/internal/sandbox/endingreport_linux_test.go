// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEndingIsReported: doctor says which way is in force: here, without cgroups, and
// without the superuser's rights as well.
func TestEndingIsReported(t *testing.T) {
	if os.Getenv(againMarker) == "no cgroups" {
		hideCgroups(t)
	}
	if os.Getenv(againMarker) != "" {
		for _, name := range []string{"ending of tasks", "limit on processes"} {
			feature := featureOf(t, name)
			fmt.Printf("%s: %v; ", feature.Found, feature.Present)
		}
		fmt.Println()
		return
	}
	needCgroup(t)
	needRoot(t)
	parent, err := tasksCgroup()
	check(t, err)
	if feature := featureOf(t, "ending of tasks"); !feature.Present || feature.Found != "cgroup.kill in "+parent {
		t.Errorf("%+v", feature)
	}
	for state, test := range map[string]struct {
		attributes syscall.SysProcAttr
		want       string
	}{
		"no cgroups": {syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS},
			"process groups and PID namespaces: true; missing: false; "},
		"no rights": {syscall.SysProcAttr{Credential: &syscall.Credential{Uid: pipelineUser.ID, Gid: pipelineUser.Group}},
			"process groups: false; missing: false; "},
	} {
		if output := again(t, state, &test.attributes); !strings.Contains(output, test.want) {
			t.Errorf("%s: want %q in\n%s", state, test.want, output)
		}
	}
}

func featureOf(t *testing.T, name string) Feature {
	t.Helper()
	for _, feature := range New(Options{}).Probe().Features {
		if feature.Name == name {
			return feature
		}
	}
	t.Fatalf("the report says nothing of %s", name)
	return Feature{}
}
