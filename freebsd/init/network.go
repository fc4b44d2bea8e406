// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"
	"syscall"
	"unsafe"
)

const (
	loopback = "lo0"

	// SIOCAIFADDR is _IOW('i', 43, struct ifaliasreq). The syscall package has the
	// value of FreeBSD 9.
	addAddress = 1<<31 | unsafe.Sizeof(aliasRequest{})<<16 | 'i'<<8 | 43
)

// aliasRequest is struct ifaliasreq of net/if.h.
type aliasRequest struct {
	name                     [syscall.IFNAMSIZ]byte
	address, broadcast, mask syscall.RawSockaddrInet4
	host                     int32
}

// localAddresses are the addresses that the tests use. Unlike Linux, FreeBSD has only
// those addresses of 127.0.0.0/8 that an interface was given.
var localAddresses = []struct{ address, mask [4]byte }{
	{[4]byte{127, 0, 0, 1}, [4]byte{255, 0, 0, 0}},
	{[4]byte{127, 0, 1, 1}, [4]byte{255, 255, 255, 255}},
	{[4]byte{127, 0, 1, 2}, [4]byte{255, 255, 255, 255}},
	{[4]byte{127, 0, 1, 3}, [4]byte{255, 255, 255, 255}},
	{[4]byte{127, 0, 1, 9}, [4]byte{255, 255, 255, 255}},
	{[4]byte{127, 0, 2, 1}, [4]byte{255, 255, 255, 255}},
	{[4]byte{127, 0, 2, 2}, [4]byte{255, 255, 255, 255}},
	{[4]byte{127, 0, 3, 1}, [4]byte{255, 255, 255, 255}},
}

// bringUpLoopback gives the loopback interface its addresses; the first one also
// brings it up.
func bringUpLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer syscall.Close(socket)
	for _, local := range localAddresses {
		request := aliasRequest{address: socketAddress(local.address), mask: socketAddress(local.mask)}
		copy(request.name[:], loopback)
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), addAddress,
			uintptr(unsafe.Pointer(&request)))
		if errno != 0 {
			return fmt.Errorf("address %v: %w", local.address, errno)
		}
	}
	return nil
}

func socketAddress(address [4]byte) syscall.RawSockaddrInet4 {
	return syscall.RawSockaddrInet4{Len: syscall.SizeofSockaddrInet4, Family: syscall.AF_INET, Addr: address}
}
