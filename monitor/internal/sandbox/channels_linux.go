// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

const (
	// The ends of a channel get commands and answer at these numbers.
	commandNumber = wire.FDPipe
	answerNumber  = wire.FDPipe + 1

	documentName = "document" // the sender may read it, the receiver may write it
	libraryName  = "library"  // both read it: it belongs to their runtime
	libraryPages = 4096
)

// MeasureChannels tries to carry bits from one confined task to another by every channel
// that it knows, in a directory of its own below the given one.
func MeasureChannels(ctx context.Context, directory string, bits int) ([]Channel, error) {
	return measureChannels(ctx, directory, bits, 0)
}

func measureChannels(ctx context.Context, directory string, bits int, waived plan.Protection) ([]Channel, error) {
	place, err := os.MkdirTemp(directory, "channels")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the probes: %w", err)
	}
	defer os.RemoveAll(place)
	if place, err = filepath.EvalSymlinks(place); err != nil {
		return nil, fmt.Errorf("find the directory for the probes: %w", err)
	}
	if err := furnish(place); err != nil {
		return nil, fmt.Errorf("make the files of the probes: %w", err)
	}
	var measured []Channel
	for _, probe := range channelProbes {
		channel := Channel{Name: probe.name, Timed: probe.timed}
		if err := channel.measure(ctx, place, bits, waived); err != nil {
			return nil, fmt.Errorf("channel %s: %w", probe.name, err)
		}
		measured = append(measured, channel)
	}
	return measured, nil
}

// furnish makes the files. They are on disk before the probes look for them in memory.
func furnish(place string) error {
	for path, size := range map[string]int{"data/" + documentName: 1, "shared/" + libraryName: libraryPages * pageSize} {
		path = filepath.Join(place, path)
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			return err
		}
	}
	unix.Sync()
	return nil
}

func (c *Channel) measure(ctx context.Context, place string, bits int, waived plan.Protection) error {
	sender, err := startEnd(ctx, c.Name, place, plan.Read, waived)
	if err != nil {
		return err
	}
	defer sender.stop(ctx)
	receiver, err := startEnd(ctx, c.Name, place, plan.Write, waived)
	if err != nil {
		return err
	}
	defer receiver.stop(ctx)
	return c.transmit(ctx, sender, receiver, bits)
}

// confinedEnd is a task that plays one end.
type confinedEnd struct {
	task              Task
	commands, answers *os.File
}

func startEnd(ctx context.Context, name, place string, rights plan.Rights, waived plan.Protection,
) (*confinedEnd, error) {
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	theirCommands, commands, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirCommands.Close()
	answers, theirAnswers, err := os.Pipe()
	if err != nil {
		commands.Close()
		return nil, err
	}
	defer theirAnswers.Close()
	data, library := filepath.Join(place, "data"), filepath.Join(place, "shared", libraryName)
	e := &confinedEnd{commands: commands, answers: answers}
	e.task, err = New(Options{}).Start(ctx, Spec{
		Spec: plan.Spec{
			Name: "channel probe", Command: []string{self, probeName}, WorkingDirectory: "/",
			Environment:  []string{channelVariable + "=" + name, endVariable + "=" + nameOfEnd(rights), libraryVariable + "=" + library},
			Runtime:      append(librariesOfSystem(), self, filepath.Dir(library)),
			Perimeter:    []plan.Directory{{Path: data, Rights: rights}},
			Capabilities: []plan.Capability{{Prefix: "/data", Path: data}},
			Confined:     true, CPUs: []int{0},
		},
		Descriptors: map[int]*os.File{commandNumber: theirCommands, answerNumber: theirAnswers},
		waived:      waived,
	}, nil)
	if err != nil {
		commands.Close()
		answers.Close()
		return nil, err
	}
	return e, nil
}

// librariesOfSystem are what this program needs if it is linked dynamically.
func librariesOfSystem() []string {
	var present []string
	for _, path := range []string{"/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache"} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			present = append(present, real)
		}
	}
	return present
}

// ask implements [end].
func (e *confinedEnd) ask(_ context.Context, command byte) (uint64, error) {
	var answer [8]byte
	if _, err := e.commands.Write([]byte{command}); err != nil {
		return 0, err
	}
	if err := e.answers.SetReadDeadline(time.Now().Add(decisionTime)); err != nil {
		return 0, err
	}
	if count, err := e.answers.Read(answer[:]); err != nil || count != len(answer) {
		return 0, errors.Join(fmt.Errorf("the probe does not answer (%d bytes)", count), err, e.task.Err())
	}
	return binary.LittleEndian.Uint64(answer[:]), nil
}

func (e *confinedEnd) stop(ctx context.Context) {
	e.commands.Close()
	e.answers.Close()
	_ = e.task.Stop(ctx) // how a probe ends does not matter
}
