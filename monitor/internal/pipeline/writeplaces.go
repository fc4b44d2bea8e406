// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"slices"

	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/typedfile"
	"shai.dev/monitor/policy"
)

// place opens the place of the conduit's content.
func (w *typedWrite) place() (place, error) {
	if w.conduit.Kind == policy.TupleConduit {
		store := w.pipeline.keyValueStore()
		if store == nil {
			return nil, errors.New("the key-value store is not open")
		}
		return openTuple(store, w.conduit.Name)
	}
	file, err := w.openFile()
	if err != nil {
		return nil, err
	}
	return wholeFile{file}, nil
}

func (w *typedWrite) openFile() (*typedfile.File, error) {
	return typedfile.Open(w.pipeline.services.Options.Data, w.conduit.Name, w.pipeline.Group())
}

// Group returns the group of the pipeline's tasks, -1 if it is the monitor's own.
func (p *Pipeline) Group() int {
	if p.user == nil {
		return -1
	}
	return int(p.user.Group)
}

// wholeFile is a file that is written anew each time: no crash leaves a part of a write.
type wholeFile struct{ *typedfile.File }

// Append implements [place].
func (f wholeFile) Append(content []byte) error {
	before, err := f.Read(0)
	if err != nil {
		return err
	}
	return f.Replace(slices.Concat(before, content))
}

// tuple is a text in the key-value store.
type tuple struct {
	store  *kvfilter.Store
	key    string
	length int64
}

func openTuple(store *kvfilter.Store, key string) (tuple, error) {
	length, err := store.Length(key)
	return tuple{store, key, length}, err
}

// Length implements [place].
func (t tuple) Length() int64 { return t.length }

// Append implements [place].
func (t tuple) Append(content []byte) error { return t.store.Append(t.key, content) }

// Replace implements [place].
func (t tuple) Replace(content []byte) error { return t.store.Replace(t.key, content) }

// Close implements [place].
func (t tuple) Close() {}

// addToLog is a [LogWrite].
func (w *typedWrite) addToLog() (facts []policy.Fact, end func(keep bool) error, err error) {
	file, err := w.openFile()
	if err != nil {
		return nil, nil, err
	}
	before := file.Length()
	if err := w.decide(before); err != nil {
		file.Close()
		return nil, nil, err
	}
	if err := file.Append(w.content); err != nil {
		file.Close()
		return nil, nil, err
	}
	return w.facts, func(keep bool) error {
		defer file.Close()
		if keep {
			return nil
		}
		return file.Cut(before)
	}, nil
}
