// SPDX-License-Identifier: BSD-2-Clause

package plan

import "testing"

// The limit of a task comes from what it needs, if it has sessions, or from its
// specification.
func TestLimitsOnProcesses(t *testing.T) {
	some, many := Limits{Processes: 30}, Limits{Processes: 5000}
	for _, test := range []struct {
		spec Spec
		want uint64
	}{
		{Spec{}, DefaultProcesses},
		{Spec{Confined: true}, DefaultProcesses},
		{Spec{Confined: true, Limits: many}, 5000},
		{Spec{Confined: true, Serving: true, Workers: 4}, 4 + 1 + 32},
		{Spec{Confined: true, Serving: true, Workers: 4, Limits: many}, 4 + 1 + 32},
		{Spec{Confined: true, Serving: true, Workers: 4, Limits: some}, 30},
		{Spec{Confined: true, Serving: true, Workers: 4096}, 4096 + 1 + 32},
		{Spec{Serving: true, Workers: 4}, DefaultProcesses},
	} {
		if got := test.spec.MaxProcesses(); got != test.want {
			t.Errorf("%+v: %d, want %d", test.spec, got, test.want)
		}
	}
}
