// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// ofProcess counts the processor time of this process, the only metric of a process that users need
// and that the library does not have on FreeBSD.
func ofProcess() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "process_cpu_seconds_total",
		Help: "Total user and system CPU time spent in seconds.",
	}, func() float64 {
		var use unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
			return 0
		}
		return time.Duration(use.Utime.Nano() + use.Stime.Nano()).Seconds()
	})
}
