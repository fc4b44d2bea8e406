// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"shai.dev/monitor/policy"
)

// onDisk reports whether a fact is in the database, whatever the state says.
func onDisk(t *testing.T, c *Catalog, fact policy.Fact) (found bool) {
	t.Helper()
	if err := c.database.View(func(tx *bbolt.Tx) error {
		facts, err := loadFacts(tx.Bucket(bucketFacts))
		found = err == nil && has(facts, fact)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func has(facts policy.Facts, fact policy.Fact) bool {
	return facts.Has(policy.Pattern{Conduit: fact.Conduit, Relation: fact.Relation, Arguments: fact.Arguments})
}

// A change is on disk before it is in force, and in force when the call returns, whatever who
// enters it does: it can no longer be refused.
func TestAChangeIsDurableBeforeItIsInForce(t *testing.T) {
	one := fact("friends/bob", "friend", "alice")
	refused := errors.New("refused")
	for name, enter := range map[string]func(inForce func() error) error{
		"enters it":            func(inForce func() error) error { return inForce() },
		"enters it twice":      func(inForce func() error) error { return errors.Join(inForce(), inForce()) },
		"does not enter it":    func(func() error) error { return refused },
		"fails and enters it":  func(inForce func() error) error { return errors.Join(inForce(), refused) },
		"panics":               func(func() error) error { panic("a fault") },
		"panics when in force": func(inForce func() error) error { _ = inForce(); panic("a fault") },
	} {
		t.Run(name, func(t *testing.T) {
			c := opened(t)
			entered := false
			writer := c.Writer(func(change *Change, inForce func() error) error {
				entered = true
				if !onDisk(t, c, one) || has(c.State(), one) || !has(change.After, one) || c.State() != change.Before {
					t.Errorf("on disk: %v, in force: %v, in the next state: %v", onDisk(t, c, one), has(c.State(), one),
						has(change.After, one))
				}
				return enter(inForce)
			})
			func() {
				defer func() { _ = recover() }()
				_, _ = writer.ChangeFacts(nil, []policy.Fact{one})
			}()
			if !entered || !has(c.State(), one) {
				t.Errorf("entered: %v, in force: %v", entered, has(c.State(), one))
			}
			if _, err := c.AtOnce().ChangeFacts([]policy.Fact{one}, nil); err != nil || has(c.State(), one) {
				t.Errorf("the next change: in force: %v (%v)", !has(c.State(), one), err)
			}
		})
	}
	c := opened(t)
	_, err := c.Writer(func(*Change, func() error) error {
		t.Error("a change that was refused is entered")
		return nil
	}).ChangeFacts(nil, []policy.Fact{{Relation: "without a conduit"}})
	if err == nil {
		t.Error("a wrong fact was not refused")
	}
}
