// SPDX-License-Identifier: BSD-2-Clause

package main

// engine answers the questions of one scenario. prepare does what can be done before a
// question is asked; what it returns is measured.
type engine interface {
	prepare(q question) (ask func() (bool, error), err error)
}

// builder makes an engine for a scenario.
type builder struct {
	name  string // in the results
	title string
	build func(*scenario) (engine, error)
}

// builders are the engines, Shai first.
var builders = []builder{
	{"shai", "Shai", newShai},
	{"opa", "OPA", newOPA},
	{"cedar", "Cedar", newCedar},
	{"shai_decision", "Shai, whole decision", newShaiDecision},
}

// others are the engines that Shai is compared with.
var others = []string{"opa", "cedar"}
