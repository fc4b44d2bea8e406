// SPDX-License-Identifier: BSD-2-Clause

package meaning

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

const inside, outside = "inside", "outside"

// factDirectories are a data directory and one beside it, each with facts/a.jsonl.
func factDirectories(t *testing.T) (data, elsewhere string) {
	t.Helper()
	data, elsewhere = filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "elsewhere")
	for directory, text := range map[string]string{data: inside, elsewhere: outside} {
		must(t, os.MkdirAll(filepath.Join(directory, "facts"), 0o700))
		must(t, os.WriteFile(filepath.Join(directory, "facts/a.jsonl"), []byte(text), 0o600))
	}
	return data, elsewhere
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// content returns what a fact file says, empty if it cannot be opened.
func content(data, path string) string {
	file, err := openFacts(data, path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// A task that can write in the data directory does not lead the monitor out of it.
func TestFactFilesStayBeneathTheData(t *testing.T) {
	t.Parallel()
	data, elsewhere := factDirectories(t)
	for name, target := range map[string]string{
		"link": "facts/a.jsonl", "folder": "facts", "up": "facts/../facts", // lead to the data
		"out": filepath.Join(elsewhere, "facts/a.jsonl"), "gone": filepath.Join(elsewhere, "facts"),
		"parent": "..", "root": "/", "own": filepath.Join(data, "facts"), "twice": "out",
	} {
		must(t, os.Symlink(target, filepath.Join(data, name)))
	}
	must(t, os.Symlink("../../elsewhere", filepath.Join(data, "facts/relative")))
	for path, want := range map[string]string{
		"/facts/a.jsonl": inside, "/link": inside, "/folder/a.jsonl": inside, "/up/a.jsonl": inside,
		"/out": "", "/gone/a.jsonl": "", "/parent/data/facts/a.jsonl": "", "/root" + elsewhere + "/facts/a.jsonl": "",
		"/own/a.jsonl": "", "/twice": "", "/facts/relative/facts/a.jsonl": "",
		"/../" + elsewhere + "/facts/a.jsonl":  "",
		"/facts/../../elsewhere/facts/a.jsonl": "", elsewhere + "/facts/a.jsonl": "", "/facts": "",
		"//" + elsewhere: "",
	} {
		if got := content(data, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// Also not one that changes a folder for a link while the file is opened.
func TestFactFilesAreOpenedStepByStep(t *testing.T) {
	t.Parallel()
	data, elsewhere := factDirectories(t)
	folder, link, away := filepath.Join(data, "facts"), filepath.Join(data, "link"), filepath.Join(data, "away")
	must(t, os.Symlink(filepath.Join(elsewhere, "facts"), link))
	done := make(chan struct{})
	swapped := make(chan error, 1)
	go func() {
		defer close(swapped)
		for {
			for _, move := range [][2]string{{folder, away}, {link, folder}, {folder, link}, {away, folder}} {
				if err := os.Rename(move[0], move[1]); err != nil {
					swapped <- err
					return
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	found := map[string]int{}
	for range 5000 {
		found[content(data, "/facts/a.jsonl")]++
	}
	close(done)
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	if found[outside] > 0 || found[inside] == 0 || len(found) > 2 {
		t.Errorf("what was read, and how often: %v", found)
	}
}
