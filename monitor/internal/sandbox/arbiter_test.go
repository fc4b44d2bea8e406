// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

func TestUseOf(t *testing.T) {
	for _, test := range []struct {
		flags int
		want  plan.Use
	}{
		{unix.O_RDONLY, plan.Reading},
		{unix.O_RDONLY | unix.O_CLOEXEC, plan.Reading},
		{unix.O_RDONLY | unix.O_TRUNC, plan.Changing},
		{unix.O_RDONLY | changing, plan.Changing},
		{unix.O_WRONLY, plan.Changing},
		{unix.O_RDWR, plan.Changing},
		{openPath, plan.Looking},
		{openPath | unix.O_TRUNC, plan.Looking}, // the kernel ignores the other flags
	} {
		if got := useOf(test.flags); got != test.want {
			t.Errorf("flags %#x: %d, want %d", test.flags, got, test.want)
		}
	}
}
