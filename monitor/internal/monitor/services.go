// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// services are everything that pipelines, their tasks and their sessions use of the
// monitor. Bundles, analyses, facts and the API are not part of it: they know pipelines,
// but pipelines do not know them. Open sets all fields once; they are safe for concurrent
// use.
type services struct {
	options Options
	logger  *slog.Logger
	context context.Context // ends when the monitor stops
	backend sandbox.Backend
	machine sandbox.Report
	catalog *catalog.Catalog
	view    *catalog.View
	audit   *audit.Log
	metrics *metrics
	nothing sandbox.Native // with which a session opens nothing natively
	// viewRoot is the view, from which the monitor opens documents for sessions. The stub of
	// a bound session gets it, or the filler.
	viewRoot, filler *os.File
	shared           *sharedFiles
	regions          atomic.Pointer[regionTable]
	binding          sync.RWMutex // held for reading while a session is bound, for writing while facts change
	// guarded returns the places that no task's runtime may reach, including those of
	// every pipeline.
	guarded func() ([]runtimeroot.Place, error)
}

func (s *services) state() *catalog.State { return s.catalog.State() }

func (s *services) conduitCount() uint32 { return s.state().Conduits() + 1 }

func (s *services) publicKey(principal string) (ed25519.PublicKey, bool) {
	return s.state().PrincipalKey(principal)
}

func (s *services) regionOf(peer netip.Addr) string { return s.regionTable().lookup(peer) }

// regionTable returns the regions of addresses as the facts say now.
func (s *services) regionTable() regionTable {
	if table := s.regions.Load(); table != nil {
		return *table
	}
	return nil
}

// bindPolicy returns a policy of the bundle in force with its arguments bound.
func (s *services) bindPolicy(name string, arguments map[string]string) (*policy.Policy, error) {
	return s.state().Bind(catalog.Reference{Policy: name, Arguments: arguments})
}

// document is a conduit of which a session may get a descriptor.
type document struct {
	conduit policy.Conduit
	class   uint32
	place   string // beneath the view: <class>/<bucket>/<id>
}

func (s *services) document(id uint32) (document, bool) {
	state := s.state()
	conduit, found := state.ConduitByID(int64(id))
	class := state.ClassOf(id)
	if !found || class == 0 {
		return document{}, false
	}
	return document{conduit: conduit, class: class, place: fmt.Sprintf("%d/%d/%d", class, id>>10, id)}, true
}

// directoryPath returns the real path of a pipeline's directory, or of the view.
func (s *services) directoryPath(directory string) string {
	if directory == viewPrefix {
		return s.view.Path()
	}
	return filepath.Join(s.options.Data, directory)
}

// conduitNamed returns the conduit with a pipeline path, whether the file exists or not.
func (s *services) conduitNamed(name string) (policy.Conduit, bool) {
	return s.state().ConduitNamed(name)
}

// conduitAt returns the conduit that a real path of a pinned file belongs to: a link of
// the view, or a file beneath the data directory.
func (s *services) conduitAt(path string) (policy.Conduit, bool) {
	if rest, inView := strings.CutPrefix(path, s.view.Path()+"/"); inView {
		id, err := strconv.ParseUint(filepath.Base(rest), 10, 32)
		if err != nil {
			return policy.Conduit{}, false
		}
		document, found := s.document(uint32(id))
		if !found || document.place != rest {
			return policy.Conduit{}, false
		}
		return document.conduit, true
	}
	if isBeneath(s.options.State, path) {
		return policy.Conduit{}, false
	}
	if name, inData := strings.CutPrefix(path, s.options.Data+"/"); inData {
		return s.conduitNamed("/" + name)
	}
	return policy.Conduit{}, false
}

// enforcement describes what protects a task in a mode, for status.
func (s *services) enforcement(mode wire.Mode) string {
	if mode == wire.ModeBaseline {
		return "none"
	}
	return s.machine.Enforcement
}

// predict remembers an instance that was seen but not analysed.
func (s *services) predict(pipeline, task string, values map[string]string) {
	prediction := catalog.Prediction{Task: setName(pipeline, task), Parameters: values}
	if err := s.catalog.AddPredictions(prediction); err != nil {
		s.logger.Error("prediction is lost", "task", task, "error", err)
	}
}
