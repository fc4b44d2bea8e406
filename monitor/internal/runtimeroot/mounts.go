// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// origin is where a directory is stored: one that is mounted in several places has one
// origin.
type origin struct{ device, path string }

// originsOf are the origins of a directory, and of what is mounted beneath it.
func originsOf(mounts []*mountinfo.Info, where ascent) []origin {
	found := []origin{originOf(mounts, where.path)}
	for _, mount := range mounts {
		if mount.Mountpoint != where.path && beneath(mount.Mountpoint, where.path) {
			found = append(found, originOf(mounts, mount.Mountpoint))
		}
	}
	return found
}

// nestedMounts bounds how often a mount that shows a directory is followed to where that
// directory is itself mounted.
const nestedMounts = 16

// originOf is the origin of a path. FreeBSD has no roots of mounts; nullfs(5) names the
// directory that it shows.
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

// mountOf is the mount that holds a path: the last one of those mounted deepest.
func mountOf(mounts []*mountinfo.Info, path string) *mountinfo.Info {
	var on *mountinfo.Info
	for _, mount := range mounts {
		if beneath(path, mount.Mountpoint) && (on == nil || len(mount.Mountpoint) >= len(on.Mountpoint)) {
			on = mount
		}
	}
	return on
}

// meet says whether something of the one lies in the other.
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

// beneath says whether path is directory or lies in it.
func beneath(path, directory string) bool {
	return directory == "/" || path == directory || strings.HasPrefix(path, directory+"/")
}
