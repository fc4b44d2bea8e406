// SPDX-License-Identifier: BSD-2-Clause

// Package directory is the directory on disk that holds a devcluster's files: the lock,
// the stored state and the paths of all files.
package directory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Variable is the environment variable that names the directory.
const Variable = "SHAI_DEVCLUSTER"

// A Directory is a devcluster's folder, by its absolute path.
type Directory string

// Resolve makes a Directory of the user's choice. If that is empty, the environment
// decides.
func Resolve(given string, environment func(string) string) (Directory, error) {
	if given == "" {
		given = environment(Variable)
	}
	if given == "" {
		state := environment("XDG_STATE_HOME")
		if state == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("find the devcluster's directory: %w: name one with --directory or $%s", err,
					Variable)
			}
			state = filepath.Join(home, ".local", "state")
		}
		given = filepath.Join(state, "shai", "devcluster")
	}
	absolute, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("find the devcluster's directory %q: %w", given, err)
	}
	return Directory(absolute), nil
}

// Where things lie.

func (d Directory) join(name ...string) string {
	return filepath.Join(append([]string{string(d)}, name...)...)
}

// Kubeconfig returns the path of the file with the administrator's credentials.
func (d Directory) Kubeconfig() string { return d.join("kubeconfig") }

// Certificates returns the folder of keys and certificates.
func (d Directory) Certificates() string { return d.join("certificates") }

// Data returns etcd's folder.
func (d Directory) Data() string { return d.join("etcd") }

// Run returns the folder for files that exist only while the devcluster runs: etcd's
// socket.
func (d Directory) Run() string { return d.join("run") }

// Authentication returns the path of the API server's authentication configuration.
func (d Directory) Authentication() string { return d.join("authentication.yaml") }

// Log returns the path of the log of the current or last run.
func (d Directory) Log() string { return d.join("log", "devcluster.log") }

func (d Directory) state() string { return d.join("state.json") }
func (d Directory) lock() string  { return d.join("lock") }

// Create makes the directory and its folders, for this user only. It refuses a folder
// with other content.
func (d Directory) Create() error {
	entries, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.unusable(err)
	}
	if _, err := os.Stat(d.lock()); len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory %s holds files that are not a devcluster's: name an empty or new one with "+
			"--directory or $%s", d, Variable)
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return d.unusable(err)
	}
	// The lock comes first: it marks the folder as a devcluster's, even for another one
	// that starts here at the same moment.
	lock, err := d.openLock()
	if err != nil {
		return err
	}
	if err := lock.Close(); err != nil {
		return d.unusable(err)
	}
	for _, folder := range []string{d.Certificates(), d.Data(), d.Run(), filepath.Dir(d.Log())} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return d.unusable(err)
		}
	}
	return nil
}

func (d Directory) unusable(err error) error {
	return fmt.Errorf("use the directory %s: %w: name one that you may write to with --directory or $%s", d, err,
		Variable)
}

// A State is the data that a devcluster keeps from one run to the next.
type State struct {
	Port    int       `json:"port"` // of the API server
	Started time.Time `json:"started"`
	Ready   bool      `json:"ready"`
	// Process is that of the last run, 0 after it stopped by itself. It distinguishes
	// runs. Do not send signals to it: see Holder.
	Process int `json:"process"`
}

// State returns the state that the last run stored. A directory without one has the zero
// State.
func (d Directory) State() (State, error) {
	var state State
	text, err := os.ReadFile(d.state())
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("read the devcluster's state: %w", err)
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, fmt.Errorf("read the devcluster's state %s: %w: remove that file, only the port is lost with it",
			d.state(), err)
	}
	return state, nil
}

// Remember replaces the stored state.
func (d Directory) Remember(state State) error {
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("write the devcluster's state: %w", err)
	}
	return Replace(d.state(), append(text, '\n'))
}

// Replace writes a private file so that a reader finds the old or the new content, never
// a part.
func Replace(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(file.Name()) // after a failure; after the rename, the file does not exist
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
