// SPDX-License-Identifier: BSD-2-Clause

// Command init is the first process of a bare FreeBSD kernel. It loads shai.ko, runs the
// checks, unloads the module, does all this a second time, and powers the machine off.
//
// It expects two files in the root folder, itself as /init and the module as /shai.ko, and
// the empty folders /dev and /tmp. If they are there, it also runs the checks of the
// module, /lwc_checks, the programs that /programs lists (programs.go), /bin/shai doctor, and
// the compiled Go tests below /tests. Every check is a line. The last line says how many
// passed and failed in all.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

const (
	module = "/shai.ko"
	checks = "/lwc_checks"
	rounds = 2
)

func main() {
	if os.Getpid() != 1 {
		runEverything()
		return
	}
	attachConsole()
	superviseChecks()
	powerOff()
}

func runEverything() {
	result := &tally{}
	describe()
	result.check("mount a memory file system on /tmp", mountMemory("/tmp"))
	result.check("bring up the loopback interface", bringUpLoopback())
	programs, err := readAgenda()
	if err != nil {
		result.check("read "+agendaFile, err)
	}
	runGoTests(result)
	runDoctor(result, false)
	runPrograms(result, barePrefix+" ", programs.bare)
	for round := 1; round <= rounds; round++ {
		fmt.Printf("--- the module is loaded, time %d of %d\n", round, rounds)
		runRound(result, programs.loaded)
		programs.loaded = nil // once is enough: they take minutes
	}
	fmt.Printf("%d passed, %d failed\n", result.passed, result.failed)
}

// tally counts checks and prints their lines.
type tally struct {
	passed, failed int
}

func (t *tally) check(name string, err error) {
	if err != nil {
		t.failed++
		fmt.Printf("NOT OK  %s: %v\n", name, err)
		return
	}
	t.passed++
	fmt.Printf("ok      %s\n", name)
}

// runRound loads the module, runs the checks and the programs, and unloads it. In
// between it counts the module's own allocations, and before and after it our
// descriptors.
func runRound(result *tally, programs []string) {
	descriptors := openDescriptors()
	_, err := loadModule(module)
	result.check("load the module", err)
	if err != nil {
		return
	}
	_, err = loadModule(module)
	result.check("loading it twice is refused", expect(err, syscall.EEXIST))
	runDoctor(result, true)
	runChecks(result)
	runPrograms(result, "", programs)
	live, err := liveAllocations("shai")
	if err == nil && live > vectorsAtMost {
		err = fmt.Errorf("%d allocations are left, at most %d (one for each kind of program) were expected", live,
			vectorsAtMost)
	}
	result.check("no allocations are left", err)
	id, err := findModule("shai.ko") // a check may have loaded it again
	result.check("find the module", err)
	result.check("unload the module", unloadModule(id))
	_, err = syscall.SysctlUint32("shai.version")
	result.check("its variables are gone", expect(err, syscall.ENOENT))
	_, err = liveAllocations("shai")
	result.check("its kind of allocation is gone", expect(err, errNoSuchType))
	err = nil
	if now := openDescriptors(); now != descriptors {
		err = fmt.Errorf("%d are open, %d were", now, descriptors)
	}
	result.check("as many descriptors as before", err)
}

// vectorsAtMost is the number of allocations that the module keeps until it is
// unloaded: a copy of the system call vector of each kind of program that has used it.
const vectorsAtMost = 2

// runChecks runs the program of checks, if there is one, and counts its lines.
func runChecks(result *tally) {
	if _, err := os.Stat(checks); os.IsNotExist(err) {
		return
	}
	command := exec.Command(checks)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		result.check("start "+checks, err)
		return
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		fmt.Println(line)
		switch {
		case strings.HasPrefix(line, "ok "):
			result.passed++
		case strings.HasPrefix(line, "NOT OK "):
			result.failed++
		}
	}
	result.check(checks+" ends with status 0", command.Wait())
}

// expect turns an error that was expected into success.
func expect(got, wanted error) error {
	if got == wanted { //nolint:errorlint // both come straight from a system call
		return nil
	}
	return fmt.Errorf("got %w, expected %v", got, wanted) //nolint:errorlint // one of them is the error
}

func describe() {
	version, _ := syscall.Sysctl("kern.version")
	options, _ := syscall.Sysctl("kern.conftxt")
	processors, _ := syscall.SysctlUint32("hw.ncpu")
	fmt.Printf("kernel: %s\n", strings.ReplaceAll(strings.TrimSpace(version), "\n", "; "))
	fmt.Printf("processors: %d\n", processors)
	for _, name := range []string{"INVARIANTS", "WITNESS", "DIAGNOSTIC"} {
		if strings.Contains(options, name) {
			fmt.Printf("option: %s\n", name)
		}
	}
	_, err := syscall.SysctlUint32("debug.witness.watch")
	fmt.Printf("WITNESS watches: %v\n", err == nil)
}
