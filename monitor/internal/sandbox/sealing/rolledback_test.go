// SPDX-License-Identifier: BSD-2-Clause

package sealing

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"shai.dev/monitor/internal/wire"
)

func TestDescriptors(t *testing.T) {
	var reserved []string
	for number := range wire.FDReservedEnd {
		reserved = append(reserved, strconv.Itoa(number))
	}
	if err := CheckDescriptors(reserved); err != nil {
		t.Error(err)
	}
	for want, names := range map[string][]string{
		"descriptor 160 open":             append(slices.Clone(reserved), "160"),
		"descriptor 1000 open":            append(slices.Clone(reserved[1:]), "1000"),
		"descriptor x open":               append(slices.Clone(reserved[1:]), "x"),
		"159 descriptors in place of 160": reserved[1:],
	} {
		if err := CheckDescriptors(names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestCall: any other register than the roll-back's is found.
func TestCall(t *testing.T) {
	seal := Seal{Stack: 0x7ffd00001ff0}
	const waiting = "288 0x6 0x0 0x0 0x80000 0x0 0x0 0x7ffd00001ff0 0x200000000040"
	if err := seal.CheckCall(waiting + "\n"); err != nil {
		t.Error(err)
	}
	for i := range strings.Fields(waiting) {
		fields := strings.Fields(waiting)
		fields[i] += "1"
		if err := seal.CheckCall(strings.Join(fields, " ")); err == nil {
			t.Errorf("%v", fields)
		}
	}
	if err := seal.CheckCall("running"); err == nil {
		t.Error("a worker that runs")
	}
}
