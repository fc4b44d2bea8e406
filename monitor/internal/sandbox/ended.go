// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import "fmt"

// Ended is how a program has ended that has not ended well.
type Ended struct {
	Status int    // with which it exited; 0 if a signal killed it
	Signal string // the one that killed it, such as "SIGKILL"; else ""
}

func (e Ended) Error() string {
	if e.Signal != "" {
		return "killed by " + e.Signal
	}
	return fmt.Sprintf("exited with status %d", e.Status)
}
