// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What tasks have left outside of the directory, such as in /tmp, belongs to their users.
func TestADataDirectoryThatIsMadeAnewGetsOtherNumbers(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	makeMarked(t, data)
	r := registry(t, 900000, 900003) // no process of the machine has them
	first := must(t, r, data, "a")
	if again := must(t, r, data, "a"); again != first {
		t.Errorf("the number was %d and is %d", first, again)
	}
	moved := data + "-moved"
	if err := os.Rename(data, moved); err != nil {
		t.Fatal(err)
	}
	makeMarked(t, data)
	if second := must(t, r, data, "a"); second == first {
		t.Errorf("the pipeline of another directory has number %d, too", second)
	}
}

func TestDirectoriesHaveMarksOfTheirOwn(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	mark := makeMarked(t, data)
	if again, err := markOf(data); again != mark || err != nil {
		t.Errorf("the mark was %q and is %q: %v", mark, again, err)
	}
	if copied := makeMarked(t, data+"-copy"); copied == mark {
		t.Errorf("two directories have the mark %q", mark)
	}
}

func TestADirectoryOfAnEarlierVersionKeepsItsNumbers(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	makeMarked(t, data)
	r := registry(t, 900000, 900003)
	if err := os.MkdirAll(filepath.Dir(r.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.write([]entry{{ID: 900002, Data: data, Pipeline: "a"}}); err != nil {
		t.Fatal(err)
	}
	if id := must(t, r, data, "a"); id != 900002 {
		t.Errorf("the number was 900002 and is %d", id)
	}
	if text, err := os.ReadFile(r.Path); err != nil || !strings.Contains(string(text), `"mark"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// Such as by a monitor that lacks the capability, for a while.
func TestAMarkThatCannotBeReadIsNotForgotten(t *testing.T) {
	marked := assignment{Range: Range{900000, 900003}, data: "/d", taken: []entry{{900001, "/d", "mark", "a", ""}}}
	id, err := marked.number("a", "")
	if err != nil || id != 900001 || marked.taken[0].Mark != "mark" || marked.isChanged {
		t.Errorf("%d, %v: %+v", id, err, marked)
	}
}

// To note the mark of an earlier version's directory is a change, and frees nothing.
func TestNumbersThatAreGoneAreFreedBesideANewMark(t *testing.T) {
	a := assignment{Range: Range{900000, 900001}, data: "/d", mark: "mark",
		taken: []entry{{900000, "/d", "", "a", ""}, {900001, "/no/such/directory", "", "b", ""}}}
	first, err := a.number("a", "")
	second, err2 := a.number("c", "")
	if err != nil || err2 != nil || first != 900000 || second != 900001 {
		t.Errorf("%d, %d, %v, %v", first, second, err, err2)
	}
}

func TestADataDirectoryTakesAPartOfTheNumbersOnly(t *testing.T) {
	r, greedy, other := registry(t, 900000, 900999), t.TempDir(), t.TempDir()
	tasks := strings.Split(strings.Repeat("x", 99), "")
	for i := range tasks {
		tasks[i] += string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	if _, err := r.Of(greedy, "many", tasks...); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Of(greedy, "more"); err == nil || !strings.Contains(err.Error(), "the other monitors of this machine need some") {
		t.Errorf("a directory gets more than its part: %v", err)
	}
	must(t, r, greedy, "many")
	must(t, r, other, "a")
}

// makeMarked makes a directory and returns its mark, on a file system that takes marks.
func makeMarked(t *testing.T, path string) string {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	mark, err := markOf(path)
	if err != nil {
		t.Fatal(err)
	}
	if mark == "" {
		t.Skip("this user or the temporary directory's file system has no extended attributes of the superuser")
	}
	return mark
}
