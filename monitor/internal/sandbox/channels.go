// SPDX-License-Identifier: BSD-2-Clause

package sandbox

// Channel is the result of an attempt to carry bits from a task that may read a file to a
// task that may only write it. The receiver that guesses is right half of the time.
type Channel struct {
	Name  string `json:"name"`
	Timed bool   `json:"timed"` // measures how long something takes; the sandbox does not prevent this
	Sent  int    `json:"sent"`  // bits, half of them 1
	Right int    `json:"right"` // bits that the receiver got
	// BitsPerSecond is how fast they were sent, one at a time.
	BitsPerSecond float64 `json:"bitsPerSecond"`
}

// Closed reports whether the receiver did no better than guessing: 50 ± 2 %.
func (c Channel) Closed() bool {
	share := float64(c.Right) / float64(c.Sent)
	return share >= 0.48 && share <= 0.52
}
