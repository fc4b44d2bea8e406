// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"path/filepath"
	"slices"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/taskid"
)

// guardedPlaces returns all places that no task may have in its runtime, because nobody
// decides on what a task reads there. stores are the sockets of key-value stores.
func (m *Monitor) guardedPlaces(stores []string) ([]runtimeroot.Place, error) {
	places := []runtimeroot.Place{
		{Path: m.options.Data, What: "the data directory"},
		{Path: m.options.State, What: "the monitor's state directory"},
		{Path: m.options.Socket, What: "the monitor's socket"},
		{Path: m.options.Key, What: "the monitor's private key"},
	}
	if m.options.Secrets != "" {
		// The key-value store keeps its own files beside its secrets.
		places = append(places, runtimeroot.Place{Path: filepath.Dir(m.options.Secrets),
			What: "the directory of the key-value store's secrets"})
	}
	for _, socket := range stores {
		places = append(places, runtimeroot.Place{Path: socket, What: "the socket of a key-value store"})
	}
	others, err := m.otherDataDirectories()
	if err != nil {
		return nil, err
	}
	for _, directory := range others {
		places = append(places, runtimeroot.OfOthers(directory))
	}
	return slices.DeleteFunc(places, func(place runtimeroot.Place) bool { return place.Path == "" }), nil
}

// otherDataDirectories returns the data directories of the other monitors of this
// machine, as far as the registry of users lists them. A monitor without the superuser's
// rights does not use the registry.
func (m *Monitor) otherDataDirectories() ([]string, error) {
	if !isSuperuser() {
		return nil, nil
	}
	directories, err := m.options.TaskIDs.DataDirectories()
	return slices.DeleteFunc(directories, func(one string) bool { return one == m.options.Data }), err
}

// recordedByOthers returns the way to find the same directories at each open of a task, those
// that do not exist among them.
func (m *Monitor) recordedByOthers() func() ([]string, error) {
	if !isSuperuser() {
		return func() ([]string, error) { return nil, nil }
	}
	recorded := &taskid.Recorded{Registry: m.options.TaskIDs}
	return func() ([]string, error) {
		directories, err := recorded.DataDirectories()
		return slices.DeleteFunc(slices.Clone(directories), func(one string) bool { return one == m.options.Data }), err
	}
}

func socketOf(spec manifest.PipelineSpec) string {
	if spec.KeyValue == nil {
		return ""
	}
	return spec.KeyValue.Socket
}

// checkRuntimes refuses pipelines with a task that names a runtime which the monitor was not
// given, or one that reaches a guarded place.
func (m *Monitor) checkRuntimes(resolved map[string]*manifest.Resolved) error {
	var stores []string
	for _, one := range resolved {
		stores = append(stores, socketOf(one.Pipeline.Spec))
	}
	places, err := m.guardedPlaces(stores)
	if err != nil {
		return err
	}
	for name, one := range resolved {
		for _, task := range one.Tasks {
			roots, err := m.options.Runtimes.Of(task.Spec)
			if err != nil {
				return fmt.Errorf("pipeline %s: task %s %w", name, task.Metadata.Name, err)
			}
			if _, err := runtimeroot.Check(roots, places); err != nil {
				err = fmt.Errorf("pipeline %s: task %s: %w", name, task.Metadata.Name, err)
				if detail := runtimeroot.Detail(err); detail != "" {
					m.logger.Warn("a bundle is refused for a runtime", "error", err, "path", detail)
				}
				return err
			}
		}
	}
	return nil
}

// guardedNow returns the places that the pipelines in force may not reach.
func (m *Monitor) guardedNow() ([]runtimeroot.Place, error) {
	var stores []string
	m.mu.RLock()
	for _, p := range m.pipelines {
		stores = append(stores, socketOf(p.Spec()))
	}
	m.mu.RUnlock() // the other data directories may be on a file system that does not answer
	return m.guardedPlaces(stores)
}
