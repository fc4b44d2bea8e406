// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestRightsAreTheKernels: composed rights of sys/capsicum.h are made of several bits.
func TestRightsAreTheKernels(t *testing.T) {
	for name, pair := range map[string][2]uint64{
		"read": {capRead, unix.CAP_READ}, "write": {capWrite, unix.CAP_WRITE}, "seek": {capSeek, unix.CAP_SEEK},
		"map":            {capRead | capSeek | capMap, unix.CAP_MMAP_R},
		"execute mapped": {capSeek | capMap | capMapExecute, unix.CAP_MMAP_X},
		"create":         {capCreate, unix.CAP_CREATE}, "execute": {capExecute, unix.CAP_FEXECVE},
		"sync":     {capSync, unix.CAP_FSYNC},
		"truncate": {capTruncate, unix.CAP_FTRUNCATE}, "look up": {capLookUp, unix.CAP_LOOKUP},
		"control": {capControl, unix.CAP_FCNTL},
		"lock":    {capLock, unix.CAP_FLOCK}, "limits": {capLimits, unix.CAP_FPATHCONF},
		"status":           {capStatus, unix.CAP_FSTAT},
		"system status":    {capSystemStatus, unix.CAP_FSTATFS},
		"link to":          {capLookUp | capLinkTo, unix.CAP_LINKAT_TARGET},
		"link from":        {capLookUp | capLinkFrom, unix.CAP_LINKAT_SOURCE},
		"make directories": {capLookUp | capMakeDir, unix.CAP_MKDIRAT},
		"rename from":      {capLookUp | capRenameFrom, unix.CAP_RENAMEAT_SOURCE},
		"rename to":        {capLookUp | capRenameTo, unix.CAP_RENAMEAT_TARGET},
		"unlink":           {capLookUp | capUnlink, unix.CAP_UNLINKAT},
		"peer's name":      {capPeerName, unix.CAP_GETPEERNAME},
		"socket's name":    {capSocketName, unix.CAP_GETSOCKNAME}, "get option": {capGetOption, unix.CAP_GETSOCKOPT},
		"shut down": {capShutDown, unix.CAP_SHUTDOWN}, "poll": {capPoll, unix.CAP_EVENT},
		"device": {capDevice, unix.CAP_IOCTL},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %#x, the kernel's %#x", name, pair[0], pair[1])
		}
	}
}
