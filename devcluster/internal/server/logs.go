// SPDX-License-Identifier: BSD-2-Clause

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"shai.dev/devcluster/internal/directory"
)

// redirectLogs makes the devcluster's log standard error, to which all parts log and
// panics are written. It keeps the log of the previous run beside it.
func redirectLogs(d directory.Directory) error {
	if err := os.Rename(d.Log(), d.Log()+".last"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rename the last log: %w", err)
	}
	log, err := os.OpenFile(d.Log(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	if err := unix.Dup2(int(log.Fd()), int(os.Stderr.Fd())); err != nil {
		return fmt.Errorf("send standard error to the log: %w", err)
	}
	return nil
}
