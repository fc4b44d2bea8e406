// SPDX-License-Identifier: BSD-2-Clause

package catalog

import "golang.org/x/sys/unix"

// openQuietly makes reads and mappings leave the time of access of a file as it is: who holds
// the file could see that others use it. The file has to be the monitor's own (open(2)).
const openQuietly = unix.O_NOATIME
