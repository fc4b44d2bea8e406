// SPDX-License-Identifier: BSD-2-Clause

package sandbox

// protection names one mechanism of the sandbox. The package's tests switch single ones
// off, to show that each is what stops an attack. Nothing else can switch them off.
type protection uint32

const (
	perimeterDomain protection = 1 << iota // the Landlock domain; capability mode and rights of directories
	syscallFilter                          // the whole seccomp filter
	pathMediation                          // notification of path-taking calls: they run natively instead
	unreadChannels                         // no reads of descriptor channels
	reservedNumbers                        // no duplication onto or away from reserved numbers; their rights
	execRefusal                            // no exec after start
	separateWorkers                        // no threads, shared memory or forks of workers in a task that serves users
	noPrivileges                           // a user of its own, no capabilities, no_new_privs
	nothingShared                          // workers share no memory, descriptors or signals
	lockMediation                          // record locks: the kernel sets them instead
	hiddenReads                            // reading changes no time of access
	cacheHiding                            // no calls that tell what is in the page cache
	emptyRoot                              // a root of its own for a task that serves users
	holeHiding                             // no seeking for the holes of a file
	taskCgroup                             // a cgroup of its own
)
