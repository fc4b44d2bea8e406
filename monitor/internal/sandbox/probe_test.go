// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import "testing"

func TestJudge(t *testing.T) {
	present, missing := []Feature{{Present: true}}, []Feature{{Present: true}, {}}
	for _, test := range []struct {
		needed, optional []Feature
		want             string
	}{{present, present, "full"}, {present, missing, "partial"}, {missing, present, "none"},
		{missing, missing, "none"}} {
		if got := judge(test.needed, test.optional); got != test.want {
			t.Errorf("%v and %v: %s, want %s", test.needed, test.optional, got, test.want)
		}
	}
}
