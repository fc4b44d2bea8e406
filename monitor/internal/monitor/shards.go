// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/plainfile"
)

// The work of an analysis is what other machines need to do it: a line of JSON (workHead), the
// catalog's database, and the SHA-256 of both.

const workFormat = "shai-analysis-work-1"

// maxWorkHead limits the line, in bytes.
const maxWorkHead = 64 << 20

type workHead struct {
	Format  string         `json:"format"`
	Plan    *analysis.Plan `json:"plan"`
	Now     time.Time      `json:"now"` // the clock of the run, the same for all shards
	Basis   string         `json:"basis"`
	Catalog int64          `json:"catalog"` // size in bytes
}

// ExportAnalysis implements [api.Service]. The work is written to a file without a name first:
// who reads it slowly does not hold the database.
func (m *Monitor) ExportAnalysis(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	file, err := os.CreateTemp(m.options.State, ".work-")
	if err != nil {
		return nil, 0, fmt.Errorf("export analysis: %w", err)
	}
	err = os.Remove(file.Name())
	if err == nil {
		err = m.writeWork(ctx, name, file)
	}
	size, other := file.Seek(0, io.SeekCurrent)
	if _, back := file.Seek(0, io.SeekStart); err != nil || other != nil || back != nil {
		return nil, 0, errors.Join(err, other, back, file.Close())
	}
	return file, size, nil
}

func (m *Monitor) writeWork(ctx context.Context, name string, to io.Writer) error {
	m.changing.Lock()
	locked := true
	unlock := func() {
		if locked {
			locked = false
			m.changing.Unlock()
		}
	}
	defer unlock()
	p, err := m.pipeline("export analysis", name)
	if err != nil {
		return err
	}
	if err := p.Remember(); err != nil {
		return err
	}
	sum := sha256.New()
	both := io.MultiWriter(to, sum)
	err = m.catalog.Copy(both, func(basis string, size int64) error {
		defer unlock() // what is copied does not change any more
		return json.NewEncoder(both).Encode(workHead{workFormat, p.Plan(), time.Now(), basis, size})
	})
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	_, err = to.Write(sum.Sum(nil))
	return err
}

// ImportAnalysis implements [api.Service].
func (m *Monitor) ImportAnalysis(ctx context.Context, name, basis string, stored []byte) (api.Analysis, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	p, err := m.pipeline("import analysis", name)
	if err != nil {
		return api.Analysis{}, err
	}
	begun := time.Now()
	report, err := func() (api.Analysis, error) {
		if err := p.Remember(); err != nil {
			return api.Analysis{}, err
		}
		if own, err := m.catalog.Basis(); err != nil || own != basis {
			return api.Analysis{}, errors.Join(err, staleImport(analysis.ErrStale))
		}
		options := analysis.Options{Now: begun}
		if known := m.analyses[p.Name()]; known != nil && known.plan == p.Plan() {
			options.Earlier = known.result
		}
		plan, based := p.Plan(), m.state()
		return m.putAnalysis(ctx, p, api.ScopeAll, nil, begun, func(api.Progress) {},
			func(state *catalog.State) (*analysis.Result, error) {
				if state != based {
					return nil, staleImport(fmt.Errorf("%w: a document is gone on which accesses rest", analysis.ErrStale))
				}
				result, err := analysis.Import(ctx, stored, plan, state, rand.IntN, options)
				if err != nil {
					return nil, staleImport(err)
				}
				if result.Analyzed.After(begun) { // it would grant what policies allow only then
					return nil, staleImport(fmt.Errorf("%w: its clock was ahead of this one", analysis.ErrStale))
				}
				if next, expires := result.NextExpiry(); expires && !next.After(begun) {
					return nil, staleImport(fmt.Errorf("%w: some of its accesses have expired since", analysis.ErrStale))
				}
				return result, nil
			})
	}()
	m.book(ctx, p, "import", api.ScopeAll, begun, report, err)
	return report, err
}

func staleImport(err error) error {
	if errors.Is(err, analysis.ErrStale) {
		return api.Conflict("import analysis", "export the work again, and run its shards", "%v", err)
	}
	return api.Invalid("import analysis", "", "%v", err) // it names its remedy
}

// RunShard analyses one shard of exported work, of so many bytes at most, and returns its result. It needs no
// monitor. While it runs it has a copy of the catalog, in a directory for temporary files.
func RunShard(ctx context.Context, work string, most int64, shard analysis.Shard, progress func(api.Progress)) (
	_ []byte, err error) {
	file, err := plainfile.Open(work)
	if err != nil {
		return nil, fmt.Errorf("read work: %w", err)
	}
	defer file.Close()
	head, content, err := checkedWork(file, most)
	if err != nil {
		return nil, fmt.Errorf("read work %s: %w", work, err)
	}
	dir, err := os.MkdirTemp("", "shai-shard-")
	if err != nil {
		return nil, fmt.Errorf("unpack work %s: %w", work, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := catalog.OpenCopy(content, dir)
	if err != nil {
		return nil, fmt.Errorf("unpack work %s: %w", work, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return analysis.RunShard(ctx, head.Plan, c.State(), head.Basis, shard, analysis.Options{Now: head.Now,
		Progress: func(done, total uint64) {
			if progress != nil {
				progress(api.Progress{Phase: "instances", Done: done, Total: total})
			}
		}})
}

// checkedWork compares a file with its length and its SHA-256, and returns its head and what follows. The length comes
// first: a sparse file of terabytes costs nothing to make, and its SHA-256 hours.
func checkedWork(file *os.File, most int64) (workHead, io.Reader, error) {
	info, err := file.Stat()
	if err != nil {
		return workHead{}, nil, err
	}
	size := info.Size() - sha256.Size
	if info.Size() > most {
		return workHead{}, nil, fmt.Errorf("%w: it has %d MiB, and %d are the limit; raise the limit if you have exported it",
			plainfile.ErrTooLong, info.Size()>>20, most>>20)
	}
	head, length, err := readWorkHead(bufio.NewReader(io.NewSectionReader(file, 0, max(size, 0))))
	if err != nil {
		return workHead{}, nil, err
	}
	if head.Catalog != size-length {
		return workHead{}, nil, errDamagedWork
	}
	sum, found := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, size)); err != nil {
		return workHead{}, nil, err
	}
	if _, err := file.ReadAt(found, size); err != nil {
		return workHead{}, nil, err
	}
	if !bytes.Equal(sum.Sum(nil), found) {
		return workHead{}, nil, errDamagedWork
	}
	return head, io.NewSectionReader(file, length, head.Catalog), nil
}

var errDamagedWork = errors.New("it is no work of an analysis, or not whole; export it again")

// readWorkHead also returns how long the line is.
func readWorkHead(content *bufio.Reader) (head workHead, length int64, err error) {
	var line []byte
	for {
		part, err := content.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxWorkHead {
			return workHead{}, 0, errDamagedWork
		}
	}
	if err := json.Unmarshal(line, &head); err != nil || head.Format != workFormat || head.Plan == nil {
		return workHead{}, 0, fmt.Errorf("%w, with this version of shai", errDamagedWork)
	}
	return head, int64(len(line)), nil
}
