// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"errors"
	"fmt"
	"strings"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
)

// watchDocuments withholds documents from now on that change behind the monitor's back. Where
// that is not reported, they are only found by sweeps, by shai ingest, when a bundle is applied
// and when the monitor starts.
func (m *Monitor) watchDocuments() error {
	unwatched := func(err error) {
		m.logger.Warn("documents that change are found by the next sweep, within minutes", "error", err)
	}
	err := m.view.Watch(catalog.Watch{Written: m.isWritten, Withheld: m.withheld, Failed: unwatched})
	if errors.Is(err, catalog.ErrUnwatched) {
		unwatched(err)
		return nil
	}
	return err
}

// refusedDocuments reports what has the name of a document and cannot be one.
func (m *Monitor) refusedDocuments(found catalog.Repairs) (warnings []string) {
	if found.Refused == 0 {
		return nil
	}
	warning := fmt.Sprintf("nobody can read documents that are none: %d, such as: %v", found.Refused, found.First)
	m.logger.Warn(warning)
	return []string{warning}
}

// isWritten reports whether tasks write documents of a set ("syse/inbox").
func (m *Monitor) isWritten(set string) bool {
	name, conduit, _ := strings.Cut(set, "/")
	m.mu.RLock()
	p := m.pipelines[name]
	m.mu.RUnlock()
	return p != nil && p.Writes(conduit)
}

// withheld records a document that was removed from the view.
func (m *Monitor) withheld(document catalog.Withheld) {
	m.record(audit.Event{Kind: audit.Denial, Operation: "withhold", Conduit: document.Name,
		Reason: "the document was " + document.Reason + " behind the monitor's back; " + m.returning()})
}

// returning says when a withheld document is one again.
func (m *Monitor) returning() string {
	if m.options.NoIngest {
		return "shai ingest catalogues it"
	}
	return "it is catalogued when it is there and nobody writes to it"
}
