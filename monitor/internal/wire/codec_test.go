// SPDX-License-Identifier: BSD-2-Clause

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func text(size int) *rapid.Generator[string] {
	return rapid.Map(rapid.StringN(0, -1, size-1), func(s string) string { return strings.ReplaceAll(s, "\x00", "") })
}

var (
	numbers   = rapid.SliceOfN(rapid.Uint32(), 1, BatchMax)
	signature = rapid.Map(rapid.SliceOfN(rapid.Byte(), SignatureSize, SignatureSize),
		func(b []byte) [SignatureSize]byte { return [SignatureSize]byte(b) })
	nonce = rapid.Map(rapid.SliceOfN(rapid.Byte(), NonceSize, NonceSize),
		func(b []byte) [NonceSize]byte { return [NonceSize]byte(b) })
	mode       = rapid.Map(rapid.Uint32Range(0, 3), func(m uint32) Mode { return Mode(m) })
	capability = rapid.Custom(func(t *rapid.T) Capability {
		return Capability{Prefix: text(PrefixMax).Draw(t, "prefix"), Number: rapid.Int32().Draw(t, "number"),
			Kind: Kind(rapid.Uint16Range(1, 3).Draw(t, "kind")), Rights: rapid.Uint16().Draw(t, "rights")}
	})
)

func message(t *rapid.T) Message {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) Message {
			return Register{Instance: text(NameMax).Draw(t, "instance"), Flags: rapid.Uint32Range(0, RegisterClose).Draw(t, "flags")}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			return Authenticate{Principal: text(NameMax).Draw(t, "principal"),
				Signature: signature.Draw(t, "signature")}
		}),
		rapid.Custom(func(t *rapid.T) Message { return Open{Conduits: numbers.Draw(t, "conduits")} }),
		rapid.Custom(func(t *rapid.T) Message {
			count := rapid.Uint64()
			return Reset{Counters{FastOpens: count.Draw(t, "fast"), SlowOpens: count.Draw(t, "slow"),
				DroppedTransfers: count.Draw(t, "dropped"), Transfers: count.Draw(t, "transfers"),
				Sessions: count.Draw(t, "sessions")}}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			message := Write{Conduit: text(PrefixMax).Draw(t, "conduit"),
				Flags: rapid.Uint32Range(0, WriteReplace).Draw(t, "flags")}
			if content := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "content"); len(content) > 0 {
				message.Content = content
			}
			return message
		}),
		rapid.Custom(func(t *rapid.T) Message {
			return Written{Status: rapid.Int32().Draw(t, "status"), Reason: text(ReasonMax).Draw(t, "reason")}
		}),
		rapid.Custom(func(t *rapid.T) Message { return Choices{Conduit: rapid.Uint32().Draw(t, "conduit")} }),
		rapid.Custom(func(t *rapid.T) Message {
			return Choose{Conduit: rapid.Uint32().Draw(t, "conduit"), Policy: text(PolicyMax).Draw(t, "policy"),
				Signature: signature.Draw(t, "signature")}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			message := Offered{Conduit: text(PrefixMax).Draw(t, "conduit"), Nonce: text(NameMax).Draw(t, "nonce"),
				Policy: text(PolicyMax).Draw(t, "policy")}
			if choices := rapid.SliceOfN(text(PolicyMax), 0, OfferedMax).Draw(t, "choices"); len(choices) > 0 {
				message.Choices = choices
			} else {
				message.Status = rapid.Int32().Draw(t, "status")
			}
			return message
		}),
		rapid.Custom(func(t *rapid.T) Message {
			return Chosen{Status: rapid.Int32().Draw(t, "status"), Reason: text(ReasonMax).Draw(t, "reason")}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			return Registered{Status: rapid.Int32().Draw(t, "status"), Mode: mode.Draw(t, "mode"),
				Reason: text(ReasonMax).Draw(t, "reason"), ConduitCount: rapid.Uint32().Draw(t, "count"),
				Capabilities: rapid.SliceOfN(capability, 1, 40).Draw(t, "capabilities")}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			return Connected{Nonce: nonce.Draw(t, "nonce"), Peer: text(NameMax).Draw(t, "peer"),
				Region: text(NameMax).Draw(t, "region"), Service: text(NameMax).Draw(t, "service"),
				Pipeline: text(NameMax).Draw(t, "pipeline"), Mode: mode.Draw(t, "mode"),
				Slot: rapid.Uint32().Draw(t, "slot")}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			classes := rapid.SliceOfN(rapid.Uint32(), 1, 300).Draw(t, "classes")
			slices.Sort(classes)
			return Bound{Status: rapid.Int32().Draw(t, "status"), Flags: rapid.Uint32().Draw(t, "flags"),
				Reason: text(ReasonMax).Draw(t, "reason"), Instance: text(NameMax).Draw(t, "instance"),
				Classes: classes}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			return Opened{Status: rapid.SliceOfN(rapid.Int32(), 1, BatchMax).Draw(t, "status")}
		}),
		rapid.Just[Message](RequestSession{}),
		rapid.Custom(func(t *rapid.T) Message {
			return RequestPath{Flags: rapid.Int32().Draw(t, "flags"), Mode: rapid.Uint32().Draw(t, "mode"),
				Path: text(RequestPathMax).Draw(t, "path")}
		}),
		rapid.Just[Message](RequestTraps{}),
		rapid.Just[Message](RequestWorker{}),
		rapid.Custom(func(t *rapid.T) Message {
			record := rapid.SliceOfN(rapid.Byte(), RegisterSize, RegisterSize).Draw(t, "record")
			return RequestRegister{Record: [RegisterSize]byte(record)}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			return Place{Numbers: rapid.SliceOfN(rapid.Int32(), 1, PlaceMax).Draw(t, "numbers")}
		}),
		rapid.Custom(func(t *rapid.T) Message { return RequestSend{Number: rapid.Int32().Draw(t, "number")} }),
		rapid.Custom(func(t *rapid.T) Message {
			return Placed{Status: rapid.Int32().Draw(t, "status"), Connection: rapid.Int32().Draw(t, "connection"),
				Numbers: rapid.SliceOfN(rapid.Int32(), 1, PlacedMax).Draw(t, "numbers")}
		}),
		rapid.Custom(func(t *rapid.T) Message {
			return Answer{Status: rapid.Int32().Draw(t, "status"), Value: rapid.Int32().Draw(t, "value")}
		}),
	).Draw(t, "message")
}

// decoders by the direction of the types they permit.
var decoders = map[string]func([]byte) (uint64, Message, error){
	"task": DecodeFromTask, "monitor": decodeFromMonitor, "request": DecodeRequest, "answer": decodeAnswer,
}

func directionOf(kind Type) string {
	switch {
	case kind < TypeRequestSession:
		return "task"
	case kind < TypeRegistered:
		return "request"
	case kind < TypePlaced:
		return "monitor"
	}
	return "answer"
}

// decodeEither decodes in the one direction that message's type belongs to and
// checks that the others refuse it.
func decodeEither(t *rapid.T, kind Type, record []byte) (uint64, Message, error) {
	for direction, decode := range decoders {
		if _, _, err := decode(record); direction != directionOf(kind) && !errors.Is(err, ErrMalformed) {
			t.Fatalf("type %d passes in direction %s: %v", kind, direction, err)
		}
	}
	return decoders[directionOf(kind)](record)
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent, sequence := message(t), rapid.Uint64().Draw(t, "sequence")
		record, err := Encode(sequence, sent)
		if err != nil {
			t.Fatal(err)
		}
		gotSequence, got, err := decodeEither(t, sent.Type(), record)
		if err != nil || gotSequence != sequence {
			t.Fatalf("sequence %d, %v; want %d", gotSequence, err, sequence)
		}
		if difference := cmp.Diff(sent, got); difference != "" {
			t.Fatal(difference)
		}
	})
}

// TestDamage makes one field of a valid record wrong at a time.
func TestDamage(t *testing.T) {
	damages := map[string]func(record []byte) []byte{
		"version":   func(r []byte) []byte { r[0]++; return r },
		"type":      func(r []byte) []byte { r[2] = 200; return r },
		"size":      func(r []byte) []byte { r[4]++; return r },
		"short":     func(r []byte) []byte { return r[:len(r)-1] },
		"long":      func(r []byte) []byte { return append(r, 0) },
		"long said": func(r []byte) []byte { r = append(r, 0); r[4]++; return r },
		"empty":     func([]byte) []byte { return nil },
	}
	for name, damage := range damages {
		for _, sent := range []Message{Register{Instance: "search"}, Authenticate{Principal: "alice"},
			Open{Conduits: []uint32{1}},
			Reset{}, Registered{Capabilities: []Capability{{Prefix: "/shai/view", Kind: KindDirectory}}}, Connected{},
			Write{Conduit: "/log", Content: []byte("7\n")}, Write{Conduit: "/log"}, Written{Status: 13, Reason: "no"},
			Choices{Conduit: 7}, Choose{Conduit: 7, Policy: "private"}, Offered{Choices: []string{"private", "public"}},
			Offered{Status: 13}, Chosen{Status: 13, Reason: "no"},
			Bound{Classes: []uint32{1}}, Opened{Status: []int32{0}},
			RequestSession{}, RequestPath{Path: "/"}, RequestSend{}, RequestTraps{}, Placed{Numbers: []int32{3}},
			RequestRegister{}, RequestWorker{}, Place{Numbers: []int32{3}}, Answer{}} {
			record, err := Encode(1, sent)
			if err != nil {
				t.Fatal(err)
			}
			record = damage(record)
			for direction, decode := range decoders {
				if _, got, err := decode(record); !errors.Is(err, ErrMalformed) {
					t.Errorf("%T with wrong %s from %s: got %v, %v", sent, name, direction, got, err)
				}
			}
		}
	}
}

func TestMalformedContent(t *testing.T) {
	header := binary.Size(headerLayout{})
	tests := map[string]struct {
		message Message
		offset  int
		value   []byte
	}{
		"unterminated text":     {Register{Instance: "search"}, header, bytes.Repeat([]byte{'x'}, NameMax)},
		"byte after NUL":        {Register{Instance: "search"}, header + 10, []byte{'x'}},
		"text not UTF-8":        {Register{Instance: "search"}, header, []byte{0xff}},
		"unknown flag":          {Register{Instance: "search"}, header + NameMax, []byte{2}},
		"reserved, not 0":       {Register{Instance: "search"}, header + NameMax + 4, []byte{1}},
		"no conduits":           {Open{Conduits: []uint32{1}}, header, []byte{0}},
		"too many conduits":     {Open{Conduits: []uint32{1}}, header, []byte{BatchMax + 1}},
		"unused conduit set":    {Open{Conduits: []uint32{1}}, header + 12, []byte{7}},
		"reserved set":          {Open{Conduits: []uint32{1}}, header + 4, []byte{1}},
		"unknown mode":          {Connected{}, header + NonceSize + 4*NameMax, []byte{9}},
		"capability count lies": {Registered{}, header + 8 + ReasonMax, []byte{0xff, 0xff, 0xff, 0xff}},
		"unknown kind": {Registered{Capabilities: []Capability{{Kind: KindPipe}}},
			binary.Size(registeredLayout{}) + PrefixMax + 4, []byte{9}},
		"content lies":         {Write{Content: []byte("7\n")}, header + 4, []byte{3}},
		"unknown write flag":   {Write{}, header, []byte{2}},
		"conduit without end":  {Write{}, header + 8, bytes.Repeat([]byte{'x'}, PrefixMax)},
		"written, reserved":    {Written{}, header + 4, []byte{1}},
		"choices, reserved":    {Choices{}, header + 4, []byte{1}},
		"choose, reserved":     {Choose{}, header + 4, []byte{1}},
		"policy without end":   {Choose{}, header + 8, bytes.Repeat([]byte{'x'}, PolicyMax)},
		"policy, byte after":   {Choose{Policy: "private"}, header + 20, []byte{'x'}},
		"policy not UTF-8":     {Choose{}, header + 8, []byte{0xff}},
		"offered count lies":   {Offered{}, header + 4, []byte{1}},
		"too many offered":     {Offered{}, header + 4, []byte{OfferedMax + 1}},
		"refused and offered":  {Offered{Choices: []string{"private"}}, header, []byte{13}},
		"offered without end":  {Offered{Choices: []string{"x"}}, binary.Size(offeredLayout{}), bytes.Repeat([]byte{'x'}, PolicyMax)},
		"nonce without end":    {Offered{}, header + 8 + PrefixMax, bytes.Repeat([]byte{'x'}, NameMax)},
		"chosen, reserved":     {Chosen{}, header + 4, []byte{1}},
		"class count lies":     {Bound{}, header + 8 + ReasonMax + NameMax, []byte{0xff, 0xff, 0xff, 0xff}},
		"placed count lies":    {Placed{}, header + 8, []byte{PlacedMax + 1}},
		"unused number set":    {Placed{Numbers: []int32{3}}, header + 20, []byte{7}},
		"place count lies":     {Place{}, header, []byte{0xff, 0xff}},
		"reserved of send set": {RequestSend{}, header + 4, []byte{1}},
		"classes unsorted":     {Bound{Classes: []uint32{1, 2}}, binary.Size(boundLayout{}), []byte{9}},
	}
	for name, test := range tests {
		record, err := Encode(1, test.message)
		if err != nil {
			t.Fatal(err)
		}
		copy(record[test.offset:], test.value)
		if _, got, err := decoders[directionOf(test.message.Type())](record); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, message := range map[string]Message{
		"long text":     Register{Instance: strings.Repeat("x", NameMax)},
		"NUL":           Register{Instance: "a\x00b"},
		"not UTF-8":     Register{Instance: "\xff"},
		"no conduits":   Open{},
		"many conduits": Open{Conduits: make([]uint32, BatchMax+1)},
		"many classes":  Bound{Classes: make([]uint32, ClassesMax+1)},
		"many numbers":  Placed{Numbers: make([]int32, PlacedMax+1)},
		"many places":   Place{Numbers: make([]int32, PlaceMax+1)},
		"long path":     RequestPath{Path: strings.Repeat("x", RequestPathMax)},
		"much content":  Write{Content: make([]byte, ContentMax+1)},
		"many policies": Offered{Choices: make([]string, OfferedMax+1)},
		"no, and one":   Offered{Status: 13, Choices: []string{"private"}},
		"long policy":   Choose{Policy: strings.Repeat("x", PolicyMax)},
		"unsorted":      Bound{Classes: []uint32{2, 1}},
		"record size":   Registered{Capabilities: make([]Capability, 300)},
	} {
		if _, err := Encode(1, message); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
	if _, err := Encode(1, Bound{Classes: make([]uint32, ClassesMax)}); err != nil {
		t.Errorf("the largest capability set: %v", err)
	}
}

func TestTruncate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := rapid.String().Draw(t, "text")
		if _, err := Encode(1, Bound{Reason: Truncate(long, ReasonMax)}); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzDecode checks that no record crashes a decoder, and that Encode makes exactly the
// same record from an accepted one.
func FuzzDecode(f *testing.F) {
	for _, message := range []Message{Register{Instance: "search"}, Authenticate{Principal: "alice"},
		Open{Conduits: []uint32{1, 2}}, Reset{}, Write{Conduit: "/log", Content: []byte("7\n")}, Written{Status: 5},
		Choices{Conduit: 7}, Choose{Conduit: 7, Policy: "private"}, Chosen{Status: 13, Reason: "no"},
		Offered{Conduit: "/a", Nonce: "n", Policy: "public", Choices: []string{"private"}}, Offered{Status: 13},
		Registered{Capabilities: []Capability{{Prefix: "/shai/view", Kind: KindDirectory}}}, Connected{Region: "de"},
		Bound{Classes: []uint32{1, 2}}, Opened{Status: []int32{0, 13}}} {
		record, err := Encode(1, message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		for _, decode := range []func([]byte) (uint64, Message, error){DecodeFromTask, decodeFromMonitor} {
			sequence, message, err := decode(record)
			if err != nil {
				continue
			}
			again, err := Encode(sequence, message)
			if err != nil || !bytes.Equal(record, again) {
				t.Fatalf("%#v encodes to other bytes (%v)", message, err)
			}
		}
	})
}

// decodeFromMonitor and decodeAnswer decode as a task does.
func decodeFromMonitor(record []byte) (sequence uint64, message Message, err error) {
	return Decode(record, TypeRegistered, TypeConnected, TypeBound, TypeOpened, TypeWritten, TypeOffered, TypeChosen)
}

func decodeAnswer(record []byte) (sequence uint64, message Message, err error) {
	return Decode(record, TypePlaced, TypePlace, TypeAnswer)
}
