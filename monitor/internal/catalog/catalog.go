// SPDX-License-Identifier: BSD-2-Clause

// Package catalog keeps the monitor's durable state: the bundle in force, facts,
// conduits with their classes, and the instances that were seen but not analysed.
// Readers use an immutable [State]. Writers replace it in one step, after the change
// is on disk. Every acknowledged change survives kill -9 at any point.
//
// The database (go.etcd.io/bbolt) is authoritative. The class table and the view on
// disk are derived from it; [View.Verify] repairs them after a crash.
package catalog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"shai.dev/monitor/policy"
)

// Errors that callers distinguish.
var (
	ErrInUse    = errors.New("catalog is in use by another process")
	ErrDiskFull = errors.New("disk is full")
	// ErrView says that a change is durable and in force, but that the view on disk could
	// not be updated. Links that would have given too much access are removed.
	ErrView = errors.New("view does not agree with the catalog")
)

// Buckets of the database.
var (
	bucketMeta        = []byte("meta")        // "schema", "bundle", "version"
	bucketFacts       = []byte("facts")       // factstore.go
	bucketConduits    = []byte("conduits")    // id (4 bytes, big-endian) -> flags, class (4 bytes, little-endian), name
	bucketNames       = []byte("names")       // name -> id
	bucketClasses     = []byte("classes")     // number (4 bytes, big-endian) -> classRecord as JSON
	bucketSources     = []byte("sources")     // sources.go
	bucketChoices     = []byte("choices")     // name -> chosen as JSON
	bucketPredictions = []byte("predictions") // task, NUL, parameters as JSON -> nothing
)

// The database's schemas. Records of the first have no digest; they get it when a catalog
// is opened. The third has facts with offsets: a catalog gets it with the first of them, so
// that an earlier program, which would not understand them, refuses it.
const (
	schema         = "2"
	schemaOffsets  = "3"
	schemaNoDigest = "1"
)

// Places in the bucket meta.
var (
	keySchema  = []byte("schema")
	keyClasses = []byte("classes") // the way in which conduits were classified
)

// classification is the way in which this program classifies conduits. When it changes, all
// conduits are classified anew.
const classification = "2"

// Catalog is the durable state of one monitor. It is safe for concurrent use.
type Catalog struct {
	offers
	database *bbolt.DB
	table    *ClassTable
	state    atomic.Pointer[State]

	writing sync.Mutex // one change at a time
	view    *View      // nil: no view is kept
}

// Open opens the catalog in a directory, which it makes if it is missing. It fails with
// ErrInUse if another process has it open. A damaged catalog can end the program, so call
// [Check] first.
func Open(dir string) (*Catalog, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	file := filepath.Join(dir, databaseName)
	if err := create(file); err != nil {
		return nil, fmt.Errorf("make catalog %s: %w", file, diskFull(err))
	}
	database, err := openDatabase(file)
	if err != nil {
		return nil, fmt.Errorf("open catalog %s: %w", file, err)
	}
	c := &Catalog{database: database, offers: newOffers()}
	if err := c.recover(dir); err != nil {
		_ = database.Close()
		return nil, fmt.Errorf("open catalog %s: %w", file, err)
	}
	return c, nil
}

// create makes an empty catalog if there is none. It gets its name when it is whole: an
// empty file with this name is always damage.
func create(file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(file + unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	database, err := openDatabase(file + unfinished)
	if err != nil {
		return err
	}
	if err := errors.Join(database.Update(prepare), database.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(file+unfinished, file), syncDirectory(filepath.Dir(file)))
}

func openDatabase(file string) (*bbolt.DB, error) {
	database, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%w; stop the other monitor first", ErrInUse)
	}
	return database, diskFull(err)
}

// Close ends all use of the catalog. States obtained from it must not be used afterwards.
func (c *Catalog) Close() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return errors.Join(c.table.close(), c.database.Close())
}

// State returns the current state. It does not change when the catalog does.
func (c *Catalog) State() *State { return c.state.Load() }

// ClassTable returns the file that tasks map: see [ClassTable].
func (c *Catalog) ClassTable() *ClassTable { return c.table }

func (c *Catalog) recover(dir string) error {
	if err := c.database.Update(prepare); err != nil {
		return diskFull(err)
	}
	var state *State
	err := c.database.View(func(tx *bbolt.Tx) (err error) {
		state, err = c.load(tx)
		return err
	})
	if err != nil {
		return err
	}
	c.table, err = openClassTable(filepath.Join(dir, classTableName), state.conduits)
	if err != nil {
		return diskFull(err)
	}
	c.state.Store(state)
	return c.classifyAnew()
}

// classifyAnew classifies all conduits if a program that does so in another way has done it.
func (c *Catalog) classifyAnew() error {
	isCurrent := false
	_ = c.database.View(func(tx *bbolt.Tx) error {
		isCurrent = string(tx.Bucket(bucketMeta).Get(keyClasses)) == classification
		return nil
	})
	if isCurrent {
		return nil
	}
	_, err := c.commit("classify conduits anew", func(d *draft) error {
		return errors.Join(d.ledger.bucket(bucketMeta).Put(keyClasses, []byte(classification)), d.reclassifyAll())
	})
	if err != nil {
		_ = c.table.close()
	}
	return err
}

// prepare makes the buckets of a new database and brings one of the earlier schema up to
// date.
func prepare(tx *bbolt.Tx) error {
	for _, name := range [][]byte{bucketMeta, bucketFacts, bucketConduits, bucketNames, bucketClasses, bucketSources,
		bucketPredictions, bucketChoices} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	switch found := string(tx.Bucket(bucketMeta).Get(keySchema)); found {
	case schema, schemaOffsets:
		return nil
	case "", schemaNoDigest:
		sum, err := digestAll(tx)
		if err != nil {
			return err
		}
		l := &ledger{tx: tx, sum: sum}
		if found == "" {
			if err := l.bucket(bucketMeta).Put(keyClasses, []byte(classification)); err != nil {
				return err
			}
		}
		return errors.Join(l.bucket(bucketMeta).Put(keySchema, []byte(schema)), l.close())
	default:
		return fmt.Errorf("the catalog has schema %.20q and this program knows %s and %s; use the program that wrote it",
			found, schema, schemaOffsets)
	}
}

// load reads everything that is kept in memory.
func (c *Catalog) load(tx *bbolt.Tx) (*State, error) {
	state := &State{catalog: c}
	var bundle Bundle
	if text := tx.Bucket(bucketMeta).Get([]byte("bundle")); text != nil {
		if err := json.Unmarshal(text, &bundle); err != nil {
			return nil, fmt.Errorf("read bundle: %w", err)
		}
	}
	if text := tx.Bucket(bucketMeta).Get([]byte("version")); len(text) == 8 {
		state.factsVersion = binary.BigEndian.Uint64(text)
	}
	var err error
	if state.rules, err = compileBundle(bundle); err != nil {
		return nil, fmt.Errorf("bundle %s: %w; apply the manifests with the program that wrote it, or a corrected bundle on an empty catalog", bundle.Hash, err)
	}
	if state.facts, err = loadFacts(tx.Bucket(bucketFacts)); err != nil {
		return nil, err
	}
	if state.classes, state.index, err = loadClasses(tx.Bucket(bucketClasses), state.rules); err != nil {
		return nil, err
	}
	state.conduits, err = loadConduits(tx.Bucket(bucketConduits), state.classes)
	return state, err
}

func loadClasses(bucket *bbolt.Bucket, rules *ruleset) ([]ClassInfo, *classIndex, error) {
	classes, index := make([]ClassInfo, 1), newClassIndex()
	binder := newBinder(rules)
	err := bucket.ForEach(func(key, value []byte) error {
		var record classRecord
		number := binary.BigEndian.Uint32(key)
		if err := json.Unmarshal(value, &record); err != nil || int(number) != len(classes) {
			return fmt.Errorf("read class %d: malformed (%w)", number, err)
		}
		classes = append(classes, ClassInfo{Class: record.class(number, binder)})
		index.add(record.key(), number, record.Set, record.Reference.Policy, classes[number].Policy)
		return nil
	})
	return classes, index, err
}

// class returns the record's class. It is retired if the bundle's policy is another one.
func (r classRecord) class(number uint32, binder *binder) *Class {
	class := &Class{Number: number, Set: r.Set, Kind: r.Kind, Internal: r.Internal, Directory: r.Directory,
		Type: r.Type, Reference: r.Reference, Mentions: r.Mentions, Own: r.Own}
	if bound, err := binder.bind(r.Reference); err == nil {
		if id := bound.ID(); string(id[:]) == string(r.PolicyID) {
			class.Policy = bound
		}
	}
	return class
}

func loadConduits(bucket *bbolt.Bucket, classes []ClassInfo) (*conduitTable, error) {
	table := &conduitTable{}
	err := bucket.ForEach(func(key, value []byte) error {
		id := binary.BigEndian.Uint32(key)
		conduit, err := decodeConduit(value)
		if err != nil || id != table.last+1 || int(conduit.class) >= len(classes) {
			return fmt.Errorf("read conduit %d: malformed", id)
		}
		for int(id/pageSize) >= len(table.pages) {
			table.pages = append(table.pages, new([pageSize]uint32))
		}
		table.pages[id/pageSize][id%pageSize], table.last = conduit.class, id
		if info := &classes[conduit.class]; conduit.class != 0 {
			if info.Members++; info.Members == 1 {
				info.Representative = id
			}
		}
		return nil
	})
	return table, err
}

// conduitRecord is a conduit on disk.
type conduitRecord struct {
	class uint32
	name  string
	// isRetired says that the name is another conduit's now, or nobody's. The class is 0.
	isRetired bool
}

// flagRetired is set in the first byte of the records of such conduits.
const flagRetired = 1

func (r conduitRecord) encode() []byte {
	out := make([]byte, 5, 5+len(r.name))
	if r.isRetired {
		out[0] = flagRetired
	}
	binary.LittleEndian.PutUint32(out[1:], r.class)
	return append(out, r.name...)
}

func decodeConduit(value []byte) (conduitRecord, error) {
	if len(value) < 6 {
		return conduitRecord{}, fmt.Errorf("conduit record of %d bytes", len(value))
	}
	return conduitRecord{class: binary.LittleEndian.Uint32(value[1:]), name: string(value[5:]),
		isRetired: value[0]&flagRetired != 0}, nil
}

func (c *Catalog) nameOf(id uint32) (name string, ok bool) {
	_ = c.database.View(func(tx *bbolt.Tx) error {
		record, err := decodeConduit(tx.Bucket(bucketConduits).Get(numberKey(id)))
		name, ok = record.name, err == nil
		return nil
	})
	return name, ok
}

func (c *Catalog) idOf(name string) (id uint32, ok bool) {
	if name == "" {
		return 0, false
	}
	_ = c.database.View(func(tx *bbolt.Tx) error {
		if value := tx.Bucket(bucketNames).Get([]byte(name)); len(value) == 4 {
			id, ok = binary.BigEndian.Uint32(value), true
		}
		return nil
	})
	return id, ok
}

func numberKey(number uint32) []byte { return binary.BigEndian.AppendUint32(nil, number) }

// diskFull adds the remedy to an error whose cause is a full disk.
func diskFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: nothing was changed; free some space and try again: %w", ErrDiskFull, err)
	}
	return err
}

// binder binds policies, each only once.
type binder struct {
	rules *ruleset
	bound map[string]*policy.Policy
	plain map[plainKey]uint32 // classes of conduits that no fact mentions
}

func newBinder(rules *ruleset) *binder {
	return &binder{rules: rules, bound: make(map[string]*policy.Policy), plain: make(map[plainKey]uint32)}
}

func (b *binder) bind(reference Reference) (*policy.Policy, error) {
	key := reference.key()
	if bound, known := b.bound[key]; known {
		return bound, nil
	}
	bound, err := b.rules.bind(reference)
	if err == nil {
		b.bound[key] = bound
	}
	return bound, err
}

func (r Reference) key() string {
	key := r.Policy
	for _, parameter := range sortedKeys(r.Arguments) {
		key += "\xff" + parameter + "\xff" + r.Arguments[parameter]
	}
	return key
}
