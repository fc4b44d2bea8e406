// SPDX-License-Identifier: BSD-2-Clause

package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Encode makes a record of message. An answer repeats its request's sequence. Encode
// fails if a text or a list does not fit or could not be decoded again.
func Encode(sequence uint64, message Message) ([]byte, error) {
	encoder := encoder{header: headerLayout{Version: Version, Type: uint16(message.Type()), Sequence: sequence}}
	layout, tail := encoder.layout(message)
	if encoder.err != nil {
		return nil, fmt.Errorf("encode %T: %w", message, encoder.err)
	}
	record, err := binary.Append(nil, binary.LittleEndian, layout)
	if err == nil && tail != nil {
		record, err = binary.Append(record, binary.LittleEndian, tail)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", message, err)
	}
	if len(record) > MaxRecord {
		return nil, fmt.Errorf("encode %T: %d bytes, at most %d fit a record", message, len(record), MaxRecord)
	}
	binary.LittleEndian.PutUint32(record[sizeOffset:], uint32(len(record)))
	return record, nil
}

// sizeOffset is the position of the record's size in the header.
const sizeOffset = 4

// encoder keeps the first error, so that layouts can be written like the header.
type encoder struct {
	header headerLayout
	err    error
}

func (e *encoder) layout(message Message) (layout, tail any) {
	switch m := message.(type) {
	case Register:
		layout := registerLayout{Header: e.header, Flags: m.Flags}
		e.text(layout.Instance[:], "instance", m.Instance)
		return layout, nil
	case Authenticate:
		layout := authenticateLayout{Header: e.header, Signature: m.Signature}
		e.text(layout.Principal[:], "principal", m.Principal)
		return layout, nil
	case Open:
		layout := openLayout{Header: e.header, Count: uint32(len(m.Conduits))}
		e.batch(len(m.Conduits))
		copy(layout.Conduit[:], m.Conduits)
		return layout, nil
	case Reset:
		return resetLayout{Header: e.header, Counters: m.Counters}, nil
	case Write:
		return e.write(m)
	case Written:
		layout := writtenLayout{Header: e.header, Status: m.Status}
		e.text(layout.Reason[:], "reason", m.Reason)
		return layout, nil
	case Choices:
		return choicesLayout{Header: e.header, Conduit: m.Conduit}, nil
	case Choose:
		layout := chooseLayout{Header: e.header, Conduit: m.Conduit, Signature: m.Signature}
		e.text(layout.Policy[:], "policy", m.Policy)
		return layout, nil
	case Offered:
		return e.offered(m)
	case Chosen:
		layout := chosenLayout{Header: e.header, Status: m.Status}
		e.text(layout.Reason[:], "reason", m.Reason)
		return layout, nil
	case Registered:
		return e.registered(m)
	case Connected:
		layout := connectedLayout{Header: e.header, Nonce: m.Nonce, Mode: uint32(m.Mode), Slot: m.Slot}
		e.text(layout.Peer[:], "peer", m.Peer)
		e.text(layout.Region[:], "region", m.Region)
		e.text(layout.Service[:], "service", m.Service)
		e.text(layout.Pipeline[:], "pipeline", m.Pipeline)
		return layout, nil
	case Bound:
		return e.bound(m)
	case Opened:
		layout := openedLayout{Header: e.header, Count: uint32(len(m.Status))}
		e.batch(len(m.Status))
		copy(layout.Status[:], m.Status)
		return layout, nil
	}
	return e.request(message), nil
}

func (e *encoder) write(m Write) (layout, tail any) {
	fixed := writeLayout{Header: e.header, Flags: m.Flags, Size: uint32(len(m.Content))}
	e.text(fixed.Conduit[:], "conduit", m.Conduit)
	if len(m.Content) > ContentMax {
		e.fail("content of %d bytes, at most %d", len(m.Content), ContentMax)
	}
	return fixed, m.Content
}

func (e *encoder) offered(m Offered) (layout, tail any) {
	fixed := offeredLayout{Header: e.header, Status: m.Status, Count: uint32(len(m.Choices))}
	e.text(fixed.Conduit[:], "conduit", m.Conduit)
	e.text(fixed.Nonce[:], "nonce", m.Nonce)
	e.text(fixed.Policy[:], "policy", m.Policy)
	if len(m.Choices) > OfferedMax || len(m.Choices) > 0 && m.Status != 0 {
		e.fail("%d policies with status %d, at most %d", len(m.Choices), m.Status, OfferedMax)
	}
	choices := make([][PolicyMax]byte, len(m.Choices))
	for i, one := range m.Choices {
		e.text(choices[i][:], "policy", one)
	}
	return fixed, choices
}

func (e *encoder) registered(m Registered) (layout, tail any) {
	fixed := registeredLayout{Header: e.header, Status: m.Status, Mode: uint32(m.Mode),
		CapabilityCount: uint32(len(m.Capabilities)), ConduitCount: m.ConduitCount}
	e.text(fixed.Reason[:], "reason", m.Reason)
	capabilities := make([]capabilityLayout, len(m.Capabilities))
	for i, c := range m.Capabilities {
		capabilities[i] = capabilityLayout{Number: c.Number, Kind: uint16(c.Kind), Rights: c.Rights}
		e.text(capabilities[i].Prefix[:], "prefix", c.Prefix)
	}
	return fixed, capabilities
}

func (e *encoder) bound(m Bound) (layout, tail any) {
	fixed := boundLayout{Header: e.header, Status: m.Status, Flags: m.Flags, ClassCount: uint32(len(m.Classes)),
		DirectoryCount: m.Directories}
	e.text(fixed.Reason[:], "reason", m.Reason)
	e.text(fixed.Instance[:], "instance", m.Instance)
	if len(m.Classes) > ClassesMax {
		e.fail("%d classes, at most %d", len(m.Classes), ClassesMax)
	}
	if !slices.IsSorted(m.Classes) {
		e.fail("classes are not sorted")
	}
	if int(m.Directories) > min(len(m.Classes), DirectoriesMax) {
		e.fail("%d directories of %d classes, at most %d", m.Directories, len(m.Classes), DirectoriesMax)
	}
	return fixed, m.Classes
}

func (e *encoder) batch(count int) {
	if count < 1 || count > BatchMax {
		e.fail("%d conduits, want 1 to %d", count, BatchMax)
	}
}

func (e *encoder) text(field []byte, name, text string) {
	switch {
	case len(text) >= len(field):
		e.fail("%s is %d bytes, at most %d fit", name, len(text), len(field)-1)
	case !IsText(text):
		e.fail("%s %q is not UTF-8 text without NUL", name, text)
	}
	copy(field, text)
}

func (e *encoder) fail(format string, arguments ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, arguments...)
	}
}

// IsText reports whether a text can be in a record, if it is short enough.
func IsText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// IsName reports whether a text can be the name of a principal, a region or an instance in
// a record.
func IsName(text string) bool { return text != "" && len(text) < NameMax && IsText(text) }

// Shorten returns a name that fits a field of NameMax bytes: the name itself, or its
// beginning and a hash that tells it from others that begin alike.
func Shorten(name string) string {
	if len(name) < NameMax {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "#" + hex.EncodeToString(sum[:8])
	return Truncate(name, NameMax-len(mark)) + mark
}

// Truncate shortens text so that it fits a field of size bytes with its NUL, at a
// character's boundary. It is for reasons, which people read. For names there is [Shorten].
func Truncate(text string, size int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "?")
	if len(text) < size {
		return text
	}
	text = text[:size-1]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}
