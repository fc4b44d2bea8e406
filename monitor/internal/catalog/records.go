// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/bbolt"
)

// keyDigest is the place of the digest in the bucket meta.
var keyDigest = []byte("digest")

// ledger writes the database's records and keeps their digest: the sum of the hashes of
// all records, modulo 2^64. The database itself has checksums of only two of its pages, so
// a changed byte of a fact would be another fact. Every transaction that writes uses a
// ledger and closes it.
type ledger struct {
	tx  *bbolt.Tx
	sum uint64
}

func openLedger(tx *bbolt.Tx) *ledger {
	l := &ledger{tx: tx}
	if text := tx.Bucket(bucketMeta).Get(keyDigest); len(text) == 8 {
		l.sum = binary.BigEndian.Uint64(text)
	}
	return l
}

// close stores the digest. Without it, the transaction must not be committed.
func (l *ledger) close() error {
	return l.tx.Bucket(bucketMeta).Put(keyDigest, binary.BigEndian.AppendUint64(nil, l.sum))
}

// bucket returns a bucket of the database's top level for writing.
func (l *ledger) bucket(name []byte) *records {
	return &records{Bucket: l.tx.Bucket(name), ledger: l, path: appendPath(nil, name)}
}

// records is a bucket that keeps the ledger's digest.
type records struct {
	*bbolt.Bucket
	ledger *ledger
	path   []byte // names of the bucket and of those around it
}

func appendPath(path, name []byte) []byte {
	return append(binary.AppendUvarint(path[:len(path):len(path)], uint64(len(name))), name...)
}

func hashRecord(path, key, value []byte) uint64 {
	var length [binary.MaxVarintLen64]byte
	var hash xxhash.Digest
	hash.Reset()
	for _, part := range [][]byte{path, key} {
		_, _ = hash.Write(length[:binary.PutUvarint(length[:], uint64(len(part)))])
		_, _ = hash.Write(part)
	}
	_, _ = hash.Write(value)
	return hash.Sum64()
}

// Put stores a record. Key and value must not change before the transaction ends.
func (r *records) Put(key, value []byte) error {
	r.forget(key)
	r.ledger.sum += hashRecord(r.path, key, value)
	return r.Bucket.Put(key, value)
}

// insert stores a record whose key is not there yet. Key and value must not change before the
// transaction ends.
func (r *records) insert(key, value []byte) error {
	r.ledger.sum += hashRecord(r.path, key, value)
	return r.Bucket.Put(key, value)
}

// Delete removes a record, if it exists.
func (r *records) Delete(key []byte) error {
	r.forget(key)
	return r.Bucket.Delete(key)
}

func (r *records) forget(key []byte) {
	if old := r.Get(key); old != nil {
		r.ledger.sum -= hashRecord(r.path, key, old)
	}
}

// within returns a bucket of this bucket, nil if there is none.
func (r *records) within(name []byte) *records {
	if bucket := r.Bucket.Bucket(name); bucket != nil {
		return &records{Bucket: bucket, ledger: r.ledger, path: appendPath(r.path, name)}
	}
	return nil
}

// create makes a bucket of this bucket.
func (r *records) create(name []byte) (*records, error) {
	if _, err := r.CreateBucket(name); err != nil {
		return nil, err
	}
	return r.within(name), nil
}

// remove deletes a bucket of this bucket with everything in it.
func (r *records) remove(name []byte) error {
	sum, err := digestOf(r.Bucket.Bucket(name), appendPath(r.path, name))
	if err != nil {
		return err
	}
	r.ledger.sum -= sum
	return r.DeleteBucket(name)
}

// digestOf returns the sum of the hashes of a bucket's records.
func digestOf(bucket *bbolt.Bucket, path []byte) (sum uint64, err error) {
	err = bucket.ForEach(func(key, value []byte) error {
		if value != nil {
			sum += hashRecord(path, key, value)
			return nil
		}
		within := bucket.Bucket(key)
		if within == nil {
			return fmt.Errorf("bucket %q is no bucket", key)
		}
		inside, err := digestOf(within, appendPath(path, key))
		sum += inside
		return err
	})
	return sum, err
}

// digestAll returns the digest of the database as it is.
func digestAll(tx *bbolt.Tx) (sum uint64, err error) {
	err = tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
		inside, err := digestOf(bucket, appendPath(nil, name))
		sum += inside
		return err
	})
	if meta := tx.Bucket(bucketMeta); meta != nil {
		if text := meta.Get(keyDigest); text != nil {
			sum -= hashRecord(appendPath(nil, bucketMeta), keyDigest, text)
		}
	}
	return sum, err
}

// checkDigest compares the records with the digest that was stored with them.
func checkDigest(tx *bbolt.Tx) error {
	sum, err := digestAll(tx)
	if err != nil {
		return err
	}
	if text := tx.Bucket(bucketMeta).Get(keyDigest); len(text) != 8 || binary.BigEndian.Uint64(text) != sum {
		return errors.New("the records do not agree with their digest")
	}
	return nil
}
