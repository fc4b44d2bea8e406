// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// executedPaths returns the real paths of [Executed], with a runtime that contains every
// program.
func executedPaths(program string) (paths []string, err error) {
	files, err := Executed(program, []string{"/"})
	for _, file := range files {
		paths = append(paths, file.Path)
	}
	return paths, err
}

// TestExecuted: the files that the kernel reads to execute a program are those that it
// names, at each step by their real paths.
func TestExecuted(t *testing.T) {
	directory, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	shell, err := filepath.EvalSymlinks("/bin/sh")
	check(t, err)
	ofShell, err := executedPaths("/bin/sh")
	if err != nil || len(ofShell) != 2 || ofShell[0] != shell || !strings.Contains(ofShell[1], "ld-") {
		t.Fatalf("/bin/sh executes %q, %v", ofShell, err)
	}
	path := func(name string) string { return filepath.Join(directory, name) }
	for name, text := range map[string]string{
		"script": "#! /bin/sh -e\nexit 0\n", "unended": "#!\t/bin/sh", "nested": "#!" + path("script") + "\n",
		"loop": "#!" + path("loop") + "\n", "relative": "#!sh\n", "nobody": "#!\n/bin/sh", "text": "exit 0\n",
		"empty": "", "absent": "#!" + path("nonexistent") + "\n",
	} {
		check(t, os.WriteFile(path(name), []byte(text), 0o755))
	}
	check(t, os.Symlink("script", path("link")))
	check(t, unix.Mkfifo(path("pipe"), 0o755))
	for name, want := range map[string][]string{
		"script": {path("script")}, "link": {path("script")}, "unended": {path("unended")},
		"nested": {path("nested"), path("script")},
	} {
		got, err := executedPaths(path(name))
		if err != nil || !slices.Equal(got, slices.Concat(want, ofShell)) {
			t.Errorf("%s executes %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"loop", "relative", "nobody", "text", "empty", "absent", "nonexistent", "pipe", "."} {
		got, err := executedPaths(path(name))
		if err == nil || !strings.Contains(err.Error(), "execute "+path(name)) {
			t.Errorf("%s executes %q, %v", name, got, err)
		}
	}
}

// TestExecutedInRuntime: nothing beside the runtime is read, neither a program nor an
// interpreter, and no error tells where a link leads.
func TestExecutedInRuntime(t *testing.T) {
	directory, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	path := func(names ...string) string { return filepath.Join(append([]string{directory}, names...)...) }
	for _, name := range []string{"runtime", "runtime and more", "secret"} {
		check(t, os.Mkdir(path(name), 0o755))
	}
	files := map[string]string{
		path("runtime", "program"): program(t, ""), path("runtime", "script"): "#!" + path("runtime", "program"),
		path("runtime", "script of others"): "#!" + path("secret", "words"),
		path("runtime", "words"):            "#!/confidential",
		path("runtime", "linked by others"): program(t, path("secret", "words")),
		path("runtime and more", "program"): program(t, ""), path("secret", "words"): "#!confidential",
	}
	for name, text := range files {
		check(t, os.WriteFile(name, []byte(text), 0o755))
	}
	check(t, os.Symlink(path("secret"), path("runtime", "away")))
	for _, name := range []string{"program", "script"} {
		if _, err := Executed(path("runtime", name), []string{path("runtime")}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		path("secret", "words"), path("runtime and more", "program"), path("runtime", "away", "words"),
		path("runtime", "script of others"), path("runtime", "linked by others"), path("runtime", "words"),
	} {
		got, err := Executed(name, []string{path("runtime")})
		absent := name == path("runtime", "words") && errors.Is(err, unix.ENOENT)
		if !absent && !errors.Is(err, errBeside) || strings.Contains(fmt.Sprint(err), "confidential") {
			t.Errorf("%s executes %q, %v", name, got, err)
		}
	}
	dangling := path("runtime", "away", "nothing")
	if _, err := Executed(dangling, []string{path("runtime")}); !errors.Is(err, unix.ENOENT) ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("the error tells where the link leads: %v", err)
	}
}

// TestLinkerOfTheLinker: of a run-time linker the kernel reads nothing but the linker
// itself, which may name another as libc.so.6 does. A script's interpreter has its linker
// read.
func TestLinkerOfTheLinker(t *testing.T) {
	directory, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	path := func(name string) string { return filepath.Join(directory, name) }
	for name, text := range map[string]string{
		"last": program(t, ""), "linker": program(t, path("last")), "program": program(t, path("linker")),
		"script": "#!" + path("program") + "\n", "1": "#!" + path("script"), "2": "#!" + path("1"),
		"longest": "#!" + path("2"), "longer": "#!" + path("longest"), "too long": "#!" + path("longer"),
		"by script": program(t, path("script")), "text": "text", "by text": program(t, path("text")),
		"by nobody": program(t, path("nonexistent")),
	} {
		check(t, os.WriteFile(path(name), []byte(text), 0o755))
	}
	for name, want := range map[string][]string{
		"last": {"last"}, "linker": {"linker", "last"}, "program": {"program", "linker"},
		"script": {"script", "program", "linker"},
		"longer": {"longer", "longest", "2", "1", "script", "program", "linker"},
	} {
		for i := range want {
			want[i] = path(want[i])
		}
		if got, err := executedPaths(path(name)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s executes %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"too long", "by script", "by text", "by nobody"} {
		if got, err := executedPaths(path(name)); err == nil {
			t.Errorf("%s executes %q", name, got)
		}
	}
}

// program returns an ELF file that names a run-time linker, or none.
func program(t *testing.T, linker string) string {
	t.Helper()
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB),
			byte(elf.EV_CURRENT)},
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56,
	}
	text := &bytes.Buffer{}
	if linker == "" {
		check(t, binary.Write(text, binary.LittleEndian, header))
		return text.String()
	}
	header.Phnum = 1
	size := uint64(len(linker)) + 1
	check(t, binary.Write(text, binary.LittleEndian, header))
	check(t, binary.Write(text, binary.LittleEndian,
		elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 64 + 56, Filesz: size, Memsz: size}))
	return text.String() + linker + "\x00"
}
