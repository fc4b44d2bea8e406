// SPDX-License-Identifier: BSD-2-Clause

package wire

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

const headers = "../../../runtime/include/"

var headerNames = []string{"shai_wire.h", "shai_requests.h", "shai_rollback.h", "shai_gate.h"}

// constants maps every constant of the header to this package's value.
var constants = map[string]uint64{
	"SHAI_WIRE_VERSION": Version, "SHAI_WIRE_MAX": MaxRecord,
	"SHAI_FD_MONITOR": FDMonitor, "SHAI_FD_CLASSES": FDClasses,
	"SHAI_FD_LISTEN": FDListen, "SHAI_FD_CONNECTION": FDConnection,
	"SHAI_FD_CONNECTION_CHECKED": FDConnectionChecked, "SHAI_FD_KEYVALUE": FDKeyValue,
	"SHAI_FD_GRANT": FDGrant, "SHAI_FD_ROLLBACK": FDRollback,
	"SHAI_FD_CAPABILITY": FDCapability, "SHAI_FD_CAPABILITY_COUNT": FDCapabilityCount,
	"SHAI_FD_PIPE": FDPipe, "SHAI_FD_PIPE_COUNT": FDPipeCount,
	"SHAI_FD_CHANNEL": FDChannel, "SHAI_FD_CHANNEL_COUNT": FDChannelCount,
	"SHAI_FD_CHANNEL_CHECKED": FDChannelChecked, "SHAI_FD_RESERVED_END": FDReservedEnd,
	"SHAI_NAME_MAX": NameMax, "SHAI_PREFIX_MAX": PrefixMax, "SHAI_REASON_MAX": ReasonMax,
	"SHAI_NONCE_SIZE": NonceSize, "SHAI_SIGNATURE_SIZE": SignatureSize,
	"SHAI_BATCH_MAX": BatchMax, "SHAI_CLASSES_MAX": ClassesMax,
	"SHAI_SLOTS_MAX":       SlotsMax,
	"SHAI_DIRECTORIES_MAX": DirectoriesMax, "SHAI_DESCRIPTORS_MAX": DescriptorsMax,
	"SHAI_MODE_BASELINE": uint64(ModeBaseline), "SHAI_MODE_DYNAMIC": uint64(ModeDynamic),
	"SHAI_MODE_SHAI": uint64(ModeShai), "SHAI_MODE_AUDIT": uint64(ModeAudit),
	"SHAI_MODE_DYNAMIC_LAZY": uint64(ModeDynamicLazy), "SHAI_MODE_LAST": uint64(ModeLast),
	"SHAI_REGISTER": uint64(TypeRegister), "SHAI_AUTHENTICATE": uint64(TypeAuthenticate),
	"SHAI_OPEN": uint64(TypeOpen), "SHAI_RESET": uint64(TypeReset),
	"SHAI_REGISTERED": uint64(TypeRegistered), "SHAI_CONNECTED": uint64(TypeConnected),
	"SHAI_BOUND": uint64(TypeBound), "SHAI_OPENED": uint64(TypeOpened), "SHAI_TRANSFER": uint64(typeTransfer),
	"SHAI_GROWN": uint64(typeGrown), "SHAI_WRITE": uint64(TypeWrite), "SHAI_WRITTEN": uint64(TypeWritten),
	"SHAI_CHOICES": uint64(TypeChoices), "SHAI_CHOOSE": uint64(TypeChoose), "SHAI_OFFERED": uint64(TypeOffered),
	"SHAI_CHOSEN": uint64(TypeChosen), "SHAI_POLICY_MAX": PolicyMax, "SHAI_OFFERED_MAX": OfferedMax,
	"SHAI_CONTENT_MAX": ContentMax, "SHAI_WRITE_REPLACE": uint64(WriteReplace),
	"SHAI_KIND_DIRECTORY": uint64(KindDirectory), "SHAI_KIND_PIPE": uint64(KindPipe),
	"SHAI_KIND_CHANNEL": uint64(KindChannel),
	"SHAI_RIGHT_READ":   uint64(RightRead), "SHAI_RIGHT_WRITE": uint64(RightWrite),
	"SHAI_RIGHT_ASK": uint64(RightAsk), "SHAI_REGISTER_CLOSE": uint64(RegisterClose),
	"SHAI_BOUND_DECISIONS": uint64(BoundDecisions), "SHAI_BOUND_KEYVALUE": uint64(BoundKeyValue),
	"SHAI_BOUND_VIEW": uint64(BoundView),

	"SHAI_FD_REQUESTS": FDRequests, "SHAI_FD_DELIVERY": FDDelivery,
	"SHAI_REQUEST_PATH_MAX": RequestPathMax, "SHAI_STUB_WRITE_MAX": StubWriteMax, "SHAI_PLACED_MAX": PlacedMax,
	"SHAI_PLACE_MAX":       PlaceMax,
	"SHAI_REQUEST_SESSION": uint64(TypeRequestSession), "SHAI_REQUEST_PATH": uint64(TypeRequestPath),
	"SHAI_REQUEST_SEND": uint64(TypeRequestSend), "SHAI_REQUEST_TRAPS": uint64(TypeRequestTraps),
	"SHAI_REQUEST_REGISTER": uint64(TypeRequestRegister), "SHAI_REQUEST_WORKER": uint64(TypeRequestWorker),
	"SHAI_PLACE":          uint64(TypePlace),
	"SHAI_STUB_ACCEPT":    uint64(typeStubAccept),
	"SHAI_STUB_DIRECTORY": uint64(typeStubDirectory), "SHAI_STUB_TRANSFER": uint64(typeStubTransfer),
	"SHAI_STUB_WRITE": uint64(typeStubWrite), "SHAI_PLACED": uint64(TypePlaced), "SHAI_ANSWER": uint64(TypeAnswer),

	"SHAI_ROLLBACK_CODE": RollbackCode, "SHAI_ROLLBACK_CODE_SIZE": RollbackCodeSize,
	"SHAI_ROLLBACK_ACCEPTED": RollbackAccepted, "SHAI_ROLLBACK_STATE": RollbackState,
	"SHAI_ROLLBACK_SEAL":   0x180, // between libshai and the code
	"SHAI_ROLLBACK_SEALED": RollbackSealed, "SHAI_ROLLBACK_STOPPED": RollbackStopped,
	"SHAI_ROLLBACK_VECTORS": RollbackVectors, "SHAI_ROLLBACK_VECTORS_SIZE": RollbackVectorsSize,
	"SHAI_ROLLBACK_VECTORS_USED": RollbackVectorsUsed, "SHAI_ROLLBACK_VECTORS_ALWAYS": RollbackVectorsAlways,
	"SHAI_ROLLBACK_HAS_TIMERS": RollbackHasTimers, "SHAI_ROLLBACK_HAS_NO_RESERVE": RollbackHasNoReserve,
	"SHAI_ROLLBACK_SNAPSHOT": RollbackSnapshot, "SHAI_ROLLBACK_PAGE": RollbackPage,
	"SHAI_ROLLBACK_RANGES_MAX": RollbackRangesMax, "SHAI_ROLLBACK_PAGES_MAX": RollbackPagesMax,
	"SHAI_ROLLBACK_FILTER_MAX": RollbackFilterMax,
	"SHAI_ROLLBACK_LISTEN":     FDListen, "SHAI_ROLLBACK_OPENED": FDReservedEnd,
	"SHAI_ROLLBACK_RANGE_COUNT": uint64(unsafe.Offsetof(RollbackTable{}.RangeCount)),
	"SHAI_ROLLBACK_STACK":       uint64(unsafe.Offsetof(RollbackTable{}.Stack)),
	"SHAI_ROLLBACK_RESUME":      uint64(unsafe.Offsetof(RollbackTable{}.Resume)),
	"SHAI_ROLLBACK_THREAD":      uint64(unsafe.Offsetof(RollbackTable{}.Thread)),
	"SHAI_ROLLBACK_RANGES":      uint64(unsafe.Offsetof(RollbackTable{}.Range)),
	"SHAI_ROLLBACK_RANGE_SIZE":  uint64(unsafe.Sizeof(RollbackRange{})),

	"SHAI_GATE": Gate, "SHAI_GATE_RECEIVED": GateReceived,
	"SHAI_GATE_BUFFER": GateBuffer, "SHAI_GATE_BUFFER_SIZE": GateBufferSize,
	"SHAI_GATE_RECORD": GateRecord, "SHAI_GATE_RECORD_MAX": GateRecordMax,
	"SHAI_GATE_GRANT": GateGrant, "SHAI_GATE_GRANT_SIZE": GateGrantSize,
	"SHAI_GATE_CLASSES": GateClasses, "SHAI_GATE_CLASSES_SIZE": GateClassesSize,
	"SHAI_GATE_HEAD": Version | uint64(typeTransfer)<<16, "SHAI_GATE_SUPERVISOR": FDMonitor,
	"SHAI_GRANT_BOUND": 1, "SHAI_GRANT_UNCHECKED": 2, // between the supervisor and its workers
	"SHAI_GRANT_FLAGS":         uint64(unsafe.Offsetof(grantLayout{}.Flags)),
	"SHAI_GRANT_CONDUIT_COUNT": uint64(unsafe.Offsetof(grantLayout{}.ConduitCount)),
	"SHAI_GRANT_CLASS_COUNT":   uint64(unsafe.Offsetof(grantLayout{}.ClassCount)),
	"SHAI_GRANT_CLASSES":       uint64(unsafe.Offsetof(grantLayout{}.Class)),
}

// Layouts that only the C programs use.
type (
	transferLayout struct {
		Query    uint32
		Reserved uint32
		Conduit  [BatchMax]uint32
	}

	grownLayout struct {
		Header         headerLayout
		ClassCount     uint32
		DirectoryCount uint32
	}

	grantLayout struct {
		Flags        uint32
		ConduitCount uint32
		ClassCount   uint32
		Reserved     uint32
		Class        [ClassesMax]uint32
	}

	stubDirectoryLayout struct {
		Header   headerLayout
		Class    uint32
		Reserved uint32
	}

	stubWriteLayout struct {
		Header headerLayout
		Number int32
		Size   uint32
	}
)

// structures maps every structure of the header to its layout here.
var structures = map[string]any{
	"shai_header": headerLayout{}, "shai_register": registerLayout{},
	"shai_capability": capabilityLayout{}, "shai_registered": registeredLayout{},
	"shai_connected": connectedLayout{}, "shai_authenticate": authenticateLayout{},
	"shai_bound": boundLayout{}, "shai_open": openLayout{}, "shai_opened": openedLayout{},
	"shai_transfer": transferLayout{}, "shai_grown": grownLayout{},
	"shai_counters": Counters{}, "shai_reset": resetLayout{},
	"shai_write": writeLayout{}, "shai_written": writtenLayout{},
	"shai_choices": choicesLayout{}, "shai_choose": chooseLayout{}, "shai_offered": offeredLayout{},
	"shai_chosen": chosenLayout{},

	"shai_request_path": requestPathLayout{}, "shai_request_send": requestSendLayout{},
	"shai_request_register": requestRegisterLayout{}, "shai_place": placeLayout{},
	"shai_placed": placedLayout{}, "shai_stub_directory": stubDirectoryLayout{},
	"shai_stub_write": stubWriteLayout{}, "shai_answer": answerLayout{}, "shai_decisions": decisionsLayout{},

	"shai_rollback_range": RollbackRange{}, "shai_rollback_state": RollbackTable{}, "shai_grant": grantLayout{},
}

var (
	defined    = regexp.MustCompile(`(?m)^#define (SHAI_\w+) `)
	enumerated = regexp.MustCompile(`(?m)^\t(SHAI_\w+) = `)
	structure  = regexp.MustCompile(`(?ms)^struct (shai_\w+) \{(.*?)^\};`)
	field      = regexp.MustCompile(`(?m)^\t[\w ]+? (\w+)(?:\[\w+\])?;`)
)

// TestHeader compiles the headers and compares everything they define with this
// package. A name of a header that is unknown here fails as well.
func TestHeader(t *testing.T) {
	var header []byte
	for _, name := range headerNames {
		text, err := os.ReadFile(headers + name)
		if err != nil {
			t.Fatal(err)
		}
		header = append(header, text...)
	}
	want := map[string]uint64{}
	var program strings.Builder
	program.WriteString("#include <stdio.h>\n#include <stddef.h>\n#include \"shai_requests.h\"\n#include \"shai_rollback.h\"\n#include \"shai_gate.h\"\nint main(void) {\n")
	printed := func(expression string, value uint64) {
		want[expression] = value
		fmt.Fprintf(&program, "printf(\"%s=%%llu\\n\", (unsigned long long)(%s));\n", expression, expression)
	}
	names := append(defined.FindAllStringSubmatch(string(header), -1),
		enumerated.FindAllStringSubmatch(string(header), -1)...)
	for _, name := range names {
		if value, known := constants[name[1]]; known {
			printed(name[1], value)
		} else if name[1] != "SHAI_SIGNED_PREFIX" {
			t.Errorf("%s of the header is unknown to this package", name[1])
		}
	}
	for _, match := range structure.FindAllStringSubmatch(string(header), -1) {
		compareStructure(t, match[1], match[2], printed)
	}
	program.WriteString("printf(\"%s\", SHAI_SIGNED_PREFIX);\nreturn 0; }\n")

	got, prefix := runC(t, program.String(), len(want))
	for expression, value := range want {
		if got[expression] != value {
			t.Errorf("%s is %d in the header, %d here", expression, got[expression], value)
		}
	}
	if prefix != signedPrefix {
		t.Errorf("SHAI_SIGNED_PREFIX is %q in the header, %q here", prefix, signedPrefix)
	}
}

func compareStructure(t *testing.T, name, body string, printed func(string, uint64)) {
	layout, known := structures[name]
	if !known {
		t.Errorf("struct %s of the header is unknown to this package", name)
		return
	}
	kind := reflect.TypeOf(layout)
	printed("sizeof(struct "+name+")", uint64(binary.Size(layout)))
	fields := field.FindAllStringSubmatch(body, -1)
	if len(fields) != kind.NumField() {
		t.Errorf("struct %s has %d fields in the header, %d here", name, len(fields), kind.NumField())
		return
	}
	offset := 0
	for i, match := range fields {
		goName := strings.ReplaceAll(match[1], "_", "")
		if !strings.EqualFold(goName, kind.Field(i).Name) {
			t.Errorf("struct %s: field %d is %s in the header, %s here", name, i, match[1], kind.Field(i).Name)
		}
		size := binary.Size(reflect.Zero(kind.Field(i).Type).Interface())
		printed(fmt.Sprintf("offsetof(struct %s, %s)", name, match[1]), uint64(offset))
		printed(fmt.Sprintf("sizeof(((struct %s *)0)->%s)", name, match[1]), uint64(size))
		offset += size
	}
}

// runC returns what program prints: lines expression=value, then other text.
func runC(t *testing.T, program string, lines int) (map[string]uint64, string) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skipf("the headers need a compiler: %v", err)
	}
	directory := t.TempDir()
	source, binaryPath := filepath.Join(directory, "layout.c"), filepath.Join(directory, "layout")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.Command("gcc", "-Wall", "-I", headers, "-o", binaryPath, source)
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, output)
	}
	output, err := exec.Command(binaryPath).Output()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]uint64{}
	parts := strings.SplitN(string(output), "\n", lines+1)
	for _, line := range parts[:lines] {
		expression, text, _ := strings.Cut(line, "=")
		value, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		values[expression] = value
	}
	return values, parts[lines]
}
