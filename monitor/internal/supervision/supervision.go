// SPDX-License-Identifier: BSD-2-Clause

// Package supervision encodes and decodes the control records between the monitor and the
// supervisor of a task with sessions. supervisor/include/shai_supervision.h defines them;
// the layout test compares this package with it.
package supervision

import (
	"errors"

	"shai.dev/monitor/internal/wire"
)

// The protocol's constants.
const (
	Version         = 3
	MaxRecord       = 65536
	FDControl       = 5
	AddressSize     = 16
	KeySize         = 32
	WaitingMax      = 4096 // connections that wait for a worker
	SlotEndsMax     = 12
	RegionsMax      = 512
	StorePathMax    = 108
	StoreCommandMax = 96
	EventsMax       = 64
	CountersCount   = 5
)

// Flags of the records.
const (
	ParameterUser   uint32 = 1
	ParameterRegion uint32 = 2

	SetAnalyzed uint32 = 1 // the analysis foresaw the instance
	SetLeaves   uint32 = 2 // no policy question is left for a binding
	SetLive     uint32 = 4 // live sessions of the instance in mode shai get it, too

	ForgetEnd uint32 = 1 // live sessions of the set end, too
)

// Type of a record.
type Type uint16

// The types, by direction.
const (
	TypeSettings  Type = 1
	TypeSlot      Type = 2
	TypeBegin     Type = 3
	TypeKey       Type = 5
	TypeRegions   Type = 6
	TypeSet       Type = 7
	TypeForget    Type = 8
	TypeMode      Type = 9
	TypeFence     Type = 10
	TypeTerminate Type = 11
	TypeEnd       Type = 12
	TypeBind      Type = 13
	TypeRelay     Type = 14
	TypeCredits   Type = 15
	TypeStore     Type = 16
	TypeSealed    Type = 17
	TypeCompared  Type = 18

	TypeStarted      Type = 64
	TypeListener     Type = 65
	TypeEnded        Type = 66
	TypeNotification Type = 67
	TypeAskBind      Type = 68
	TypeAskRecord    Type = 69
	TypeEvents       Type = 70
	TypeFenced       Type = 71
	TypeCounts       Type = 72
	TypeCompare      Type = 73
)

// Use is what an end of a slot is for.
type Use uint32

// The uses.
const (
	UseRead        Use = 0 // the supervisor reads it for sessions in the modes shai and audit
	UseGive        Use = 1 // the worker gets it
	UseReadChecked Use = 2 // the supervisor reads it for sessions in mode dynamic
)

// Flags of [EventEnded].
const (
	// EventDecided: the supervisor has ended the session, for a reason that no other record gives.
	EventDecided uint32 = 1
	// EventRolledBack: the session ended by the roll-back of its worker, which goes on.
	EventRolledBack uint32 = 2
)

// EventKind says what an [Event] is about.
type EventKind uint32

// The kinds.
const (
	EventAccepted  EventKind = 1 // a session began; Reason is the region of its address
	EventBound     EventKind = 2 // a session has a user; costs one credit
	EventRefused   EventKind = 3 // a login was refused
	EventViolation EventKind = 4 // a message or a channel's record that breaks the protocol
	EventEnded     EventKind = 5 // a session ended
	EventLimit     EventKind = 6 // a connection or a login was over a limit
	EventWorker    EventKind = 7 // a worker died without a session
)

// ErrMalformed is wrapped by every decoding error. The supervisor is then to be ended.
var ErrMalformed = errors.New("malformed control record")

// ErrNotEncoded is wrapped by every encoding error.
var ErrNotEncoded = errors.New("no control record")

// Record is a record without its header. Its fields are those of the header file, in their
// order. Tags describe what Go's types do not say: text is the size of a text's field, and
// count names the slice that follows the record and whose length, at most max, the field is.
// [Encode] fills such a field in. Reserved fields have no name.
type Record interface{ Type() Type }

// Records from the monitor.
type (
	// Settings come once, first, with the listening socket, the view and the class table.
	// A limit of 0 means that there is none.
	Settings struct {
		Mode         wire.Mode
		Slots        uint32
		IdleMax      uint32
		UnboundMS    uint32
		LifetimeS    uint32
		PerPrincipal uint32
		PerPeer      uint32
		Parameters   uint32
		MountsMax    uint32
		Waiting      uint32 // 1 to WaitingMax
		// SessionsPerWorker is after how many sessions a sealed worker is replaced, at least 1.
		SessionsPerWorker uint32
		_                 uint32
		Service           string `text:"96"`
		Pipeline          string `text:"96"`
	}

	// EndOfSlot is an end of a pipe or channel.
	EndOfSlot struct {
		Number int32
		Use    Use
	}

	// Slot comes once for each slot, before [Begin], with one descriptor for each end.
	Slot struct {
		Slot  uint32
		Count uint32
		End   [SlotEndsMax]EndOfSlot // unused ones are zero
	}

	// Begin lets sessions begin.
	Begin struct{}

	// Key is a principal's public key, or its removal.
	Key struct {
		Principal string `text:"96"`
		Key       [KeySize]byte
		Present   uint32
		_         uint32
	}

	// Region is a prefix of addresses and the region that they are in.
	Region struct {
		Address [AddressSize]byte
		Bits    uint32
		_       uint32
		Region  string `text:"96"`
	}

	// Regions is a part of the table of regions, which is in force with the last one.
	Regions struct {
		First   uint32
		Last    uint32
		Count   uint32 `count:"Regions" max:"512"`
		_       uint32
		Regions []Region
	}

	// Set is an instance's capability set.
	Set struct {
		Principal  string `text:"96"`
		Region     string `text:"96"`
		Instance   string `text:"96"`
		Flags      uint32
		ClassCount uint32 `count:"Classes" max:"8192"`
		Expires    int64  // nanoseconds since 1970; 0: never
		Ends       int64  // its instance, and its sessions with it; likewise
		KVUser     string `text:"96"`
		KVPassword string `text:"96"`
		Classes    []uint32
	}

	// Forget removes a set.
	Forget struct {
		Principal string `text:"96"`
		Region    string `text:"96"`
		Flags     uint32
		_         uint32
		Reason    string `text:"256"`
	}

	// Mode is that of new sessions.
	Mode struct {
		Mode wire.Mode
		_    uint32
	}

	// Fence is answered by [Fenced].
	Fence struct{ Number uint64 }

	// Terminate sends SIGTERM to the zygote.
	Terminate struct{}

	// End ends a session.
	End struct {
		Session uint64
		Reason  string `text:"256"`
	}

	// Bind answers [AskBind]. With status 0, the instance's [Set] came before it.
	Bind struct {
		Session  uint64
		Sequence uint64
		Status   int32
		_        uint32
		Reason   string `text:"256"`
	}

	// Relay is a whole record of package wire for a worker, with its descriptors.
	Relay struct {
		Session uint64
		Record  []byte
	}

	// Credits permit so many bindings more.
	Credits struct {
		Count uint32
		_     uint32
	}

	// Store says where the key-value store is and what AUTH and RESET are called there.
	Store struct {
		Path  string `text:"108"`
		_     uint32
		Auth  string `text:"96"`
		Reset string `text:"96"`
	}

	// Sealed answers the notification of a worker's seccomp call: the worker is sealed, and
	// the call goes on.
	Sealed struct {
		ID  uint64 // of the notification
		PID int32
		_   uint32
	}

	// Compared answers [Compare].
	Compared struct {
		ID    uint64 // that of the question
		PID   int32  // that of the question
		Equal uint32 // 0: the worker is killed
	}
)

// Records from the supervisor.
type (
	// Started says that the launcher runs. It comes with the roll-back code.
	Started struct {
		PID int32
		_   uint32
	}

	// Listener comes with the seccomp listener.
	Listener struct{}

	// Ended says that the zygote ended, and no worker is left.
	Ended struct {
		Status uint32 // as wait(2) returns it
		_      uint32
	}

	// Notification is a system call that the monitor answers.
	Notification struct {
		Session      uint64   // 0: the caller has none
		Notification [80]byte // struct seccomp_notif
	}

	// AskBind asks whether a session may be bound to a verified principal.
	AskBind struct {
		Session   uint64
		Sequence  uint64
		Slot      uint32
		_         uint32
		Principal string `text:"96"`
		Peer      [AddressSize]byte
		Region    string `text:"96"`
	}

	// AskRecord is a worker's whole [wire.Open]. [Relay] answers it.
	AskRecord struct {
		Session uint64
		Record  []byte
	}

	// Event is one thing that happened.
	Event struct {
		Kind      EventKind
		Worker    int32
		Session   uint64
		When      int64 // nanoseconds since 1970
		Slot      uint32
		LatencyUS uint32
		Mode      wire.Mode // of the session
		Flags     uint32
		Peer      [AddressSize]byte
		Counters  [CountersCount]uint64
		Principal string `text:"96"`
		Instance  string `text:"96"`
		Reason    string `text:"256"`
	}

	// Events are in the order in which they happened.
	Events struct {
		Count  uint32 `count:"Events" max:"64"`
		_      uint32
		Events []Event
	}

	// Fenced says that everything before the [Fence] is in force.
	Fenced struct{ Number uint64 }

	// Counts say how many workers there are, and what was opened for them without a question.
	Counts struct {
		Idle       uint32 // they wait for a connection
		RolledBack uint32 // they live, and serve one session after the other
		Forked     uint32 // they live, and serve one
		_          uint32
		Opens      uint64 // documents, since the start
	}

	// Compare asks whether a worker that was rolled back is what it was when it was sealed. It
	// has no session before the answer.
	Compare struct {
		ID  uint64 // of the notification of its accept4, which waits meanwhile
		PID int32
		_   uint32
	}
)
