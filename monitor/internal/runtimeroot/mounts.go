// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// origin is where a directory is stored. A directory that is mounted in several places
// has one origin.
type origin struct{ device, path string }

// originsOf returns the origins of a directory and of everything mounted beneath it.
func originsOf(mounts []*mountinfo.Info, where ascent) []origin {
	found := []origin{originOf(mounts, where.path)}
	for _, mount := range mounts {
		if mount.Mountpoint != where.path && beneath(mount.Mountpoint, where.path) {
			found = append(found, originOf(mounts, mount.Mountpoint))
		}
	}
	return found
}

// nestedMounts limits how often originOf follows a mount to a directory that is itself
// mounted.
const nestedMounts = 16

// originOf returns the origin of a path. FreeBSD does not report the roots of mounts; for
// nullfs(5), the source is the mounted directory.
func originOf(mounts []*mountinfo.Info, path string) origin {
	for range nestedMounts {
		mount := mountOf(mounts, path)
		if mount == nil {
			break
		}
		relative := strings.TrimPrefix(strings.TrimPrefix(path, mount.Mountpoint), "/")
		if mount.FSType == "nullfs" {
			path = filepath.Join(mount.Source, relative)
			continue
		}
		device := fmt.Sprintf("%d:%d", mount.Major, mount.Minor)
		if mount.Root == "" {
			device = mount.Source
		}
		return origin{device, filepath.Join("/", mount.Root, relative)}
	}
	return origin{"", path}
}

// mountOf returns the mount that holds a path: of the deepest ones, the last.
func mountOf(mounts []*mountinfo.Info, path string) *mountinfo.Info {
	var on *mountinfo.Info
	for _, mount := range mounts {
		if beneath(path, mount.Mountpoint) && (on == nil || len(mount.Mountpoint) >= len(on.Mountpoint)) {
			on = mount
		}
	}
	return on
}

// meet reports whether one of these lies in one of those, or the other way round.
func meet(these, those []origin) bool {
	for _, this := range these {
		for _, that := range those {
			if this.device == that.device && (beneath(this.path, that.path) || beneath(that.path, this.path)) {
				return true
			}
		}
	}
	return false
}

// beneath reports whether path is directory or lies in it.
func beneath(path, directory string) bool {
	return directory == "/" || path == directory || strings.HasPrefix(path, directory+"/")
}
