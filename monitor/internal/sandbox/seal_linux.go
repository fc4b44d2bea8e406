// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/sandbox/sealing"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// seals are what a task's supervisor seals workers by. A worker that is sealed serves one
// session after the other, and is rolled back between them. It asks for the seal with a call of
// seccomp, which waits while the worker is examined: its only thread, so nothing changes
// meanwhile. The monitor writes the filter itself into the worker's memory, where the call
// takes it from.
type seals struct {
	supervisor *supervisor
	filter     []bpf.RawInstruction
	code       sealing.Code
	// filters is how many seccomp filters a worker has before it is sealed: that of the task,
	// and those that the monitor itself is under, in a container.
	filters int
	refusal error // why no worker of the task can be sealed; nil: it can
}

// newSeals returns the seals of a task that is about to begin.
func newSeals(s *supervisor, spec Spec) (*seals, error) {
	filter, err := plan.SealedFilter(spec.waived)
	if err != nil {
		return nil, err
	}
	own, err := workerStatus(os.Getpid())
	if err != nil {
		return nil, err
	}
	return &seals{supervisor: s, filter: filter, code: s.rollback, filters: own.Filters + 1,
		refusal: unsealable(spec)}, nil
}

// unsealable returns why no worker of a task can be sealed. The task then gets no roll-back
// code, so that libshai does not prepare its workers.
func unsealable(spec Spec) error {
	switch {
	case spec.SessionsPerWorker < 2:
		return errors.New("cannot be sealed: --sessions-per-worker is 1")
	case !hasBaseInstructions():
		return errors.New("cannot be sealed: this processor or kernel has no FSGSBASE, which the roll-back needs (Linux 5.9)")
	}
	if _, err := workerTiming(os.Getpid()); err != nil {
		return fmt.Errorf("cannot be sealed: this kernel does not tell of timers (CONFIG_CHECKPOINT_RESTORE): %w", err)
	}
	return nil
}

// hasBaseInstructions reports whether a process may set its base registers by itself.
func hasBaseInstructions() bool {
	const hardware, bases = 26, 2 // AT_HWCAP2, HWCAP2_FSGSBASE
	vector, err := unix.Auxv()
	for _, entry := range vector {
		if err == nil && entry[0] == hardware {
			return entry[1]&bases != 0
		}
	}
	return false
}

// seal answers seccomp. A worker that has no session yet asks for its seal with it; the
// supervisor lets the call go on when it has noted that.
func (r *request) seal() error {
	s := r.requests.seals
	isAsking := r.Arguments[0] == unix.SECCOMP_SET_MODE_FILTER && r.Arguments[1] == 0
	if s == nil || !isAsking || r.session != 0 || int(r.PID) == r.requests.task.pid {
		return errRefused
	}
	err := r.prepareSeal(s, r.Arguments[2])
	if errors.Is(err, errGone) {
		return err
	}
	if err != nil {
		s.supervisor.sessions.Unsealed(err)
		return unix.EOPNOTSUPP
	}
	// If it cannot be sent, the task is being ended.
	return s.supervisor.Send(supervision.Sealed{ID: r.ID, PID: int32(r.PID)})
}

// prepareSeal examines the caller, and writes its filter to address.
func (r *request) prepareSeal(s *seals, address uint64) (err error) {
	if s.refusal != nil {
		return s.refusal
	}
	defer func() {
		if err != nil && !errors.Is(err, errGone) {
			err = fmt.Errorf("cannot be sealed: %w", err)
		}
	}()
	worker, err := workerOf(int(r.PID))
	if !r.requests.listener.valid(r.ID) {
		return errGone
	}
	if err != nil {
		return err
	}
	seal, err := sealing.Check(worker, s.code, s.filters)
	if err != nil {
		return err
	}
	if err := sealing.CheckCaller(r.Pointer); err != nil {
		return err
	}
	program := encodeProgram(s.filter, address)
	if err := seal.CheckProgram(address, uint64(len(program))); err != nil {
		return err
	}
	return r.write(address, program)
}

// encodeProgram returns struct sock_fprog, and its instructions after it, as it is at address.
func encodeProgram(filter []bpf.RawInstruction, address uint64) []byte {
	const head = 16
	text := binary.LittleEndian.AppendUint64(nil, uint64(len(filter)))
	text = binary.LittleEndian.AppendUint64(text, address+head)
	for _, instruction := range filter {
		text = binary.LittleEndian.AppendUint16(text, instruction.Op)
		text = append(text, instruction.Jt, instruction.Jf)
		text = binary.LittleEndian.AppendUint32(text, instruction.K)
	}
	return text
}

// workerOf returns what there is to know about a worker that waits in a system call. What is
// not in the worker's memory stays empty.
func workerOf(process int) (worker sealing.Worker, err error) {
	if worker.Status, err = workerStatus(process); err != nil {
		return worker, err
	}
	if worker.Timing, err = workerTiming(process); err != nil {
		return worker, err
	}
	smaps, err := os.ReadFile(procFile(process, "smaps"))
	if err != nil {
		return worker, err
	}
	if worker.Mappings, err = sealing.ParseMappings(smaps); err != nil {
		return worker, err
	}
	if worker.Grant, worker.Classes, err = grantAndTable(process); err != nil {
		return worker, err
	}
	for _, part := range []struct {
		to      *[]byte
		address uint64
		size    int
	}{
		{&worker.Code, wire.RollbackCode, wire.RollbackCodeSize},
		{&worker.Table, wire.RollbackState, wire.RollbackTableSize},
		{&worker.Vectors, wire.RollbackState + wire.RollbackVectors, sealing.VectorsHead},
	} {
		text := make([]byte, part.size)
		if readMemory(process, part.address, text) == nil {
			*part.to = text
		}
	}
	return worker, nil
}

func workerStatus(process int) (sealing.Status, error) {
	text, err := os.ReadFile(procFile(process, "status"))
	if err != nil {
		return sealing.Status{}, err
	}
	return sealing.ParseStatus(text)
}

func workerTiming(process int) (sealing.Timing, error) {
	limits, err := os.ReadFile(procFile(process, "limits"))
	if err != nil {
		return sealing.Timing{}, err
	}
	timers, err := os.ReadFile(procFile(process, "timers"))
	if err != nil {
		return sealing.Timing{}, err
	}
	return sealing.ParseTiming(limits, timers)
}

func procFile(process int, name string) string { return "/proc/" + strconv.Itoa(process) + "/" + name }

// readRollback returns the roll-back code, and closes its descriptor. Nobody can change the
// file any more. Without the code, which is logged, no worker can be sealed.
func readRollback(descriptor int) sealing.Code {
	file := os.NewFile(uintptr(descriptor), "roll-back code")
	if file == nil {
		slog.Error("bug: a supervisor has started without roll-back code; no worker can be sealed")
		return sealing.Code{}
	}
	defer file.Close()
	var about unix.Stat_t
	text := make([]byte, wire.RollbackCodeSize)
	_, err := file.ReadAt(text, 0)
	if err = errors.Join(err, unix.Fstat(int(file.Fd()), &about)); err != nil {
		slog.Error("read the roll-back code: no worker can be sealed", "error", err)
		return sealing.Code{}
	}
	return sealing.Code{Text: text, File: fileOf(about)}
}

func fileOf(about unix.Stat_t) sealing.File {
	device := fmt.Sprintf("%02x:%02x", unix.Major(about.Dev), unix.Minor(about.Dev))
	return sealing.File{Device: device, Inode: about.Ino}
}

// grantAndTable returns the files at two of a worker's descriptors, which nobody but its launcher
// and its supervisor can fill. A worker that has not asked for a grant has a filler there, which
// is no regular file.
func grantAndTable(process int) (grant, classes sealing.File, err error) {
	for number, file := range map[int]*sealing.File{wire.FDGrant: &grant, wire.FDClasses: &classes} {
		var about unix.Stat_t
		if err := unix.Stat(procFile(process, "fd/"+strconv.Itoa(number)), &about); err != nil {
			return grant, classes, err
		}
		if about.Mode&unix.S_IFMT == unix.S_IFREG {
			*file = fileOf(about)
		}
	}
	return grant, classes, nil
}

// errTells is the reason for which a worker that is rolled back cannot look at /proc.
const errTells = refusal("/proc tells a worker that is rolled back of its former sessions")

// resolve pins the file that a path means to the caller.
func (r *request) resolve(path string, how resolution) (*pinned, error) {
	file, err := resolve(r, path, how)
	if err != nil || r.requests.seals == nil {
		return file, err
	}
	var system unix.Statfs_t
	err = unix.Fstatfs(file.descriptor, &system)
	if err == nil && system.Type == procSuper {
		err = r.unsealed()
	}
	if err != nil {
		file.close()
		return nil, err
	}
	return file, nil
}

// unsealed returns an error if the caller is sealed.
func (r *request) unsealed() error {
	text, err := r.status("Seccomp_filters")
	if err != nil {
		return err
	}
	if text != strconv.Itoa(r.requests.seals.filters) {
		return errTells
	}
	return nil
}
