// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"errors"
	"strings"
	"testing"

	"shai.dev/monitor/internal/wire"
)

// TestMachines: a machine that cannot confine starts nothing; waiving does not
// hide it (trap 11).
func TestMachines(t *testing.T) {
	in := Input{Spec: Spec{Name: "search", Command: []string{"/bin/true"}, Confined: true},
		Waived: PerimeterDomain | SyscallFilter}
	for _, in.Machine = range []Machine{{}, {Landlock: 3, Notification: true}, {Landlock: 7}} {
		if _, err := ForLinux(in); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "search") {
			t.Errorf("%+v: %v", in.Machine, err)
		}
	}
	in.Machine = Machine{Landlock: 4, Notification: true}
	if _, err := ForLinux(in); err != nil {
		t.Error(err)
	}
	in.Confined, in.Machine = false, Machine{}
	if got, err := ForLinux(in); err != nil || got.Perimeter != nil || got.Filter != nil {
		t.Errorf("baseline: %+v, %v", got, err)
	}
}

func TestSpecRefused(t *testing.T) {
	command, machine := []string{"/c"}, Machine{Landlock: 7, Notification: true}
	for _, test := range []struct {
		name, want string // "": accepted
		spec       Spec
		numbers    []int
	}{
		{name: "nothing wrong", spec: Spec{Command: command, User: &User{ID: 7, Group: 7}, Limits: Limits{OpenFiles: 161}},
			numbers: []int{wire.FDMonitor, 159}},
		{name: "no command", want: "absolute path"},
		{name: "relative command", spec: Spec{Command: []string{"cat"}}, want: "absolute path"},
		{name: "relative runtime", spec: Spec{Command: command, Runtime: []string{"lib"}}, want: `"lib"`},
		{name: "relative perimeter", spec: Spec{Command: command, Perimeter: []Directory{{"x", Read}}}, want: `"x"`},
		{name: "relative owned directory", spec: Spec{Command: command, Owned: []string{"data"}}, want: `"data"`},
		{name: "relative capability", spec: Spec{Command: command, Capabilities: []Capability{{"/x", "y"}}}, want: `"y"`},
		{name: "many capabilities", spec: Spec{Command: command, Capabilities: make([]Capability, 17)}, want: "at most 16"},
		{name: "few files", spec: Spec{Command: command, Limits: Limits{OpenFiles: 160}}, want: "160 are reserved"},
		{name: "superuser", spec: Spec{Command: command, User: &User{Group: 7}}, want: "never the superuser"},
		{name: "superuser's group", spec: Spec{Command: command, User: &User{ID: 7}}, want: "never the superuser"},
		{name: "capability's number", spec: Spec{Command: command}, numbers: []int{16}, want: "descriptor 16"},
		{name: "too low a number", spec: Spec{Command: command}, numbers: []int{2}, want: "descriptor 2"},
		{name: "too high a number", spec: Spec{Command: command}, numbers: []int{160}, want: "descriptor 160"},
	} {
		for _, compute := range []func(Input) (Plan, error){ForLinux, ForFreeBSD} {
			_, err := compute(Input{Spec: test.spec, Numbers: test.numbers, Machine: machine})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
		}
	}
}
