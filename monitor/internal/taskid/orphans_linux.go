// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endLimit is how long EndOrphans waits for processes that it has killed, and AwaitEnd for
// those that end by themselves.
const endLimit = 10 * time.Second

// EndOrphans kills the processes of users that have no keeper, waits until none is left, and
// returns how many it has seen of each user. isKeeper reports whether a process is the keeper of a
// task. Another monitor may have given its tasks the same users. They have keepers, so they
// are not killed. EndOrphans leaves the processes of other PID namespaces alone: in a
// container anybody may have that number, and tasks cannot make namespaces.
func EndOrphans(users []uint32, isKeeper func(pid int) bool) (ended map[uint32]int, err error) {
	deadline := time.Now().Add(endLimit)
	ended = map[uint32]int{}
	for seen := true; ; {
		found, err := orphansOf(users, isKeeper)
		count := 0
		for user, of := range found {
			if err == nil {
				err = of.end(user, deadline)
			}
			of.close()
			ended[user] += len(of.processes)
			count += len(of.processes)
		}
		if err != nil || count == 0 && !seen {
			return ended, err
		}
		seen = count > 0
	}
}

// AwaitEnd waits until those processes of the caller's user have ended of which isEnding
// reports that they are ending by themselves. It asks about none of other PID namespaces.
func AwaitEnd(isEnding func(pid int) bool) error {
	deadline := time.Now().Add(endLimit)
	all, err := processes()
	if err != nil {
		return err
	}
	for _, pid := range all {
		if err := awaitOne(pid, isEnding, deadline); err != nil && !hasGone(err) {
			return fmt.Errorf("wait for the end of process %d: %w", pid, err)
		}
	}
	return nil
}

func awaitOne(pid int, isEnding func(pid int) bool, deadline time.Time) error {
	status, err := statusOf(pid)
	if err != nil || status.depth > 1 || !slices.Contains(status.users, uint32(unix.Geteuid())) { //nolint:gosec // never negative
		return err
	}
	// Held before it is judged, so that its number means no other process.
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	if !isEnding(pid) {
		return nil
	}
	ended, err := hasEnded(pidfd, time.Until(deadline))
	if err == nil && !ended {
		err = errors.New("it still runs")
	}
	return err
}

// nobodys is a user that no process has, as far as the machine's administrator has not
// given it to one: the last number but -1, which means none.
const nobodys = ^uint32(0) - 1

// killAll kills all processes of a user in one step, which no fork can escape. A process
// that forks and ends, as its child does, and so on, may never be seen in a list.
func killAll(user uint32) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this goroutine
		if unix.Gettid() == unix.Getpid() {
			result <- killAll(user) // the first thread would not end
			runtime.UnlockOSThread()
			return
		}
		if errno := become(user); errno != 0 {
			result <- fmt.Errorf("become user %d: %w", user, errno)
			return
		}
		err := unix.Kill(-1, unix.SIGKILL)
		if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM) { // the user has none
			err = nil
		}
		result <- err
	}()
	return <-result
}

// become lets the calling thread send signals to the processes of a user alone. They may
// send none to the thread, which would end the monitor: that depends on the thread's real
// and saved user. A user namespace without the number nobodys leaves the thread open.
func become(user uint32) (errno syscall.Errno) {
	const same = ^uintptr(0)
	for _, owner := range []uint32{nobodys, user} {
		_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, uintptr(owner), uintptr(user), same)
		if errno != unix.EINVAL { // no such user
			break
		}
	}
	return errno
}

// orphan is a process. The descriptor still means it if its number has been reused.
type orphan struct{ pid, pidfd int }

// end kills the process and waits until all its threads have ended.
func (o orphan) end(deadline time.Time) error {
	err := unix.PidfdSendSignal(o.pidfd, unix.SIGKILL, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", o.pid, err)
	}
	ended, err := hasEnded(o.pidfd, time.Until(deadline))
	if err == nil && !ended {
		err = errors.New("it was killed and still runs")
	}
	if err != nil {
		return fmt.Errorf("wait for the end of process %d: %w", o.pid, err)
	}
	return nil
}

// hasEnded waits for at most a duration for the end of a process. A process whose first
// thread alone has ended has not ended, but looks like one in /proc.
func hasEnded(pidfd int, limit time.Duration) (bool, error) {
	for deadline := time.Now().Add(limit); ; {
		remaining := max(0, time.Until(deadline))
		count, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(remaining.Milliseconds())) //nolint:gosec // a descriptor
		if !errors.Is(err, unix.EINTR) {
			return count > 0, err
		}
	}
}

// orphans are the processes of a user that have no keeper.
type orphans struct {
	processes []orphan
	spared    bool // there are others of the user, which are spared
}

func (o *orphans) close() {
	for _, one := range o.processes {
		unix.Close(one.pidfd)
	}
}

// end kills all of them, those too that no list shows, and waits until they have ended.
func (o *orphans) end(user uint32, deadline time.Time) error {
	if !o.spared {
		if err := killAll(user); err != nil {
			return fmt.Errorf("end processes of user %d: %w", user, err)
		}
	}
	for _, one := range o.processes {
		if err := one.end(deadline); err != nil {
			return fmt.Errorf("end processes of user %d: %w", user, err)
		}
	}
	return nil
}

// orphansOf lists the processes of each of the users that have no keeper. The caller closes
// them, after an error too.
func orphansOf(users []uint32, isKeeper func(pid int) bool) (map[uint32]*orphans, error) {
	found := map[uint32]*orphans{}
	for _, user := range users {
		found[user] = &orphans{}
	}
	all, err := processes()
	if err != nil {
		return found, err
	}
	for _, pid := range all {
		status, err := statusOf(pid)
		if hasGone(err) {
			continue
		}
		if err != nil {
			return found, err
		}
		for _, user := range slices.Compact(status.users) {
			of := found[user]
			if of == nil {
				continue
			}
			if status.depth > 1 {
				of.spared = true
			} else if err := of.judge(pid, user, isKeeper); err != nil {
				return found, fmt.Errorf("judge process %d of user %d: %w", pid, user, err)
			}
		}
	}
	return found, nil
}

// judge adds a process of the user to the orphans, or to those that are spared.
func (o *orphans) judge(pid int, user uint32, isKeeper func(pid int) bool) error {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("hold it: %w", err)
	}
	// Until the process has ended, its number means no other process. So it is this one
	// that was judged, if it has not ended afterwards.
	judged, err := isOrphan(pid, user, isKeeper)
	ended, failure := hasEnded(pidfd, 0)
	if err = errors.Join(err, failure); err == nil && judged && !ended {
		o.processes = append(o.processes, orphan{pid, pidfd})
		return nil
	}
	unix.Close(pidfd)
	o.spared = o.spared || err == nil && !ended
	return err
}

// isOrphan looks for the nearest ancestor of another user. It is the keeper, or whoever
// inherited the process when the keeper was killed.
func isOrphan(pid int, user uint32, isKeeper func(pid int) bool) (bool, error) {
	for at := pid; at != 0; { // 0: the parent is in another PID namespace
		status, err := statusOf(at)
		switch {
		case err == nil && slices.Contains(status.users, user):
			at = status.parent
		case err == nil:
			return at != pid && !isKeeper(at), nil
		case !hasGone(err):
			return false, err
		case at == pid:
			return false, nil
		default:
			at = pid // an ancestor has ended, and another process has inherited its children
		}
	}
	return true, nil
}
