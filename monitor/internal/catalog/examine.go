// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// Summary says what a catalog's file holds.
type Summary struct {
	Version  uint64 `json:"version"` // of the bundle in force; 0 if there is none
	Hash     string `json:"hash"`
	Label    string `json:"label,omitempty"`
	Facts    int    `json:"facts"`
	Conduits uint32 `json:"conduits"`
}

// examine reads a catalog's file wholly. An error says what is wrong with it. The database
// trusts its pages: if they are damaged, this function may panic, read addresses that do
// not exist, or not return. [Check] therefore runs it in a process of its own.
func examine(file string) (Summary, error) {
	if err := examineMeta(file); err != nil {
		return Summary{}, err
	}
	database, err := bbolt.Open(file, 0o600,
		&bbolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: time.Second})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return Summary{}, ErrInUse
	}
	if err != nil {
		return Summary{}, err
	}
	defer database.Close()
	var summary Summary
	err = database.View(func(tx *bbolt.Tx) error {
		for fault := range tx.Check() {
			return fault // the other end of the channel waits for the process to end
		}
		if err := examineSizes(database, tx); err != nil {
			return err
		}
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return errors.New("it is a database, but not a catalog")
		}
		if string(meta.Get(keySchema)) != schemaNoDigest {
			if err := checkDigest(tx); err != nil {
				return err
			}
		}
		state, err := (&Catalog{}).load(tx)
		if err == nil {
			summary = summaryOf(state)
		}
		return err
	})
	return summary, err
}

// examineSizes examines the sizes on all pages that a transaction reads.
func examineSizes(database *bbolt.DB, tx *bbolt.Tx) error {
	file, err := os.Open(database.Path())
	if err != nil {
		return err
	}
	defer file.Close()
	return pages{file: file, size: int64(database.Info().PageSize)}.check(uint64(tx.Cursor().Bucket().Root()))
}

func summaryOf(state *State) Summary {
	bundle := state.rules.bundle
	return Summary{Version: bundle.Version, Hash: bundle.Hash, Label: bundle.Label, Conduits: state.Conduits(),
		Facts: state.Facts()}
}

// The layout of the two pages that say where everything else is (bbolt's
// internal/common/meta.go). Each has a checksum. The database would use the older one if
// the newer is damaged, and so lose the last change.
const (
	metaHeader   = 16 // of a page
	metaPageSize = metaHeader + 8
	metaPages    = metaHeader + 40 // the number of pages
	metaSum      = metaHeader + 56
	metaEnd      = metaSum + 8
	metaMagic    = 0xED0CDAED
)

// examineMeta checks both of these pages, and that the file has all its pages.
func examineMeta(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	var first [metaEnd]byte
	if _, err := io.ReadFull(file, first[:]); err != nil {
		return fmt.Errorf("it is cut short: %d bytes", info.Size())
	}
	if err := checkMeta(first[:]); err != nil {
		return err
	}
	size := int64(binary.NativeEndian.Uint32(first[metaPageSize:]))
	var second [metaEnd]byte
	if _, err := file.ReadAt(second[:], size); err != nil {
		return fmt.Errorf("it is cut short: %d bytes", info.Size())
	}
	if err := checkMeta(second[:]); err != nil {
		return err
	}
	pages := max(binary.NativeEndian.Uint64(first[metaPages:]), binary.NativeEndian.Uint64(second[metaPages:]))
	if uint64(info.Size()/size) < pages { //nolint:gosec // a size is not negative
		return fmt.Errorf("it is cut short: %d bytes of %d pages of %d bytes", info.Size(), pages, size)
	}
	return nil
}

func checkMeta(page []byte) error {
	sum := fnv.New64a()
	_, _ = sum.Write(page[metaHeader:metaSum])
	if binary.NativeEndian.Uint32(page[metaHeader:]) != metaMagic ||
		binary.NativeEndian.Uint64(page[metaSum:]) != sum.Sum64() {
		return errors.New("one of its first two pages is damaged")
	}
	return nil
}
