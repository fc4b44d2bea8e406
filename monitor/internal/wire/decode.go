// SPDX-License-Identifier: BSD-2-Clause

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"
)

// DecodeFromTask decodes a record that a task sent. The error wraps [ErrMalformed] if the
// record's version, size or content differs from its header, or if tasks do not send its
// type.
func DecodeFromTask(record []byte) (sequence uint64, message Message, err error) {
	return Decode(record, TypeRegister, TypeAuthenticate, TypeOpen, TypeReset, TypeWrite, TypeChoices, TypeChoose)
}

// Decode is like [DecodeFromTask], for records of the permitted types.
func Decode(record []byte, permitted ...Type) (uint64, Message, error) {
	var header headerLayout
	if _, err := binary.Decode(record, binary.LittleEndian, &header); err != nil {
		return 0, nil, fmt.Errorf("%w: %d bytes are less than a header", ErrMalformed, len(record))
	}
	if header.Version != Version {
		return 0, nil, fmt.Errorf("%w: version %d, this side speaks %d", ErrMalformed, header.Version, Version)
	}
	if int64(header.Size) != int64(len(record)) || len(record) > MaxRecord {
		return 0, nil, fmt.Errorf("%w: header says %d bytes, got %d", ErrMalformed, header.Size, len(record))
	}
	if !slices.Contains(permitted, Type(header.Type)) {
		return 0, nil, fmt.Errorf("%w: type %d is not sent in this direction", ErrMalformed, header.Type)
	}
	decoder := decoder{rest: record}
	message := decoder.message(Type(header.Type))
	if decoder.err == nil && len(decoder.rest) != 0 {
		decoder.fail("%d bytes too many", len(decoder.rest))
	}
	if decoder.err != nil {
		return 0, nil, fmt.Errorf("%w: type %d: %w", ErrMalformed, header.Type, decoder.err)
	}
	return header.Sequence, message, nil
}

// decoder consumes a record and keeps the first error.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) message(kind Type) Message {
	switch kind {
	case TypeRegister:
		var layout registerLayout
		d.take(&layout)
		if layout.Flags&^RegisterClose != 0 || layout.Reserved != 0 {
			d.fail("flags %d, reserved %d", layout.Flags, layout.Reserved)
		}
		return Register{Instance: d.text("instance", layout.Instance[:]), Flags: layout.Flags}
	case TypeAuthenticate:
		var layout authenticateLayout
		d.take(&layout)
		return Authenticate{Principal: d.text("principal", layout.Principal[:]), Signature: layout.Signature}
	case TypeOpen:
		var layout openLayout
		d.take(&layout)
		return Open{Conduits: batch(d, layout.Count, layout.Reserved, layout.Conduit[:])}
	case TypeReset:
		var layout resetLayout
		d.take(&layout)
		return Reset{Counters: layout.Counters}
	case TypeWrite:
		return d.write()
	case TypeWritten:
		var layout writtenLayout
		d.take(&layout)
		d.zero("reserved", layout.Reserved)
		return Written{Status: layout.Status, Reason: d.text("reason", layout.Reason[:])}
	case TypeChoices, TypeChoose, TypeOffered, TypeChosen:
		return d.choice(kind)
	case TypeRegistered:
		return d.registered()
	case TypeConnected:
		var layout connectedLayout
		d.take(&layout)
		return Connected{Nonce: layout.Nonce, Peer: d.text("peer", layout.Peer[:]),
			Region: d.text("region", layout.Region[:]), Service: d.text("service", layout.Service[:]),
			Pipeline: d.text("pipeline", layout.Pipeline[:]), Mode: d.mode(layout.Mode), Slot: layout.Slot}
	case TypeBound:
		return d.bound()
	case TypeOpened:
		var layout openedLayout
		d.take(&layout)
		return Opened{Status: batch(d, layout.Count, layout.Reserved, layout.Status[:])}
	}
	return d.request(kind)
}

func (d *decoder) write() Message {
	var layout writeLayout
	d.take(&layout)
	if layout.Flags&^WriteReplace != 0 {
		d.fail("flags %d", layout.Flags)
	}
	if layout.Size > ContentMax || len(d.rest) != int(layout.Size) {
		d.fail("content of %d bytes in %d", layout.Size, len(d.rest))
		return nil
	}
	message := Write{Conduit: d.text("conduit", layout.Conduit[:]), Flags: layout.Flags}
	if layout.Size > 0 {
		message.Content = bytes.Clone(d.rest)
	}
	d.rest = nil
	return message
}

// choice decodes what a choice of a policy consists of.
func (d *decoder) choice(kind Type) Message {
	switch kind {
	case TypeChoices:
		var layout choicesLayout
		d.take(&layout)
		d.zero("reserved", layout.Reserved)
		return Choices{Conduit: layout.Conduit}
	case TypeChoose:
		var layout chooseLayout
		d.take(&layout)
		d.zero("reserved", layout.Reserved)
		return Choose{Conduit: layout.Conduit, Policy: d.text("policy", layout.Policy[:]), Signature: layout.Signature}
	case TypeChosen:
		var layout chosenLayout
		d.take(&layout)
		d.zero("reserved", layout.Reserved)
		return Chosen{Status: layout.Status, Reason: d.text("reason", layout.Reason[:])}
	}
	return d.offered()
}

func (d *decoder) offered() Message {
	var layout offeredLayout
	d.take(&layout)
	message := Offered{Status: layout.Status, Conduit: d.text("conduit", layout.Conduit[:]),
		Nonce: d.text("nonce", layout.Nonce[:]), Policy: d.text("policy", layout.Policy[:])}
	if layout.Count > OfferedMax || len(d.rest) != PolicyMax*int(layout.Count) ||
		layout.Count > 0 && layout.Status != 0 {
		d.fail("%d policies in %d bytes with status %d", layout.Count, len(d.rest), layout.Status)
		return nil
	}
	for range layout.Count {
		var policy [PolicyMax]byte
		d.take(&policy)
		message.Choices = append(message.Choices, d.text("policy", policy[:]))
	}
	return message
}

func (d *decoder) registered() Message {
	var layout registeredLayout
	d.take(&layout)
	message := Registered{Status: layout.Status, Mode: d.mode(layout.Mode),
		Reason: d.text("reason", layout.Reason[:]), ConduitCount: layout.ConduitCount}
	// The count is compared with the number of bytes before anything is allocated for it.
	if int64(len(d.rest)) != int64(layout.CapabilityCount)*int64(binary.Size(capabilityLayout{})) {
		d.fail("%d capabilities do not fill %d bytes", layout.CapabilityCount, len(d.rest))
		return nil
	}
	for range layout.CapabilityCount {
		var capability capabilityLayout
		d.take(&capability)
		if capability.Kind < uint16(KindDirectory) || capability.Kind > uint16(KindChannel) {
			d.fail("capability kind %d", capability.Kind)
		}
		message.Capabilities = append(message.Capabilities, Capability{
			Prefix: d.text("prefix", capability.Prefix[:]), Number: capability.Number,
			Kind: Kind(capability.Kind), Rights: capability.Rights})
	}
	return message
}

func (d *decoder) bound() Message {
	var layout boundLayout
	d.take(&layout)
	message := Bound{Status: layout.Status, Flags: layout.Flags,
		Reason: d.text("reason", layout.Reason[:]), Instance: d.text("instance", layout.Instance[:]),
		Directories: layout.DirectoryCount}
	if layout.ClassCount > ClassesMax || len(d.rest) != 4*int(layout.ClassCount) {
		d.fail("%d classes do not fill %d bytes", layout.ClassCount, len(d.rest))
		return nil
	}
	if layout.DirectoryCount > min(layout.ClassCount, DirectoriesMax) {
		d.fail("%d directories of %d classes", layout.DirectoryCount, layout.ClassCount)
		return nil
	}
	if layout.ClassCount > 0 {
		message.Classes = make([]uint32, layout.ClassCount)
		d.take(message.Classes)
	}
	if !slices.IsSorted(message.Classes) {
		d.fail("classes are not sorted")
	}
	return message
}

// take decodes the next fixed layout and consumes its bytes.
func (d *decoder) take(layout any) {
	if d.err != nil {
		return
	}
	count, err := binary.Decode(d.rest, binary.LittleEndian, layout)
	if err != nil {
		d.fail("%d bytes are too few", len(d.rest))
		return
	}
	d.rest = d.rest[count:]
}

// text returns a NUL-padded field. A byte after the first NUL is an error: two
// readers could otherwise see two names.
func (d *decoder) text(name string, field []byte) string {
	text, padding, terminated := bytes.Cut(field, []byte{0})
	if !terminated || len(bytes.Trim(padding, "\x00")) != 0 || !utf8.Valid(text) {
		d.fail("%s is not NUL-padded UTF-8", name)
		return ""
	}
	return string(text)
}

func (d *decoder) mode(mode uint32) Mode {
	if Mode(mode) > ModeLast {
		d.fail("mode %d", mode)
	}
	return Mode(mode)
}

// batch returns the used entries; unused ones must be 0.
func batch[E uint32 | int32](d *decoder, count, reserved uint32, entries []E) []E {
	if count < 1 || count > BatchMax || reserved != 0 {
		d.fail("%d entries, reserved %d", count, reserved)
		return nil
	}
	for _, unused := range entries[count:] {
		if unused != 0 {
			d.fail("an unused entry is %d", unused)
		}
	}
	return entries[:count]
}

func (d *decoder) fail(format string, arguments ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, arguments...)
	}
}
