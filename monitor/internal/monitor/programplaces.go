// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"path/filepath"
	"slices"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/runtimeroot"
)

// guardedPlaces are all places that no task may have in its runtime, because nobody
// decides on what a task reads there. Stores are the sockets of key-value stores.
func (m *Monitor) guardedPlaces(stores []string) []runtimeroot.Place {
	places := []runtimeroot.Place{
		{Path: m.options.Data, What: "the data directory"},
		{Path: m.options.State, What: "the monitor's state directory"},
		{Path: m.options.Socket, What: "the monitor's socket"},
		{Path: m.options.Key, What: "the monitor's private key"},
	}
	if m.options.Secrets != "" {
		// The store keeps its own files beside them.
		places = append(places, runtimeroot.Place{Path: filepath.Dir(m.options.Secrets), What: "the directory of the key-value store's secrets"})
	}
	for _, socket := range stores {
		places = append(places, runtimeroot.Place{Path: socket, What: "the socket of a key-value store"})
	}
	return slices.DeleteFunc(places, func(place runtimeroot.Place) bool { return place.Path == "" })
}

func socketOf(spec manifest.PipelineSpec) string {
	if spec.KeyValue == nil {
		return ""
	}
	return spec.KeyValue.Socket
}

// checkRuntimes refuses pipelines with a task whose runtime reaches a guarded place.
func (m *Monitor) checkRuntimes(resolved map[string]*manifest.Resolved) error {
	var stores []string
	for _, one := range resolved {
		stores = append(stores, socketOf(one.Pipeline.Spec))
	}
	places := m.guardedPlaces(stores)
	for name, one := range resolved {
		for _, task := range one.Tasks {
			if _, err := runtimeroot.Check(task.Spec.Runtime, places); err != nil {
				return fmt.Errorf("pipeline %s: task %s: %w", name, task.Metadata.Name, err)
			}
		}
	}
	return nil
}

// guardedNow are the places guarded from the pipelines in force.
func (m *Monitor) guardedNow() []runtimeroot.Place {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var stores []string
	for _, p := range m.pipelines {
		stores = append(stores, socketOf(p.spec))
	}
	return m.guardedPlaces(stores)
}

// runtime is the task's runtime by its real paths. It is checked again whenever the task
// starts: what a path leads to may have changed since the bundle was applied.
func (t *runningTask) runtime() ([]string, error) {
	services := t.pipeline.services
	roots, err := runtimeroot.Check(t.spec.Runtime, services.guarded())
	if err != nil {
		return nil, fmt.Errorf("task %s/%s: %w", t.pipeline.name, t.name, err)
	}
	return append(roots, services.options.Library), nil
}
