// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"testing"
)

// A worker that asks and does not sleep yet is not compared with one that does.
func TestSleepingCall(t *testing.T) {
	gone := errors.New("no such process")
	for name, test := range map[string]struct {
		texts  []string // nothing: the process is gone
		leaves int      // after so many readings it does not wait any more; 0: never
		want   string
		failed bool
	}{
		"it sleeps":              {[]string{"288 0x3\n"}, 0, "288 0x3\n", false},
		"it sleeps later":        {[]string{"running\n", "running\n", "288 0x3\n"}, 0, "288 0x3\n", false},
		"it does not wait":       {[]string{"running\n", "running\n"}, 2, "running\n", false},
		"it is gone":             {nil, 0, "", true},
		"it is gone later":       {[]string{"running\n"}, 0, "", true},
		"it sleeps somewhere":    {[]string{"running\n", "0 0x0\n"}, 0, "0 0x0\n", false},
		"it sleeps in no call":   {[]string{"-1 0x7 0x8\n"}, 0, "-1 0x7 0x8\n", false},
		"another text is no run": {[]string{"running, it says\n"}, 0, "running, it says\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			readings := 0
			got, err := sleepingCall(func() ([]byte, error) {
				readings++
				if readings > len(test.texts) {
					return nil, gone
				}
				return []byte(test.texts[readings-1]), nil
			}, func() bool { return readings != test.leaves })
			if string(got) != test.want || (err != nil) != test.failed {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
