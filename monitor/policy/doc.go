// SPDX-License-Identifier: BSD-2-Clause

// Package policy is Shai's policy language: parsing, compilation to a canonical
// form, evaluation of rules, and the comparison "at least as restrictive" on
// which every decision about a flow rests.
//
// The package is pure. It does no I/O, has no clock of its own (the caller
// passes the time in [Environment]) and its results never depend on the order
// in which a map is walked or facts were added: equal inputs give equal outputs.
//
// The way through it:
//
//	file, err := policy.Parse("friends.pol", text)   // syntax, positions, hints
//	templates, err := file.Compile()                 // checked, not yet bound
//	p, err := templates[0].Bind(map[string]string{"owner": "bob"})
//	conduit := policy.Conduit{Name: "/corpus/friends/bob/1.txt", Kind: policy.FileConduit, Policy: p}
//	decision := policy.Decide(policy.Read, taint, conduit, state, environment)
//
// [Decide] is the only place where a flow is decided; the offline analysis and the
// reference monitor both call it.
// The facts and conduits that policies speak of are a [State], which the caller
// implements; [FactBase] and [ConduitTable] hold small ones in memory. What is known of
// a session or a write stands in the [Environment]. A program that does not know all of
// it asks [Template.CheckSupplied] first: evaluation takes what is missing for absent.
//
// A decision that holds comes with the [Condition] values it depends on; as long
// as they hold, so does the decision.
//
// Comparison is sound (it never claims too much) and incomplete (it may fail to
// see that one rule implies another). docs/policies.md lists what it does not see.
package policy
