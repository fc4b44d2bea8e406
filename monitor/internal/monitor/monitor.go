// SPDX-License-Identifier: BSD-2-Clause

// Package monitor is the reference monitor: it starts tasks in their sandboxes,
// binds sessions to users whose signatures it has verified, decides what the
// offline analysis did not foresee, and keeps capability sets in step with facts.
//
// Every decision about a flow is taken in decide.go.
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
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// Options say how a monitor runs. All paths are absolute.
type Options struct {
	Data                       string            // the pipelines' files; "/corpus/x" in a manifest is Data/corpus/x
	State                      string            // catalog, view, audit log, task logs; same file system as Data
	Socket                     string            // unix socket of the HTTP API
	Listen                     string            // address of the HTTP API over mutual TLS; empty: none
	Certificate, Key, ClientCA string            // PEM files, needed with Listen
	Define                     map[string]string // values for $(NAME) in manifests
	Library                    string            // directory that holds libshai.so
	CPUs                       []int             // processors that tasks are pinned to; empty: all
	Secrets                    string            // file with the key-value store's secrets; empty: no confined store
	Version                    string
	Logger                     *slog.Logger
}

// Monitor is a running reference monitor. Its exported methods implement
// api.Service and are safe for concurrent use.
type Monitor struct {
	options Options
	logger  *slog.Logger
	context context.Context // ends when the monitor stops
	started time.Time
	backend sandbox.Backend
	machine sandbox.Report
	catalog *catalog.Catalog
	view    *catalog.View
	audit   *audit.Log
	metrics *metrics
	nothing *sandbox.Ruleset // a perimeter in which nothing can be opened
	// What a bound session gets at wire.FDCapability: the view, or a filler. Both are
	// O_PATH descriptors.
	viewRoot, filler *os.File
	shared           *sharedFiles
	regions          atomic.Pointer[regionTable]

	expiring  chan struct{} // tells watchExpiry that analyses have changed
	stopWatch context.CancelFunc
	watching  sync.WaitGroup

	sources *followed // sources of facts that are fetched

	changing sync.Mutex   // one change of bundle, facts or analysis at a time
	binding  sync.RWMutex // held for reading while a session is bound, for writing while facts change

	mu        sync.RWMutex
	bundle    *manifest.Bundle // nil before the first apply
	applied   time.Time
	pipelines map[string]*pipeline
	analyses  map[string]*analysed // by pipeline
	runs      map[string]api.AnalysisRun
}

func (m *Monitor) state() *catalog.State { return m.catalog.State() }

func (m *Monitor) conduitCount() uint32 { return m.state().Conduits() + 1 }

func (m *Monitor) publicKey(principal string) (ed25519.PublicKey, bool) {
	return m.state().PrincipalKey(principal)
}

func (m *Monitor) regionOf(peer netip.Addr) string {
	if table := m.regions.Load(); table != nil {
		return table.lookup(peer)
	}
	return ""
}

// bindPolicy is a policy of the bundle in force with its arguments bound.
func (m *Monitor) bindPolicy(name string, arguments map[string]string) (*policy.Policy, error) {
	return m.state().Bind(catalog.Reference{Policy: name, Arguments: arguments})
}

// document is a conduit that a session may be given a descriptor of.
type document struct {
	conduit policy.Conduit
	class   uint32
	path    string // in the view
}

func (m *Monitor) document(id uint32) (document, bool) {
	state := m.state()
	conduit, found := state.ConduitByID(int64(id))
	class := state.ClassOf(id)
	if !found || class == 0 {
		return document{}, false
	}
	return document{conduit: conduit, class: class, path: m.linkPath(class, id)}, true
}

// linkPath is where the view holds a document: <class>/<bucket>/<id>.
func (m *Monitor) linkPath(class, id uint32) string {
	return fmt.Sprintf("%s/%d/%d", m.view.ClassDirectory(class), id>>10, id)
}

// directoryPath is the real path of a pipeline directory, or of the view.
func (m *Monitor) directoryPath(directory string) string {
	if directory == viewPrefix {
		return m.view.Path()
	}
	return filepath.Join(m.options.Data, directory)
}

// conduitNamed is the conduit of a pipeline path, whether the file exists or not.
func (m *Monitor) conduitNamed(name string) (policy.Conduit, bool) { return m.state().Decide(name) }

// conduitAt is the conduit that a real path of a pinned file stands for: a link of
// the view, or a file beneath the data directory.
func (m *Monitor) conduitAt(path string) (policy.Conduit, bool) {
	if rest, inView := strings.CutPrefix(path, m.view.Path()+"/"); inView {
		id, err := strconv.ParseUint(filepath.Base(rest), 10, 32)
		if err != nil {
			return policy.Conduit{}, false
		}
		document, found := m.document(uint32(id))
		if !found || document.path != path {
			return policy.Conduit{}, false
		}
		return document.conduit, true
	}
	if isBeneath(m.options.State, path) {
		return policy.Conduit{}, false
	}
	if name, inData := strings.CutPrefix(path, m.options.Data+"/"); inData {
		return m.conduitNamed("/" + name)
	}
	return policy.Conduit{}, false
}

// enforcement says what protects a task in a mode, for status.
func (m *Monitor) enforcement(mode wire.Mode) string {
	if mode == wire.ModeBaseline {
		return "none"
	}
	return m.machine.Enforcement
}

// predict remembers an instance that was seen and not analysed.
func (m *Monitor) predict(pipeline, task string, values map[string]string) {
	prediction := catalog.Prediction{Task: setName(pipeline, task), Parameters: values}
	if err := m.catalog.AddPredictions(prediction); err != nil {
		m.logger.Error("prediction is not kept", "task", task, "error", err)
	}
}
