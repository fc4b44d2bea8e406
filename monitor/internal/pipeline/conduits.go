// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"os"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/wire"
)

// conduits are the pipes and descriptor channels between a pipeline's tasks, by conduit
// and slot.
type conduits struct {
	pairs   map[string][]conduitPair
	checked map[string][]conduitPair // the channels' checked twins, whose writes ask the monitor
}

// makeConduits makes the pipes and channels of a pipeline. After an error, the result
// holds those made so far.
func makeConduits(pipeline string, list []manifest.Conduit) (conduits, error) {
	c := conduits{pairs: map[string][]conduitPair{}, checked: map[string][]conduitPair{}}
	for _, conduit := range list {
		for slot := range max(conduit.Slots, 1) {
			if err := c.add(conduit, fmt.Sprintf("%s/%s/%d", pipeline, conduit.Name, slot)); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// add makes one slot of a conduit.
func (c conduits) add(conduit manifest.Conduit, name string) error {
	switch conduit.Kind {
	case manifest.KindPipe:
		pair, err := newPipe(name)
		if err != nil {
			return err
		}
		c.pairs[conduit.Name] = append(c.pairs[conduit.Name], pair)
	case manifest.KindChannel:
		for _, pairs := range []map[string][]conduitPair{c.pairs, c.checked} {
			pair, err := newChannel(name)
			if err != nil {
				return err
			}
			pairs[conduit.Name] = append(pairs[conduit.Name], pair)
		}
	}
	return nil
}

// channel returns one slot of a channel, with its checked twin.
func (c conduits) channel(name string, slot int) []conduitPair {
	return []conduitPair{c.pairs[name][slot], c.checked[name][slot]}
}

// end returns the file that a placement means in a slot.
func (c conduits) end(place placement, slot int, mode wire.Mode) *os.File {
	pairs := c.pairs[place.end.conduit]
	if place.end.checked || place.capability.Kind == wire.KindChannel && !place.end.writer && mode.IsDynamic() {
		pairs = c.checked[place.end.conduit]
	}
	if place.end.writer {
		return pairs[slot].writer
	}
	return pairs[slot].reader
}

func (c conduits) close() {
	for _, pairs := range []map[string][]conduitPair{c.pairs, c.checked} {
		for _, slots := range pairs {
			for _, pair := range slots {
				pair.close()
			}
		}
	}
}
