// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestInstancesAreReadFromTheirNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instance := Instance{Task: "worker", Arguments: rapid.SliceOf(rapid.OneOf(rapid.String(),
			rapid.StringMatching(`[a,() "\\]*`))).Draw(t, "arguments")}
		got, err := ParseInstance(instance.Name())
		if len(instance.Arguments) == 0 {
			instance.Arguments = nil
		}
		if err != nil || !cmp.Equal(got, instance) {
			t.Fatalf("%s: %v, %v", instance.Name(), got, err)
		}
	})
	for _, name := range []string{"w(", "w()", "w(a", "w(a,b)", `w("a)`, "w(a)b", "w(a, )"} {
		if got, err := ParseInstance(name); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
