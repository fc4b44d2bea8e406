// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"fmt"
	"strconv"
	"strings"

	"shai.dev/monitor/internal/wire"
)

// CheckDescriptors returns an error unless the names in /proc/PID/fd are the reserved numbers.
func CheckDescriptors(names []string) error {
	for _, name := range names {
		if number, err := strconv.Atoi(name); err != nil || number < 0 || number >= wire.FDReservedEnd {
			return fmt.Errorf("it has descriptor %s open", name)
		}
	}
	if len(names) != wire.FDReservedEnd {
		return fmt.Errorf("it has %d descriptors in place of %d", len(names), wire.FDReservedEnd)
	}
	return nil
}

// CheckCall returns an error unless the text of /proc/PID/syscall, which has the registers that
// the kernel shows of a thread that waits (arguments, stack pointer, instruction pointer), is
// that of a worker that waits in the roll-back code's accept4.
func (s Seal) CheckCall(text string) error {
	const accept4, closeOnExec = 288, 0x80000
	want := fmt.Sprintf("%d 0x%x 0x0 0x0 0x%x 0x0 0x0 0x%x 0x%x", accept4, wire.FDListen, closeOnExec, s.Stack,
		uint64(wire.RollbackCode+wire.RollbackAccepted))
	if got := strings.TrimSpace(text); got != want {
		return fmt.Errorf("its registers are %s in place of %s", got, want)
	}
	return nil
}
