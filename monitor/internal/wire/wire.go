// SPDX-License-Identifier: BSD-2-Clause

// Package wire is the Go side of the protocol between a task and the reference
// monitor. runtime/include/shai_wire.h is the only definition; a test compiles
// that header and compares every constant, size and offset with this package.
package wire

import (
	"errors"
	"fmt"
)

// Version of the protocol; a record of another version ends the connection.
const Version = 4

// MaxRecord is the size of the largest record, in bytes.
const MaxRecord = 65536

// Reserved descriptor numbers. The launcher fills those that a task does not use, so that
// no ordinary open returns one of them.
const (
	FDMonitor           = 3   // messages to and from the monitor
	FDClasses           = 4   // class table, mapped read-only
	FDListen            = 6   // the monitor answers accept4 on it
	FDConnection        = 7   // the user's connection, native writes
	FDConnectionChecked = 8   // the same, every write asks the monitor
	FDKeyValue          = 9   // restricted connection to the key-value store
	FDGrant             = 11  // what a sealed worker may read of its channel (Linux)
	FDRollback          = 12  // the code that rolls a sealed worker back (Linux)
	FDCapability        = 16  // directory capabilities; the view is the first
	FDCapabilityCount   = 16  //
	FDPipe              = 32  // data pipes
	FDPipeCount         = 64  //
	FDChannel           = 96  // descriptor channels, native writes
	FDChannelCount      = 32  //
	FDChannelChecked    = 128 // the same channels, every write asks the monitor
	FDReservedEnd       = 160 // the first number that is not reserved
)

// Sizes of fixed fields in bytes, including the NUL of texts.
const (
	NameMax        = 96
	PrefixMax      = 256
	ReasonMax      = 256
	NonceSize      = 32
	SignatureSize  = 64
	BatchMax       = 64   // conduits in one [Open]
	ClassesMax     = 8192 // classes in one capability set
	SlotsMax       = 4096 // sessions of a task at the same time
	DirectoriesMax = 240  // classes whose directories a session gets
	DescriptorsMax = 253  // descriptors with one record
	// ContentMax is the size of the content of one [Write].
	ContentMax = 16384
	PolicyMax  = 256 // a policy with its arguments
	OfferedMax = 8   // policies in one [Offered]
)

const signedPrefix = "shai-session-v2\n"

// SignedText returns the text that a client signs to log in to a session. It names the
// service and the pipeline that the client wants to speak with: a nonce that another
// service relays leads to another text. Names have no line breaks.
func SignedText(service, pipeline, principal string, nonce [NonceSize]byte) []byte {
	return fmt.Appendf(nil, "%s%s\n%s\n%s\n%x", signedPrefix, service, pipeline, principal, nonce)
}

// Mode is how a pipeline is enforced.
type Mode uint32

// The modes.
const (
	ModeBaseline Mode = 0 // nothing is enforced
	ModeDynamic  Mode = 1 // every open and every egress write asks the monitor, which tracks the taint
	ModeShai     Mode = 2 // the capability set runs natively
	ModeAudit    Mode = 3 // decided and recorded as in mode shai, but never denied
	// ModeDynamicLazy is as dynamic, but the monitor logs opens, and decides at the write.
	ModeDynamicLazy Mode = 4
	ModeLast        Mode = ModeDynamicLazy
)

var modes = []string{ModeBaseline: "baseline", ModeDynamic: "dynamic", ModeShai: "shai", ModeAudit: "audit",
	ModeDynamicLazy: "dynamic-lazy"}

// String returns the mode's name in manifests.
func (m Mode) String() string {
	if int(m) < len(modes) {
		return modes[m]
	}
	return fmt.Sprintf("mode %d", uint32(m))
}

// IsDynamic reports whether the taint of sessions and tasks is tracked while they run.
func (m Mode) IsDynamic() bool { return m == ModeDynamic || m == ModeDynamicLazy }

// ParseMode returns the mode with a name.
func ParseMode(name string) (Mode, error) {
	for mode, known := range modes {
		if name == known {
			return Mode(mode), nil
		}
	}
	return 0, fmt.Errorf("mode %q is unknown; use shai, dynamic, dynamic-lazy, audit or baseline", name)
}

// Type of a record.
type Type uint16

// Records from the task (below 64) and from the monitor.
const (
	TypeRegister     Type = 1
	TypeAuthenticate Type = 2
	TypeOpen         Type = 3
	TypeReset        Type = 4
	TypeWrite        Type = 5
	TypeChoices      Type = 6
	TypeChoose       Type = 7
	TypeRegistered   Type = 64
	TypeConnected    Type = 65
	TypeBound        Type = 66
	TypeOpened       Type = 67
	typeTransfer     Type = 68 // of a supervisor
	typeGrown        Type = 69 // of a supervisor
	TypeWritten      Type = 70
	TypeOffered      Type = 71
	TypeChosen       Type = 72
)

// Kind of a capability.
type Kind uint16

// The kinds.
const (
	KindDirectory Kind = 1 // a directory descriptor
	KindPipe      Kind = 2 // an end of a data pipe
	KindChannel   Kind = 3 // an end of a descriptor channel
)

// Rights of a capability.
const (
	RightRead  uint16 = 1
	RightWrite uint16 = 2 // write, create, rename, remove beneath it
	RightAsk   uint16 = 4 // the monitor decides on opens that the kernel refuses
)

// Flags of a [Bound]: the descriptors that come with it, in this order.
const (
	BoundDecisions uint32 = 1 // what a stub answers from (FreeBSD)
	BoundKeyValue  uint32 = 2 // key-value connection
	BoundView      uint32 = 4 // the view, for a stub; comes first
)

// ErrMalformed is wrapped by every decoding error. The receiver of a malformed record
// closes the connection.
var ErrMalformed = errors.New("malformed record")

// Message is one record of the protocol, without its header.
type Message interface{ Type() Type }

// Register registers a task as an instance. It is answered by [Registered].
type Register struct {
	Instance string
	Flags    uint32
}

// RegisterClose asks the monitor to close what the new taint may not write to. Without it
// the monitor refuses to raise the taint while such descriptors are open.
const RegisterClose uint32 = 1

// Authenticate passes a client's signature on. It is answered by [Bound].
type Authenticate struct {
	Principal string
	Signature [SignatureSize]byte // Ed25519
}

// Open asks for conduits by id. It is answered by [Opened].
type Open struct{ Conduits []uint32 } // 1..BatchMax

// Reset says that the session is over, and what it did by itself. It has no answer.
type Reset struct{ Counters Counters }

// Write asks for a write to a typed conduit. It is answered by [Written].
type Write struct {
	Conduit string // a file's path in the pipeline, or a tuple's key
	Flags   uint32
	Content []byte // at most ContentMax
}

// WriteReplace puts the content in the place of what the conduit contains. Without it the content
// is added at the end.
const WriteReplace uint32 = 1

// Choices asks which policies the session's user may choose for a conduit. It is answered by [Offered].
type Choices struct{ Conduit uint32 }

// Choose passes the user's signed choice of a policy on. It is answered by [Chosen].
type Choose struct {
	Conduit   uint32
	Policy    string
	Signature [SignatureSize]byte // Ed25519
}

// Capability is one descriptor that a task holds and the path that it covers.
type Capability struct {
	Prefix string
	Number int32
	Kind   Kind
	Rights uint16
}

// Registered answers [Register].
type Registered struct {
	Status       int32 // 0 or a positive errno
	Mode         Mode
	Reason       string
	ConduitCount uint32 // entries of the class table
	Capabilities []Capability
}

// Connected is queued on a worker's socket before its accept4 returns.
type Connected struct {
	Nonce    [NonceSize]byte
	Peer     string // numeric address as the monitor saw it
	Region   string // derived from it; empty when unknown
	Service  string // of [SignedText]
	Pipeline string // of [SignedText]
	Mode     Mode   // for this whole session
	Slot     uint32 // which pipe and channel pair the session uses
}

// Bound answers [Authenticate].
type Bound struct {
	Status   int32 // 0 or a positive errno; the session stays unbound on error
	Flags    uint32
	Reason   string
	Instance string
	Classes  []uint32 // ascending
	// Directories says with how many of the classes, the first ones, a descriptor of their
	// directory comes, after the descriptors of the flags.
	Directories uint32
}

// Opened answers [Open] with one status for each conduit, in the same order. A descriptor
// comes with each status 0.
type Opened struct{ Status []int32 }

// Written answers [Write]. With a status other than 0, nothing was written.
type Written struct {
	Status int32 // 0 or a positive errno
	Reason string
}

// Offered answers [Choices]. With a status other than 0 the rest is empty.
type Offered struct {
	Status  int32    // 0 or a positive errno
	Conduit string   // its path in the pipeline
	Nonce   string   // stands for the conduit as it is
	Policy  string   // in force, if the user may choose it; else ""
	Choices []string // at most OfferedMax
}

// Chosen answers [Choose]. With a status other than 0, nothing has changed.
type Chosen struct {
	Status int32 // 0 or a positive errno
	Reason string
}

// Type implements [Message].
func (Choices) Type() Type { return TypeChoices }

// Type implements [Message].
func (Choose) Type() Type { return TypeChoose }

// Type implements [Message].
func (Offered) Type() Type { return TypeOffered }

// Type implements [Message].
func (Chosen) Type() Type { return TypeChosen }

// Type implements [Message].
func (Write) Type() Type { return TypeWrite }

// Type implements [Message].
func (Written) Type() Type { return TypeWritten }

// Type implements [Message].
func (Register) Type() Type { return TypeRegister }

// Type implements [Message].
func (Authenticate) Type() Type { return TypeAuthenticate }

// Type implements [Message].
func (Open) Type() Type { return TypeOpen }

// Type implements [Message].
func (Reset) Type() Type { return TypeReset }

// Type implements [Message].
func (Registered) Type() Type { return TypeRegistered }

// Type implements [Message].
func (Connected) Type() Type { return TypeConnected }

// Type implements [Message].
func (Bound) Type() Type { return TypeBound }

// Type implements [Message].
func (Opened) Type() Type { return TypeOpened }

// Counters count what a session has done by itself. The monitor cannot trust the values.
type Counters struct {
	FastOpens        uint64
	SlowOpens        uint64
	DroppedTransfers uint64
	Transfers        uint64
	Sessions         uint64
}
