// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"shai.dev/monitor/internal/catalog"
)

// A stored result: magic, bundle hash, facts version, plan digest, time of the run,
// the number of instances, each instance, and the SHA-256 of all that. Numbers are
// unsigned varints, but for 8-byte condition hashes (big-endian); lists of classes
// hold differences.
const magic = "shai-analysis-1\n"

// ErrStale says that a stored result belongs to another bundle, other facts or
// another plan; run the analysis.
var ErrStale = errors.New("stored analysis is of another state")

// encode appends the capability set to out. Equal sets give equal bytes.
func (c *Capabilities) encode(out []byte) []byte {
	out = appendText(out, c.Instance.Task)
	out = binary.AppendUvarint(out, uint64(len(c.Instance.Arguments)))
	for _, argument := range c.Instance.Arguments {
		out = appendText(out, argument)
	}
	out = appendClasses(out, c.Reads)
	out = c.readsOn.encode(out)
	out = appendClasses(out, c.Writes)
	out = c.writesOn.encode(out)
	out = binary.AppendUvarint(out, uint64(len(c.Others)))
	for _, other := range c.Others {
		flag := byte(0)
		if other.Write {
			flag = 1
		}
		out = append(appendText(appendText(out, other.Set), other.Conduit), flag)
	}
	return c.othersOn.encode(out)
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

func appendClasses(out []byte, classes []uint32) []byte {
	out = binary.AppendUvarint(out, uint64(len(classes)))
	previous := uint32(0)
	for _, class := range classes {
		out = binary.AppendUvarint(out, uint64(class-previous))
		previous = class
	}
	return out
}

func (f *footprints) encode(out []byte) []byte {
	previous := uint32(0)
	for _, end := range f.ends {
		out = binary.AppendUvarint(out, uint64(end-previous))
		previous = end
	}
	for _, hash := range f.hashes {
		out = binary.BigEndian.AppendUint64(out, uint64(hash))
	}
	out = binary.AppendUvarint(out, uint64(len(f.expires)))
	for _, e := range f.expires {
		out = binary.AppendUvarint(out, uint64(e.access))
		out = binary.BigEndian.AppendUint64(out, uint64(e.until)) //nolint:gosec // read back the same way
	}
	return out
}

// reader takes a stored result apart; the first malformed byte stops it. The digest
// has been checked, so what is malformed was written so.
type reader struct {
	rest   []byte
	broken bool
}

func (r *reader) take(count uint64) []byte {
	if count > uint64(len(r.rest)) {
		r.broken = true
		return nil
	}
	out := r.rest[:count]
	r.rest = r.rest[count:]
	return out
}

func (r *reader) number() uint64 {
	value, used := binary.Uvarint(r.rest)
	if used <= 0 {
		r.broken = true
		return 0
	}
	r.rest = r.rest[used:]
	return value
}

// count is a number of things that take at least one byte each.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.broken = true
		return 0
	}
	return int(n) //nolint:gosec // bounded above
}

func (r *reader) fixed() uint64 {
	if raw := r.take(8); raw != nil {
		return binary.BigEndian.Uint64(raw)
	}
	return 0
}

func (r *reader) text() string { return string(r.take(r.number())) }

func (r *reader) classes() []uint32 {
	classes := make([]uint32, r.count())
	previous := uint32(0)
	for i := range classes {
		previous += uint32(r.number()) //nolint:gosec // written from 32 bits
		classes[i] = previous
	}
	return classes
}

func (r *reader) footprints(accesses int) footprints {
	var f footprints
	f.ends = make([]uint32, accesses)
	end := uint32(0)
	for i := range f.ends {
		end += uint32(r.number()) //nolint:gosec // written from 32 bits
		f.ends[i] = end
	}
	if uint64(end)*8 > uint64(len(r.rest)) {
		r.broken = true
		return f
	}
	f.hashes = make([]conditionHash, end)
	for i := range f.hashes {
		f.hashes[i] = conditionHash(r.fixed())
	}
	for range r.count() {
		access := uint32(r.number())                                    //nolint:gosec // written from 32 bits
		f.expires = append(f.expires, expiry{access, int64(r.fixed())}) //nolint:gosec // written the same way
		r.broken = r.broken || int(access) >= accesses
	}
	return f
}

func (r *reader) capabilities() *Capabilities {
	c := &Capabilities{}
	c.Instance.Task = r.text()
	if count := r.count(); count > 0 {
		c.Instance.Arguments = make([]string, count)
		for i := range c.Instance.Arguments {
			c.Instance.Arguments[i] = r.text()
		}
	}
	c.Reads = r.classes()
	c.readsOn = r.footprints(len(c.Reads))
	c.Writes = r.classes()
	c.writesOn = r.footprints(len(c.Writes))
	if count := r.count(); count > 0 {
		c.Others = make([]Other, count)
		for i := range c.Others {
			c.Others[i] = Other{Set: r.text(), Conduit: r.text()}
			flag := r.take(1)
			c.Others[i].Write = flag != nil && flag[0] == 1
		}
	}
	c.othersOn = r.footprints(len(c.Others))
	return c
}

// digest names a plan by its content.
func (p *Plan) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", p.Pipeline)
	for _, task := range p.Tasks {
		fmt.Fprintf(h, "%q %q %q %q %q %q %v\n", task.Name, task.Parameters, task.Taint.Policy, task.Taint.Arguments, task.Reads, task.Writes, task.Expect)
	}
	for _, set := range p.Sets {
		reference := catalog.Reference{}
		if set.Policy != nil {
			reference = *set.Policy
		}
		fmt.Fprintf(h, "%q %q %d %t %t %q %q %q %q %q\n", set.Name, set.Catalog, set.Kind, set.Ingress, set.Egress, set.Paths, reference.Policy, reference.Arguments, set.From, set.To)
	}
	return string(h.Sum(nil))
}

// Encode is the stored form. Equal results give equal bytes.
func (r *Result) Encode() []byte {
	out := []byte(magic)
	out = appendText(out, r.BundleHash)
	out = binary.AppendUvarint(out, r.FactsVersion)
	out = appendText(out, r.plan.digest())
	out = binary.BigEndian.AppendUint64(out, uint64(r.Analysed.UnixNano())) //nolint:gosec // read back the same way
	out = binary.AppendUvarint(out, uint64(len(r.instances)))
	for _, c := range r.instances {
		out = c.encode(out)
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// Save stores the result, atomically: a crash leaves the old file or the new one.
func (r *Result) Save(path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("store analysis %s: %w", path, err)
		}
	}()
	file, err := os.CreateTemp(filepath.Dir(path), ".analysis-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails, as it should, once the file has its name
	_, err = file.Write(r.Encode())
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// Load reads a stored result. ErrStale: it is there and belongs to another state or
// plan; fs.ErrNotExist: there is none. Neither, nor a damaged file, is used.
func Load(path string, plan *Plan, state *catalog.State) (*Result, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the monitor's own state directory
	if err != nil {
		return nil, fmt.Errorf("load analysis: %w", err)
	}
	result, err := decode(text, plan, state)
	if err != nil {
		return nil, fmt.Errorf("load analysis %s: %w", path, err)
	}
	return result, nil
}

func decode(text []byte, plan *Plan, state *catalog.State) (*Result, error) {
	body, ok := bytes.CutPrefix(text, []byte(magic))
	if !ok || len(body) < sha256.Size {
		return nil, fmt.Errorf("not a stored analysis: %w", fs.ErrInvalid)
	}
	covered := text[:len(text)-sha256.Size]
	if sum := sha256.Sum256(covered); !bytes.Equal(sum[:], text[len(covered):]) {
		return nil, fmt.Errorf("the file is damaged; run the analysis again: %w", fs.ErrInvalid)
	}
	r := &reader{rest: body[:len(body)-sha256.Size]}
	hash, version, digest, analysed := r.text(), r.number(), r.text(), r.fixed()
	if r.broken || hash != state.BundleHash() || version != state.FactsVersion() || digest != plan.digest() {
		return nil, ErrStale
	}
	all := make([]*Capabilities, r.count())
	for i := range all {
		all[i] = r.capabilities()
	}
	if r.broken || len(r.rest) != 0 {
		return nil, fmt.Errorf("the file is malformed; run the analysis again: %w", fs.ErrInvalid)
	}
	return newResult(plan, state, time.Unix(0, int64(analysed)).UTC(), all), nil //nolint:gosec // written the same way
}
