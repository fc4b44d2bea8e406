// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// superviseChecks runs in the first process: it runs this program again for the checks.
// In the meantime it waits for every process that has lost its parent, so that a
// program that watches such a process sees its end. It returns when the checks end.
func superviseChecks() {
	child, err := syscall.ForkExec(os.Args[0], os.Args, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	if err != nil {
		fmt.Printf("NOT OK  run the checks: %v\n", err)
		return
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			fmt.Printf("NOT OK  wait for the checks: %v\n", err)
			return
		case ended == child && status.ExitStatus() != 0:
			fmt.Printf("NOT OK  the checks end with status %#x\n", int(status))
			return
		case ended == child:
			return
		}
	}
}
