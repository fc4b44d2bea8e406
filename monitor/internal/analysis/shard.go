// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/codec"
)

// A full run can be divided among processes, also on several machines: each analyses the
// instances of one shard, and the stored result of all shards has the bytes of an undivided
// run with the same clock.

// Shard is one of several equal parts of the expected instances, counted from 1.
type Shard struct{ Number, Of int }

// maxShards limits how many a run is divided into.
const maxShards = 4096

// ParseShard reads "2/3": the second of three shards.
func ParseShard(text string) (Shard, error) {
	number, of, _ := strings.Cut(text, "/")
	var s Shard
	var err, other error
	s.Number, err = strconv.Atoi(number)
	s.Of, other = strconv.Atoi(of)
	if err != nil || other != nil || s.Number < 1 || s.Number > s.Of || s.Of > maxShards || s.String() != text {
		return Shard{}, fmt.Errorf("shard %q: expected NUMBER/OF, such as 1/2, with at most %d shards", text, maxShards)
	}
	return s, nil
}

// String returns "2/3".
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Number, s.Of) }

// within returns the shard's part of a list.
func (s Shard) within(instances []Instance) []Instance {
	count := len(instances)
	return instances[(s.Number-1)*count/s.Of : s.Number*count/s.Of]
}

// A stored shard is the magic of shards, the shard's numbers, the basis of the run, and the
// stored result of its instances.
const magicShard = "shai-analysis-shard-1\n"

// RunShard analyses the instances of one shard and returns them in the form that Merge takes.
// The basis is that of the catalog whose state it is ([catalog.Catalog.Basis]).
func RunShard(ctx context.Context, plan *Plan, state *catalog.State, basis string, shard Shard,
	options Options) ([]byte, error) {
	instances := shard.within(plan.Instances(state, options.Now))
	result, err := runInstances(ctx, prepared(plan, state, options), instances, options)
	if err != nil {
		return nil, fmt.Errorf("shard %s: %w", shard, err)
	}
	out := []byte(magicShard)
	out = codec.AppendNumber(out, uint64(shard.Number)) //nolint:gosec // from 1
	out = codec.AppendNumber(out, uint64(shard.Of))     //nolint:gosec // from 1
	out = codec.AppendText(out, basis)
	return append(out, result.Encode()...), nil
}

// piece is a stored shard that was read.
type piece struct {
	shard     Shard
	basis     string
	head      []byte // of the stored result, up to the number of instances
	count     uint64
	instances []byte
}

// Merge joins all shards of one run, in any order, to the stored result of an undivided run,
// and returns its basis, too. The error names the shard that is missing, given twice, damaged,
// or of another run.
func Merge(shards [][]byte) (stored []byte, basis string, err error) {
	if len(shards) == 0 {
		return nil, "", errors.New("no shard is given")
	}
	pieces := make([]piece, len(shards))
	for i, stored := range shards {
		if pieces[i], err = readShard(stored); err != nil {
			return nil, "", fmt.Errorf("file %d of %d: %w", i+1, len(shards), err)
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int { return a.shard.Number - b.shard.Number })
	if err := checkPieces(pieces); err != nil {
		return nil, "", err
	}
	var count uint64
	for _, one := range pieces {
		count += one.count
	}
	out := codec.AppendNumber(slices.Clone(pieces[0].head), count)
	for _, one := range pieces {
		out = append(out, one.instances...)
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), pieces[0].basis, nil
}

// checkPieces checks that sorted pieces are those of one run.
func checkPieces(pieces []piece) error {
	of := pieces[0].shard.Of
	for i, one := range pieces {
		switch {
		case one.shard.Of != of:
			return fmt.Errorf("shard %s is of a run with another number of shards than shard %s", one.shard,
				pieces[0].shard)
		case i > 0 && one.shard == pieces[i-1].shard:
			return fmt.Errorf("shard %s is given twice", one.shard)
		case one.shard.Number != i+1:
			return fmt.Errorf("shard %s is missing", Shard{i + 1, of})
		case one.basis != pieces[0].basis || !bytes.Equal(one.head, pieces[0].head):
			return fmt.Errorf("shard %s is of another run than shard %s; run both on the same exported work", one.shard,
				pieces[0].shard)
		}
	}
	if len(pieces) < of {
		return fmt.Errorf("shard %s is missing", Shard{len(pieces) + 1, of})
	}
	return nil
}

// ShardOf returns which shard a result is of. The error says that it is none, or damaged.
func ShardOf(stored []byte) (Shard, error) {
	read, err := readShard(stored)
	return read.shard, err
}

var errNoShard = errors.New("it is no shard of an analysis, or damaged; run the shard again")

func readShard(stored []byte) (piece, error) {
	text, ok := bytes.CutPrefix(stored, []byte(magicShard))
	if !ok {
		return piece{}, errNoShard
	}
	numbers := codec.NewReader(text)
	number, of, basis := numbers.Number(), numbers.Number(), numbers.Text()
	result := numbers.Rest()
	if numbers.Broken() || number < 1 || number > of || of > maxShards || len(result) < sha256.Size {
		return piece{}, errNoShard
	}
	covered := result[:len(result)-sha256.Size]
	if sum := sha256.Sum256(covered); !bytes.Equal(sum[:], result[len(covered):]) {
		return piece{}, errNoShard
	}
	body, ok := bytes.CutPrefix(covered, []byte(magic))
	if !ok {
		return piece{}, errNoShard
	}
	r := codec.NewReader(body)
	readHead(r)
	head := covered[:len(covered)-len(r.Rest())]
	count := r.Number()
	if r.Broken() {
		return piece{}, errNoShard
	}
	return piece{shard: Shard{int(number), int(of)}, basis: basis, head: head, count: count, instances: r.Rest()}, nil //nolint:gosec // at most maxShards
}

// Import decodes the stored result of a run elsewhere, whose basis the caller has compared with
// that of the state's catalog: class numbers mean nothing in another one. The result has to be
// of the plan and of the state, and to have every expected instance and no other; otherwise the
// error wraps ErrStale. A few instances are analysed again, of which pick chooses the number from
// 0 up to n, at random: what they are granted has to be equal, or the error wraps ErrWrong. Accesses
// of options.Earlier are kept as in a run.
func Import(ctx context.Context, stored []byte, plan *Plan, state *catalog.State, pick func(n int) int,
	options Options) (*Result, error) {
	result, err := Decode(stored, plan, state)
	if err != nil {
		return nil, err
	}
	if !result.Covers(plan, state) {
		return nil, fmt.Errorf("%w: it has other instances than those that are expected now", ErrStale)
	}
	for _, c := range result.instances {
		if highest(c.Reads) > state.Classes() || highest(c.Writes) > state.Classes() {
			return nil, fmt.Errorf("%w: %s has access to a class that does not exist", ErrStale, c.Instance.Name())
		}
	}
	if err := result.sample(ctx, plan, state, pick, options); err != nil {
		return nil, err
	}
	e := prepared(plan, state, options)
	err = parallel(ctx, len(result.instances), Options{Parallel: options.Parallel}, func(i int) {
		e.keep(result.instances[i], options.Earlier)
	})
	return newResult(plan, state, result.Analyzed, result.instances), err
}

// sampled is how many instances of an imported result are analysed again.
const sampled = 16

// ErrWrong says that a result grants something else than an analysis here.
var ErrWrong = errors.New("the result is not what an analysis here finds")

// sample analyses some instances again. This finds other versions of the analysis and machines that
// compute wrongly. It does not find who has forged the grants of a few instances out of many.
func (r *Result) sample(ctx context.Context, plan *Plan, state *catalog.State, pick func(n int) int,
	options Options) error {
	var chosen []Instance
	for i := range min(sampled, len(r.instances)) {
		if len(r.instances) > sampled {
			i = pick(len(r.instances))
		}
		chosen = append(chosen, r.instances[i].Instance)
	}
	slices.SortFunc(chosen, Instance.compare)
	chosen = slices.CompactFunc(chosen, func(a, b Instance) bool { return a.compare(b) == 0 })
	again := Options{Now: r.Analyzed, Parallel: options.Parallel}
	found, err := runInstances(ctx, prepared(plan, state, again), chosen, again)
	if err != nil {
		return err
	}
	for _, own := range found.instances {
		imported, known := r.Instance(own.Instance)
		if !known || !bytes.Equal(imported.encode(nil), own.encode(nil)) {
			return fmt.Errorf("%w: %s gets other accesses; run the shards with the monitor's version of shai, on machines "+
				"that you trust", ErrWrong, own.Instance.Name())
		}
	}
	return nil
}

func highest(classes []uint32) uint32 {
	if len(classes) == 0 {
		return 0
	}
	return slices.Max(classes)
}
