// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/wire"
)

func TestUnsealableTables(t *testing.T) {
	first, second := ranges[0], ranges[1]
	moved := func(r wire.RollbackRange, by uint64) wire.RollbackRange { r.Source += by; return r }
	for want, list := range map[string][]wire.RollbackRange{
		"table of 0 ranges":           {},
		"from 7ffd00000000 on":        {first},
		"copy of range 0":             {second, first},
		"copy of range 1":             {first, moved(second, 0x1000)},
		"ranges of its state overlap": {first, second, {Destination: 0x402000, Source: snapshot + 0x5000, Length: 0x1000}},
		"from 400000 on": {{Destination: 0x400000, Source: snapshot, Length: 0x5000},
			moved(second, 0x2000)},
		"is no memory":   {{Destination: 0x402800, Source: snapshot, Length: 0x3000}, second},
		"no memory: 800": {{Destination: 0x402000, Source: snapshot, Length: 0x800}, second},
		"no memory: 0":   {first, {Destination: 0x403000, Source: snapshot + 0x3000}},
		"no memory: 1000 bytes at fffffffffffff000": {{Destination: ^uint64(0xfff), Source: snapshot, Length: 0x1000}},
		"no memory: fffffffffffff000":               {{Destination: 0x1000, Source: snapshot, Length: ^uint64(0xfff)}},
		"too large": {{Destination: 0x1000000, Source: snapshot, Length: 64 << 20},
			{Destination: 0x402000, Source: snapshot + 64<<20, Length: 0x1000}},
	} {
		_, err := Check(described(t, status, smaps, list...), code, 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	w := described(t, status, smaps, ranges...)
	for used := range byte(3) {
		w.Vectors[512] = used
		if _, err := Check(w, code, 1); err == nil || !strings.Contains(err.Error(), "more than 16 KiB") {
			t.Errorf("with vector registers %d: %v", used, err)
		}
	}
	w.Table = nil
	if _, err := Check(w, code, 1); err == nil {
		t.Error("a worker without a state")
	}
}

// TestUnsealableAmounts: more memory than a state has room for is refused by its amount.
func TestUnsealableAmounts(t *testing.T) {
	const page = wire.RollbackPage
	many := func(count int, size uint64) (list []Mapping) {
		for i := range uint64(count) {
			list = append(list, Mapping{Start: 2 * i * size, End: (2*i + 1) * size, Permissions: "rw-p"})
		}
		return list
	}
	for _, test := range []struct {
		mappings []Mapping
		want     string
	}{
		{many(wire.RollbackRangesMax, page), ""},
		{many(wire.RollbackRangesMax+1, page), "257 mappings"},
		{many(1, wire.RollbackPagesMax*page), ""},
		{many(2, wire.RollbackPagesMax*page), "128 MiB of writable memory, and 64 MiB can be restored"},
	} {
		source := uint64(snapshot)
		var list []wire.RollbackRange
		for _, m := range test.mappings[:min(len(test.mappings), wire.RollbackRangesMax)] {
			list = append(list, wire.RollbackRange{Destination: m.Start, Source: source, Length: m.End - m.Start})
			source += m.End - m.Start
		}
		_, err := checkRanges(list, test.mappings)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
	}
}

// TestRangesProperty compares checkRanges with a count of pages: of ranges that are right, and
// of those with one more, one less, or one moved.
func TestRangesProperty(t *testing.T) {
	const page, pages = wire.RollbackPage, 12
	rapid.Check(t, func(t *rapid.T) {
		var mappings []Mapping
		var list []wire.RollbackRange
		source := uint64(snapshot)
		add := func(first, count uint64) {
			list = append(list, wire.RollbackRange{Destination: first * page, Source: source, Length: count * page})
			source += count * page
		}
		writable := rapid.SliceOfN(rapid.Bool(), pages, pages).Draw(t, "writable")
		for i, can := range writable {
			permissions := "r--p"
			if can {
				permissions = "rw-p"
				add(uint64(i), 1)
			}
			start := uint64(i) * page
			mappings = append(mappings, Mapping{Start: start, End: start + page, Permissions: permissions})
		}
		switch change := rapid.SampledFrom([]string{"none", "more", "less", "moved"}).Draw(t, "change"); {
		case change == "more":
			add(rapid.Uint64Range(0, pages-1).Draw(t, "first"), rapid.Uint64Range(1, 4).Draw(t, "count"))
		case change == "less" && len(list) > 0:
			list = list[:len(list)-1]
		case change == "moved" && len(list) > 0:
			list[rapid.IntRange(0, len(list)-1).Draw(t, "which")].Destination = rapid.Uint64Range(0, pages-1).Draw(t, "to") * page
		}
		var restored [pages + 4]int
		want, total := true, uint64(0)
		for _, r := range list {
			for address := r.Destination; address < r.Destination+r.Length; address += page {
				restored[address/page]++
			}
			total += r.Length
		}
		for i, times := range restored {
			want = want && (times == 1) == (i < pages && writable[i]) && times <= 1
		}
		size, err := checkRanges(list, mappings)
		if (err == nil) != want || err == nil && size != total {
			t.Fatalf("size %x, %v; fits %v", size, err, want)
		}
	})
}
