// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

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
// Whatever the task's processes leave behind becomes its child. It kills them when the
// program ends, when the monitor says so, and when the monitor's end of the control
// socket is gone.
type keeper struct {
	main    int
	mutex   sync.Mutex
	mayKill bool // the program is not reaped, so its number cannot be another's
}

// terminateMessage is what the monitor sends to have the program asked to end.
const terminateMessage = "terminate"

// keep starts the launcher and returns when no process of the task is left.
func keep() int {
	// Caught, not ignored: what is ignored here would be ignored in the task.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	todo, err := readPlan(planNumber)
	if err == nil {
		err = becomeReaper()
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
		unix.Dup2(0, number)
	}
	send(control, controlMessage{Kind: "started", PID: k.main})
	go k.obey(control)
	status := k.reap()
	send(control, controlMessage{Kind: "ended", Status: uint32(status)})
	return 0
}

func giveUp(err error) int {
	unix.Write(statusNumber, []byte(fmt.Sprintf("keeper: %v", err)))
	return 127
}

func send(control int, message controlMessage) {
	record, err := json.Marshal(message)
	if err == nil {
		// Without a monitor there is nobody to tell; obey sees to it.
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
	self, err := ownProgram()
	if err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(self, []string{launcherName, launcherName}, &syscall.ProcAttr{
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

// obey does what the monitor says, and kills the task when the monitor shuts its end
// down or dies.
func (k *keeper) obey(control int) {
	buffer := make([]byte, 16)
	for {
		count, _, err := unix.Recvfrom(control, buffer, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && string(buffer[:count]) == terminateMessage:
			k.signal(func(program int) { unix.Kill(program, unix.SIGTERM) })
		default:
			k.signal(killTask)
			return
		}
	}
}

// signal does something to the program while its number is its own.
func (k *keeper) signal(do func(program int)) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.mayKill {
		do(k.main)
	}
}

// reap waits for every process of the task and returns the program's status.
func (k *keeper) reap() (status unix.WaitStatus) {
	for {
		pid, err := endedChild()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil { // ECHILD: nobody is left
			return status
		}
		if pid == k.main {
			k.signal(killTask)
			k.mutex.Lock()
			k.mayKill = false
			k.mutex.Unlock()
		}
		var ended unix.WaitStatus
		if _, err := unix.Wait4(pid, &ended, 0, nil); err == nil && pid == k.main {
			status = ended
		}
		if !k.mayKill {
			killAdopted()
		}
	}
}
