// SPDX-License-Identifier: BSD-2-Clause

//go:build !(linux && amd64)

package monitor

// endOrphans does nothing: on this system the processes of earlier tasks are not told from
// those of other monitors' tasks (docs/enforcement.md, "Limits").
func (m *Monitor) endOrphans() error { return nil }

// awaitSupervisors does nothing: on this system tasks have none.
func (m *Monitor) awaitSupervisors() {}
