// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"fmt"
	"maps"
	"slices"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/taskid"
)

// awaitSupervisors waits until the supervisors of an earlier monitor have ended, which they do
// by themselves when it is killed: until then they hold the addresses of their pipelines.
func (m *Monitor) awaitSupervisors() {
	if err := taskid.AwaitEnd(sandbox.IsOrphanedSupervisor); err != nil {
		m.logger.Warn("the supervisor of an earlier monitor may still listen at the address of a pipeline, whose task then "+
			"does not start; end it", "error", err)
	}
}

// endOrphans kills what tasks of an earlier monitor have left, if monitor and keepers were
// killed together: those processes keep the rights that they had, whatever is applied next.
// Only a superuser's tasks have users by which their processes are known.
func (m *Monitor) endOrphans() error {
	if !isSuperuser() {
		return nil
	}
	pipelines, err := m.options.TaskIDs.Pipelines(m.options.Data)
	if err != nil {
		return err
	}
	ended, err := taskid.EndOrphans(slices.Sorted(maps.Keys(pipelines)), sandbox.IsKeeper)
	if err != nil {
		return fmt.Errorf("end what earlier tasks have left running: %w; end all processes of this user "+
			"(pkill -9 -U USER), and start the monitor again", err)
	}
	for _, user := range slices.Sorted(maps.Keys(pipelines)) {
		pipeline, count := pipelines[user], ended[user]
		if count == 0 {
			continue
		}
		what := fmt.Sprintf(
			"processes of earlier tasks still ran, because monitor and keeper were killed, and are ended: %d", count)
		m.logger.Warn(what, "pipeline", pipeline, "user", user)
		m.record(audit.Event{Kind: audit.Task, Pipeline: pipeline, Operation: "end", Allowed: true, Reason: what})
	}
	return nil
}
