// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	launchMain()
	if os.Getenv(monitorMarker) != "" {
		playMonitor(serveUsers)
		return
	}
	status := m.Run()
	if path, err := victimPath(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// serveUsers makes a played monitor's task one that serves users if its program does.
func serveUsers(spec *Spec) {
	if spec.Command[1] != "serve-for-ever" {
		return
	}
	sessions, err := makeSessions(os.TempDir(), 3)
	if err != nil {
		panic(err)
	}
	spec.Serving, spec.Sessions = true, sessions
}

// runtimeOf returns the real paths of what a dynamically linked program needs, if they
// exist.
func runtimeOf(more ...string) []string {
	var present []string
	for _, path := range append([]string{"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives"},
		more...) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			present = append(present, real)
		}
	}
	return present
}
