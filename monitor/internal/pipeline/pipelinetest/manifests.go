// SPDX-License-Identifier: BSD-2-Clause

// Package pipelinetest has what the tests of pipelines and of monitors share: manifests,
// users' keys, and what stands for a task's program and for its supervisor.
package pipelinetest

import (
	"crypto/ed25519"
	"crypto/sha256"
	_ "embed" // for the manifests
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/sandbox"
)

// Bare is the manifest of pipeline "bare", of which no task ever runs. Its variables are
// those of Define.
//
//go:embed bare.yaml
var Bare string

// BareDocuments are the files of the pipeline Bare.
var BareDocuments = []string{"/open/1.txt", "/dropbox/1.txt", "/diary/alice/1.txt", "/offer/1.txt"}

// Typed is the manifest of a pipeline "bare" with typed conduits, of which no task ever runs. Its
// variables are those of Define, its documents the first of BareDocuments.
//
//go:embed typed.yaml
var Typed string

// Raising is the manifest of pipeline "raising", whose task drafting runs COMMANDS of the
// program probe_raising. Its variables are those of Probe.
//
//go:embed raising.yaml
var Raising string

// Probe is the manifest of pipeline "probe", with its key-value store. Besides those of
// Define, it has the variables PROBE, the folder of the program probe_worker, and REDIS_SOCKET.
//
//go:embed probe.yaml
var Probe string

// WithoutKeyValue takes the store out of the manifest of Probe.
func WithoutKeyValue(text string) string {
	head, rest, _ := strings.Cut(text, "    - name: profiles\n")
	_, rest, _ = strings.Cut(rest, "    - name: queries\n")
	rest, _, _ = strings.Cut(rest, "  keyValue:")
	return strings.NewReplacer("profiles, ", "", "histories, ", "").Replace(head) + "    - name: queries\n" + rest
}

// Define returns the value of the variable LISTEN of manifests, a free address.
func Define(t testing.TB) map[string]string {
	t.Helper()
	return map[string]string{"LISTEN": FreeAddress(t)}
}

// Runtimes returns what the tasks of the manifests name: system, the programs of the system, and
// probe, a folder of programs. Both have the system's libraries and its run-time linker.
func Runtimes(probe string) runtimeroot.Named {
	libraries := []string{"/lib", "/usr/lib", linker}
	return runtimeroot.Named{
		"system": append([]string{"/bin"}, libraries...),
		"probe":  append([]string{probe}, libraries...),
	}
}

// ports are those below the ones that the kernel gives to clients.
const firstPort, ports = 15000, 15000

var lastPort atomic.Int64 // that FreeAddress has looked at, from firstPort on

func init() { lastPort.Store(rand.Int64N(ports)) } //nolint:gosec // not a secret

// FreeAddress returns an address on loopback at which nobody listens. No connection takes its port
// before its server listens, and no other call of the same process returns it; other processes
// begin at ports of their own.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+lastPort.Add(1)%ports))
		switch {
		case err == nil:
			defer listener.Close()
			return listener.Addr().String()
		case !errors.Is(err, unix.EADDRINUSE):
			t.Fatal(err)
		}
	}
}

// Key returns a principal's key pair, the same in every run.
func Key(principal string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("test key of " + principal))
	return ed25519.NewKeyFromSeed(seed[:])
}

// NeedSandbox skips the test where tasks cannot be confined; the features that are missing
// say why.
func NeedSandbox(t testing.TB) {
	t.Helper()
	if machine := sandbox.New(sandbox.Options{}).Probe(); machine.Enforcement == "none" {
		t.Skipf("this machine cannot confine tasks: %+v", machine.Features)
	}
}

// OpenDescriptors counts this process' descriptors one by one: a folder that lists
// them is not everywhere.
func OpenDescriptors(t testing.TB) int {
	t.Helper()
	count := 0
	for number := range uintptr(1 << 16) {
		if _, err := unix.FcntlInt(number, unix.F_GETFD, 0); err == nil {
			count++
		}
	}
	return count
}

// OpenRequest asks for the file that a path leads to.
func OpenRequest(t testing.TB, task sandbox.Task, process int, path string, flags int) sandbox.OpenRequest {
	t.Helper()
	var file unix.Stat_t
	if err := unix.Stat(path, &file); err != nil {
		t.Fatal(err)
	}
	return sandbox.OpenRequest{Task: task, Caller: sandbox.Caller{PID: process}, Path: path, Flags: flags,
		Device: file.Dev, Inode: file.Ino}
}

// Transfer returns a record of a descriptor channel, as libshai writes it.
func Transfer(query uint32, conduits ...uint32) []byte {
	record := binary.LittleEndian.AppendUint32(nil, query)
	record = binary.LittleEndian.AppendUint32(record, 0)
	for _, conduit := range conduits {
		record = binary.LittleEndian.AppendUint32(record, conduit)
	}
	return record
}
