// SPDX-License-Identifier: BSD-2-Clause

// Package policy is Shai's policy language: parsing, compilation to a canonical
// form, evaluation of rules, and the comparison "at least as restrictive", which
// every decision about a flow uses.
//
// The package is pure. It does no I/O, has no clock of its own (the caller
// passes the time in [Environment]) and its results never depend on the order
// in which a map is walked or facts were added: equal inputs give equal outputs.
//
// A program calls it in this order:
//
//	file, err := policy.Parse("friends.pol", text)   // syntax, positions, hints
//	templates, err := file.Compile()                 // checked, not yet bound
//	p, err := templates[0].Bind(map[string]string{"owner": "bob"})
//	conduit := policy.Conduit{Name: "/corpus/friends/bob/1.txt", Kind: policy.FileConduit, Policy: p}
//	decision := policy.Decide(policy.Read, taint, conduit, state, environment)
//
// [Decide] is the only place where a flow is decided; the offline analysis and the
// reference monitor both call it.
//
// A [State] supplies the facts and conduits that policies refer to. The caller
// implements it; [FactBase] and [ConduitTable] hold small states in memory. The
// [Environment] has what is known of the session and of the write. A program that does
// not know all of it calls [Template.CheckBound] first, because evaluation treats a
// missing value as absent.
//
// A [Decision] that allows a flow lists the [Condition] values on which it depends. The
// flow stays allowed as long as they hold.
//
// The comparison is sound (it never claims too much) and incomplete (it may fail to
// see that one rule implies another). docs/policies.md lists what it does not see.
package policy
