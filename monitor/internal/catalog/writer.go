// SPDX-License-Identifier: BSD-2-Clause

package catalog

import "shai.dev/monitor/policy"

// Enter puts a change in force that is durable: it calls inForce. Until then everybody sees the
// state before the change, so that enter can first compute, without a hurry, what has to change
// together with the state. The change can no longer be refused: it is in force, at the latest, when
// enter returns. An error of inForce wraps ErrView. Nothing else changes the catalog meanwhile.
type Enter func(change *Change, inForce func() error) error

// Writer changes facts. Each change is durable first, and in force then.
type Writer struct {
	catalog *Catalog
	enter   Enter
}

// Writer returns a writer whose changes enter puts in force. Its methods return the error of
// enter together with the Change.
func (c *Catalog) Writer(enter Enter) Writer { return Writer{c, enter} }

func (w Writer) commit(operation string, work func(*draft) error) (*Change, error) {
	return w.catalog.commitThen(operation, work, w.enter)
}

// AtOnce returns a writer whose changes are in force as soon as they are durable. An error that
// wraps ErrView comes with the Change, which is in force.
func (c *Catalog) AtOnce() Writer {
	return c.Writer(func(_ *Change, inForce func() error) error { return inForce() })
}

// ChangeFacts removes, then adds, in one durable step: no reader sees only a part of it.
// A fact in both lists is present afterwards. A fact to remove that has no offset is removed
// from every offset of its conduit; one that loses its last offset is gone. The Change says
// of a fact without an offset that gets one that the first was removed and the second added.
// Facts to add that are there already, and facts to remove that are not, are no error and are
// left out of the Change.
func (w Writer) ChangeFacts(remove, add []policy.Fact) (*Change, error) {
	return w.commit("change facts", func(d *draft) error {
		if err := d.next.rules.checkElsewhere(remove, add); err != nil {
			return err
		}
		return d.facts(remove, add)
	})
}
