// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/sandbox/sealing"
	"shai.dev/monitor/internal/wire"
)

// What is before a random program's first instruction.
const (
	secretSize  = 64 // at offset 0
	atZeros     = 64
	atParameter = 96
	atEntry     = 128
)

// notTried are calls that random programs do not make.
var notTried = []string{
	"exit", "exit_group", // they end the process
	"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", // a test must not signal others
	"pause", // it only waits
}

// atOnce are arguments with which calls do not wait. zeros is replaced by an address of zeros.
const zeros = 1<<64 - 64

var atOnce = map[string]map[int]uint64{
	"poll": {2: 0}, "ppoll": {2: zeros}, "select": {4: zeros}, "pselect6": {4: zeros},
	"epoll_wait": {3: 0}, "epoll_pwait": {3: 0}, "epoll_pwait2": {3: zeros},
	"nanosleep": {0: zeros}, "clock_nanosleep": {2: zeros}, "futex": {1: 0x81}, // FUTEX_WAKE
	"rt_sigtimedwait": {2: zeros},
}

// programs generates random programs for sealed workers: machine code that makes system calls,
// changes memory and every kind of register, and then goes to the roll-back code.
type programs struct {
	arena   uint64 // where they are executed
	ranges  []sealing.Mapping
	numbers []uint32 // system calls
	hasKeys bool     // the processor has protection keys, and the kernel permits them
}

func newPrograms(arena uint64, mappings []sealing.Mapping) (*programs, error) {
	processors, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	p := &programs{arena: arena, hasKeys: bytes.Contains(processors, []byte(" ospke"))}
	for _, mapping := range mappings {
		if mapping.Permissions[1] == 'w' {
			p.ranges = append(p.ranges, mapping)
		}
	}
	for number := range uint32(512) {
		name := plan.CallOf(number).Name
		isKnown := !strings.HasPrefix(name, "system call")
		if !slices.Contains(notTried, name) && (isKnown || number%16 == 0) {
			p.numbers = append(p.numbers, number)
		}
	}
	return p, nil
}

// assembly makes one program.
type assembly struct {
	*programs
	*rand.Rand
	code []byte
}

// random returns the code of a program. It depends on the seed only: the secret is data.
func (p *programs) random(seed uint64) []byte {
	made := assembly{programs: p, Rand: rand.New(rand.NewPCG(seed, 0))}
	steps := []func(){made.call, made.call, made.call, made.change, made.change, made.vectors, made.floating,
		made.selectors, made.bases}
	for range 8 + made.IntN(24) {
		steps[made.IntN(len(steps))]()
	}
	if made.IntN(30) == 0 {
		made.anything()
	}
	made.leave()
	return made.code
}

func (p *assembly) emit(code ...byte) { p.code = append(p.code, code...) }

// load sets a general register.
func (p *assembly) load(register byte, value uint64) {
	p.emit(0x48|register>>3, 0xb8|register&7)
	p.code = binary.LittleEndian.AppendUint64(p.code, value)
}

// number is a value that means something to some call.
func (p *assembly) number() uint64 {
	switch p.IntN(8) {
	case 0, 1:
		return uint64(p.IntN(8))
	case 2:
		return p.Uint64()
	case 3:
		return uint64(p.IntN(wire.FDReservedEnd + 8))
	case 4:
		return wire.FDReservedEnd + uint64(p.IntN(4))
	case 5:
		return p.arena
	case 6:
		return p.place()
	}
	return 1 << p.IntN(64)
}

// place is an address that a worker can write to.
func (p *assembly) place() uint64 {
	mapping := p.ranges[p.IntN(len(p.ranges))]
	return mapping.Start + p.Uint64N((mapping.End-mapping.Start)/8)*8
}

// value sets RAX, often to something that depends on the secret. It changes RCX.
func (p *assembly) value(number uint64) {
	p.load(0, number)
	if p.IntN(3) == 0 {
		p.load(1, p.arena+8*p.Uint64N(secretSize/8))
		p.emit(0x48, 0x33, 0x01) // xor (%rcx), %rax
	}
}

// call makes a system call.
func (p *assembly) call() {
	number := p.numbers[p.IntN(len(p.numbers))]
	fixed := atOnce[plan.CallOf(number).Name]
	for index, register := range []byte{7, 6, 2, 10, 8, 9} {
		if value, found := fixed[index]; found {
			if value == zeros {
				value = p.arena + atZeros
			}
			p.load(register, value)
			continue
		}
		p.value(p.number())
		p.emit(0x48|register>>3, 0x89, 0xc0|register&7) // mov %rax, register
	}
	p.load(0, uint64(number))
	p.emit(0x0f, 0x05)
}

// change writes to memory, or to the stack.
func (p *assembly) change() {
	p.value(p.Uint64())
	if p.IntN(3) == 0 {
		p.emit(slices.Repeat([]byte{0x50}, 1+p.IntN(64))...) // push %rax
		return
	}
	p.load(1, p.place())
	p.emit(0x48, 0x89, 0x01) // mov %rax, (%rcx)
}

// parameter places a value in memory, and its address in RCX.
func (p *assembly) parameter(value uint64) {
	p.load(0, value)
	p.load(1, p.arena+atParameter)
	p.emit(0x48, 0x89, 0x01)
}

// vectors fills vector registers with the secret, as far as the processor has them, and MXCSR.
func (p *assembly) vectors() {
	const masked = 0x1f80 // no exceptions
	p.parameter(masked | p.Uint64N(1<<16)&^0x1f80)
	p.emit(0x0f, 0xae, 0x11) // ldmxcsr (%rcx)
	p.load(1, p.arena)
	r := byte(p.IntN(32))
	plain := func(register byte) { p.emit(0x40|register>>3<<2, 0x0f, 0x10, register&7<<3|1) } // movups (%rcx), %xmm
	plain(r & 15)
	if cpu.X86.HasAVX {
		p.emit(0xc4, ^(r&8<<4)&0x80|0x61, 0x7c, 0x10, r&7<<3|1) // vmovups (%rcx), %ymm
	}
	if cpu.X86.HasAVX512F {
		p.emit(0x62, ^(r&8<<4)&0x80|0x60|^(r&16)&0x10|1, 0x7c, 0x48, 0x10, r&7<<3|1) // vmovups (%rcx), %zmm
	}
	if cpu.X86.HasAVX512BW {
		p.emit(0xc4, 0xe1, 0xf8, 0x90, r&7<<3|1) // kmovq (%rcx), %k
	}
	if p.hasKeys {
		p.load(0, p.Uint64N(1<<32)&^3) // key 0 stays open
		p.load(1, 0)
		p.load(2, 0)
		p.emit(0x0f, 0x01, 0xef) // wrpkru
	}
}

// floating changes x87's registers, and its control and status words.
func (p *assembly) floating() {
	const masked = 0x3f // no exceptions
	p.parameter(masked | p.Uint64N(1<<12))
	p.emit(0xd9, 0x29) // fldcw (%rcx)
	p.load(1, p.arena+8*p.Uint64N(secretSize/8))
	loads := [][]byte{{0xdd, 0x01}, {0xdf, 0x29}, {0xd9, 0xeb}, {0xd9, 0xf7}} // fldl, fildll, fldpi, fincstp
	for range 1 + p.IntN(8) {
		p.emit(loads[p.IntN(len(loads))]...)
	}
}

// selectors loads segment registers: null selectors, and the data segment of Linux.
func (p *assembly) selectors() {
	p.load(0, []uint64{0, 1, 2, 3, 0x2b}[p.IntN(5)])
	p.emit(0x8e, 0xc0|[]byte{0, 3, 4, 5}[p.IntN(4)]<<3) // mov %eax, %es, %ds, %fs, %gs
}

// bases sets the base of FS or GS.
func (p *assembly) bases() {
	p.load(0, p.Uint64N(1<<47))
	p.emit(0xf3, 0x48, 0x0f, 0xae, 0xd0|byte(p.IntN(2))<<3)
}

// anything is a few random bytes. A program seldom survives them.
func (p *assembly) anything() {
	for range 1 + p.IntN(8) {
		p.emit(byte(p.Uint32()))
	}
}

// leave fills the general registers and the flags, and goes to the roll-back code: to its
// beginning most of the time.
func (p *assembly) leave() {
	const flags = 0x240cd7 // CF PF AF ZF SF DF OF AC ID; DF and OF are 0xc00
	for register := byte(0); register < 16; register++ {
		if register != 4 {
			p.value(p.number())
			p.emit(0x48|register>>3, 0x89, 0xc0|register&7)
		}
	}
	p.load(0, p.Uint64()&flags)
	for len(p.code)%8 != 0 { // with AC, what jmp reads has to be aligned
		p.emit(0x90)
	}
	p.emit(0x50, 0x9d) // push %rax; popfq
	target := uint64(wire.RollbackCode)
	if p.IntN(8) == 0 {
		target += p.Uint64N(0x200)
	}
	p.emit(0xff, 0x25, 0, 0, 0, 0) // jmp *0(%rip)
	p.code = binary.LittleEndian.AppendUint64(p.code, target)
}

// blob is what a worker is sent of a program.
func blob(code []byte, secret [secretSize]byte) []byte {
	return append(append(secret[:], make([]byte, atEntry-secretSize)...), code...)
}

// describe names a program's system calls.
func (p *programs) describe(code []byte) string {
	var names []string
	for i := 0; i+12 <= len(code); i++ {
		if code[i] == 0x48 && code[i+1] == 0xb8 && code[i+10] == 0x0f && code[i+11] == 0x05 {
			names = append(names, plan.CallOf(binary.LittleEndian.Uint32(code[i+2:])).Name)
		}
	}
	return strings.Join(names, " ")
}
