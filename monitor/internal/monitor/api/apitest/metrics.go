// SPDX-License-Identifier: BSD-2-Clause

package apitest

import (
	"io"
	"net/http"
)

// metrics never change: everything that is counted is at rest.
const metrics = `# TYPE shai_native_opens_total counter
shai_native_opens_total{pipeline="syse"} 1200
# TYPE shai_analysis_accesses gauge
shai_analysis_accesses{pipeline="syse",outcome="granted"} 396
shai_analysis_accesses{pipeline="syse",outcome="refused"} 4
# TYPE shai_workers gauge
shai_workers{pipeline="syse",task="worker",kind="rolled_back"} 24
`

// Metrics answers with what a monitor at rest has counted.
func Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, metrics) })
}
