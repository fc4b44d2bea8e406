// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// TestFilesStayInUnreadableDirectories: what a task may write and not read it cannot give
// another name in a directory of another policy.
func TestFilesStayInUnreadableDirectories(t *testing.T) {
	for _, test := range []struct {
		rights plan.Rights
		waived plan.Protection
		want   bool
	}{
		{plan.Read | plan.Write | plan.Move, 0, true}, {plan.Read | plan.Write, 0, false},
		{plan.Write | plan.Move, 0, false}, {plan.Write, plan.PerimeterDomain, true},
	} {
		for _, try := range []string{"renameat-capability old.txt ../other/new.txt",
			"linkat-capability ../written/old.txt ../other/new.txt", "exchange old.txt ../other/theirs.txt"} {
			t.Run(fmt.Sprint(test.rights, test.waived, try), func(t *testing.T) {
				g := newGround(t)
				other := filepath.Join(filepath.Dir(g.written), "other")
				check(t, os.Mkdir(other, 0o755))
				check(t, os.WriteFile(filepath.Join(other, "theirs.txt"), []byte("theirs"), 0o644))
				spec := g.spec(t, try)
				spec.Perimeter = []plan.Directory{{Path: g.written, Rights: test.rights},
					{Path: other, Rights: test.rights}}
				spec.waived = test.waived
				succeeded, errno, got := attempt(t, spec, g.decider())
				if succeeded != test.want || !succeeded && errno != unix.EXDEV {
					t.Errorf("succeeded %v, errno %v: %v %s", succeeded, errno, got.err, got.output)
				}
			})
		}
	}
}

// TestProbe: this machine runs the tests above, so it reports full enforcement.
func TestProbe(t *testing.T) {
	report := New(Options{}).Probe()
	t.Logf("%+v", report)
	if report.Enforcement != "full" {
		t.Errorf("enforcement is %q on a machine that passes the attacks", report.Enforcement)
	}
	if !slices.ContainsFunc(report.Features, func(feature Feature) bool {
		return feature.Name == "seccomp filters" && strings.Contains(feature.Effect, "mode baseline needs them")
	}) {
		t.Error("nothing says what mode baseline needs")
	}
	if actionAvailable(0x00420000) {
		t.Error("an answer that no kernel knows is available")
	}
}
