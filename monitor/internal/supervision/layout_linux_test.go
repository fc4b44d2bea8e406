// SPDX-License-Identifier: BSD-2-Clause

package supervision

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	header      = "../../../supervisor/include/shai_supervision.h"
	wireHeaders = "../../../runtime/include"
)

// constants maps every constant of the header to this package's value.
var constants = map[string]uint64{
	"SHAI_CONTROL_VERSION": Version, "SHAI_CONTROL_MAX": MaxRecord, "SHAI_CONTROL_FD": FDControl,
	"SHAI_ADDRESS_SIZE": AddressSize, "SHAI_KEY_SIZE": KeySize, "SHAI_WAITING_MAX": WaitingMax,
	"SHAI_SLOT_ENDS_MAX": SlotEndsMax, "SHAI_REGIONS_MAX": RegionsMax, "SHAI_STORE_PATH_MAX": StorePathMax,
	"SHAI_STORE_COMMAND_MAX": StoreCommandMax, "SHAI_EVENTS_MAX": EventsMax,
	"SHAI_COUNTERS_COUNT": CountersCount,

	"SHAI_END_READ": uint64(UseRead), "SHAI_END_GIVE": uint64(UseGive), "SHAI_END_READ_CHECKED": uint64(UseReadChecked),

	"SHAI_PARAMETER_USER": uint64(ParameterUser), "SHAI_PARAMETER_REGION": uint64(ParameterRegion),
	"SHAI_SET_ANALYZED": uint64(SetAnalyzed), "SHAI_SET_LEAVES": uint64(SetLeaves),
	"SHAI_SET_LIVE":      uint64(SetLive),
	"SHAI_FORGET_END":    uint64(ForgetEnd),
	"SHAI_EVENT_DECIDED": uint64(EventDecided), "SHAI_EVENT_ROLLED_BACK": uint64(EventRolledBack),

	"SHAI_CONTROL_SETTINGS": uint64(TypeSettings), "SHAI_CONTROL_SLOT": uint64(TypeSlot),
	"SHAI_CONTROL_BEGIN": uint64(TypeBegin),
	"SHAI_CONTROL_KEY":   uint64(TypeKey), "SHAI_CONTROL_REGIONS": uint64(TypeRegions),
	"SHAI_CONTROL_SET": uint64(TypeSet), "SHAI_CONTROL_FORGET": uint64(TypeForget),
	"SHAI_CONTROL_MODE": uint64(TypeMode), "SHAI_CONTROL_FENCE": uint64(TypeFence),
	"SHAI_CONTROL_TERMINATE": uint64(TypeTerminate), "SHAI_CONTROL_END": uint64(TypeEnd),
	"SHAI_CONTROL_BIND": uint64(TypeBind), "SHAI_CONTROL_RELAY": uint64(TypeRelay),
	"SHAI_CONTROL_CREDITS": uint64(TypeCredits), "SHAI_CONTROL_STORE": uint64(TypeStore),
	"SHAI_CONTROL_SEALED": uint64(TypeSealed), "SHAI_CONTROL_COMPARED": uint64(TypeCompared),
	"SHAI_CONTROL_STARTED": uint64(TypeStarted), "SHAI_CONTROL_LISTENER": uint64(TypeListener),
	"SHAI_CONTROL_ENDED": uint64(TypeEnded), "SHAI_CONTROL_NOTIFICATION": uint64(TypeNotification),
	"SHAI_CONTROL_ASK_BIND": uint64(TypeAskBind), "SHAI_CONTROL_ASK_RECORD": uint64(TypeAskRecord),
	"SHAI_CONTROL_EVENTS": uint64(TypeEvents), "SHAI_CONTROL_FENCED": uint64(TypeFenced),
	"SHAI_CONTROL_COUNTS": uint64(TypeCounts), "SHAI_CONTROL_COMPARE": uint64(TypeCompare),

	"SHAI_EVENT_ACCEPTED": uint64(EventAccepted), "SHAI_EVENT_BOUND": uint64(EventBound),
	"SHAI_EVENT_REFUSED": uint64(EventRefused), "SHAI_EVENT_VIOLATION": uint64(EventViolation),
	"SHAI_EVENT_ENDED": uint64(EventEnded), "SHAI_EVENT_LIMIT": uint64(EventLimit),
	"SHAI_EVENT_WORKER": uint64(EventWorker),
}

// structures maps every structure of the header to the types that are encoded like it.
var structures = map[string][]any{
	"settings": {Settings{}}, "end_of_slot": {EndOfSlot{}}, "slot": {Slot{}}, "key": {Key{}},
	"region": {Region{}}, "regions": {Regions{}}, "set": {Set{}}, "forget": {Forget{}}, "mode": {Mode{}},
	"fence": {Fence{}, Fenced{}}, "end": {End{}}, "bind": {Bind{}}, "relay": {Relay{}, AskRecord{}},
	"credits": {Credits{}}, "store": {Store{}}, "started": {Started{}}, "ended": {Ended{}},
	"notification": {Notification{}}, "ask_bind": {AskBind{}}, "event": {Event{}}, "events": {Events{}},
	"counts": {Counts{}}, "sealed": {Sealed{}}, "compared": {Compared{}}, "compare": {Compare{}},
}

var (
	defined    = regexp.MustCompile(`(?m)^#define (SHAI_[A-Z]\w+) `)
	enumerated = regexp.MustCompile(`(?m)^\t(SHAI_\w+) = `)
	structure  = regexp.MustCompile(`(?ms)^struct shai_control_(\w+) \{(.*?)^\};`)
	field      = regexp.MustCompile(`(?m)^\t[\w ]+? (\w+)(?:\[\w+\])?;`)
)

// TestHeader compiles the header and compares everything it defines with this package. A
// name of the header that is unknown here fails as well.
func TestHeader(t *testing.T) {
	text, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, name := range append(defined.FindAllStringSubmatch(string(text), -1),
		enumerated.FindAllStringSubmatch(string(text), -1)...) {
		if value, known := constants[name[1]]; known {
			want[name[1]] = strconv.FormatUint(value, 10)
		} else {
			t.Errorf("%s of the header is unknown to this package", name[1])
		}
	}
	for _, match := range structure.FindAllStringSubmatch(string(text), -1) {
		if match[1] == "header" {
			continue
		}
		types, known := structures[match[1]]
		if !known {
			t.Errorf("struct shai_control_%s of the header is unknown to this package", match[1])
		}
		for _, layout := range types {
			compareStructure(t, match[1], match[2], reflect.TypeOf(layout), want)
		}
	}
	for expression, got := range runC(t, want) {
		if got != want[expression] {
			t.Errorf("%s is %q in the header, %q here", expression, got, want[expression])
		}
	}
}

// sizeOf returns the size of a type's fixed part.
func sizeOf(kind reflect.Type) int {
	if kind.Kind() != reflect.Struct {
		return int(kind.Size())
	}
	size := 0
	for i := range kind.NumField() {
		size += fieldSize(kind.Field(i))
	}
	return size
}

func fieldSize(field reflect.StructField) int {
	switch field.Type.Kind() {
	case reflect.String:
		return number(field, "text")
	case reflect.Slice:
		return 0
	case reflect.Array:
		return field.Type.Len() * sizeOf(field.Type.Elem())
	}
	return sizeOf(field.Type)
}

func compareStructure(t *testing.T, name, body string, kind reflect.Type, want map[string]string) {
	fields, offset := field.FindAllStringSubmatch(body, -1), 0
	if strings.HasPrefix(strings.TrimSpace(body), "struct shai_control_header header;") {
		fields, offset = fields[1:], headerSize
	}
	want[fmt.Sprintf("sizeof(struct shai_control_%s)", name)] = strconv.Itoa(offset + sizeOf(kind))
	own := reflect.VisibleFields(kind)
	if count := len(own); count > 0 && own[count-1].Type.Kind() == reflect.Slice {
		own = own[:count-1] // follows the structure
	}
	if len(fields) != len(own) {
		t.Errorf("struct %s has %d fields in the header, %d here", name, len(fields), len(own))
		return
	}
	for i, match := range fields {
		goName := own[i].Name
		if goName == "_" {
			goName = "reserved"
		}
		if !strings.EqualFold(strings.ReplaceAll(match[1], "_", ""), goName) {
			t.Errorf("struct %s: field %d is %s in the header, %s here", name, i, match[1], goName)
		}
		want[fmt.Sprintf("offsetof(struct shai_control_%s, %s)", name, match[1])] = strconv.Itoa(offset)
		want[fmt.Sprintf("sizeof(((struct shai_control_%s *)0)->%s)", name, match[1])] =
			strconv.Itoa(fieldSize(own[i]))
		offset += fieldSize(own[i])
	}
}

// runC returns the values of expressions.
func runC(t *testing.T, expressions map[string]string) map[string]string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skipf("the header needs a compiler: %v", err)
	}
	var program strings.Builder
	program.WriteString("#include <stdio.h>\n#include <stddef.h>\n#include \"shai_supervision.h\"\nint main(void) {\n")
	for expression := range expressions {
		fmt.Fprintf(&program, "printf(\"%s=%%llu\\n\", (unsigned long long)(%s));\n", expression, expression)
	}
	program.WriteString("return 0; }\n")
	directory := t.TempDir()
	source, binaryPath := filepath.Join(directory, "layout.c"), filepath.Join(directory, "layout")
	if err := os.WriteFile(source, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.Command("gcc", "-Wall", "-I", filepath.Dir(header), "-I", wireHeaders, "-o", binaryPath, source)
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, output)
	}
	output, err := exec.Command(binaryPath).Output()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(output)), "\n") {
		expression, value, _ := strings.Cut(line, "=")
		values[expression] = value
	}
	return values
}
