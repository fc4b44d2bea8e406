// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"strings"
	"testing"
)

// TestUnsealableTiming: what counts over sessions.
func TestUnsealableTiming(t *testing.T) {
	soft := strings.Replace(limits, "unlimited ", "7200      ", 1)
	for _, test := range []struct{ limits, timers, want string }{
		{soft, "", "a limit on CPU time"},
		{limits, "ID: 0\nsignal: 14/0000000000000000\n", "timers: delete"},
	} {
		w := described(t, status, smaps, ranges...)
		var err error
		if w.Timing, err = ParseTiming([]byte(test.limits), []byte(test.timers)); err != nil {
			t.Fatal(err)
		}
		if _, err := Check(w, code, 1); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
	}
	for _, text := range []string{"", "Max cpu time unlimited unlimited\n", "Max file size unlimited unlimited bytes\n"} {
		if got, err := ParseTiming([]byte(text), nil); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
