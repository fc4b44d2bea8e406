// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Mapping is a part of a process's memory, as /proc/PID/smaps describes it.
type Mapping struct {
	Start, End  uint64
	Permissions string // "rw-p"; "s" at the end: shared
	Offset      uint64 // in the file
	Device      string // of the file, "00:01"
	Inode       uint64 // 0: no file
	Name        string
	Key         string   // protection key; "" where the processor has none
	Flags       []string // "gd"
}

var mappingHead = regexp.MustCompile(
	`^([0-9a-f]+)-([0-9a-f]+) ([r-][w-][x-][ps]) ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) ([0-9]+) *(.*)$`)

const (
	keyField   = "ProtectionKey:"
	flagsField = "VmFlags:"
)

// ParseMappings parses the text of /proc/PID/smaps. Each mapping has its flags.
func ParseMappings(text []byte) ([]Mapping, error) {
	var result []Mapping
	for each := range bytes.Lines(text) {
		line := strings.TrimSuffix(string(each), "\n")
		if list, found := strings.CutPrefix(line, flagsField); found && len(result) > 0 {
			result[len(result)-1].Flags = strings.Fields(list)
			continue
		}
		if key, found := strings.CutPrefix(line, keyField); found && len(result) > 0 {
			result[len(result)-1].Key = strings.TrimSpace(key)
			continue
		}
		if line != "" && line[0] >= 'A' && line[0] <= 'Z' {
			continue // another field
		}
		mapping, err := parseHead(line)
		if err != nil {
			return nil, err
		}
		result = append(result, mapping)
	}
	for i, mapping := range result {
		switch {
		case mapping.Flags == nil:
			return nil, fmt.Errorf("the mapping at %x has no flags", mapping.Start)
		case mapping.Start >= mapping.End || i > 0 && mapping.Start < result[i-1].End:
			return nil, fmt.Errorf("the mapping at %x overlaps, or is empty", mapping.Start)
		}
	}
	return result, nil
}

func parseHead(line string) (Mapping, error) {
	match := mappingHead.FindStringSubmatch(line)
	if match == nil {
		return Mapping{}, fmt.Errorf("line %q of a process's mappings", line)
	}
	result := Mapping{Permissions: match[3], Device: match[5], Name: match[7]}
	for _, number := range []struct {
		text string
		base int
		to   *uint64
	}{
		{match[1], 16, &result.Start},
		{match[2], 16, &result.End},
		{match[4], 16, &result.Offset},
		{match[6], 10, &result.Inode},
	} {
		value, err := strconv.ParseUint(number.text, number.base, 64)
		if err != nil {
			return Mapping{}, fmt.Errorf("line %q of a process's mappings: %w", line, err)
		}
		*number.to = value
	}
	return result, nil
}

func (m Mapping) isWritable() bool { return m.Permissions[1] == 'w' }
func (m Mapping) isShared() bool   { return m.Permissions[3] == 's' }

// has reports whether the mapping has one of the flags.
func (m Mapping) has(flags ...string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool { return slices.Contains(m.Flags, flag) })
}

// String describes the mapping in messages.
func (m Mapping) String() string {
	text := fmt.Sprintf("%x-%x", m.Start, m.End)
	if m.Name != "" {
		text += " (" + m.Name + ")"
	}
	return text
}
