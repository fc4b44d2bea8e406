// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/wire"
)

// viewPrefix is the path at which every task sees the documents that it may read.
const viewPrefix = "/shai/view"

// end is one end of one slot of a pipe or channel.
type end struct {
	conduit string
	slot    int
	writer  bool
	checked bool // the checked twin of a channel, whose writes ask the monitor
}

// placement puts one descriptor at a reserved number of a task and tells the task's
// program its path.
type placement struct {
	capability wire.Capability
	directory  string // pipeline path, for directories; viewPrefix for the view
	end        end    // for pipes and channels
}

// layout assigns reserved numbers to the descriptors of a task, and to those of the tasks that
// its program may become by raising its taint: the result is in the order of the tasks. A
// number means the same for all of them, and the first task's are the same whatever the
// others have. It follows the order of the pipeline's conduits, so the same manifest gives the
// same numbers.
//
// A task with parameters gets the ends of its pipes and channels with each session, for
// one slot at a time, always from the first number of their kind on.
func layout(pipeline manifest.PipelineSpec, tasks ...manifest.Task) ([][]placement, error) {
	l := &planner{directories: map[string]int{}}
	var all [][]placement
	for _, task := range tasks {
		l.task, l.spec, l.placements = task.Metadata.Name, task.Spec, nil
		l.directory(viewPrefix, viewPrefix, wire.RightRead)
		for _, conduit := range pipeline.Conduits {
			switch conduit.Kind {
			case manifest.KindFile:
				l.files(conduit)
			case manifest.KindPipe:
				l.pipe(conduit)
			case manifest.KindChannel:
				l.channel(conduit)
			}
		}
		all = append(all, l.placements)
	}
	return all, l.err
}

// planner lays out one task after the other.
type planner struct {
	task            string
	spec            manifest.TaskSpec
	placements      []placement
	directories     map[string]int // their places among the directories
	pipes, channels int
	err             error
}

func (l *planner) fail(format string, arguments ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("lay out task "+l.task+": "+format, arguments...)
	}
}

func (l *planner) directory(prefix, directory string, rights uint16) {
	place, known := l.directories[directory]
	if !known {
		place = len(l.directories)
		l.directories[directory] = place
	}
	if place >= wire.FDCapabilityCount {
		l.fail("more than %d directories; put some beneath a common one", wire.FDCapabilityCount)
		return
	}
	l.placements = append(l.placements, placement{
		capability: wire.Capability{
			Prefix: prefix, Number: int32(wire.FDCapability + place), Kind: wire.KindDirectory, Rights: rights,
		},
		directory: directory,
	})
}

// files places the directories whose files inherit a policy. Single documents are reached
// through the view.
func (l *planner) files(conduit manifest.Conduit) {
	reads, writes := slices.Contains(l.spec.Reads, conduit.Name), slices.Contains(l.spec.Writes, conduit.Name)
	if !conduit.Directory || !reads && !writes {
		return
	}
	rights := wire.RightRead
	if writes {
		rights |= wire.RightWrite
	}
	for _, p := range conduit.Paths {
		directory := path.Clean(strings.TrimSuffix(p.Path, "**"))
		l.directory(directory, directory, rights)
	}
}

func (l *planner) pipe(conduit manifest.Conduit) {
	l.ends(conduit, &l.pipes, wire.FDPipeCount, []twin{{"/shai/pipe/", wire.FDPipe, wire.KindPipe, false}})
}

// channel places both twins of every slot at the sender: the native one, and the checked
// one, whose writes ask the monitor. The mode of a session determines which of the two it
// uses.
func (l *planner) channel(conduit manifest.Conduit) {
	twins := []twin{{"/shai/channel/", wire.FDChannel, wire.KindChannel, false}}
	if conduit.From == l.task {
		twins = append(twins, twin{"/shai/channel-checked/", wire.FDChannelChecked, wire.KindChannel, true})
	}
	l.ends(conduit, &l.channels, wire.FDChannelCount, twins)
}

// twin is one of the forms in which a slot of a conduit is placed in a task.
type twin struct {
	root    string // of its path
	first   int    // number of its first slot
	kind    wire.Kind
	checked bool
}

// ends places the task's end of every slot. used counts the placed slots of this kind, of
// which there may be limit.
func (l *planner) ends(conduit manifest.Conduit, used *int, limit int, twins []twin) {
	if conduit.From != l.task && conduit.To != l.task {
		return
	}
	slots := max(conduit.Slots, 1)
	if *used+slots > limit {
		l.fail("more than %d %s ends; use fewer slots", limit, conduit.Kind)
		return
	}
	writer := conduit.From == l.task
	for slot := range slots {
		for _, t := range twins {
			l.placements = append(l.placements, placement{
				capability: wire.Capability{
					Prefix: slotPath(t.root, conduit, slot),
					Number: int32(t.first + *used), Kind: t.kind, Rights: rightOf(writer), //nolint:gosec // descriptor numbers are small

				},
				end: end{conduit: conduit.Name, slot: slot, writer: writer, checked: t.checked},
			})
		}
		*used++
	}
}

// slotPath returns the path of one slot. The path of a conduit with a single slot has no
// number.
func slotPath(root string, conduit manifest.Conduit, slot int) string {
	if conduit.Slots <= 1 {
		return root + conduit.Name
	}
	return root + conduit.Name + "/" + strconv.Itoa(slot)
}

func rightOf(writer bool) uint16 {
	if writer {
		return wire.RightWrite
	}
	return wire.RightRead
}
