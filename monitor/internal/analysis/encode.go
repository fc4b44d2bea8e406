// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/codec"
)

// A stored result consists of magic, bundle hash, facts version, plan digest, time of the
// run, the instant up to which it has followed the clock, the number of instances, each
// instance, and the SHA-256 of all that. Numbers are unsigned varints, except for 8-byte
// condition hashes (big-endian). Lists of classes contain differences.
const magic = "shai-analysis-3\n"

// magicBefore begins results of earlier versions: without the instants at which accesses begin, and with accesses
// that did not end with the facts that they rest on.
var magicBefore = []string{"shai-analysis-1\n", "shai-analysis-2\n"}

// ErrStale says that a stored result belongs to another bundle, other facts or another
// plan. Run the analysis again.
var ErrStale = errors.New("stored analysis is of another state")

// encode appends the capability set to out. Equal sets give equal bytes.
func (c *Capabilities) encode(out []byte) []byte {
	out = codec.AppendText(out, c.Instance.Task)
	out = codec.AppendNumber(out, uint64(len(c.Instance.Arguments)))
	for _, argument := range c.Instance.Arguments {
		out = codec.AppendText(out, argument)
	}
	out = appendClasses(out, c.Reads)
	out = c.readsOn.encode(out)
	out = appendClasses(out, c.Writes)
	out = c.writesOn.encode(out)
	out = codec.AppendNumber(out, uint64(len(c.Others)))
	for _, other := range c.Others {
		flag := byte(0)
		if other.Write {
			flag = 1
		}
		out = append(codec.AppendText(codec.AppendText(out, other.Set), other.Conduit), flag)
	}
	return codec.AppendFixed(c.othersOn.encode(out), uint64(c.begins)) //nolint:gosec // read back the same way
}

func appendClasses(out []byte, classes []uint32) []byte {
	out = codec.AppendNumber(out, uint64(len(classes)))
	previous := uint32(0)
	for _, class := range classes {
		out = codec.AppendNumber(out, uint64(class-previous))
		previous = class
	}
	return out
}

func (f *footprints) encode(out []byte) []byte {
	previous := uint32(0)
	for _, end := range f.ends {
		out = codec.AppendNumber(out, uint64(end-previous))
		previous = end
	}
	for _, hash := range f.hashes {
		out = codec.AppendFixed(out, uint64(hash))
	}
	out = codec.AppendNumber(out, uint64(len(f.expires)))
	for _, e := range f.expires {
		out = codec.AppendNumber(out, uint64(e.access))
		out = codec.AppendFixed(out, uint64(e.until)) //nolint:gosec // read back the same way
	}
	return out
}

func decodeClasses(r *codec.Reader) []uint32 {
	classes := make([]uint32, r.Count(1))
	previous := uint32(0)
	for i := range classes {
		previous += uint32(r.Number()) //nolint:gosec // written from 32 bits
		classes[i] = previous
	}
	return classes
}

func decodeFootprints(r *codec.Reader, accesses int) footprints {
	var f footprints
	f.ends = make([]uint32, accesses)
	end := uint32(0)
	for i := range f.ends {
		end += uint32(r.Number()) //nolint:gosec // written from 32 bits
		f.ends[i] = end
	}
	if uint64(end)*8 > uint64(len(r.Rest())) {
		r.Break()
		return f
	}
	f.hashes = make([]conditionHash, end)
	for i := range f.hashes {
		f.hashes[i] = conditionHash(r.Fixed())
	}
	for range r.Count(9) {
		access := uint32(r.Number())                                    //nolint:gosec // written from 32 bits
		f.expires = append(f.expires, expiry{access, int64(r.Fixed())}) //nolint:gosec // written the same way
		if int(access) >= accesses {
			r.Break()
		}
	}
	return f
}

func decodeCapabilities(r *codec.Reader) *Capabilities {
	c := &Capabilities{}
	c.Instance.Task = r.Text()
	if count := r.Count(1); count > 0 {
		c.Instance.Arguments = make([]string, count)
		for i := range c.Instance.Arguments {
			c.Instance.Arguments[i] = r.Text()
		}
	}
	c.Reads = decodeClasses(r)
	c.readsOn = decodeFootprints(r, len(c.Reads))
	c.Writes = decodeClasses(r)
	c.writesOn = decodeFootprints(r, len(c.Writes))
	if count := r.Count(1); count > 0 {
		c.Others = make([]Other, count)
		for i := range c.Others {
			c.Others[i] = Other{Set: r.Text(), Conduit: r.Text()}
			flag := r.Bytes(1)
			c.Others[i].Write = flag != nil && flag[0] == 1
		}
	}
	c.othersOn = decodeFootprints(r, len(c.Others))
	c.begins = int64(r.Fixed()) //nolint:gosec // written the same way
	return c
}

// digest returns a hash of the plan's content.
func (p *Plan) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", p.Pipeline)
	for _, task := range p.Tasks {
		fmt.Fprintf(h, "%q %q %q %q %q %q %v\n", task.Name, task.Parameters, task.Taint.Policy, task.Taint.Arguments,
			task.Reads, task.Writes, task.Expect)
	}
	for _, set := range p.Sets {
		reference := catalog.Reference{}
		if set.Policy != nil {
			reference = *set.Policy
		}
		fmt.Fprintf(h, "%q %q %d %t %t %q %q %q %q %q\n", set.Name, set.Catalog, set.Kind, set.Ingress, set.Egress,
			set.Paths, reference.Policy, reference.Arguments, set.From, set.To)
	}
	for _, one := range p.Declared {
		fmt.Fprintf(h, "%q %q %q %d %d\n", one.Name, one.Conduit, one.Says, one.Start.Unix(), one.Every)
	}
	return string(h.Sum(nil))
}

// Encode returns the stored form. Equal results give equal bytes.
func (r *Result) Encode() []byte {
	out := []byte(magic)
	out = codec.AppendText(out, r.BundleHash)
	out = codec.AppendNumber(out, r.FactsVersion)
	out = codec.AppendText(out, r.plan.digest())
	out = codec.AppendFixed(out, uint64(r.Analyzed.UnixNano()))
	out = codec.AppendFixed(out, uint64(r.followed)) //nolint:gosec // read back the same way
	out = codec.AppendNumber(out, uint64(len(r.instances)))
	for _, c := range r.instances {
		out = c.encode(out)
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// readHead reads what stands before the instances, after the magic.
func readHead(r *codec.Reader) (bundleHash string, factsVersion uint64, plan string, analyzed, followed uint64) {
	return r.Text(), r.Number(), r.Text(), r.Fixed(), r.Fixed()
}

// Decode reads a result that Encode made for the same plan and state. The error wraps
// ErrStale if the result belongs to others. Any other error says that it is damaged.
func Decode(stored []byte, plan *Plan, state *catalog.State) (*Result, error) {
	if slices.ContainsFunc(magicBefore, func(begin string) bool { return bytes.HasPrefix(stored, []byte(begin)) }) {
		return nil, ErrStale
	}
	body, ok := bytes.CutPrefix(stored, []byte(magic))
	if !ok || len(body) < sha256.Size {
		return nil, errors.New("not a stored analysis; run the analysis again")
	}
	covered := stored[:len(stored)-sha256.Size]
	if sum := sha256.Sum256(covered); !bytes.Equal(sum[:], stored[len(covered):]) {
		return nil, errors.New("the stored analysis is damaged; run the analysis again")
	}
	r := codec.NewReader(body[:len(body)-sha256.Size])
	hash, version, digest, analyzed, followed := readHead(r)
	if r.Broken() || hash != state.BundleHash() || version != state.FactsVersion() || digest != plan.digest() {
		return nil, ErrStale
	}
	all := make([]*Capabilities, r.Count(1))
	for i := range all {
		all[i] = decodeCapabilities(r)
	}
	if r.Broken() || len(r.Rest()) != 0 {
		return nil, errors.New("the stored analysis is malformed; run the analysis again")
	}
	result := newResult(plan, state, time.Unix(0, int64(analyzed)).UTC(), all) //nolint:gosec // written the same way
	result.followed = int64(followed)                                          //nolint:gosec // written the same way
	result.next = result.nextInstant()
	return result, nil
}
