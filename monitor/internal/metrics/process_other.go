// SPDX-License-Identifier: BSD-2-Clause

//go:build !freebsd

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// ofProcess returns what the library counts of this process.
func ofProcess() prometheus.Collector {
	return collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
}
