// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// end is one of the two tasks of a channel. ask sends it a command and returns its answer.
type end interface {
	ask(ctx context.Context, command byte) (value uint64, err error)
}

// Commands to the ends of a channel.
const (
	commandPrepare = 'p' // receiver: make ready for the next bit
	commandZero    = '0' // sender
	commandOne     = '1'
	commandReceive = 'r' // receiver: answers with what it sees
)

// bitsOf returns as many ones as zeros, in random order.
func bitsOf(count int) []bool {
	bits := make([]bool, count)
	for i := range bits {
		bits[i] = i%2 == 1
	}
	rand.Shuffle(count, func(i, j int) { //nolint:gosec // nobody guesses: the ends do not see it
		bits[i], bits[j] = bits[j], bits[i]
	})
	return bits
}

// transmit sends known bits, from which the receiver learns what to expect, then as many
// unknown ones as count says.
func (c *Channel) transmit(ctx context.Context, sender, receiver end, count int) error {
	const known = 64
	carry := func(bit bool) (uint64, error) {
		command := byte(commandZero)
		if bit {
			command = commandOne
		}
		if _, err := receiver.ask(ctx, commandPrepare); err != nil {
			return 0, fmt.Errorf("prepare the receiver: %w", err)
		}
		if _, err := sender.ask(ctx, command); err != nil {
			return 0, fmt.Errorf("send a bit: %w", err)
		}
		return receiver.ask(ctx, commandReceive)
	}
	var seen [2][]uint64
	for _, bit := range bitsOf(known) {
		value, err := carry(bit)
		if err != nil {
			return err
		}
		seen[index(bit)] = append(seen[index(bit)], value)
	}
	zero, one := median(seen[0]), median(seen[1])
	middle, rising := (zero+one)/2, one > zero
	begun := time.Now()
	for _, bit := range bitsOf(count) {
		value, err := carry(bit)
		if err != nil {
			return err
		}
		if got := (float64(value) > middle) == rising; got == bit {
			c.Right++
		}
		c.Sent++
	}
	c.BitsPerSecond = float64(count) / time.Since(begun).Seconds()
	return nil
}

func median(values []uint64) float64 {
	slices.Sort(values)
	return float64(values[len(values)/2])
}

func index(bit bool) int {
	if bit {
		return 1
	}
	return 0
}
