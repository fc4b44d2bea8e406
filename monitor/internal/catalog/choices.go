// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// Choice lets a principal give one conduit of a rule another policy than the rule's.
type Choice struct {
	By     string    `json:"by"` // the principal; may contain {name}, as the arguments of a policy
	Policy Reference `json:"policy"`
}

// Item is what can be chosen for one conduit.
type Item struct {
	Set     string
	Number  uint32
	Policy  Reference // in force
	By      string    // who has chosen it; "" if it is the rule's
	Choices []Choice  // those that the bundle permits, for this conduit
	Nonce   string    // stands for this conduit as it is: a choice is signed with it, and changes it
	Earlier string    // the nonce of the period before, which is good, too
}

// chosen is a principal's choice on disk. It is in force while the bundle permits it.
type chosen struct {
	By     string    `json:"by"`
	Policy Reference `json:"policy"`
	Times  uint64    `json:"times"` // how often something was chosen for the conduit
}

// ErrNotPermitted says that no rule lets the principal choose the policy.
var ErrNotPermitted = errors.New("the pipeline does not let this principal choose this policy")

// String returns the reference as policies are shown: `private(owner: "alice")`.
func (r Reference) String() string {
	var arguments []string
	for _, parameter := range sortedKeys(r.Arguments) {
		arguments = append(arguments, fmt.Sprintf("%s: %q", parameter, r.Arguments[parameter]))
	}
	return r.Policy + "(" + strings.Join(arguments, ", ") + ")"
}

// choicesFor returns the choices of a rule for a conduit whose path has given the holes values.
func (r Rule) choicesFor(holes map[string]string) []Choice {
	var filled []Choice
	for _, one := range r.Choices {
		filled = append(filled, Choice{By: pattern.Substitute(one.By, holes),
			Policy: Reference{one.Policy.Policy, pattern.Fill(one.Policy.Arguments, holes)}})
	}
	return filled
}

// Choosing returns the bundle in which each path that has a choice of this number, from 0, has it in the place
// of its policy, as if it had been made for all of the path's conduits. ok is false if no path has one.
func (b Bundle) Choosing(number int) (chosen Bundle, ok bool) {
	chosen = b.clone()
	for i := range chosen.Rules {
		rule := &chosen.Rules[i]
		if number < len(rule.Choices) {
			rule.Policy, ok = rule.Choices[number].Policy, true
		}
		rule.Choices = nil
	}
	return chosen, ok
}

// permits reports whether choices contain one. There is no other way to give a conduit a policy of
// its own.
func permits(choices []Choice, by string, reference Reference) bool {
	for _, one := range choices {
		if one.By == by && one.Policy.key() == reference.key() {
			return true
		}
	}
	return false
}

// Check decides on a principal's choice for the item. It fails with ErrOutdated if the nonce is not
// the item's, and with ErrNotPermitted.
func (i Item) Check(by string, reference Reference, withNonce string) error {
	switch {
	case !i.isOffered(withNonce):
		return ErrOutdated
	case !permits(i.Choices, by, reference):
		return ErrNotPermitted
	}
	return nil
}

// checkChoices refuses choices that could not be made.
func (r *ruleset) checkChoices(p pattern.Pattern, rule Rule) error {
	for _, one := range rule.Choices {
		if !rule.Ingress || rule.Kind != policy.FileConduit || rule.Directory {
			return fmt.Errorf("path %s: only single files of ingress conduits have choices", rule.Path)
		}
		template := r.templates[one.Policy.Policy]
		if template == nil {
			return fmt.Errorf("path %s: policy %q of a choice does not exist", rule.Path, one.Policy.Policy)
		}
		if _, err := template.Bind(one.Policy.Arguments); err != nil {
			return fmt.Errorf("path %s: choice: %w", rule.Path, err)
		}
		references := map[string]string{"by": one.By}
		if err := errors.Join(p.CheckReferences(one.Policy.Arguments), p.CheckReferences(references)); err != nil {
			return err
		}
	}
	return nil
}

// storedChoice returns what was chosen for a name.
func storedChoice(tx *bbolt.Tx, name string) (stored chosen, err error) {
	if text := tx.Bucket(bucketChoices).Get([]byte(name)); text != nil {
		if err := json.Unmarshal(text, &stored); err != nil {
			return chosen{}, fmt.Errorf("read the choice for %s: %w", name, err)
		}
	}
	return stored, nil
}

// covered is a conduit's name under the rules.
type covered struct {
	at       int // of the rule
	rule     *Rule
	holes    map[string]string // what the path gives them
	choice   chosen            // what was chosen, if isChosen
	isChosen bool              // and the rule permits it
}

// cover finds the rule for a name, and what was chosen for it; ok is false without a rule.
func (r *ruleset) cover(tx *bbolt.Tx, name string) (c covered, ok bool, err error) {
	c.at, c.holes = pattern.MostSpecific(r.patterns, name)
	if c.at < 0 {
		return covered{}, false, nil
	}
	c.rule = &r.bundle.Rules[c.at]
	if len(c.rule.Choices) == 0 {
		return c, true, nil
	}
	c.choice, err = storedChoice(tx, name)
	c.isChosen = err == nil && permits(c.rule.choicesFor(c.holes), c.choice.By, c.choice.Policy)
	return c, true, err
}

// reference returns the policy.
func (c covered) reference() Reference {
	if c.isChosen {
		return c.choice.Policy
	}
	return Reference{c.rule.Policy.Policy, pattern.Fill(c.rule.Policy.Arguments, c.holes)}
}

// Item returns what can be chosen for a registered conduit; ok is false if there is none of this
// name with a policy.
func (c *Catalog) Item(name string) (item Item, ok bool) {
	err := c.database.View(func(tx *bbolt.Tx) (err error) {
		item, ok, err = c.state.Load().item(tx, name)
		return err
	})
	return item, ok && err == nil
}

func (s *State) item(tx *bbolt.Tx, name string) (item Item, ok bool, err error) {
	key := tx.Bucket(bucketNames).Get([]byte(name))
	if len(key) != 4 {
		return Item{}, false, nil
	}
	c, ok, err := s.rules.cover(tx, name)
	if !ok || err != nil {
		return Item{}, false, err
	}
	item = Item{Set: c.rule.Set, Number: binary.BigEndian.Uint32(key), Policy: c.reference(),
		Choices: c.rule.choicesFor(c.holes)}
	if c.isChosen {
		item.By = c.choice.By
	}
	var content []byte
	if view := s.catalog.view; view != nil {
		content, err = view.contentOf(name)
	}
	item.Nonce, item.Earlier = s.catalog.nonces(item.Number, name, content, c.choice.Times)
	return item, err == nil, err
}

// Choose gives a conduit the policy that a principal has chosen, in one durable step, and moves it
// to another class. The choice is the name's: it outlives new content and bundles, and is in force
// while the bundle permits it. The caller has verified that the principal has signed it with this
// nonce, which is of no use afterwards. It fails with ErrOutdated if the nonce is not that of the
// conduit, and with ErrNotPermitted.
func (c *Catalog) Choose(name, by string, reference Reference, withNonce string) (*Change, error) {
	return c.commit("choose a policy", func(d *draft) error {
		item, ok, err := d.next.item(d.tx, name)
		if err != nil {
			return err
		}
		if !ok {
			return ErrOutdated
		}
		if err := item.Check(by, reference, withNonce); err != nil {
			return err
		}
		stored, err := storedChoice(d.tx, name)
		if err != nil {
			return err
		}
		text, err := json.Marshal(chosen{By: by, Policy: reference, Times: stored.Times + 1})
		if err != nil {
			return err
		}
		if err := d.ledger.bucket(bucketChoices).Put([]byte(name), text); err != nil {
			return err
		}
		return d.reclassify([]string{name})
	})
}
