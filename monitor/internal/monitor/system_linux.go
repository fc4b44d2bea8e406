// SPDX-License-Identifier: BSD-2-Clause

package monitor

import "golang.org/x/sys/unix"

// namesOnly opens a file without any right to it but to name it.
const namesOnly = unix.O_PATH

// openMemory is a file that exists in memory only.
func openMemory(name string) (int, error) { return unix.MemfdCreate(name, unix.MFD_CLOEXEC) }

// openProcess is a descriptor of a process: readable once it is gone, and never of
// another that got its number.
func openProcess(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

func killProcess(process int) error { return unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0) }
