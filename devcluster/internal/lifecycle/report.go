// SPDX-License-Identifier: BSD-2-Clause

package lifecycle

import (
	"encoding/json"
	"errors"
	"os"
)

// A report is a message from the devcluster's process to the process that started it, one
// per line, over a pipe. Exactly one field is set.
type report struct {
	Step    string    `json:"step,omitempty"`    // the current step
	Ready   *Endpoint `json:"ready,omitempty"`   // it serves at this endpoint
	Held    bool      `json:"held,omitempty"`    // another devcluster has the directory
	Failure string    `json:"failure,omitempty"` // why it ends
}

// reportDescriptor is the pipe's number in the devcluster's process: the first after the
// standard ones.
const reportDescriptor = 3

// A reporter is the writing end of the pipe, in the devcluster's process.
type reporter struct{ file *os.File }

func newReporter() (*reporter, error) {
	file := os.NewFile(reportDescriptor, "report")
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil, errors.New("only devcluster up starts devcluster serve: run devcluster up")
	}
	return &reporter{file}, nil
}

func (r *reporter) send(what report) {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err) // a report is plain strings, numbers and booleans
	}
	_, _ = r.file.Write(append(text, '\n')) // the reader may have ended
}
