// SPDX-License-Identifier: BSD-2-Clause

package supervision

import (
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// toSupervisor has an empty record of each type that the monitor sends.
var toSupervisor = []Record{
	Settings{}, Slot{}, Begin{}, Key{}, Regions{}, Set{}, Forget{}, Mode{}, Fence{}, Terminate{}, End{},
	Bind{}, Relay{}, Credits{}, Store{}, Sealed{}, Compared{},
}

// fill makes the content of a record, or of a part of one, at random.
func fill(t *rapid.T, value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.Type.Kind() == reflect.String {
				text := rapid.StringN(0, -1, number(field, "text")-1).Draw(t, field.Name)
				value.Field(i).SetString(strings.ReplaceAll(text, "\x00", ""))
			} else if field.Name != "_" {
				fill(t, value.Field(i))
			}
		}
		for i := range value.NumField() {
			if counted := value.Type().Field(i).Tag.Get("count"); counted != "" {
				value.Field(i).SetUint(uint64(value.FieldByName(counted).Len()))
			}
		}
	case reflect.Slice:
		for range rapid.IntRange(1, 3).Draw(t, "length") {
			element := reflect.New(value.Type().Elem()).Elem()
			fill(t, element)
			value.Set(reflect.Append(value, element))
		}
	case reflect.Array:
		for i := range value.Len() {
			fill(t, value.Index(i))
		}
	case reflect.Int32, reflect.Int64:
		value.SetInt(int64(rapid.Int32().Draw(t, "number")))
	default:
		value.SetUint(uint64(rapid.Uint8().Draw(t, "number")))
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, direction := range [][]Record{toSupervisor, fromSupervisor} {
			value := reflect.New(reflect.TypeOf(rapid.SampledFrom(direction).Draw(t, "record"))).Elem()
			fill(t, value)
			sent := value.Interface().(Record)
			bytes, err := Encode(sent)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode(bytes, direction)
			if err != nil || !reflect.DeepEqual(got, sent) {
				t.Fatalf("got %+v, %v; want %+v", got, err, sent)
			}
			if _, err := Decode(bytes); (err == nil) != (sent.Type() >= TypeStarted) {
				t.Fatalf("%T from a supervisor: %v", sent, err)
			}
		}
	})
}

// TestDamage makes one thing of a valid record wrong at a time.
func TestDamage(t *testing.T) {
	damages := map[string]func(record []byte) []byte{
		"version": func(r []byte) []byte { r[2]++; return r },
		"type":    func(r []byte) []byte { r[0] = 200; return r },
		"size":    func(r []byte) []byte { r[4]++; return r },
		"short":   func(r []byte) []byte { r[4]--; return r[:len(r)-1] },
		"long":    func(r []byte) []byte { r[4]++; return append(r, 0) },
		"empty":   func([]byte) []byte { return nil },
	}
	for name, damage := range damages {
		for _, sent := range []Record{Started{PID: 3}, Listener{}, Fenced{Number: 3}, AskBind{Principal: "alice"},
			Events{Events: []Event{{Kind: EventBound, Principal: "alice"}}}} {
			record, err := Encode(sent)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := Decode(damage(record)); !errors.Is(err, ErrMalformed) {
				t.Errorf("%T with wrong %s: got %v, %v", sent, name, got, err)
			}
		}
	}
}

func TestMalformedContent(t *testing.T) {
	tests := map[string]struct {
		record Record
		offset int
		value  uint32
	}{
		"reserved":          {Started{}, headerSize + 4, 1},
		"count":             {Events{Events: []Event{{}}}, headerSize, 2},
		"huge count":        {Events{Events: []Event{{}}}, headerSize, 1 << 31},
		"no count":          {Events{Events: []Event{{}}}, headerSize, 0},
		"text after NUL":    {AskBind{}, headerSize + 24 + 4, 'x'},
		"text not UTF-8":    {AskBind{}, headerSize + 24, 0xff},
		"text of the event": {Events{Events: []Event{{}}}, headerSize + 8 + 96 + 8, 'x'},
	}
	for name, test := range tests {
		record, err := Encode(test.record)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(record); err != nil {
			t.Errorf("%s: the record is not valid before: %v", name, err)
		}
		binary.LittleEndian.PutUint32(record[test.offset:], test.value)
		if got, err := Decode(record); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestEncodeRefusesWhatDoesNotFit(t *testing.T) {
	for _, record := range []Record{
		Key{Principal: strings.Repeat("a", 96)}, Key{Principal: "a\x00b"}, Key{Principal: "\xff"},
		Regions{Regions: make([]Region, RegionsMax+1)}, Set{Classes: make([]uint32, 8193)},
		Relay{Record: make([]byte, MaxRecord)}, Events{Events: make([]Event, EventsMax+1)},
	} {
		if bytes, err := Encode(record); err == nil {
			t.Errorf("%T is encoded in %d bytes", record, len(bytes))
		}
	}
	for _, record := range []Record{
		Key{Principal: strings.Repeat("a", 95)}, Regions{Regions: make([]Region, RegionsMax)},
		Set{Classes: make([]uint32, 8192)}, Events{Events: make([]Event, EventsMax)},
	} {
		if _, err := Encode(record); err != nil {
			t.Errorf("%T: %v", record, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, record := range fromSupervisor {
		bytes, err := Encode(record)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		record, err := Decode(bytes)
		if err != nil {
			return
		}
		again, err := Encode(record)
		if err != nil || string(again) != string(bytes) {
			t.Fatalf("%+v is encoded differently: %v", record, err)
		}
	})
}
