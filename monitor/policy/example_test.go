// SPDX-License-Identifier: BSD-2-Clause

package policy_test

import (
	"cmp"
	"fmt"
	"log"

	"shai.dev/monitor/policy"
)

// A worker that acts for bob may read what alice shares with her friends for as long as
// bob is one of them. Carol's may not, and is told why.
func Example() {
	shared, err := policy.CompileText("shared.pol", []byte(`
		policy shared(owner) {
		  read       :- sKeyIs(owner).
		  read       :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).
		  update     :- sKeyIs(owner).
		  declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
		}`))
	if err != nil {
		log.Fatal(err)
	}
	ofAlice, err := shared.Bind(map[string]string{"owner": "alice"})
	if err != nil {
		log.Fatal(err)
	}
	diary := policy.Conduit{Name: "/diary/alice.txt", Kind: policy.FileConduit, Policy: ofAlice}

	facts := policy.NewFactBase()
	if _, err := facts.Add(policy.Fact{Conduit: "friends/alice", Relation: "friend",
		Arguments: []policy.Value{policy.String("bob")}}); err != nil {
		log.Fatal(err)
	}
	state := policy.StateOf(facts, policy.NewConduitTable(diary))

	private, _ := policy.LibraryTemplate("private")
	for _, user := range []string{"bob", "carol"} {
		holds, err := private.Bind(map[string]string{"owner": user})
		if err != nil {
			log.Fatal(err)
		}
		// All output of a worker for this user is for the user alone: that is its taint.
		decision := policy.Decide(policy.Read, holds.Label("worker"), diary, state, policy.Environment{})
		fmt.Println(user, decision.Allowed, cmp.Or(decision.Sentence, decision.Reason))
		for _, condition := range decision.Conditions {
			fmt.Println("  as long as", condition)
		}
	}
	// Output:
	// bob true the taint keeps every obligation of the data
	//   as long as "friends/alice" says friend("bob")
	// carol false only alice, or whoever "friends/alice" lists as friend may read it (shared, owner alice); "friends/alice" does not list carol as friend
}
