// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// site is a directory with data, state, a key, programs, and paths that lead from one to
// the other.
func site(t *testing.T) (root string, places []Place) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{"srv/data/inbox", "srv/data/programs", "srv/state/view", "opt/programs/lib",
		"opt/else", "etc/alternatives", "pool/other/bin", "pool/other/data", "pool/images/one"} {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"etc/monitor.key", "etc/ld.so.cache", "pool/other/.shai-member",
		"opt/programs/tool"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"into": "srv/data/inbox", "up": "opt/../srv",
		"opt/else/down": "../../srv/state",
		"lib":           "opt/programs/lib", "opt/loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root, []Place{
		{filepath.Join(root, "srv/data"), "the data directory"},
		{filepath.Join(root, "srv/state"), "the state directory"},
		{filepath.Join(root, "etc/monitor.key"), "the key"},
		{filepath.Join(root, "run/store.sock"), "the store's socket"},
	}
}

func TestCheck(t *testing.T) {
	root, places := site(t)
	for path, want := range map[string]string{
		// Allowed.
		"opt/programs":      "",
		"opt/programs/tool": "",
		"lib":               "",
		"etc/alternatives":  "",
		"etc/ld.so.cache":   "",
		"pool/images/one":   "",
		"opt/else":          "", // a link in it leads elsewhere; what is opened is what counts
		// Places with data or secrets, and paths that lead there.
		"":                  "contains the data directory",
		"srv":               "contains the data directory",
		"srv/data":          "is the data directory",
		"srv/data/inbox":    "lies in the data directory",
		"srv/data/programs": "lies in the data directory",
		"srv/state/view":    "lies in the state directory",
		"into":              "lies in the data directory",
		"up":                "contains the data directory",
		"opt/else/down":     "is the state directory",
		"opt/../srv/data":   "is the data directory",
		"etc":               "contains the key",
		"etc/monitor.key":   "is the key",
		"pool/other":        "lies in what belongs to another monitor, or to a member",
		"pool/other/bin":    "lies in what belongs to another monitor, or to a member",
		"pool":              "contains what belongs to another monitor, or to a member",
		"opt/missing":       "there is no such file or directory",
		"opt/loop":          "too many links",
	} {
		real, err := Check([]string{filepath.Join(root, "opt/programs"), root + "/" + path}, places)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s is refused: %v", path, err)
		case want == "" && !isReal(t, real[1]):
			t.Errorf("%s is %s, which has symbolic links", path, real[1])
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for _, path := range []string{"/", "/..", "/proc/self/root", "/proc/self/cwd/../../../../../../../../../.."} {
		if _, err := Check([]string{path}, places); err == nil {
			t.Errorf("%s is accepted", path)
		}
	}
	for _, path := range []string{"/usr", "/etc/passwd", "/bin"} {
		if _, err := Check([]string{path}, places); err != nil {
			t.Errorf("%s is refused: %v", path, err)
		}
	}
}

// An author learns no path but the own one. The monitor's log has the others.
func TestRefusalsNameNoOtherPath(t *testing.T) {
	root, places := site(t)
	author := filepath.Join(root, "author")
	for _, directory := range []string{"author", "hidden/other/data", "hidden/member", "pool/other/deep"} {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "hidden/member/.shai-member"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	places = append(places, OfOthers(filepath.Join(root, "hidden/other/data")))
	for target, detail := range map[string]string{
		"hidden/other":      "hidden/other/data",
		"hidden/other/data": "hidden/other/data",
		"hidden":            "hidden/other/data",
		"hidden/member":     "hidden/member",
		"pool":              "pool/other/.shai-member",
		"pool/other/deep":   "pool/other",
		"srv":               "srv/data",
		"srv/state/view":    "srv/state",
		"opt/loop":          "EvalSymlinks: too many links",

		"opt/" + strings.Repeat("x", 300): "opt/xxx",
	} {
		runtime := filepath.Join(author, "runtime")
		_ = os.Remove(runtime)
		if err := os.Symlink(filepath.Join(root, target), runtime); err != nil {
			t.Fatal(err)
		}
		_, err := Check([]string{runtime}, places)
		if err == nil || strings.Contains(strings.ReplaceAll(err.Error(), runtime, ""), root) {
			t.Errorf("%s: %v", target, err)
		}
		if got := Detail(err); !strings.Contains(got, detail) {
			t.Errorf("%s: the log says %q, want %q", target, got, detail)
		}
	}
	unsearchable := OfOthers(filepath.Join(root, "opt/loop"))
	if _, err := Check([]string{"/usr"}, []Place{unsearchable}); err == nil || strings.Contains(err.Error(), root) || Detail(err) == "" {
		t.Errorf("a place that cannot be found: %v, in the log %q", err, Detail(err))
	}
}

// What is made beneath a runtime after the check is not the task's.
func TestIsOthers(t *testing.T) {
	root, _ := site(t)
	var roots []string
	for _, one := range []string{"opt", "pool/other/bin", "pool/images"} {
		roots = append(roots, filepath.Join(root, one))
	}
	if err := os.WriteFile(filepath.Join(root, "opt/else", mark), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	data := []string{filepath.Join(root, "opt/programs/lib"), filepath.Join(root, "opt/missing")}
	for path, want := range map[string]bool{
		"opt": false, "opt/programs": false, "opt/programs/tool": false, "opt/programs/library": false,
		"opt/programs/lib": true, "opt/programs/lib/x.so": true, "opt/missing/inbox": true,
		"opt/else": true, "opt/else/data/inbox": true, "opt/elsewhere": false,
		"pool/other/bin/tool": false, // the mark is above the runtime, where Check has looked
		"pool/images/one/x":   false,
	} {
		if got, err := IsOthers(filepath.Join(root, path), roots, data); err != nil || got != want {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	if _, err := IsOthers(filepath.Join(root, "opt", strings.Repeat("x/", 2100)), roots, nil); err == nil {
		t.Error("a place that cannot be examined is the task's")
	}
}

func isReal(t *testing.T, path string) bool {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	return err == nil && real == path
}

// A place that does not exist yet counts where it is going to be.
func TestMissingPlaces(t *testing.T) {
	root, places := site(t)
	if err := os.Mkdir(filepath.Join(root, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Check([]string{filepath.Join(root, "run")}, places); err == nil {
		t.Error("the directory in which the store will listen is accepted")
	}
	if _, err := Check([]string{filepath.Join(root, "opt")}, places); err != nil {
		t.Errorf("what has nothing to do with it is refused: %v", err)
	}
}

// A directory that is mounted in two places has one origin. The table lists the mounts;
// no other test can mount anything on every machine.
func TestOrigins(t *testing.T) {
	mount := func(point, root string, major int) *mountinfo.Info {
		return &mountinfo.Info{Mountpoint: point, Root: root, Major: major}
	}
	for name, test := range map[string]struct {
		mounts []*mountinfo.Info
		meets  bool
	}{
		"one file system":                 {nil, false},
		"data on a disk of their own":     {[]*mountinfo.Info{mount("/srv/data", "/", 2)}, false},
		"data are mounted in the runtime": {[]*mountinfo.Info{mount("/usr/lib/x", "/srv/data", 1)}, true},
		"a part of the data is":           {[]*mountinfo.Info{mount("/usr/lib/x", "/srv/data/inbox", 1)}, true},
		"what holds the data is":          {[]*mountinfo.Info{mount("/usr/lib/x", "/srv", 1)}, true},
		"something else is":               {[]*mountinfo.Info{mount("/usr/lib/x", "/home", 1)}, false},
		"the runtime is in the data":      {[]*mountinfo.Info{mount("/srv/data/x", "/usr/lib/y", 1)}, true},
		"the runtime is a mount of data":  {[]*mountinfo.Info{mount("/usr", "/srv/data", 1)}, true},
		"a disk of the data is": {[]*mountinfo.Info{mount("/srv/data/disk", "/", 2),
			mount("/usr/lib/x", "/inbox", 2)}, true},
		"hidden by another mount": {[]*mountinfo.Info{mount("/usr", "/srv/data", 1), mount("/usr", "/", 3)},
			false},
		"nullfs": {[]*mountinfo.Info{
			{Mountpoint: "/usr/lib/x", FSType: "nullfs", Source: "/srv/data"}}, true},
		"nullfs of something else": {[]*mountinfo.Info{
			{Mountpoint: "/usr/lib/x", FSType: "nullfs", Source: "/srv/programs"}}, false},
	} {
		mounts := append([]*mountinfo.Info{mount("/", "/", 1)}, test.mounts...)
		runtime := originsOf(mounts, ascent{path: "/usr/lib"})
		data := originsOf(mounts, ascent{path: "/srv/data"})
		if got := meet(runtime, data); got != test.meets {
			t.Errorf("%s: meets %v; runtime %v, data %v", name, got, runtime, data)
		}
	}
}

// The kernel's own files are never a runtime, by whatever path or mount.
func TestKernelFiles(t *testing.T) {
	for path, want := range map[string]string{
		"/proc": "reaches /proc", "/proc/self/status": "reaches /proc",
		"/dev": "reaches /dev", "/dev/null": "reaches /dev",
		"/usr/bin": "",
	} {
		if _, err := Check([]string{path}, nil); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	disk := &mountinfo.Info{Mountpoint: "/", FSType: "ext4"}
	// In a container they may be on another file system than the kernel's.
	for path, refused := range map[string]bool{
		"/": true, "/proc": true, "/proc/keys": true, "/sys/kernel": true, "/dev": true, "/dev/shm": true,
		"/devices": false, "/usr/dev": false,
	} {
		if err := checkKernelFiles([]*mountinfo.Info{disk}, path, ascent{path: path}); (err != nil) != refused {
			t.Errorf("%s on the disk: %v, want it to be refused: %v", path, err, refused)
		}
	}
	for path, refused := range map[string]bool{
		"/opt/root": true, "/opt/root/proc": true, "/opt/root/proc/keys": true,
		"/opt/root/usr": false, "/opt/root/processor": false,
	} {
		for system, isKernels := range map[string]bool{
			"proc": true, "cgroup2": true, "linsysfs": true, "tmpfs": false,
		} {
			mounts := []*mountinfo.Info{disk, {Mountpoint: "/opt/root/proc", FSType: system}}
			err := checkKernelFiles(mounts, path, ascent{path: path})
			if (err != nil) != (refused && isKernels) {
				t.Errorf("%s with a %s: %v", path, system, err)
			}
		}
	}
}
