// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
)

// TestUnmodifiedPrograms runs ordinary programs, which know nothing of Shai, on
// a file that the monitor allows, and on one that it does not.
func TestUnmodifiedPrograms(t *testing.T) {
	directory, classes := t.TempDir(), t.TempDir()
	allowed, secret := filepath.Join(directory, "allowed.txt"), filepath.Join(directory, "secret.txt")
	for path, text := range map[string]string{allowed: "the allowed text", secret: "the secret text"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	programs := map[string]struct {
		command []string
		runtime []string
	}{
		"cat":    {command: []string{"/bin/cat"}},
		"python": {command: []string{"/usr/bin/python3", "-c", "import sys; print(open(sys.argv[1]).read())"}},
		"java": {command: []string{"/usr/bin/java", "-cp", classes, "Show"},
			runtime: []string{"/etc/java-17-openjdk", classes}},
	}
	for name, program := range programs {
		if reason := unavailable(t, name, program.command[0], classes); reason != "" {
			t.Logf("skipped %s: %s", name, reason)
			continue
		}
		for path, want := range map[string]bool{allowed: true, secret: false} {
			t.Run(name+" "+filepath.Base(path), func(t *testing.T) {
				decider := &scripted{open: allowBeneath(allowed)}
				got := run(t, Spec{Spec: plan.Spec{
					Command: append(program.command, path), Runtime: runtimeOf(program.runtime...),
					WorkingDirectory: "/", Confined: true}}, decider)
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(got.output, string(text)) != want || (got.err == nil) != want {
					t.Errorf("want success %v; ended with %v, output:\n%s\nrefused: %v", want, got.err, got.output,
						decider.refused)
				}
			})
		}
	}
}

// TestProgramsThatLockAndClose: programs lock the files that they write, and close what
// they have inherited, also where closing has no effect.
func TestProgramsThatLockAndClose(t *testing.T) {
	const python = "/usr/bin/python3"
	for name, command := range map[string][]string{
		"lock":        {python, "-c", "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('done')"},
		"close all":   {python, "-c", "import os; os.closerange(3, 300); print('done')"},
		"redirection": {"/bin/sh", "-c", "exec 2>&-; echo text > \"$0\"; echo done"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(command[0]); err != nil {
				t.Skip(err)
			}
			directory, err := filepath.EvalSymlinks(t.TempDir())
			check(t, err)
			decider := &scripted{open: allowBeneath(directory)}
			got := run(t, Spec{Spec: plan.Spec{
				Command: append(command, filepath.Join(directory, "file")), Runtime: runtimeOf(),
				Perimeter:        []plan.Directory{{Path: directory, Rights: plan.Read | plan.Write}},
				WorkingDirectory: "/", Confined: true}}, decider)
			if got.err != nil || !strings.Contains(got.output, "done") {
				t.Errorf("ended with %v, output:\n%s\nrefused: %v", got.err, got.output, decider.refused)
			}
		})
	}
}

// TestJavaVersion is HotSpot with all its threads, and nothing allowed but its
// runtime.
func TestJavaVersion(t *testing.T) {
	if _, err := os.Stat("/usr/bin/java"); err != nil {
		t.Skipf("no java: %v", err)
	}
	got := run(t, Spec{Spec: plan.Spec{
		Command: []string{"/usr/bin/java", "-version"}, Runtime: runtimeOf("/etc/java-17-openjdk"),
		WorkingDirectory: "/", Confined: true}}, &scripted{})
	if got.err != nil || !strings.Contains(got.output, "version") {
		t.Errorf("ended with %v, output:\n%s", got.err, got.output)
	}
}

// unavailable says why a program cannot be run; it compiles what java needs.
func unavailable(t *testing.T, name, path, classes string) string {
	if _, err := os.Stat(path); err != nil {
		return err.Error()
	}
	if name != "java" {
		return ""
	}
	source := filepath.Join(classes, "Show.java")
	text := `public class Show { public static void main(String[] a) throws Exception {
		System.out.println(java.nio.file.Files.readString(java.nio.file.Path.of(a[0]))); } }`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("javac", source).CombinedOutput(); err != nil {
		return "javac: " + err.Error() + " " + string(output)
	}
	return ""
}
