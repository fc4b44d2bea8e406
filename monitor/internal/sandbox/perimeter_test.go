// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTaskPerimeter(t *testing.T) {
	spec := Spec{Runtime: []string{"/usr"}, Perimeter: []Directory{{"/view", Read}, {"/index", Read | Write},
		{"/summary", Write}}}
	read := uint64(accessReadFile | accessReadDir)
	write := uint64(accessWriteFile | accessTruncate | accessRemove | accessRemoveDir | accessMakeFile |
		accessMakeDir)
	grants := []grant{{"/usr", accessExecute}, {"/usr/bin/python3.11", accessReadFile}, {"/view", read},
		{"/index", read | write | accessRefer}, {"/summary", write}}
	executed := []ExecutedFile{{"/usr/bin/python3", "/usr/bin/python3.11"}}
	tests := map[int]perimeter{
		4: {Files: 1<<15 - 1, Network: accessNetwork, Grants: grants},
		5: {Files: 1<<16 - 1, Network: accessNetwork, Grants: grants},
		6: {Files: 1<<16 - 1, Network: accessNetwork, Scope: scopeAbstract | scopeSignal, Grants: grants},
		9: {Files: 1<<16 - 1, Network: accessNetwork, Scope: scopeAbstract | scopeSignal, Grants: grants},
	}
	for abi, want := range tests {
		got, err := taskPerimeter(machine{landlock: abi, executed: executed}, spec)
		if difference := cmp.Diff(want, got); difference != "" || err != nil {
			t.Errorf("ABI %d: %v %s", abi, err, difference)
		}
	}
	for abi := range neededLandlock {
		if _, err := taskPerimeter(machine{landlock: abi}, spec); !errors.Is(err, ErrUnsupported) ||
			!strings.Contains(err.Error(), "Linux 6.7") {
			t.Errorf("ABI %d: %v", abi, err)
		}
	}
}

// TestGrantedIsHandled: a grant of a right that is not handled is an error in
// the kernel, and a right that is neither would not be enforced at all.
func TestGrantedIsHandled(t *testing.T) {
	for rights := range (Read | Write | Execute | List) + 1 {
		for abi := neededLandlock; abi < 10; abi++ {
			if access := accessOf(rights); access&^handledFiles(abi) != 0 {
				t.Errorf("ABI %d, rights %d: access %#x", abi, rights, access)
			}
		}
	}
}

// TestPerimeterWithOwnRoot: a task with a root of its own reads what is in it and what it
// holds; everything else is refused as in other tasks.
func TestPerimeterWithOwnRoot(t *testing.T) {
	spec := Spec{Serving: true, Runtime: []string{"/usr"}, Perimeter: []Directory{{"/view", Read}}}
	on := machine{landlock: 4, mounts: true, executed: []ExecutedFile{{"/usr/bin/front", "/usr/bin/front"}}}
	want := perimeter{Files: (1<<15 - 1) &^ (accessReadFile | accessReadDir), Network: accessNetwork,
		Grants: []grant{{"/usr", accessExecute}, {"/usr/bin/front", accessExecute}}}
	got, err := taskPerimeter(on, spec)
	if difference := cmp.Diff(want, got); difference != "" || err != nil {
		t.Errorf("%v %s", err, difference)
	}
	on.mounts = false
	if got, err = taskPerimeter(on, spec); err != nil || got.Files != 1<<15-1 {
		t.Errorf("without mounts: %v %#x", err, got.Files)
	}
}

// TestMachines: a machine that cannot confine starts nothing; waiving does not
// hide it (trap 11).
func TestMachines(t *testing.T) {
	spec := Spec{Name: "search", Command: []string{"/bin/true"}, Confined: true,
		waived: perimeterDomain | syscallFilter}
	for _, on := range []machine{{}, {landlock: 3, notification: true}, {landlock: 7}} {
		if _, err := planOf(spec, on); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "search") {
			t.Errorf("%+v: %v", on, err)
		}
	}
	if _, err := planOf(spec, machine{landlock: 4, notification: true}); err != nil {
		t.Error(err)
	}
	spec.Confined = false
	if got, err := planOf(spec, machine{}); err != nil || got.Perimeter != nil || got.Filter != nil {
		t.Errorf("baseline: %+v, %v", got, err)
	}
}

func TestSpecRefused(t *testing.T) {
	for name, spec := range map[string]Spec{
		"no command":          {},
		"relative command":    {Command: []string{"cat"}},
		"relative runtime":    {Command: []string{"/c"}, Runtime: []string{"lib"}},
		"relative perimeter":  {Command: []string{"/c"}, Perimeter: []Directory{{"x", Read}}},
		"relative capability": {Command: []string{"/c"}, Capabilities: []Capability{{"/x", "y"}}},
		"many capabilities":   {Command: []string{"/c"}, Capabilities: make([]Capability, 17)},
		"capability's number": {Command: []string{"/c"}, Descriptors: map[int]*os.File{16: os.Stdin}},
		"too high a number":   {Command: []string{"/c"}, Descriptors: map[int]*os.File{160: os.Stdin}},
		"nil file":            {Command: []string{"/c"}, Descriptors: map[int]*os.File{7: nil}},
	} {
		if _, err := planOf(spec, machine{landlock: 7, notification: true}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestPermits(t *testing.T) {
	p := permits{runtime: []string{"/usr", "/etc/ld.so.cache"}, leading: leadingTo([]string{"/usr", "/data/view"}),
		written: []string{"/data/index"}, read: hierarchiesOf([]string{"/data/view", "/data/index"})}
	program, fork := caller{process: 7, program: true}, caller{process: 8}
	tests := []struct {
		path  string
		flags int
		by    caller
		want  permission
	}{
		{"/usr/lib/x.so", syscall.O_RDONLY, fork, permitted},
		{"/usr/lib/x.so", syscall.O_RDONLY | syscall.O_TRUNC, fork, askMonitor},
		{"/usr/lib/x.so", syscall.O_RDWR, fork, askMonitor},
		{"/usr/lib/x.so", syscall.O_WRONLY, fork, askMonitor},
		{"/usr/lib", syscall.O_RDONLY | changing, fork, askMonitor},
		{"/usr", openPath, fork, permitted},
		{"/usrx", syscall.O_RDONLY, fork, askMonitor},
		{"/etc/ld.so.cache", syscall.O_RDONLY, fork, permitted},
		{"/etc/ld.so.cache2", syscall.O_RDONLY, fork, askMonitor},
		{"/", openPath, fork, permitted},
		{"/data", openPath, fork, permitted},
		{"/data", syscall.O_RDONLY, fork, askMonitor},
		{"/database", openPath, fork, askMonitor},
		{"/data/view", openPath, fork, permitted},
		{"/data/view/1", openPath, fork, askMonitor},
		{"/data/view/1", openPath, program, permitted},
		{"/data/view2", openPath, program, askMonitor},
		{"/data/view/1", syscall.O_RDONLY, program, askMonitor},
		{"/data/index/1", openPath, fork, permitted},
		{"/dev/null", syscall.O_RDWR, fork, permitted},
		{"/dev/sda", syscall.O_RDONLY, fork, askMonitor},
		{"/proc/8/maps", syscall.O_RDONLY, fork, permitted},
		{"/proc/8/task/9/stat", syscall.O_RDONLY, fork, permitted},
		{"/proc/8/fd", syscall.O_RDONLY, fork, permitted},
		{"/proc/8/environ", syscall.O_RDONLY, fork, askMonitor},
		{"/proc/8/mem", syscall.O_RDWR, fork, askMonitor},
		{"/proc/8/maps", syscall.O_WRONLY, fork, askMonitor},
		{"/proc/7/maps", syscall.O_RDONLY, fork, forbidden},
		{"/proc/7", openPath, fork, forbidden},
		{"/proc/meminfo", syscall.O_RDONLY, fork, askMonitor},
	}
	for _, test := range tests {
		if got := p.of(test.path, test.flags, test.by); got != test.want {
			t.Errorf("%s, flags %#x, by %+v: %d, want %d", test.path, test.flags, test.by, got, test.want)
		}
	}
	everything := permits{runtime: []string{"/"}}
	if got := everything.of("/proc/7/environ", syscall.O_RDONLY, fork); got != forbidden {
		t.Errorf("another process with everything as runtime: %d", got)
	}
}

func TestJudge(t *testing.T) {
	present, missing := []Feature{{Present: true}}, []Feature{{Present: true}, {}}
	for _, test := range []struct {
		needed, optional []Feature
		want             string
	}{{present, present, "full"}, {present, missing, "partial"}, {missing, present, "none"},
		{missing, missing, "none"}} {
		if got := judge(test.needed, test.optional); got != test.want {
			t.Errorf("%v and %v: %s, want %s", test.needed, test.optional, got, test.want)
		}
	}
}
