// SPDX-License-Identifier: BSD-2-Clause

package wire

// The layouts below repeat the C structures field by field. They have no
// padding, so encoding/binary's packed form is the C form; the layout test
// compares both against the header.

type headerLayout struct {
	Version  uint16
	Type     uint16
	Size     uint32
	Sequence uint64
}

type registerLayout struct {
	Header   headerLayout
	Instance [NameMax]byte
	Flags    uint32
	Reserved uint32
}

type capabilityLayout struct {
	Prefix [PrefixMax]byte
	Number int32
	Kind   uint16
	Rights uint16
}

type registeredLayout struct {
	Header          headerLayout
	Status          int32
	Mode            uint32
	Reason          [ReasonMax]byte
	CapabilityCount uint32
	ConduitCount    uint32
}

type resetLayout struct {
	Header   headerLayout
	Counters Counters
}

type connectedLayout struct {
	Header   headerLayout
	Nonce    [NonceSize]byte
	Peer     [NameMax]byte
	Region   [NameMax]byte
	Service  [NameMax]byte
	Pipeline [NameMax]byte
	Mode     uint32
	Slot     uint32
}

type authenticateLayout struct {
	Header    headerLayout
	Principal [NameMax]byte
	Signature [SignatureSize]byte
}

type boundLayout struct {
	Header         headerLayout
	Status         int32
	Flags          uint32
	Reason         [ReasonMax]byte
	Instance       [NameMax]byte
	ClassCount     uint32
	DirectoryCount uint32
}

type openLayout struct {
	Header   headerLayout
	Count    uint32
	Reserved uint32
	Conduit  [BatchMax]uint32
}

type writeLayout struct {
	Header  headerLayout
	Flags   uint32
	Size    uint32
	Conduit [PrefixMax]byte
}

type writtenLayout struct {
	Header   headerLayout
	Status   int32
	Reserved uint32
	Reason   [ReasonMax]byte
}

type choicesLayout struct {
	Header   headerLayout
	Conduit  uint32
	Reserved uint32
}

type chooseLayout struct {
	Header    headerLayout
	Conduit   uint32
	Reserved  uint32
	Policy    [PolicyMax]byte
	Signature [SignatureSize]byte
}

type offeredLayout struct {
	Header  headerLayout
	Status  int32
	Count   uint32
	Conduit [PrefixMax]byte
	Nonce   [NameMax]byte
	Policy  [PolicyMax]byte
}

type chosenLayout struct {
	Header   headerLayout
	Status   int32
	Reserved uint32
	Reason   [ReasonMax]byte
}

type openedLayout struct {
	Header   headerLayout
	Count    uint32
	Reserved uint32
	Status   [BatchMax]int32
}
