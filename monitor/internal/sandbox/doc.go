// SPDX-License-Identifier: BSD-2-Clause

package sandbox

// What both backends share, by file: what is pure first.
//
//	plan.go, permit.go         all a launcher will do; what needs no decision of the monitor's
//	launcher, keeper, task     start and end of a task's processes
//	arbiter, resolve           decisions, and the file that a path means
//	accept                     sessions
//
// The Linux backend:
//
//	syscalls.go, callnames.go  what happens to every system call
//	filter.go, arguments.go    the seccomp program computed from it
//	perimeter.go               the Landlock domain
//	privileges, user           who a task is, and whose rights on files the monitor uses for it
//	confine, reaper            the launcher's and the keeper's system calls
//	supervisor, seccomp        notifications
//	surroundings, mediate, memory  calls by path
//	accept, reservations, worker  sessions, and checked writes
//
// The FreeBSD backend (docs/freebsd.md): no call is filtered; in capability mode the
// kernel refuses every call by name, and a task asks for what it was refused.
//
//	capsicum.go                rights of every descriptor of a task
//	confine, reaper, processes the launcher's and the keeper's system calls
//	requests, answers          what a task asks for
//	surroundings               where its paths mean something
//	worker                     sessions
//
// Traps that have bitten others, and what keeps them shut:
//
//	1  CONTINUE after reading a pointer      request.proceed; TestRace
//	2  injection fails                       TestNoRoomForDescriptor, TestDeathWhileDeciding
//	3  resolved in the wrong context         resolve; TestTwins and TestAttacks on /proc/self
//	4  sibling calls forgotten               TestEveryCallIsClassified, TestUnknownCalls
//	5  identity against path                 TestIdentity, TestReplacedWhileDeciding
//	6  io_uring, x32, 32-bit entries         TestAttacks, TestFilterEntries, TestX32
//	7  stacked layers and REFER              TestRuleset; a worker adds one layer of the 16
//	8  unreadable or dying tasks             PR_SET_DUMPABLE is refused; memory; TestDeathWhileDeciding
//	9  liveness                              TestSignals, TestVfork, TestSlowDecision; fsync is native
//	10 order, inheritance, clone3, prctl     launcher; TestInherited, TestJavaVersion; EBUSY is explained
//	11 enforcing nothing                     TestMachines, TestJudge
//	12 silent denials                        TestRefusedCallsAreReported
//
// On FreeBSD 1, 6 and 7 do not arise: what is asked for is a record, there is one entry,
// and rights of descriptors do not stack. 3, 5, 8, 9, 10 and 12 have the same tests, or
// their own in requests_freebsd_test.go.
//
// What it does not prevent: a task learns from ENOENT that a name is missing
// (existence of names is no secret here), and processes of one task share what
// they mapped shared before they forked. On FreeBSD a task can also have the kernel
// choose a port for it and listen there (bind(2) and connect(2) are refused, socket(2)
// and listen(2) are not; a jail without addresses prevents that), and calls that the
// kernel refuses, but that nobody can ask for, are not reported.
