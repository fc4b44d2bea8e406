// SPDX-License-Identifier: BSD-2-Clause

package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// These records replace the kernel's notifications on systems that have none.
// runtime/include/shai_requests.h is the definition, and describes their use.

// Reserved descriptor numbers of the requests.
const (
	FDRequests = 10 // requests to the sandbox
	FDDelivery = 11 // a session's end on which its stub delivers, with contexts
)

// Sizes of the requests.
const (
	RequestPathMax = 1024  // with NUL
	StubWriteMax   = 32768 // bytes of one checked write
	PlacedMax      = 10    // descriptors that a session begins with
	PlaceMax       = 900   // numbers at which a descriptor is placed
)

// Records between a task and its sandbox, and between a session and its stub.
const (
	TypeRequestSession  Type = 16
	TypeRequestPath     Type = 17
	TypeRequestSend     Type = 18
	TypeRequestTraps    Type = 19
	TypeRequestRegister Type = 20
	TypeRequestWorker   Type = 21
	typeStubAccept      Type = 24
	typeStubDirectory   Type = 25
	typeStubTransfer    Type = 26
	typeStubWrite       Type = 27
	TypePlaced          Type = 80
	TypeAnswer          Type = 81
	TypePlace           Type = 82
)

// RequestSession says that a worker is idle. Once there is a user, it is answered by
// [Placed].
type RequestSession struct{}

// RequestPath is an open that the kernel refused; answered by [Answer].
type RequestPath struct {
	Flags int32  // of open(2)
	Mode  uint32 // permissions of a file that is created
	Path  string
}

// RequestSend asks whether the task may write to a reserved number. It is answered by
// [Answer].
type RequestSend struct{ Number int32 }

// RequestTraps says that a process has a handler for refused calls, and asks for signals
// of them, to itself and its children. It is answered by [Answer].
type RequestTraps struct{}

// RequestRegister passes a [Register] on for which the process is stopped. Any number of
// [Place] come before the [Answer].
type RequestRegister struct{ Record [RegisterSize]byte }

// RequestWorker says that a worker was forked, and asks for it to be examined: sessions get
// only workers that share nothing. It is answered by [Answer].
type RequestWorker struct{}

// RegisterSize is the size of a [Register] as a record.
const RegisterSize = 120

// Placed lists the descriptors that a session begins with, by their numbers: reserved ones,
// and standard output and error. One descriptor comes with each number.
type Placed struct {
	Status     int32 // 0 or a positive errno; on error the other fields are ignored
	Connection int32 // the number of the user's connection
	Numbers    []int32
}

// Place has a process put copies of the descriptor that comes with it at numbers. The
// process sends an [Answer] when it has done so.
type Place struct{ Numbers []int32 }

// Answer ends a request. With status 0, the requested descriptor comes with it.
type Answer struct {
	Status int32 // 0 or a positive errno
	Value  int32
}

// Type implements [Message].
func (RequestSession) Type() Type { return TypeRequestSession }

// Type implements [Message].
func (RequestPath) Type() Type { return TypeRequestPath }

// Type implements [Message].
func (RequestSend) Type() Type { return TypeRequestSend }

// Type implements [Message].
func (RequestTraps) Type() Type { return TypeRequestTraps }

// Type implements [Message].
func (RequestRegister) Type() Type { return TypeRequestRegister }

// Type implements [Message].
func (RequestWorker) Type() Type { return TypeRequestWorker }

// Type implements [Message].
func (Placed) Type() Type { return TypePlaced }

// Type implements [Message].
func (Place) Type() Type { return TypePlace }

// Type implements [Message].
func (Answer) Type() Type { return TypeAnswer }

// DecodeRequest decodes a record that a task sent to its sandbox; see
// [DecodeFromTask].
func DecodeRequest(record []byte) (sequence uint64, message Message, err error) {
	return Decode(record, TypeRequestSession, TypeRequestPath, TypeRequestSend, TypeRequestTraps, TypeRequestRegister,
		TypeRequestWorker)
}

// EncodeDecisions returns the content of the shared memory that a stub answers from: the
// classes of a capability set, strictly ascending, at most [ClassesMax].
func EncodeDecisions(classes []uint32) ([]byte, error) {
	if len(classes) > ClassesMax || !slices.IsSorted(classes) {
		return nil, fmt.Errorf("encode decisions: %d classes, want at most %d in ascending order", len(classes),
			ClassesMax)
	}
	layout := decisionsLayout{Count: uint32(len(classes))}
	copy(layout.Class[:], classes)
	return binary.Append(nil, binary.LittleEndian, layout)
}

type requestPathLayout struct {
	Header headerLayout
	Flags  int32
	Mode   uint32
	Path   [RequestPathMax]byte
}

type requestSendLayout struct {
	Header   headerLayout
	Number   int32
	Reserved uint32
}

type requestRegisterLayout struct {
	Header headerLayout
	Record [RegisterSize]byte
}

type placeLayout struct {
	Header   headerLayout
	Count    uint32
	Reserved uint32
	Number   [PlaceMax]int32
}

type placedLayout struct {
	Header     headerLayout
	Status     int32
	Connection int32
	Count      uint32
	Reserved   uint32
	Number     [PlacedMax]int32
}

type answerLayout struct {
	Header headerLayout
	Status int32
	Value  int32
}

type decisionsLayout struct {
	Count    uint32
	Reserved uint32
	Class    [ClassesMax]uint32
}

// request decodes the types of requests and of their answers.
func (d *decoder) request(kind Type) Message {
	switch kind {
	case TypeRequestSession:
		d.take(&headerLayout{})
		return RequestSession{}
	case TypeRequestPath:
		var layout requestPathLayout
		d.take(&layout)
		return RequestPath{Flags: layout.Flags, Mode: layout.Mode, Path: d.text("path", layout.Path[:])}
	case TypeRequestSend:
		var layout requestSendLayout
		d.take(&layout)
		d.zero("reserved field", layout.Reserved)
		return RequestSend{Number: layout.Number}
	case TypeRequestTraps:
		d.take(&headerLayout{})
		return RequestTraps{}
	case TypeRequestRegister:
		var layout requestRegisterLayout
		d.take(&layout)
		return RequestRegister{Record: layout.Record}
	case TypeRequestWorker:
		d.take(&headerLayout{})
		return RequestWorker{}
	case TypePlaced:
		return d.placed()
	case TypePlace:
		var layout placeLayout
		d.take(&layout)
		d.zero("reserved field", layout.Reserved)
		return Place{Numbers: d.numbers(layout.Number[:], layout.Count)}
	case TypeAnswer:
		var layout answerLayout
		d.take(&layout)
		return Answer{Status: layout.Status, Value: layout.Value}
	}
	d.fail("no layout")
	return nil
}

func (d *decoder) placed() Message {
	var layout placedLayout
	d.take(&layout)
	d.zero("reserved field", layout.Reserved)
	return Placed{Status: layout.Status, Connection: layout.Connection,
		Numbers: d.numbers(layout.Number[:], layout.Count)}
}

// numbers returns the first count of a record's numbers. The others have to be 0.
func (d *decoder) numbers(all []int32, count uint32) []int32 {
	if int64(count) > int64(len(all)) {
		d.fail("%d descriptors, at most %d", count, len(all))
		return nil
	}
	for _, unused := range all[count:] {
		d.zero("unused number", uint32(unused))
	}
	if count == 0 {
		return nil
	}
	return all[:count]
}

func (d *decoder) zero(name string, value uint32) {
	if value != 0 {
		d.fail("%s is %d", name, value)
	}
}

// request returns the layout of a message that [decoder.request] decodes.
func (e *encoder) request(message Message) any {
	switch m := message.(type) {
	case RequestSession, RequestTraps, RequestWorker:
		return e.header
	case RequestPath:
		layout := requestPathLayout{Header: e.header, Flags: m.Flags, Mode: m.Mode}
		e.text(layout.Path[:], "path", m.Path)
		return layout
	case RequestSend:
		return requestSendLayout{Header: e.header, Number: m.Number}
	case Placed:
		layout := placedLayout{Header: e.header, Status: m.Status, Connection: m.Connection,
			Count: uint32(len(m.Numbers))}
		e.numbers(layout.Number[:], m.Numbers)
		return layout
	case RequestRegister:
		return requestRegisterLayout{Header: e.header, Record: m.Record}
	case Place:
		layout := placeLayout{Header: e.header, Count: uint32(len(m.Numbers))}
		e.numbers(layout.Number[:], m.Numbers)
		return layout
	case Answer:
		return answerLayout{Header: e.header, Status: m.Status, Value: m.Value}
	}
	e.fail("no layout for type %d", message.Type())
	return nil
}

func (e *encoder) numbers(into, numbers []int32) {
	if len(numbers) > len(into) {
		e.fail("%d descriptors, at most %d", len(numbers), len(into))
	}
	copy(into, numbers)
}
