// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/wire"
)

// smaps is the memory of a worker that can be sealed. The real files have more fields.
const smaps = `00400000-00402000 r-xp 00000000 08:01 77                                 /bin/worker
VmFlags: rd ex mr mw me 
00402000-00403000 rw-p 00002000 08:01 77                                 /bin/worker
Size:                  4 kB
ProtectionKey:         0
VmFlags: rd wr mr mw me ac 
00403000-00405000 rw-p 00000000 00:00 0                                  [heap]
VmFlags: rd wr mr mw me ac 
200000000000-200000001000 r-xp 00000000 00:01 1234                       /memfd:rollback (deleted)
VmFlags: rd ex mr mw me 
200000010000-20000001b000 r--p 00000000 00:00 0 
VmFlags: rd mr mw me ac 
7f0000000000-7f0000001000 r--s 00000000 00:01 9                          /memfd:classes (deleted)
VmFlags: rd sh mr mw me ms 
7ffcfffff000-7ffd00000000 ---p 00000000 00:00 0 
VmFlags: mr mw me 
7ffd00000000-7ffd00002000 rw-p 00000000 00:00 0                          [stack]
VmFlags: rd wr mr mw me gd ac 
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
VmFlags: ex 
`

const status = `Name:	worker
Threads:	1
SigPnd:	0000000000000000
ShdPnd:	0000000000000000
SigBlk:	0000000000000000
SigIgn:	0000000000001000
SigCgt:	0000000000000000
Seccomp:	2
Seccomp_filters:	1
x86_Thread_features:	
`

const limits = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
`

const snapshot = wire.RollbackState + wire.RollbackSnapshot

var ranges = []wire.RollbackRange{
	{Destination: 0x402000, Source: snapshot, Length: 0x3000},
	{Destination: 0x7ffd00000000, Source: snapshot + 0x3000, Length: 0x2000},
}

var code = Code{Text: bytes.Repeat([]byte{0xcc}, wire.RollbackCodeSize), File: File{Device: "00:01", Inode: 1234}}

// vectors has x87 and SSE.
var vectors = append(append(make([]byte, 512), 3), make([]byte, VectorsHead-513)...)

func tableOf(t interface{ Fatal(...any) }, ranges ...wire.RollbackRange) []byte {
	table := wire.RollbackTable{RangeCount: uint64(len(ranges))}
	copy(table.Range[:], ranges)
	var text bytes.Buffer
	if err := binary.Write(&text, binary.LittleEndian, table); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// described returns the worker that the texts describe.
func described(t *testing.T, status, smaps string, ranges ...wire.RollbackRange) Worker {
	t.Helper()
	w := Worker{Code: code.Text, Table: tableOf(t, ranges...), Vectors: bytes.Clone(vectors)}
	var err error
	if w.Status, err = ParseStatus([]byte(status)); err != nil {
		t.Fatal(err)
	}
	if w.Timing, err = ParseTiming([]byte(limits), nil); err != nil {
		t.Fatal(err)
	}
	if w.Mappings, err = ParseMappings([]byte(smaps)); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSealable(t *testing.T) {
	w := described(t, status, smaps, ranges...)
	got, err := Check(w, code, 1)
	if err != nil || !slices.Equal(got.Ranges, ranges) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestUnsealable: each change of what describes a worker that can be sealed is refused by its name.
func TestUnsealable(t *testing.T) {
	for _, test := range []struct{ old, other, want string }{
		{"Threads:	1", "Threads:	2", "2 threads"},
		{"filters:	1", "filters:	2", "2 seccomp filters"},
		{"SigCgt:	0000000000000000", "SigCgt:	0000000000004002", "handles signals (2, 15)"},
		{"SigBlk:	0", "SigBlk:	8", "blocks signals (64)"},
		{"SigPnd:	0000000000000000", "SigPnd:	0000000000000001", "signals wait for it (1)"},
		{"ShdPnd:	0000000000000000", "ShdPnd:	0000000000000002", "signals wait for it (2)"},
		{"features:	", "features:	shstk", `uses "shstk"`},
		{"r--s", "rw-s", "is shared and writable"},
		{"00403000-00405000 rw-p", "00403000-00405000 -w-p", "writable and not readable"},
		{"[heap]\nVmFlags: rd", "[heap]\nVmFlags: gd", "at 403000-405000 ([heap]) can grow"},
		{"7ffd00000000 ---p", "7ffd00000000 r--p", "([stack]) can grow"},
		{"7ffcfffff000-7ffd00000000", "7ffcffffe000-7ffcfffff000",
			"at 7ffd00000000-7ffd00002000 ([stack]) can"},
		{"[heap]\nVmFlags: rd", "[heap]\nVmFlags: um", "userfaultfd"},
		{"ProtectionKey:         0", "ProtectionKey:         1", "402000-403000 (/bin/worker) has a protection key"},
		{"[heap]\nVmFlags: rd", "[heap]\nVmFlags: ss", "is a shadow stack"},
		{"[heap]\nVmFlags: rd", "[heap]\nVmFlags: dp", "random numbers"},
		{"[heap]\nVmFlags: rd", "[heap]\nVmFlags: pf", "a device's"},
		{"200000000000-200000001000", "200000001000-200000002000", "code is not mapped"},
		{"200000000000-200000001000", "200000000000-200000002000", "is not the roll-back code"},
		{"r-xp 00000000 00:01", "r-xp 00001000 00:01", "001000 (/memfd:rollback (deleted)) is not"},
		{"00:01 1234", "00:01 1235", "(/memfd:rollback (deleted)) is"},
		{"00:01 1234", "08:01 1234", "not the roll-back code"},
		{"200000010000-20000001b000", "200000011000-20000001b000", "no state"},
		{"-20000001b000", "-20000001a000", "not whole"},
		{"20000001b000 r--p 00000000 00:00 0", "20000001b000 r--p 00000000 08:01 9", "can change"},
		{"00405000 rw-p", "00405000 r--p", "other memory, from 402000 on"},
		{"7f0000000000-7f0000001000 r--s", "7f0000000000-7f0000001000 rw-p",
			"other memory, from 7f0000000000 on"},
	} {
		if strings.Count(status+smaps, test.old) == 0 {
			t.Fatalf("nothing to replace: %s", test.old)
		}
		changed := func(text string) string { return strings.Replace(text, test.old, test.other, 1) }
		_, err := Check(described(t, changed(status), changed(smaps), ranges...), code, 1)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
	}
}

// TestUnfit: what libshai has found.
func TestUnfit(t *testing.T) {
	for unfit, want := range []string{1: "interval timers", 2: "cannot be reserved", 3: "of another version"} {
		w := described(t, status, smaps, ranges...)
		w.Table[0x20] = byte(unfit)
		_, err := Check(w, code, 1)
		if (err == nil) != (unfit == 0) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestCaller: only the roll-back code may ask for the seal.
func TestCaller(t *testing.T) {
	const sealed = wire.RollbackCode + wire.RollbackSealed
	for _, address := range []uint64{sealed, sealed - 2, sealed + 1, sealed & 0xffff} {
		if err := CheckCaller(address); (err == nil) != (address == sealed) {
			t.Errorf("%x: %v", address, err)
		}
	}
}

// gate is what a worker with a grant has mapped beside the rest.
const gate = `200000004000-20000000d000 r--s 00000000 00:01 55                         /memfd:grant (deleted)
VmFlags: rd sh mr me ms 
200000010000-20000001b000 r--p 00000000 00:00 0 
VmFlags: rd mr mw me ac 
201000000000-201004000000 r--s 00000000 00:01 9                          /memfd:classes (deleted)
VmFlags: rd sh mr me ms 
`

// TestUnsealableGates: what the gate of a worker with a grant looks at is the grant, and the table.
func TestUnsealableGates(t *testing.T) {
	const state = "200000010000-20000001b000 r--p 00000000 00:00 0 \nVmFlags: rd mr mw me ac \n"
	check := func(gate string) error {
		w := described(t, status, strings.Replace(smaps, state, gate, 1), ranges...)
		w.Grant, w.Classes = File{"00:01", 55}, File{"00:01", 9}
		_, err := Check(w, code, 1)
		return err
	}
	if err := check(gate); err != nil {
		t.Error(err)
	}
	if err := check(state); err == nil || !strings.Contains(err.Error(), "the grant is not mapped") {
		t.Errorf("without mappings: %v", err)
	}
	for old, changes := range map[string][]string{
		"200000004000-20000000d000 r--s 00000000 00:01 55": {
			"200000004000-20000000c000 r--s 00000000 00:01 55", "200000005000-20000000d000 r--s 00000000 00:01 55",
			"200000004000-20000000d000 r--p 00000000 00:01 55", "200000004000-20000000d000 r-xs 00000000 00:01 55",
			"200000004000-20000000d000 r--s 00001000 00:01 55", "200000004000-20000000d000 r--s 00000000 00:02 55",
			"200000004000-20000000d000 r--s 00000000 00:01 56", "20000000d000-20000000e000 r--s 00000000 00:01 55",
		},
		"201000000000-201004000000 r--s 00000000 00:01 9": {
			"201000000000-201003fff000 r--s 00000000 00:01 9", "201000001000-201004000000 r--s 00000000 00:01 9",
			"201000000000-201004000000 r--p 00000000 00:01 9", "201000000000-201004000000 r--s 00001000 00:01 9",
			"201000000000-201004000000 r--s 00000000 00:01 8", "201004000000-201005000000 r--s 00000000 00:01 9",
		},
	} {
		if strings.Count(gate, old) != 1 {
			t.Fatalf("nothing to replace: %s", old)
		}
		for _, other := range changes {
			err := fmt.Sprint(check(strings.Replace(gate, old, other, 1)))
			if !strings.Contains(err, "the grant") && !strings.Contains(err, "the class table") {
				t.Errorf("%s: %s", other, err)
			}
		}
	}
}

// TestUnsealableCode: the code in place has other bytes than the supervisor's, or there is none.
func TestUnsealableCode(t *testing.T) {
	w := described(t, status, smaps, ranges...)
	for _, bytesThere := range [][]byte{nil, append(bytes.Clone(code.Text[1:]), 0x90)} {
		w.Code = bytesThere
		if _, err := Check(w, code, 1); err == nil || !strings.Contains(err.Error(), "is not the roll-back code") {
			t.Errorf("got %v", err)
		}
	}
}

// TestProgramRoom: a filter has to fit into what is restored.
func TestProgramRoom(t *testing.T) {
	for _, test := range []struct {
		address, size uint64
		fits          bool
	}{
		{0x402000, 0x3000, true}, {0x404000, 0x1000, true}, {0x402000, 0x3001, false}, {0x404001, 0x1000, false},
		{0x401fff, 16, false}, {0x405000, 1, false}, {^uint64(0), 16, false}, {0x402000, ^uint64(0), false},
	} {
		if err := (Seal{Ranges: ranges}).CheckProgram(test.address, test.size); (err == nil) != test.fits {
			t.Errorf("%x bytes at %x: %v", test.size, test.address, err)
		}
	}
}

// TestMalformedTexts: what is not understood is an error.
func TestMalformedTexts(t *testing.T) {
	for _, text := range []string{
		"00400000-00402000 r-xp", "00400000 r-xp 00000000 08:01 77", "nothing",
		"00400000-00402000 r-xp 00000000 08:01 77 /bin/worker\n", // no flags
		"00402000-00402000 r-xp 00000000 08:01 77\nVmFlags: rd\n",
		"10000000000000000-20000000000000000 r-xp 00000000 08:01 77\nVmFlags: rd\n",
		"00400000-00402000 r-xp 00000000 08:01 77\nVmFlags: rd\n00401000-00403000 r-xp 00000000 08:01 77\nVmFlags: rd\n",
	} {
		if got, err := ParseMappings([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, field := range []string{"Threads", "Seccomp_filters", "SigCgt", "SigBlk", "SigPnd", "ShdPnd"} {
		if got, err := ParseStatus([]byte(strings.Replace(status, field, "Other", 1))); err == nil {
			t.Errorf("without %s: %+v", field, got)
		}
	}
}

// FuzzCheck: whatever the texts and the table, a worker passes only if its writable memory is
// private, and restored by as many bytes.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(status), []byte(smaps), tableOf(f, ranges...))
	f.Fuzz(func(t *testing.T, status, smaps, table []byte) {
		w := Worker{Code: code.Text, Table: table, Vectors: vectors}
		var err error
		if w.Status, err = ParseStatus(status); err != nil {
			return
		}
		if w.Mappings, err = ParseMappings(smaps); err != nil {
			return
		}
		got, err := Check(w, code, 1)
		if err != nil {
			return
		}
		var writable, restored uint64
		for _, m := range w.Mappings {
			if m.isWritable() {
				writable += m.End - m.Start
			}
			if m.isWritable() && m.isShared() {
				t.Errorf("%v is shared", m)
			}
		}
		for _, r := range got.Ranges {
			restored += r.Length
		}
		if writable != restored {
			t.Errorf("%x bytes are writable, %x restored", writable, restored)
		}
	})
}
