// SPDX-License-Identifier: BSD-2-Clause

package wire

// The gate by which a sealed worker reads its channel, as runtime/include/shai_gate.h defines
// it. It is in the page of the roll-back code. Addresses, offsets and sizes are in bytes.
const (
	Gate            = 0x800 // offset in the page
	GateReceived    = 0x840 // offset of the instruction after its recvfrom
	GateBuffer      = 0x200000002000
	GateBufferSize  = 0x1000
	GateRecord      = 16  // offset in the buffer
	GateRecordMax   = 264 // it asks for one byte more, so that a longer record is noticed
	GateGrant       = 0x200000004000
	GateGrantSize   = 0x9000
	GateClasses     = 0x201000000000
	GateClassesSize = 0x4000000
)
