// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"sync"

	"shai.dev/monitor/internal/catalog"
)

// changes lets one change of bundle, facts, documents or analysis take place at a time. A full
// analysis can take minutes, so documents come, change and go beside its computation. Its zero value
// is ready, and it is safe for concurrent use.
type changes struct {
	// lengthy is held by every change but that of documents.
	lengthy sync.Mutex
	// inForce guards the catalog's state and what is made of it. It is taken after lengthy, and every
	// change holds it; a computation gives it up.
	inForce sync.Mutex
	// computing says that a computation has given inForce up, and meanwhile what has changed since.
	// Both are guarded by inForce.
	computing bool
	meanwhile []*catalog.Change
}

// Lock begins a change.
func (c *changes) Lock() {
	c.lengthy.Lock()
	c.inForce.Lock()
}

// Unlock ends it.
func (c *changes) Unlock() {
	c.inForce.Unlock()
	c.lengthy.Unlock()
}

// lockDocuments begins a change of documents alone: of no fact, and not of the bundle.
func (c *changes) lockDocuments() { c.inForce.Lock() }

// unlockDocuments ends it.
func (c *changes) unlockDocuments() { c.inForce.Unlock() }

// note says that documents have changed. Called with inForce held.
func (c *changes) note(change *catalog.Change) {
	if c.computing {
		c.meanwhile = append(c.meanwhile, change)
	}
}

// besideDocuments calls compute, which uses the state of the moment of the call, while documents may
// change. It returns their changes, in their order. Called with Lock held, which holds again when it
// returns.
func (c *changes) besideDocuments(compute func()) (meanwhile []*catalog.Change) {
	c.computing = true
	c.inForce.Unlock()
	defer func() {
		c.inForce.Lock()
		meanwhile = c.meanwhile
		c.computing, c.meanwhile = false, nil
	}()
	compute()
	return nil
}
