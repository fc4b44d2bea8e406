// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/content"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/typedfile"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// A log's file is the truth, and its entries are facts. An entry is first in the file, durably,
// and then a fact: whoever relies on it finds it in the file after every crash. What a crash, or
// somebody else, has left different is found by the file's length before each write, and by its
// content when the monitor starts and when a bundle comes into force.

// addToLog is [pipeline.Services.Log]. Nothing else changes facts meanwhile.
func (m *Monitor) addToLog(conduit string, write pipeline.LogWrite) error {
	requested := time.Now()
	m.changing.Lock()
	defer m.changing.Unlock()
	if err := m.followLog(conduit); err != nil {
		return err
	}
	facts, end, err := write()
	if err != nil {
		return err
	}
	added := false
	_, err = m.changeFacts(m.context, requested, func(w catalog.Writer) (*catalog.Change, error) {
		change, err := w.ChangeLog(nil, facts)
		added = change != nil
		return change, err
	})
	return errors.Join(err, end(added))
}

// followLog makes the facts of a log agree with its file, as a change of facts of its own. Called
// with changing held.
func (m *Monitor) followLog(conduit string) error {
	difference, err := m.compareLog(m.state(), conduit, byLength)
	if err != nil || difference == nil {
		return err
	}
	defer difference.file.Close()
	if err := difference.cut(); err != nil {
		return err
	}
	m.reportLog(conduit, difference)
	_, err = m.changeFacts(m.context, time.Now(), func(w catalog.Writer) (*catalog.Change, error) {
		return w.ChangeLog(difference.remove, difference.add)
	})
	return err
}

// followLogs does the same for all logs, and returns the changes, whose effects the caller brings
// about. A log that cannot be read keeps the facts that it has, and takes no entry.
func (m *Monitor) followLogs() (changes []*catalog.Change) {
	for _, conduit := range m.state().Logs() {
		difference, err := m.compareLog(m.state(), conduit, byContent)
		if err == nil && difference != nil {
			var change *catalog.Change
			if err = difference.cut(); err == nil {
				change, err = m.catalog.AtOnce().ChangeLog(difference.remove, difference.add)
			}
			if change != nil {
				m.reportLog(conduit, difference)
				m.recordFacts(change)
				changes = append(changes, change)
			}
			difference.file.Close()
		}
		if err != nil {
			m.logger.Error("a log and its facts do not agree; no task can add to it", "conduit", conduit, "error", err)
		}
	}
	return changes
}

// logDifference is how the facts of a log have to change, and what of its file is no entry.
type logDifference struct {
	file        *typedfile.File
	remove, add []policy.Fact
	whole, left int64 // length of the entries, and of what follows them
}

// cut removes what is left of an entry whose write was interrupted.
func (d *logDifference) cut() error {
	if d.left == 0 {
		return nil
	}
	return d.file.Cut(d.whole)
}

// agreement says whether a log whose file is as long as its facts say, or longer, begins with them.
type agreement func(file *typedfile.File, kind *content.Type, state *catalog.State, conduit string) (bool, error)

// byLength takes it for granted.
func byLength(*typedfile.File, *content.Type, *catalog.State, string) (bool, error) { return true, nil }

func byContent(file *typedfile.File, kind *content.Type, state *catalog.State, conduit string) (bool, error) {
	text, err := file.Read(0)
	for _, entry := range state.LogEntries(conduit) {
		rest, begins := bytes.CutPrefix(text, []byte(kind.Line(entry)))
		if err != nil || !begins {
			return false, err
		}
		text = rest
	}
	return true, err
}

// compareLog compares a log with its facts in a state; nil: they agree. The caller closes the file.
func (m *Monitor) compareLog(state *catalog.State, conduit string, same agreement) (_ *logDifference, err error) {
	kind, known := state.LogType(conduit), state.LogLength(conduit)
	if kind == nil {
		return nil, fmt.Errorf("%s is no log any more", conduit)
	}
	file, err := typedfile.Open(m.options.Data, conduit, m.groupOf(state, conduit))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	isSame := file.Length() >= known
	if isSame {
		if isSame, err = same(file, kind, state, conduit); err != nil {
			return nil, err
		}
	}
	difference := &logDifference{file: file}
	switch {
	case !isSame: // it is another file, or somebody has changed it
		difference.remove, known = state.LogEntries(conduit), 0
	case file.Length() == known:
		file.Close()
		return nil, nil
	}
	return difference, difference.read(kind, conduit, known)
}

// read reads the entries from an offset on.
func (d *logDifference) read(kind *content.Type, conduit string, from int64) error {
	text, err := d.file.Read(from)
	if err != nil {
		return err
	}
	facts, length := kind.Whole(text, from)
	d.whole, d.left = from+length, int64(len(text))-length
	// A write that was interrupted leaves a part of an entry, or blocks without content, after what was
	// acknowledged. Entries behind something else were lost by other causes: nobody else may remove them.
	isDamaged := len(d.remove) > 0 && bytes.IndexByte(text[length:], '\n') >= 0
	if d.left > wire.ContentMax || isDamaged {
		return fmt.Errorf("%d bytes from offset %d on are not in the form of type %s; move the file away, or correct it",
			d.left, d.whole, kind.Name)
	}
	for _, fact := range facts {
		fact.Conduit = conduit
		d.add = append(d.add, fact)
	}
	return nil
}

// reportLog reports what was not as it should be.
func (m *Monitor) reportLog(conduit string, d *logDifference) {
	m.logger.Warn("the facts of a log follow its file", "conduit", conduit, "entries", len(d.add),
		"lost", len(d.remove), "bytes cut", d.left)
}

// groupOf returns the group of the pipeline that a log belongs to, -1 if it is the monitor's own.
func (m *Monitor) groupOf(state *catalog.State, conduit string) int {
	found, _ := state.ConduitNamed(conduit)
	set := state.SetOf(found)
	for _, p := range m.pipelines {
		for _, one := range p.Spec().Conduits {
			if catalog.NameIn(p.Name(), one.Name) == set {
				return p.Group()
			}
		}
	}
	return -1
}

// checkLogs refuses a bundle with a log whose file is none, before anything changes.
func (m *Monitor) checkLogs(c *candidate) error {
	for _, p := range c.bundle.Pipelines() {
		for _, conduit := range p.Spec.Conduits {
			if !conduit.IsLog() {
				continue
			}
			for _, path := range conduit.Paths {
				if err := m.checkLog(path.Path, conduit.Type); err != nil {
					return api.Invalid("apply pipeline "+p.Metadata.Name, "move the file away, or correct it",
						"conduit %s: %v", conduit.Name, err)
				}
			}
		}
	}
	return nil
}

func (m *Monitor) checkLog(conduit, name string) error {
	if m.state().LogType(conduit) != nil {
		return nil // it is one already, and may have been interrupted
	}
	kind, err := content.Find(name)
	if err != nil {
		return err
	}
	text, err := typedfile.Read(m.options.Data, conduit)
	if err != nil {
		return err
	}
	if _, err := kind.Parse(text, 0); err != nil {
		return fmt.Errorf("%s is not of type %s: %w", conduit, name, err)
	}
	return nil
}
