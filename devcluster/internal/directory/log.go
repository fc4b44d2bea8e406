// SPDX-License-Identifier: BSD-2-Clause

package directory

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// klogFatal begins a line with which the API server takes the process down.
var klogFatal = regexp.MustCompile(`^F\d{4} `)

// LastWords returns the line of the log that says best why the process died: the last
// cause that it gives, or else the last line.
func (d Directory) LastWords() string {
	text, err := os.ReadFile(d.Log())
	if err != nil {
		return fmt.Sprintf("(unreadable: %v)", err)
	}
	words := ""
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		if said, ok := etcdFatal(line); ok {
			words = said
		} else if klogFatal.MatchString(line) || strings.HasPrefix(line, "fatal error: ") {
			words = line
		} else if strings.HasPrefix(line, "panic: ") && words == "" {
			words = line // if etcd logged a cause before, its panic says less
		}
	}
	if words == "" {
		words = lines[len(lines)-1]
	}
	return words
}

// etcdFatal returns the cause from a line of etcd's log with which it ends the process.
func etcdFatal(line string) (string, bool) {
	var entry struct {
		Level, Error string
		Message      string `json:"msg"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Level != "panic" && entry.Level != "fatal" {
		return "", false
	}
	if entry.Error != "" {
		return entry.Message + ": " + entry.Error, true
	}
	return entry.Message, true
}
