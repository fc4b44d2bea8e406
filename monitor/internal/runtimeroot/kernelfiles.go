// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"fmt"

	"github.com/moby/sys/mountinfo"
)

// kernelDirectories are the directories of the kernel's own files and devices, on every
// system.
var kernelDirectories = []string{"/proc", "/sys", "/dev"}

// kernelFileSystems are file systems with files that the kernel generates: they give
// information about other processes and the machine, or act on them. FreeBSD's come last.
var kernelFileSystems = map[string]bool{
	"proc": true, "sysfs": true, "devtmpfs": true, "devpts": true, "cgroup": true, "cgroup2": true,
	"debugfs": true, "tracefs": true, "securityfs": true, "configfs": true, "efivarfs": true, "pstore": true,
	"bpf": true, "mqueue": true, "nsfs": true, "binfmt_misc": true, "fusectl": true, "resctrl": true,
	"selinuxfs": true, "smackfs": true, "binder": true, "functionfs": true, "rpc_pipefs": true, "nfsd": true,
	"procfs": true, "linprocfs": true, "linsysfs": true, "devfs": true, "fdescfs": true, "mqueuefs": true,
}

// checkKernelFiles refuses the kernel's own files, wherever they are mounted.
func checkKernelFiles(mounts []*mountinfo.Info, root string, where ascent) error {
	const remedy = "name only the directories that hold the task's program and libraries; " +
		"programs can use the kernel's files that they need in any case"
	for _, directory := range kernelDirectories {
		if beneath(where.path, directory) || beneath(directory, where.path) {
			return fmt.Errorf("runtime %s reaches %s, a directory of the kernel's own files and devices; %s",
				root, directory, remedy)
		}
	}
	on := mountOf(mounts, where.path)
	for _, mount := range mounts {
		if kernelFileSystems[mount.FSType] && (mount == on || beneath(mount.Mountpoint, where.path)) {
			return &refusal{fmt.Sprintf("runtime %s reaches a file system of the kernel (%s); %s", root, mount.FSType, remedy),
				mount.Mountpoint}
		}
	}
	return nil
}
