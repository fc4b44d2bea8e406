// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"bytes"

	"shai.dev/monitor/internal/bug"
)

// Change describes the change of one object between two bundles.
type Change struct {
	Kind string
	Name string
	What string // "created", "configured", "unchanged" or "pruned"
}

// Changes compares a bundle with the previous one, which may be nil. Objects of the new
// bundle come first, in its order, then the removed ones.
func (b *Bundle) Changes(previous *Bundle) []Change {
	before := map[string][]byte{}
	if previous != nil {
		for _, o := range previous.objects {
			before[o.key()] = rendered(o.canonical())
		}
	}
	changes := make([]Change, 0, len(b.objects))
	for _, o := range b.objects {
		old, existed := before[o.key()]
		change := Change{Kind: o.kind, Name: o.name, What: "created"}
		switch {
		case existed && bytes.Equal(old, rendered(o.canonical())):
			change.What = "unchanged"
		case existed:
			change.What = "configured"
		}
		changes = append(changes, change)
		delete(before, o.key())
	}
	if previous != nil {
		for _, o := range previous.objects {
			if _, gone := before[o.key()]; gone {
				changes = append(changes, Change{Kind: o.kind, Name: o.name, What: "pruned"})
			}
		}
	}
	return changes
}

// rendered returns the text. The error is a bug: every object of a bundle was rendered
// when the bundle was made.
func rendered(text []byte, err error) []byte {
	if err != nil {
		bug.Found("an object of a bundle cannot be rendered: %v", err)
	}
	return text
}
