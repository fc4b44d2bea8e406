// SPDX-License-Identifier: BSD-2-Clause

package policy

// Decision is the answer to "may this flow happen".
type Decision struct {
	Allowed bool
	// Conditions under which an allowed flow stays allowed, sorted, without
	// duplicates. Empty when denied.
	Conditions []Condition
	// Reason is one line for the audit log and for people. On a denial it names
	// the obligation or rule that failed and the nearest literal that did not hold.
	Reason string
	// Derivation is filled when Environment.Explain is set.
	Derivation *Derivation
	// Err is the limit that was exceeded, if that is why the flow was denied.
	Err error
}
