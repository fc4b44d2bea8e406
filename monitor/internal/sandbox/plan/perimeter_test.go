// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTaskPerimeter(t *testing.T) {
	spec := Spec{Runtime: []string{"/usr"}, Perimeter: []Directory{{"/view", Read}, {"/index", Read | Write | Move},
		{"/summary", Write | Move}, {"/catalogue", List | Names | Move}, {"/box", Names | Move},
		{"/apart", Read | Write}}}
	read := uint64(accessReadFile | accessReadDir)
	names := uint64(accessRemove | accessRemoveDir | accessMakeFile | accessMakeDir)
	write := names | accessWriteFile | accessTruncate
	grants := []Grant{{"/usr", accessExecute}, {"/usr/bin/python3.11", accessReadFile}, {"/view", read},
		{"/index", read | write | accessRefer}, {"/summary", write},
		{"/catalogue", accessReadDir | names | accessRefer}, {"/box", names},
		{"/apart", read | write}}
	executed := []ExecutedFile{{"/usr/bin/python3", "/usr/bin/python3.11"}}
	tests := map[int]Perimeter{
		4: {Files: 1<<15 - 1, Network: accessNetwork, Grants: grants},
		5: {Files: 1<<16 - 1, Network: accessNetwork, Grants: grants},
		6: {Files: 1<<16 - 1, Network: accessNetwork, Scope: scopeAbstract | scopeSignal, Grants: grants},
		9: {Files: 1<<16 - 1, Network: accessNetwork, Scope: scopeAbstract | scopeSignal, Grants: grants},
	}
	for abi, want := range tests {
		got, err := taskPerimeter(Input{Spec: spec, Machine: Machine{Landlock: abi, Executed: executed}})
		if difference := cmp.Diff(want, got); difference != "" || err != nil {
			t.Errorf("ABI %d: %v %s", abi, err, difference)
		}
	}
	for abi := range NeededLandlock {
		_, err := taskPerimeter(Input{Spec: spec, Machine: Machine{Landlock: abi}})
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "Linux 6.7") {
			t.Errorf("ABI %d: %v", abi, err)
		}
	}
}

// TestGrantedIsHandled: a grant of a right that is not handled is an error in
// the kernel, and a right that is neither would not be enforced at all.
func TestGrantedIsHandled(t *testing.T) {
	for rights := range (Read | Write | Execute | List | Names | Move) + 1 {
		for abi := NeededLandlock; abi < 10; abi++ {
			if access := accessOf(rights); access&^handledFiles(abi) != 0 {
				t.Errorf("ABI %d, rights %d: access %#x", abi, rights, access)
			}
		}
	}
}

// TestTruncatingIsWriting: a domain that does not handle the right to truncate refuses the same
// writes, because nobody has one of the rights without the other.
func TestTruncatingIsWriting(t *testing.T) {
	for rights := range (Read | Write | Execute | List | Names | Move) + 1 {
		if access := accessOf(rights); access&accessTruncate == 0 != (access&accessWriteFile == 0) {
			t.Errorf("rights %d: access %#x", rights, access)
		}
	}
}

// TestPerimeterWithOwnRoot: a task with a root of its own reads what is in it and what it
// holds; everything else is refused as in other tasks.
func TestPerimeterWithOwnRoot(t *testing.T) {
	in := Input{Spec: Spec{Serving: true, Runtime: []string{"/usr"},
		Perimeter: []Directory{{"/view", Read}, {"/box", Write}}},
		Machine: Machine{Landlock: 4, Mounts: true, Executed: []ExecutedFile{{"/usr/bin/front", "/usr/bin/front"}}}}
	box := uint64(accessWriteFile | accessRemove | accessRemoveDir | accessMakeFile | accessMakeDir)
	want := Perimeter{Files: (1<<15 - 1) &^ (accessReadFile | accessReadDir | accessTruncate), Network: accessNetwork,
		Grants: []Grant{{"/usr", accessExecute}, {"/usr/bin/front", accessExecute}, {"/box", box}}}
	got, err := taskPerimeter(in)
	if difference := cmp.Diff(want, got); difference != "" || err != nil {
		t.Errorf("%v %s", err, difference)
	}
	in.Machine.Mounts = false
	if got, err = taskPerimeter(in); err != nil || got.Files != 1<<15-1 {
		t.Errorf("without mounts: %v %#x", err, got.Files)
	}
}
