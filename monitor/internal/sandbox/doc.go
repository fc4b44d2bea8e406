// SPDX-License-Identifier: BSD-2-Clause

package sandbox

// The Linux backend, by file: what is pure first.
//
//	syscalls.go, callnames.go  what happens to every system call
//	filter.go, arguments.go    the seccomp program computed from it
//	perimeter.go, plan.go      the Landlock domain, and all a launcher will do
//	permit.go                  what needs no decision of the monitor's
//	launcher, keeper, task     start and end of a task's processes
//	supervisor, seccomp        notifications
//	resolve, mediate, memory   calls by path
//	accept                     sessions, and checked writes
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
// What it does not prevent: a task learns from ENOENT that a name is missing
// (existence of names is no secret here), and processes of one task share what
// they mapped shared before they forked.
