// SPDX-License-Identifier: BSD-2-Clause

package plan

// Protection names one mechanism of the sandbox. The sandbox's own tests switch single
// ones off, to show that each is what stops an attack. No specification can: package
// sandbox, which alone carries plans out, offers no way to set [Input.Waived].
type Protection uint32

// The protections.
const (
	PerimeterDomain Protection = 1 << iota // the Landlock domain; capability mode and rights of directories
	SyscallFilter                          // the whole seccomp filter
	PathMediation                          // notification of path-taking calls: they run natively instead
	UnreadChannels                         // no reads of descriptor channels
	ReservedNumbers                        // no duplication onto or away from reserved numbers; their rights
	ExecRefusal                            // no exec after start
	SeparateWorkers                        // no threads, shared memory or forks of workers in a task that serves users
	NoPrivileges                           // a user of its own, no capabilities, no_new_privs
	NothingShared                          // workers share no memory, descriptors or signals
	LockMediation                          // record locks: the kernel sets them instead
	HiddenReads                            // reading changes no time of access
	CacheHiding                            // no calls that tell what is in the page cache
	EmptyRoot                              // a root of its own for a task that serves users
	HoleHiding                             // no seeking for the holes of a file
	TaskCgroup                             // a cgroup of its own, which ends it
	TaskNamespace                          // a PID namespace of its own, where it has neither cgroup nor filter
	TaskLimits                             // limits on its processes, processor time and memory as a whole
	Tracelessness                          // refusals in sealed workers
	MappedOwners                           // files of the pipeline's user are the task's
	HiddenNames                            // a task learns of no file that its user could not find
)
