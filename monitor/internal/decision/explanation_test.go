// SPDX-License-Identifier: BSD-2-Clause

package decision

import (
	"testing"

	"shai.dev/monitor/policy"
)

// Where texts do not suffice, the command gives values as JSON.
func TestCommandsForFactsOfAnyType(t *testing.T) {
	change := policy.FactChange{Fact: policy.Fact{Conduit: "limits", Relation: "size",
		Arguments: []policy.Value{policy.String("large"), policy.Integer(17)}}}
	if got := commandFor(change); got != `shai facts remove --typed limits size '"large"' 17` {
		t.Error(got)
	}
}
