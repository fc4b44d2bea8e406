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
	"time"

	"golang.org/x/sys/unix"
)

// controlMessage is one record that the keeper or the launcher sends to the monitor.
type controlMessage struct {
	Kind   string `json:"kind"` // "started", "listener", "ended"
	PID    int    `json:"pid,omitempty"`
	Status uint32 `json:"status,omitempty"` // wait status
	// Used is the processor time of the task's processes at their end, 0 if it is to be asked of
	// the kernel.
	Used time.Duration `json:"used,omitempty"`
}

// keeper owns all processes of one task. A forked worker would survive a killed zygote or
// monitor; the keeper's only job is to kill it. Orphans of the task become its children.
// It kills them when the program ends, when the monitor says so, and when the monitor's
// end of the control socket is closed.
type keeper struct {
	main      int
	enclosure interface {
		kill(program int)
		killLeaked() map[int]bool
		endsWithKeeper() bool
	}
	mutex   sync.Mutex
	mayKill bool // the program is not reaped yet, so its number is still its own
}

// terminateMessage is the monitor's request to send the program SIGTERM.
const terminateMessage = "terminate"

// keep starts the launcher, and returns when no process of the task is left.
func keep() int {
	// The signals are caught, not ignored: the task would inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	todo, err := readPlan(planNumber)
	if err == nil {
		err = becomeReaper()
	}
	if err != nil {
		return giveUp(err)
	}
	k := &keeper{mayKill: true, enclosure: todo.Enclosure}
	if k.main, err = startLauncher(len(todo.Numbers)); err != nil {
		return giveUp(err)
	}
	number, err := todo.Enclosure.monitorsNumber(k.main)
	control := -1
	if err == nil {
		control, err = unix.FcntlInt(controlNumber, unix.F_DUPFD_CLOEXEC, parkedNumber)
	}
	if err != nil {
		unix.Kill(k.main, unix.SIGKILL)
		return giveUp(err)
	}
	// The keeper must not hold the task's pipes and sockets open, or their readers would
	// never see the end.
	for number := planNumber; number < firstNumber+len(todo.Numbers); number++ {
		unix.Close(number)
	}
	for _, number := range []int{1, 2} {
		unix.Dup2(0, number)
	}
	send(control, controlMessage{Kind: "started", PID: number})
	go k.obey(control)
	status := k.reap()
	used := todo.Enclosure.used()
	todo.Enclosure.remove() // the monitor may have died
	send(control, controlMessage{Kind: "ended", Status: uint32(status), Used: used})
	return 0
}

func giveUp(err error) int {
	unix.Write(statusNumber, []byte(fmt.Sprintf("keeper: %v", err)))
	return 127
}

func send(control int, message controlMessage) {
	record, err := json.Marshal(message)
	if err == nil {
		// If the monitor has died, nobody reads the record; obey then ends the task.
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

// launcherEnvironment keeps the Go runtime of keeper and launcher small, and keeps it
// from opening descriptors of its own.
var launcherEnvironment = []string{"GODEBUG=containermaxprocs=0,updatemaxprocs=0", "GOMAXPROCS=2"}

// obey carries out the monitor's requests. It kills the task when the monitor shuts its
// end of the socket down or dies.
func (k *keeper) obey(control int) {
	buffer := make([]byte, 16)
	for {
		count, _, err := unix.Recvfrom(control, buffer, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && string(buffer[:count]) == terminateMessage:
			k.signal(func(program int) { unix.Kill(program, unix.SIGTERM) })
		default:
			k.signal(k.enclosure.kill)
			return
		}
	}
}

// signal calls do with the program's number while that number is certain to be the
// program's.
func (k *keeper) signal(do func(program int)) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.mayKill {
		do(k.main)
	}
}

// reap waits for every process of the task, or only for its program if the kernel ends the
// others with the keeper, and returns the program's status. It looks for
// processes that have left the enclosure only when all those have ended that it found
// before: it searches once for each generation, and not for each process.
func (k *keeper) reap() (status unix.WaitStatus) {
	var killed map[int]bool
	for {
		pid, err := endedChild()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil { // ECHILD: no process is left
			return status
		}
		if pid == k.main {
			k.signal(k.enclosure.kill)
			k.mutex.Lock()
			k.mayKill = false
			k.mutex.Unlock()
		}
		var ended unix.WaitStatus
		if _, err := unix.Wait4(pid, &ended, 0, nil); err == nil && pid == k.main {
			status = ended
		}
		if !k.mayKill && k.enclosure.endsWithKeeper() {
			return status
		}
		delete(killed, pid)
		if !k.mayKill && len(killed) == 0 {
			killed = k.enclosure.killLeaked()
		}
	}
}
