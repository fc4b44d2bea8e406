// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"shai.dev/monitor/internal/plainfile"
)

// MaxSize is the largest manifest file, in bytes.
const MaxSize = 8 << 20

// Read reads manifest files. A directory means the .yaml, .yml and .json files in it, by
// name, but not those in its subdirectories. It skips kustomization.yaml, and the tests of
// policies ([IsTest]). "-" is stdin.
func Read(stdin io.Reader, paths ...string) ([]Source, error) {
	var sources []Source
	for _, path := range paths {
		if path == "-" {
			source, err := ReadAll("standard input", stdin)
			if err != nil {
				return nil, err
			}
			sources = append(sources, source)
			continue
		}
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			source, err := readFile(file)
			if err != nil {
				return nil, err
			}
			sources = append(sources, source)
		}
	}
	return sources, nil
}

// expand lists the manifest files that a path means.
func expand(path string) ([]string, error) {
	about, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	if !about.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && IsManifest(entry.Name()) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read manifests: %s has no .yaml, .yml or .json file", path)
	}
	return files, nil
}

// IsManifest reports whether a file in a directory is a manifest, by its name.
func IsManifest(name string) bool {
	suffix := filepath.Ext(name)
	return slices.Contains([]string{".yaml", ".yml", ".json"}, suffix) &&
		strings.TrimSuffix(name, suffix) != "kustomization" && !IsTest(name)
}

// TestSuffixes are the ends of the names of files with tests of policies, which stand beside
// the manifests: friends_test.yaml.
func TestSuffixes() []string { return []string{"_test.yaml", "_test.yml"} }

// IsTest reports whether a file has tests of policies, by its name.
func IsTest(path string) bool {
	return slices.ContainsFunc(TestSuffixes(), func(suffix string) bool { return strings.HasSuffix(path, suffix) })
}

func readFile(path string) (Source, error) {
	file, err := plainfile.Open(path)
	if err != nil {
		return Source{}, fmt.Errorf("read manifest: %w", err)
	}
	defer file.Close()
	return ReadAll(path, file)
}

// ReadAll reads one manifest file, of which the reader has the text.
func ReadAll(name string, reader io.Reader) (Source, error) {
	text, err := io.ReadAll(io.LimitReader(reader, MaxSize+1))
	if err != nil {
		return Source{}, fmt.Errorf("read manifest %s: %w", name, err)
	}
	if len(text) > MaxSize {
		return Source{}, fmt.Errorf("read manifest %s: it is larger than %d bytes; split it, or give large facts as a file",
			name, MaxSize)
	}
	return Source{Name: name, Text: string(text)}, nil
}
