// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// headerOfCalls is where Linux distributions put the kernel's table.
const headerOfCalls = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"

// TestEveryCallIsClassified compares the table with the kernel's header on this
// machine: a call that a newer kernel adds fails the test until somebody has
// decided on it (and is refused until then).
func TestEveryCallIsClassified(t *testing.T) {
	for _, call := range calls {
		if call.Name != "" && call.treatment == unclassified {
			t.Errorf("%s (%d) is not classified", call.Name, call.Number)
		}
	}
	header, err := os.ReadFile(headerOfCalls)
	if err != nil {
		t.Skipf("no kernel header to compare with: %v", err)
	}
	for _, match := range regexp.MustCompile(`#define __NR_(\w+) (\d+)`).FindAllStringSubmatch(string(header), -1) {
		number, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		if got := CallOf(uint32(number)); got.Name != match[1] || got.treatment == unclassified {
			t.Errorf("%s (%d) of the kernel's header is %q here, treatment %d", match[1], number, got.Name,
				got.treatment)
		}
	}
}

// TestUnknownCalls: what is not in the table is refused with ENOSYS.
func TestUnknownCalls(t *testing.T) {
	for _, number := range []uint32{336, 400, uint32(len(callNames)), 5000} {
		if got := CallOf(number); got.treatment != unclassified || got.Refusal() != errnoENOSYS {
			t.Errorf("number %d is %+v", number, got)
		}
	}
}
