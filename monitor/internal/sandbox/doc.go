// SPDX-License-Identifier: BSD-2-Clause

package sandbox

// Package plan computes what a launcher will do, and what needs no decision of the
// monitor. Files that both backends share:
//
//	launcher, keeper, task     start and end of a task's processes
//	arbiter, resolve           decisions, and the file that a path means
//
// The Linux backend:
//
//	privileges                 who a task is, and whose rights on files the monitor uses for it
//	owners                     mounts on which the files of the task's pipeline are its own
//	confine, reaper            the launcher's and the keeper's system calls
//	listening, requests, seccomp  notifications
//	supervisor                 the supervisor of a task with sessions: room supervisor/
//	surroundings, mediate, memory  calls by path
//	seal, compare              workers that are rolled back; package sealing judges them
//	send                       checked writes
//	stopped                    what a task that raises its taint has open
//	isolation                  what the processes of a task must not share
//	locks, mounts              traces that reading leaves
//
// The FreeBSD backend (docs/freebsd-design.md) filters no calls. In capability mode the kernel
// refuses every call by name, and a task asks the monitor for what the kernel has refused.
//
//	confine, reaper, processes the launcher's and the keeper's system calls
//	requests, answers          what a task asks for
//	surroundings               where its paths mean something
//	accept, worker             sessions
//
// Known pitfalls of such sandboxes, and the code and tests that prevent them:
//
//	1  CONTINUE after reading a pointer      request.proceed; TestRace
//	2  injection fails, or is interrupted    TestNoRoomForDescriptor, TestDeathWhileDeciding, TestSignalsToTheMonitor
//	3  resolved in the wrong context         resolve; TestTwins and TestAttacks on /proc/self
//	4  sibling calls forgotten               TestEveryCallIsClassified, TestUnknownCalls
//	5  identity against path                 TestIdentity, TestReplacedWhileDeciding
//	6  io_uring, x32, 32-bit entries         TestAttacks, TestFilterEntries, TestX32
//	7  stacked layers and REFER              TestFilesStayInUnreadableDirectories; a task has one layer of the 16
//	8  unreadable or dying tasks             PR_SET_DUMPABLE is refused; memory; TestDeathWhileDeciding
//	9  liveness                              TestSignals, TestVfork, TestSlowDecision; fsync is native
//	10 order, inheritance, clone3, prctl     launcher; TestInherited, TestJavaVersion; EBUSY is explained
//	11 enforcing nothing                     TestMachines, TestJudge
//	12 silent denials                        TestRefusedCallsAreReported
//
// On FreeBSD 1, 6 and 7 do not arise: a request is a record, there is one system call
// entry, and rights of descriptors do not stack. 3, 5, 8, 9, 10 and 12 have the same
// tests, or tests of their own in requests_freebsd_test.go.
//
// The sandbox does not prevent the following. A task learns from ENOENT that a name is
// missing; the existence of names is not secret. On FreeBSD a task can also listen on a
// port that the kernel chooses: bind(2) and connect(2) are refused, socket(2) and
// listen(2) are not (a jail without addresses prevents this). On FreeBSD a call that the
// kernel refuses, and that the task cannot ask the monitor for, is not reported.
