// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

const (
	doctor   = "/bin/shai"
	jailName = "doctor"
)

// machineReport is the output of `shai doctor --output json`.
type machineReport struct {
	Backend     string `json:"backend"`
	Enforcement string `json:"enforcement"`
	Features    []struct {
		Name    string `json:"name"`
		Present bool   `json:"present"`
	} `json:"features"`
}

// runDoctor checks the output of `shai doctor` on this machine, outside of jails, in a jail
// that may use the module and in one that may not, if the program is there.
func runDoctor(result *tally, loaded bool) {
	if _, err := os.Stat(doctor); os.IsNotExist(err) {
		return
	}
	result.check(fmt.Sprintf("shai doctor, the module loaded: %v", loaded), checkDoctor(loaded, 0))
	result.check(fmt.Sprintf("shai doctor in a jail, the module loaded: %v", loaded), checkJailed(false, "persist"))
	if loaded {
		result.check("shai doctor in a jail with allow.shai", checkJailed(true, "persist", "allow.shai"))
	}
}

func checkJailed(usable bool, switches ...string) error {
	jail, err := createJail(jailName, switches...)
	if err != nil {
		return err
	}
	return errors.Join(checkDoctor(usable, jail), removeJail(jail))
}

// checkDoctor runs the doctor where the module can be used or not, in a jail if a jail's
// number is given. Capsicum alone, or a missing jail, makes enforcement partial.
func checkDoctor(usable bool, jail int) error {
	command := exec.Command(doctor, "doctor", "--output", "json")
	command.SysProcAttr = &syscall.SysProcAttr{Jail: jail}
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	var report machineReport
	if err := json.Unmarshal(output, &report); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	backend, enforcement := "capsicum", "partial"
	if usable {
		backend = "capsicum+shai.ko"
	}
	if usable && jail != 0 {
		enforcement = "full"
	}
	if report.Backend != backend || report.Enforcement != enforcement {
		err = fmt.Errorf("enforcement %s by %s, expected %s by %s", report.Enforcement, report.Backend, enforcement,
			backend)
	}
	return errors.Join(err, checkFeatures(report, usable, jail != 0))
}

func checkFeatures(report machineReport, usable, jailed bool) error {
	present := map[string]bool{}
	for _, feature := range report.Features {
		present[feature.Name] = feature.Present
	}
	var err error
	for name, expected := range map[string]bool{"shai.ko": usable, "Capsicum": true, "PROC_TRAPCAP": true,
		"jail": jailed} {
		if said, ok := present[name]; !ok || said != expected {
			err = errors.Join(err, fmt.Errorf("of %s it does not say that present is %v", name, expected))
		}
	}
	return err
}
