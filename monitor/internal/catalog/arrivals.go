// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"maps"
	"slices"
	"sync"
)

// arrivals are what is to be looked at because something has happened to it. It is safe for
// concurrent use.
type arrivals struct {
	wake chan struct{}

	mu    sync.Mutex
	now   arrived
	later map[string]bool // files that are looked at by the next sweep
}

// arrived is what is to be looked at.
type arrived struct {
	names map[string]bool // files
	trees map[string]bool // directories, relative to the data directory, with all beneath them
	isAll bool            // everything: something is not known
	sweep bool            // what sweeps look at
}

// maxArrived limits the names that are remembered. With more, everything is looked at.
const maxArrived = 1 << 17

func newArrivals() arrivals {
	return arrivals{wake: make(chan struct{}, 1), now: newArrived(), later: make(map[string]bool)}
}

func newArrived() arrived { return arrived{names: make(map[string]bool), trees: make(map[string]bool)} }

func (a *arrivals) add(name string) {
	a.change(func() { a.now.names[name] = true })
}

func (a *arrivals) addTree(directory string) {
	a.change(func() { a.now.trees[directory] = true })
}

func (a *arrivals) addAll() {
	a.change(func() { a.now.isAll = true })
}

func (a *arrivals) addSweep() {
	a.change(func() { a.now.sweep = true })
}

func (a *arrivals) addLater(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.later) < maxArrived {
		a.later[name] = true
	}
}

func (a *arrivals) change(add func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if add(); len(a.now.names)+len(a.now.trees) > maxArrived {
		a.now = newArrived()
		a.now.isAll = true
	}
	select {
	case a.wake <- struct{}{}:
	default: // the last one is still pending
	}
}

// take returns what has arrived since the last call.
func (a *arrivals) take() arrived {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.now
	a.now = newArrived()
	return taken
}

// takeLater returns the files that wait for a sweep.
func (a *arrivals) takeLater() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := slices.Collect(maps.Keys(a.later))
	clear(a.later)
	return taken
}
