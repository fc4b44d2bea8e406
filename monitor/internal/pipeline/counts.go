// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import "time"

// nativeOpensPerSecond is the highest credible rate at which a worker opens documents
// natively, on average over its session. It limits what a worker with false counts can
// add to the pipeline's counts to the share of a busy worker.
const nativeOpensPerSecond = 10_000

// nativeOpensAtOnce are credible in a session of any length: its time is that of another clock.
const nativeOpensAtOnce = 64

// credibleOpens limits a worker's own count of the documents that it has opened natively
// to what is possible in the time that its session lasted.
func credibleOpens(said uint64, lasted time.Duration) uint64 {
	possible := max(0, lasted) / (time.Second / nativeOpensPerSecond)
	return min(said, nativeOpensAtOnce+uint64(possible))
}
