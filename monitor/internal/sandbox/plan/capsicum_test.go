// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/wire"
)

func capsicumInput() Input {
	return Input{Spec: Spec{
		Name: "search", Command: []string{"/app/search"}, Confined: true, Runtime: []string{"/app", "/lib", "/libexec"},
		Environment: []string{"A=1", "LD_LIBRARY_PATH=/app/lib:/elsewhere", "LD_PRELOAD=/app/lib/libshai.so"},
		Perimeter:   []Directory{{"/view/3", Read}, {"/index", Read | Write}, {"/spool", Write}, {"/names", List}},
		Capabilities: []Capability{{"/shai/view", "/view"}, {"/index", "/index"}, {"/spool", "/spool/in"},
			{"/names", "/names"},
			{"/indexes", "/indexes"}}},
		Numbers: []int{wire.FDMonitor, wire.FDClasses, wire.FDConnectionChecked, wire.FDRequests, wire.FDChannel,
			wire.FDChannelChecked},
	}
}

// TestCapsicumPlan: a number has the rights of what it is for, and one that is not
// named none.
func TestCapsicumPlan(t *testing.T) {
	todo, err := ForFreeBSD(capsicumInput())
	if err != nil || !todo.Capsicum.Mode || len(todo.Capsicum.Unrestricted) != 0 {
		t.Fatalf("%+v, %v", todo.Capsicum, err)
	}
	for _, test := range []struct {
		number                         int
		read, write, lookUp, mayCreate bool
	}{
		{wire.FDCapability, false, false, false, false}, // the view, of which one class is granted
		{wire.FDCapability + 1, true, true, true, true},
		{wire.FDCapability + 2, false, true, true, true},
		{wire.FDCapability + 3, true, false, false, false},  // may be listed
		{wire.FDCapability + 4, false, false, false, false}, // not beneath /index
		{wire.FDMonitor, true, true, false, false},
		{wire.FDClasses, true, false, true, false}, // to be opened anew
		{wire.FDConnectionChecked, true, false, false, false},
		{wire.FDChannel, false, true, false, false},
		{wire.FDChannelChecked, false, false, false, false},
		{wire.FDRequests, false, true, false, false},
		{wire.FDKeyValue, false, false, false, false}, // a filler
	} {
		has := func(right uint64) bool { return slices.Contains(todo.Capsicum.Rights[test.number], right) }
		if has(capRead) != test.read || has(capWrite) != test.write || has(capLookUp) != test.lookUp ||
			has(capCreate) != test.mayCreate {
			t.Errorf("%d: read %v, write %v, look up %v, create %v, want %v", test.number, has(capRead), has(capWrite),
				has(capLookUp), has(capCreate), test)
		}
		if has(capExecute) || has(capMapExecute) {
			t.Errorf("%d: may be executed", test.number)
		}
		const setOption = firstWord | 1<<37 // CAP_SETSOCKOPT
		if has(setOption) {
			t.Errorf("%d: may set socket options", test.number)
		}
	}
	for _, rights := range []CapRights{InputRights, OutputRights} {
		if slices.Contains(rights, capSeek) || slices.Contains(rights, capControl) {
			t.Errorf("processes share the offset or flags of what has %#x", rights)
		}
	}
}

// TestPlacedRights: what takes the place of something has no right that it would not have had at
// the start, and what is closed can be told from what is refused.
func TestPlacedRights(t *testing.T) {
	in := capsicumInput()
	in.Numbers = append(in.Numbers, wire.FDPipe)
	todo, err := ForFreeBSD(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range in.Numbers {
		if !slices.Equal(RightsAt(number), todo.Capsicum.Rights[number]) {
			t.Errorf("%d: %#x, at the start %#x", number, RightsAt(number), todo.Capsicum.Rights[number])
		}
	}
	for _, number := range []int{0, wire.FDReservedEnd} {
		if got := RightsAt(number); !slices.Contains(got, capWrite) || slices.Contains(got, capLookUp) {
			t.Errorf("%d: %#x", number, got)
		}
	}
}

// TestOpenedRights: what the monitor opens can be used for what it was opened for, and
// nothing can be opened beneath it without being asked for.
func TestOpenedRights(t *testing.T) {
	for _, test := range []struct {
		reads, writes, isRuntime, execute bool
	}{
		{true, false, true, true},
		{true, false, false, false},
		{false, true, false, false},
		{true, true, false, false},
	} {
		got := OpenedRights(test.reads, test.writes, test.isRuntime)
		has := func(right uint64) bool { return slices.Contains(got, right) }
		if has(capRead) != test.reads || has(capWrite) != test.writes || has(capMapExecute) != test.execute ||
			has(capLookUp) || has(capExecute) || !has(capStatus) {
			t.Errorf("%+v has %#x", test, got)
		}
	}
	todo, err := ForFreeBSD(capsicumInput())
	if err != nil || !slices.Contains(todo.Capsicum.Programs, capLookUp) {
		t.Errorf("the run-time linker finds no libraries: %v", err)
	}
}

// TestCapsicumLoader: paths for the run-time linker become files, if they are part of the
// runtime.
func TestCapsicumLoader(t *testing.T) {
	todo, err := ForFreeBSD(capsicumInput())
	if err != nil {
		t.Fatal(err)
	}
	for what, lists := range map[string][2][]string{
		"libraries":   {todo.Capsicum.Libraries, {"/app/lib", "/lib"}},
		"preloads":    {todo.Capsicum.Preloads, {"/app/lib/libshai.so"}},
		"environment": {todo.Environment, {"A=1"}},
	} {
		if difference := cmp.Diff(lists[1], lists[0]); difference != "" {
			t.Errorf("%s: %s", what, difference)
		}
	}
	for _, variable := range []string{"LD_PRELOAD=/elsewhere/x.so", "LD_DEBUG=1", "LD_LIBRARY_PATH_FDS=3"} {
		in := capsicumInput()
		in.Environment = []string{variable}
		if _, err := ForFreeBSD(in); err == nil || !strings.Contains(err.Error(), "search") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// TestCapsicumWaived: a test can waive one protection at a time; mode baseline has none.
func TestCapsicumWaived(t *testing.T) {
	for waived, holds := range map[Protection]func(c *Capsicum) bool{
		PerimeterDomain: func(c *Capsicum) bool {
			return !c.Mode &&
				slices.Contains(c.Unrestricted, wire.FDCapability)
		},
		ReservedNumbers: func(c *Capsicum) bool {
			return c.Mode &&
				slices.Contains(c.Unrestricted, wire.FDConnectionChecked)
		},
		UnreadChannels: func(c *Capsicum) bool { return c.Mode && slices.Contains(c.Rights[wire.FDChannel], capRead) },
		ExecRefusal:    func(c *Capsicum) bool { return c.Mode && slices.Contains(c.Programs, capExecute) },
	} {
		in := capsicumInput()
		before, err := ForFreeBSD(in)
		if err != nil || holds(before.Capsicum) {
			t.Errorf("protection %#x is off: %v", waived, err)
		}
		in.Waived = waived
		after, err := ForFreeBSD(in)
		if err != nil || !holds(after.Capsicum) {
			t.Errorf("protection %#x is on: %v", waived, err)
		}
	}
	in := capsicumInput()
	in.Confined = false
	if todo, err := ForFreeBSD(in); err != nil || todo.Capsicum != nil || len(todo.Environment) != 3 {
		t.Errorf("baseline: %+v, %v", todo, err)
	}
	if _, err := ForFreeBSD(Input{Spec: Spec{Name: "search", Command: []string{"relative"}}}); err == nil {
		t.Error("a specification at fault is accepted")
	}
}
