// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
)

// analysisPrefix begins the names of stored analyses in the state directory.
const analysisPrefix = "analysis-"

func (m *Monitor) analysisPath(pipeline string) string {
	return filepath.Join(m.options.State, analysisPrefix+pipeline)
}

// storeAnalysis replaces the stored result. A crash leaves the old file or the new one.
func storeAnalysis(path string, result *analysis.Result) error {
	if err := replaceFile(path, result.Encode()); err != nil {
		return fmt.Errorf("store analysis %s: %w; it is in force, but a restart of the monitor forgets it", path, err)
	}
	return nil
}

func replaceFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails, as intended, once the file has been renamed
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// storedAnalysis returns the stored result. It returns nil if there is none, or if it is
// of another plan or state. A damaged file is an error.
func storedAnalysis(path string, plan *analysis.Plan, state *catalog.State) (*analysis.Result, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load analysis: %w", err)
	}
	result, err := analysis.Decode(content, plan, state)
	if errors.Is(err, analysis.ErrStale) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load analysis %s: %w", path, err)
	}
	return result, nil
}
