// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// placeLimit is how long a process may take to put one descriptor at its numbers.
const placeLimit = 5 * time.Second

// haveThemPlaced has the process put copies of files at its numbers. What is placed at a
// reserved number has the rights of the number.
func (r *request) haveThemPlaced(files map[int]*os.File) error {
	unreserved := map[*os.File][]int32{}
	for _, number := range slices.Sorted(maps.Keys(files)) {
		if number >= wire.FDReservedEnd {
			unreserved[files[number]] = append(unreserved[files[number]], int32(number))
			continue
		}
		if err := r.havePlaced(files[number], int32(number)); err != nil {
			return err
		}
	}
	for file, numbers := range unreserved {
		for some := range slices.Chunk(numbers, wire.PlaceMax) {
			if err := r.havePlaced(file, some...); err != nil {
				return err
			}
		}
	}
	return nil
}

// havePlaced sends a descriptor to the process that registers, and waits for its answer.
func (r *request) havePlaced(file *os.File, numbers ...int32) error {
	duplicate, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	limited, err := limitedFile(duplicate, file.Name(), plan.RightsAt(int(numbers[0])))
	if err != nil {
		return err
	}
	defer limited.Close()
	if err := sendAnswer(r.reply, r.sequence, wire.Place{Numbers: numbers}, limited); err != nil {
		return fmt.Errorf("place descriptor %d: %w", numbers[0], err)
	}
	return r.awaitPlaced()
}

func (r *request) awaitPlaced() error {
	record := make([]byte, 64)
	for deadline := time.Now().Add(placeLimit); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return errors.New("the process does not put descriptors in their places")
		}
		ready := []unix.PollFd{{Fd: int32(r.reply), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		size, _, err := unix.Recvfrom(r.reply, record, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case size == 0:
			return errGone
		}
		_, message, err := wire.Decode(record[:size], wire.TypeAnswer)
		if err != nil {
			return err
		}
		if status := message.(wire.Answer).Status; status != 0 {
			return fmt.Errorf("the process cannot put a descriptor in its place: %w", unix.Errno(status))
		}
		return nil
	}
}
