// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Basis identifies what an analysis on this catalog rests on: the facts, and which class has
// which number. It is the same in a copy, and differs in another catalog even if that one has
// the same bundle and has changed as often.
func (c *Catalog) Basis() (basis string, err error) {
	err = c.database.View(func(tx *bbolt.Tx) error {
		basis, err = basisOf(tx)
		return err
	})
	return basis, err
}

func basisOf(tx *bbolt.Tx) (string, error) {
	var sums []byte
	for _, name := range [][]byte{bucketFacts, bucketClasses} {
		sum, err := digestOf(tx.Bucket(name), appendPath(nil, name))
		if err != nil {
			return "", err
		}
		sums = binary.BigEndian.AppendUint64(sums, sum)
	}
	return hex.EncodeToString(sums), nil
}

// Copy writes the database as it is at one moment, after a call of head with its basis and
// its size in bytes. Changes go on in the meantime.
func (c *Catalog) Copy(w io.Writer, head func(basis string, size int64) error) error {
	err := c.database.View(func(tx *bbolt.Tx) error {
		basis, err := basisOf(tx)
		if err != nil {
			return err
		}
		if err := head(basis, tx.Size()); err != nil {
			return err
		}
		_, err = tx.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("copy catalog: %w", diskFull(err))
	}
	return nil
}

// OpenCopy opens a catalog that Copy has written, in a directory that holds no catalog yet.
// The copy has to be whole: a damaged one can end the program.
func OpenCopy(from io.Reader, dir string) (*Catalog, error) {
	err := writeFile(filepath.Join(dir, databaseName), func(file io.Writer) error {
		_, err := io.Copy(file, from)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("unpack copy of a catalog: %w", diskFull(err))
	}
	return Open(dir)
}
