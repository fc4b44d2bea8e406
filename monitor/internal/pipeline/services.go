// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/policy"
)

// Options are what a monitor's pipelines have in common. All paths are absolute.
type Options struct {
	Data     string            // the pipelines' files; "/corpus/x" in a manifest is Data/corpus/x
	State    string            // of the monitor; the tasks' logs are in it
	Library  string            // directory that holds libshai.so
	Secrets  string            // file with the key-value store's secrets; empty: no confined store
	Runtimes runtimeroot.Named // what tasks may execute and read beside their conduits
	Define   map[string]string // values for $(NAME) in manifests
	Allowed  allowlist.List    // sockets that manifests may name
	CPUs     []int             // processors that tasks are pinned to; empty: all
	GiveData bool              // give documents to the group of the tasks that read them
	Sessions SessionLimits     // of each pipeline
}

// Services are everything that pipelines, their tasks and their sessions use of the
// monitor. Bundles, analyses, facts and the API are not part of it: they know pipelines,
// but pipelines do not know them. The monitor sets all fields once and calls Open; they are
// safe for concurrent use.
type Services struct {
	Options Options
	Logger  *slog.Logger
	Context context.Context // ends when the monitor stops
	Backend sandbox.Backend
	// Enforcement is what the backend enforces on this machine, for status.
	Enforcement string
	Catalog     *catalog.Catalog
	View        *catalog.View
	Audit       *audit.Log
	Metrics     *metrics.Metrics
	// Guarded returns the places that no task's runtime may reach, including those of
	// every pipeline.
	Guarded func() ([]runtimeroot.Place, error)
	// DataOfOthers returns the data directories of the other monitors of this machine, whether
	// they exist or not. Opens of tasks wait for it.
	DataOfOthers func() ([]string, error)
	// Unforeseen is told of accesses of a pipeline's sessions that the analysis did not foresee and
	// the policies allow. It returns at once. nil: nothing is learnt.
	Unforeseen func(pipeline string, access analysis.Access)
	// Log adds to a log, while nothing else changes: a write is made, and what it says is then
	// a fact, or it is taken back.
	Log func(conduit string, write LogWrite) error
	// Choosing is where users' choices of policies are made.
	Choosing Choosing
	Binding  sync.RWMutex // held for reading while a session is bound, for writing while facts change

	nothing sandbox.Native // with which a session opens nothing natively
	// viewRoot is the view, from which the monitor opens documents for sessions. The stub of
	// a bound session gets it, or the filler.
	viewRoot, filler *os.File
	shared           *sharedFiles
	writes           writes
	seen             seen
	regions          atomic.Pointer[regionTable]
}

// Open prepares what sessions get when they are bound. The caller calls Close, also after an
// error.
func (s *Services) Open() (err error) {
	s.shared = &sharedFiles{data: s.Options.Data}
	if s.nothing, err = s.Backend.PrepareNative(nil); err != nil {
		return err
	}
	if s.viewRoot, err = sandbox.ViewOf(s.View.Path(), nil); err != nil {
		return err
	}
	s.filler, err = sandbox.ViewOf(os.DevNull, nil)
	return err
}

// Close releases what Open has opened. No pipeline runs any more.
func (s *Services) Close() error {
	s.writes.running.Wait()
	s.seen.writing.Wait()
	var failures []error
	for _, file := range []*os.File{s.viewRoot, s.filler} {
		if file != nil {
			failures = append(failures, file.Close())
		}
	}
	if s.nothing != nil {
		s.nothing.Close()
	}
	return errors.Join(failures...)
}

// RefreshRegions derives the regions of addresses from the facts as they are now, and
// reports whether they have changed. Sessions follow with [Pipeline.EndMoved].
func (s *Services) RefreshRegions() (changed bool) {
	table := newRegionTable(s.state())
	changed = !slices.Equal(table, s.regionTable())
	s.regions.Store(&table)
	return changed
}

func (s *Services) state() *catalog.State { return s.Catalog.State() }

func (s *Services) conduitCount() uint32 { return s.state().Conduits() + 1 }

func (s *Services) publicKey(principal string) (ed25519.PublicKey, bool) {
	return s.state().PrincipalKey(principal)
}

func (s *Services) regionOf(peer netip.Addr) string { return s.regionTable().lookup(peer) }

// regionTable returns the regions of addresses as the facts say now.
func (s *Services) regionTable() regionTable {
	if table := s.regions.Load(); table != nil {
		return *table
	}
	return nil
}

// bindPolicy returns a policy of the bundle in force with its arguments bound.
func (s *Services) bindPolicy(name string, arguments map[string]string) (*policy.Policy, error) {
	return s.state().Bind(catalog.Reference{Policy: name, Arguments: arguments})
}

// document is a conduit of which a session may get a descriptor.
type document struct {
	conduit policy.Conduit
	class   uint32
	place   string // beneath the view: <class>/<bucket>/<id>
}

func (s *Services) document(id uint32) (document, bool) {
	state := s.state()
	conduit, found := state.ConduitByID(int64(id))
	class := state.ClassOf(id)
	if !found || class == 0 {
		return document{}, false
	}
	return document{conduit: conduit, class: class, place: fmt.Sprintf("%d/%d/%d", class, id>>10, id)}, true
}

// directoryPath returns the real path of a pipeline's directory, or of the view.
func (s *Services) directoryPath(directory string) string {
	if directory == viewPrefix {
		return s.View.Path()
	}
	return filepath.Join(s.Options.Data, directory)
}

// conduitNamed returns the conduit with a pipeline path, whether the file exists or not.
func (s *Services) conduitNamed(name string) (policy.Conduit, bool) {
	return s.state().ConduitNamed(name)
}

// directoryConduit returns the conduit that means every file beneath a directory, even if the
// bundle is of a version that did not say so. It has no policy if there is none.
func (s *Services) directoryConduit(directory string) policy.Conduit {
	conduit, found := s.conduitNamed(directory + "/any")
	if !found {
		return policy.Conduit{Name: directory + "/any"}
	}
	conduit.Directory = true
	return conduit
}

// conduitAt returns the conduit that a real path of a pinned file belongs to: a link of
// the view, or a file beneath the data directory.
func (s *Services) conduitAt(path string) (policy.Conduit, bool) {
	if rest, inView := strings.CutPrefix(path, s.View.Path()+"/"); inView {
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
	if pattern.IsBeneath(s.Options.State, path) {
		return policy.Conduit{}, false
	}
	if name, inData := strings.CutPrefix(path, s.Options.Data+"/"); inData {
		return s.conduitNamed("/" + name)
	}
	return policy.Conduit{}, false
}
