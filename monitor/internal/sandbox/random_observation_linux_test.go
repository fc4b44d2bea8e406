// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"shai.dev/monitor/internal/sandbox/sealing"
	"shai.dev/monitor/internal/wire"
)

// observation is a worker at the beginning of a session.
type observation struct {
	inside  []byte   // what the session finds: facts
	outside []string // what the kernel shows of it to others
}

// factSize is the size of a fact: its kind, and its index and value in 64 bits each.
const factSize = 32

// process is the last fact, which is not compared.
func (o observation) process() int {
	return int(binary.LittleEndian.Uint64(o.inside[len(o.inside)-8:]))
}

// isWhole reports whether a session has told all that it finds.
func (o observation) isWhole() bool {
	size := len(o.inside)
	return size > 0 && size%factSize == 0 && bytes.HasPrefix(o.inside[size-factSize:], []byte("process\x00"))
}

// difference describes what differs, "" if nothing does.
func (o observation) difference(other observation) string {
	here, there := o.inside, other.inside
	if len(here) != len(there) {
		return "another number of facts"
	}
	here, there = here[:len(here)-factSize], there[:len(there)-factSize]
	var found []string
	for ; len(here) > 0 && !bytes.Equal(here, there); here, there = here[factSize:], there[factSize:] {
		if !bytes.Equal(here[:factSize], there[:factSize]) {
			found = append(found, describeFact(here)+" in place of "+describeFact(there))
		}
	}
	for i, line := range o.outside {
		if i >= len(other.outside) || line != other.outside[i] {
			found = append(found, line)
			break
		}
	}
	if len(o.outside) < len(other.outside) {
		found = append(found, "less in /proc")
	}
	return strings.Join(found[:min(len(found), 6)], "; ")
}

func describeFact(fact []byte) string {
	kind := bytes.TrimRight(fact[:16], "\x00")
	return fmt.Sprintf("%s %#x: %#x", kind, binary.LittleEndian.Uint64(fact[16:]), binary.LittleEndian.Uint64(fact[24:]))
}

// untold is what differs in /proc between workers, or in one of them between sessions, and why
// it may. A sealed worker cannot read it (TestSealedWorkersSeeNoProc, TestSessionsLeaveNothing).
var untold = map[string]string{
	"status Pid": "another worker's is another", "status Tgid": "another worker's is another",
	"status NStgid": "another worker's is another", "status NSpid": "another worker's is another",
	"status NSpgid": "the program's", "status NSsid": "the program's",
	"status VmPeak": "pages used", "status VmHWM": "pages used", "status VmRSS": "pages used",
	"status RssAnon": "pages used", "status RssFile": "pages used", "status RssShmem": "pages used",
	"status VmPTE": "pages used", "status VmSwap": "pages used",
	"status FDSize":                  "grows, and stays; package plan (selectable) keeps it from being seen",
	"status SigQ":                    "of all processes of its user",
	"status State":                   "whether it waits yet",
	"status voluntary_ctxt_switches": "time", "status nonvoluntary_ctxt_switches": "time",
	"status Cpus_allowed": "the machine's", "status Cpus_allowed_list": "the machine's",
}

// ofSessions are the descriptors that each session gets anew: the socket and the connections.
var ofSessions = []string{strconv.Itoa(wire.FDMonitor), strconv.Itoa(wire.FDConnection),
	strconv.Itoa(wire.FDConnectionChecked)}

// observeOutside reads what /proc shows of a worker that waits. Left out is what changes with
// time (stat, sched, schedstat, io, statm, pagemap, clear_refs, numa_maps, wchan) or is the
// same for the program's other workers (exe, root, cwd, ns, mountinfo, attr, autogroup).
func observeOutside(process int) ([]string, error) {
	var result []string
	for _, name := range []string{"status", "limits", "comm", "cmdline", "environ", "auxv", "timers", "oom_score_adj",
		"coredump_filter", "personality", "timerslack_ns", "cgroup", "loginuid", "stat"} {
		text, err := os.ReadFile(procFile(process, name))
		if err != nil {
			return nil, err
		}
		result = append(result, toldLines(name, string(text))...)
	}
	mappings, err := mappingsOfProcess(process)
	if err != nil {
		return nil, err
	}
	for _, m := range mappings {
		result = append(result, fmt.Sprint("mapping ", m, m.Permissions, m.Device, m.Inode, m.Offset, m.Flags))
	}
	return appendDescriptors(result, process)
}

// toldLines returns the lines that are compared.
func toldLines(file, text string) []string {
	if file == "stat" {
		// priority, nice, threads, timer; vsize; exit signal; real-time priority, policy
		fields := strings.Fields(text[strings.LastIndexByte(text, ')'):])
		return []string{fmt.Sprint("stat ", fields[16:20], fields[21], fields[36], fields[38:40])}
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = file + " " + line
		if name, _, found := strings.Cut(line, ":"); !found || untold[name] == "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func mappingsOfProcess(process int) ([]sealing.Mapping, error) {
	smaps, err := os.ReadFile(procFile(process, "smaps"))
	if err != nil {
		return nil, err
	}
	return sealing.ParseMappings(smaps)
}

func appendDescriptors(lines []string, process int) ([]string, error) {
	entries, err := os.ReadDir(procFile(process, "fd"))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		line := "descriptor " + entry.Name()
		if !slices.Contains(ofSessions, entry.Name()) {
			link, err := os.Readlink(procFile(process, "fd/"+entry.Name()))
			if err != nil {
				return nil, err
			}
			about, err := os.ReadFile(procFile(process, "fdinfo/"+entry.Name()))
			if err != nil {
				return nil, err
			}
			line += " " + link + " " + string(about)
		}
		lines = append(lines, line)
	}
	return lines, nil
}
