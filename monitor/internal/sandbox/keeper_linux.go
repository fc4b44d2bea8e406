// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlMessage is one record that keeper and launcher send to the monitor.
type controlMessage struct {
	Kind   string `json:"kind"` // "started", "listener", "ended"
	PID    int    `json:"pid,omitempty"`
	Status uint32 `json:"status,omitempty"` // wait status
}

// keeper owns all processes of one task. A forked worker outlives a dead zygote
// and a killed monitor unless somebody kills it; that is the keeper's only work.
// It is the subreaper of the task, whose processes are one process group (the
// filter refuses leaving it), and it kills them when the program ends, when the
// monitor says so, and when the monitor's end of the control socket is gone.
type keeper struct {
	main    int
	mutex   sync.Mutex
	mayKill bool // the group's leader is not reaped, so its number cannot be another's
}

// keep starts the launcher and returns when no process of the task is left.
func keep() int {
	// Caught, not ignored: what is ignored here would be ignored in the task.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	todo, err := readPlan(planNumber)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		return giveUp(err)
	}
	k := &keeper{mayKill: true}
	if k.main, err = startLauncher(len(todo.Numbers)); err != nil {
		return giveUp(err)
	}
	control, err := unix.FcntlInt(controlNumber, unix.F_DUPFD_CLOEXEC, parkedNumber)
	if err != nil {
		unix.Kill(k.main, unix.SIGKILL)
		return giveUp(err)
	}
	// The task's pipes and sockets must not stay open in here, or no reader
	// would ever see their end.
	for number := planNumber; number < firstNumber+len(todo.Numbers); number++ {
		unix.Close(number)
	}
	for _, number := range []int{1, 2} {
		unix.Dup3(0, number, 0)
	}
	send(control, controlMessage{Kind: "started", PID: k.main})
	go k.killWithMonitor(control)
	status := k.reap()
	send(control, controlMessage{Kind: "ended", Status: uint32(status)})
	return 0
}

// childOf is si_pid, which x/sys does not name: the first word after the three
// common ones and their padding.
func childOf(info *unix.Siginfo) int { return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), 16))) }

func giveUp(err error) int {
	unix.Write(statusNumber, []byte(fmt.Sprintf("keeper: %v", err)))
	return 127
}

func send(control int, message controlMessage) {
	record, err := json.Marshal(message)
	if err == nil {
		// Without a monitor there is nobody to tell; killWithMonitor sees to it.
		_ = unix.Sendto(control, record, unix.MSG_NOSIGNAL, nil)
	}
}

func startLauncher(files int) (int, error) {
	inherited := []uintptr{0, 1, 2}
	for range launcherOffset {
		inherited = append(inherited, 0)
	}
	for number := planNumber; number < firstNumber+files; number++ {
		inherited = append(inherited, uintptr(number))
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{launcherName}, &syscall.ProcAttr{
		Env:   launcherEnvironment,
		Files: inherited,
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		return 0, fmt.Errorf("start launcher: %w", err)
	}
	return pid, nil
}

// launcherEnvironment keeps the Go runtime of keeper and launcher small and away
// from descriptors of its own.
var launcherEnvironment = []string{"GODEBUG=containermaxprocs=0,updatemaxprocs=0", "GOMAXPROCS=2"}

// killWithMonitor kills the task when the monitor shuts its end down or dies.
func (k *keeper) killWithMonitor(control int) {
	buffer := make([]byte, 16)
	for {
		count, _, err := unix.Recvfrom(control, buffer, 0)
		if err == unix.EINTR {
			continue
		}
		if count <= 0 || err != nil {
			k.killGroup()
			return
		}
	}
}

func (k *keeper) killGroup() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.mayKill {
		// Atomic with respect to fork: a process that is being forked either
		// belongs to the group already or its fork fails on the pending signal.
		unix.Kill(-k.main, unix.SIGKILL)
	}
}

// reap waits for every process of the task and returns the program's status.
func (k *keeper) reap() (status unix.WaitStatus) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // ECHILD: nobody is left
			return status
		}
		pid := childOf(&info)
		if pid == k.main {
			k.killGroup()
			k.mutex.Lock()
			k.mayKill = false
			k.mutex.Unlock()
		}
		var ended unix.WaitStatus
		if _, err := unix.Wait4(pid, &ended, 0, nil); err == nil && pid == k.main {
			status = ended
		}
		if !k.mayKill {
			killChildren()
		}
	}
}

// killChildren kills the processes that a program without a filter (mode
// baseline) moved out of its group. They become the keeper's children when
// their parents die, and reap comes back here for each.
func killChildren() {
	self := strconv.Itoa(os.Getpid())
	statuses, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range statuses {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// "pid (name) state parent …"; the name may contain anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 && fields[1] == self {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}
