// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"slices"
	"testing"

	"shai.dev/monitor/internal/wire"
)

func TestPermits(t *testing.T) {
	p := Permits{Runtime: []string{"/usr", "/etc/ld.so.cache"}, leading: leadingTo([]string{"/usr", "/data/view"}),
		written: []string{"/data/index"}, read: hierarchiesOf([]string{"/data/view", "/data/index"})}
	program, fork := Process{Number: 7, Program: true}, Process{Number: 8}
	tests := []struct {
		path string
		use  Use
		by   Process
		want Permission
	}{
		{"/usr/lib/x.so", Reading, fork, Permitted},
		{"/usr/lib/x.so", Changing, fork, AskMonitor},
		{"/usr/lib", Changing, fork, AskMonitor},
		{"/usr", Looking, fork, Permitted},
		{"/usrx", Reading, fork, AskMonitor},
		{"/etc/ld.so.cache", Reading, fork, Permitted},
		{"/etc/ld.so.cache2", Reading, fork, AskMonitor},
		{"/", Looking, fork, Permitted},
		{"/data", Looking, fork, Permitted},
		{"/data", Reading, fork, AskMonitor},
		{"/database", Looking, fork, AskMonitor},
		{"/data/view", Looking, fork, Permitted},
		{"/data/view/1", Looking, fork, AskMonitor},
		{"/data/view/1", Looking, program, Permitted},
		{"/data/view2", Looking, program, AskMonitor},
		{"/data/view/1", Reading, program, AskMonitor},
		{"/data/index/1", Looking, fork, Permitted},
		{"/dev/null", Changing, fork, Permitted},
		{"/dev/sda", Reading, fork, AskMonitor},
		{"/proc/8/maps", Reading, fork, Permitted},
		{"/proc/8/task/9/stat", Reading, fork, Permitted},
		{"/proc/8/fd", Reading, fork, Permitted},
		{"/proc/8/environ", Reading, fork, AskMonitor},
		{"/proc/8/smaps", Reading, fork, AskMonitor},
		{"/proc/8/smaps_rollup", Reading, fork, AskMonitor},
		{"/proc/8/task/9/smaps", Reading, fork, AskMonitor},
		{"/proc/8/pagemap", Reading, fork, AskMonitor},
		{"/proc/8/numa_maps", Reading, fork, AskMonitor},
		{"/proc/8/clear_refs", Changing, fork, AskMonitor},
		{"/proc/8/map_files", Reading, fork, AskMonitor},
		{"/proc/kpagecount", Reading, fork, AskMonitor},
		{"/proc/8/mem", Changing, fork, AskMonitor},
		{"/proc/8/maps", Changing, fork, AskMonitor},
		{"/proc/7/maps", Reading, fork, Forbidden},
		{"/proc/7", Looking, fork, Forbidden},
		{"/proc/meminfo", Reading, fork, AskMonitor},
	}
	for _, test := range tests {
		if got := p.Of(test.path, test.use, test.by); got != test.want {
			t.Errorf("%s, use %d, by %+v: %d, want %d", test.path, test.use, test.by, got, test.want)
		}
	}
	everything := Permits{Runtime: []string{"/"}}
	if got := everything.Of("/proc/7/environ", Reading, fork); got != Forbidden {
		t.Errorf("another process with everything as runtime: %d", got)
	}
}

// TestPermitsOf: a hierarchy is entered under its name and under its real path.
func TestPermitsOf(t *testing.T) {
	spec := Spec{Runtime: []string{"/usr"}, RuntimeNames: []string{"/lib"},
		Perimeter: []Directory{{"/view", Read}, {"/link", Read | Write}, {"/drop/", Write},
			{"/catalogue", List | Names},
			{"/box", Names}}}
	links := map[string]string{"/link": "/disk/index", "/lib": "/usr/lib"}
	p := PermitsOf(spec, func(name string) string {
		if place, found := links[name]; found {
			return place
		}
		return name
	})
	program := Process{Number: 7, Program: true}
	for _, test := range []struct {
		path                     string
		look, read, lists, locks bool
	}{
		{"/usr/lib/x.so", true, false, false, false},
		{"/lib", true, false, false, false},
		{"/lib/x.so", false, false, false, false}, // a real path does not lead through the link
		{"/view", true, true, true, false},
		{"/view/1", true, true, true, false},
		{"/link/1", true, true, true, true},
		{"/disk/index/1", true, true, true, true},
		{"/disk", true, false, false, false},
		{"/disk/other", false, false, false, false},
		{"/drop/1", true, false, false, false},
		{"/catalogue", true, false, true, true},
		{"/catalogue/1", true, false, false, true}, // its name is listed, not what is in it
		{"/box/1", true, false, false, false},
	} {
		look := p.Of(test.path, Looking, program) == Permitted
		if look != test.look || p.MayRead(test.path, program) != test.read || p.MayLock(test.path) != test.locks ||
			p.MayList(test.path, program) != test.lists {
			t.Errorf("%s: may look %v, read %v, list %v, lock %v; want %+v", test.path, look,
				p.MayRead(test.path, program), p.MayList(test.path, program), p.MayLock(test.path), test)
		}
		if p.MayList(test.path, Process{Number: 8}) {
			t.Errorf("%s: a fork may list it", test.path)
		}
	}
}

func TestIsOwnLink(t *testing.T) {
	for path, want := range map[string]bool{"/proc/7/exe": true, "/proc/7/cwd": true, "/proc/7/root": true,
		"/proc/7/fd/3": true, "/proc/7/fd": false, "/proc/7/ns/net": false, "/proc/8/exe": false, "/proc/exe": false} {
		if got := IsOwnLink(path, 7); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// TestIsChecked: on both systems no write to a checked number goes by without a decision,
// and those to the others that a task writes to do.
func TestIsChecked(t *testing.T) {
	filter := interpreter(t, filterSpec{})
	for number := wire.FDMonitor; number < wire.FDReservedEnd; number++ {
		asks := evaluate(t, filter, x86, numberOf("write"), uint64(number)) == notify
		if asks != IsChecked(number) {
			t.Errorf("on Linux a write to %d asks: %v", number, asks)
		}
		if IsChecked(number) && slices.Contains(rightsAt(number, 0), capWrite) {
			t.Errorf("on FreeBSD %d can be written to", number)
		}
	}
	for _, number := range []int{wire.FDConnection, wire.FDChannel} {
		if IsChecked(number) || !slices.Contains(rightsAt(number, 0), capWrite) {
			t.Errorf("%d cannot be written to", number)
		}
	}
}

func TestSetsLock(t *testing.T) {
	for command, want := range map[uint32]bool{5: false, 6: true, 7: true, 36: false, 37: true, 38: true, 1024: false} {
		if got := SetsLock(command); got != want {
			t.Errorf("command %d: %v", command, got)
		}
	}
}
