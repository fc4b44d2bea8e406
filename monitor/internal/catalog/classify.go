// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"shai.dev/monitor/policy"
)

// plainKey is what the class of a conduit depends on if no fact mentions the conduit and its
// policy cannot tell it from others: the rule that covers it, and what the holes of its path stand for.
type plainKey struct {
	rule  int
	holes string
}

// classify returns the class to which a name belongs now. It makes a new one if
// necessary.
func (d *draft) classify(name string) (uint32, error) {
	rules := d.next.rules
	found, ok, err := rules.cover(d.tx, name)
	if err != nil || !ok {
		return 0, err
	}
	var key plainKey
	isPlain := !found.isChosen && !rules.observed.tells(name, found.rule.Policy, found.holes) &&
		!d.next.facts.IsMentioned(policy.String(name))
	if isPlain {
		key = plainKey{found.at, joined(found.holes)}
		if class, known := d.binder.plain[key]; known {
			return class, nil
		}
	}
	record, err := rules.classRecordOf(name, found, d.next.facts, d.binder.bind)
	if err != nil {
		return 0, err
	}
	class := d.classOf(record)
	if isPlain {
		d.binder.plain[key] = class
	}
	return class, nil
}

// joined writes the values of a rule's holes as one text, with a byte between them that names
// do not contain.
func joined(holes map[string]string) string {
	if len(holes) == 1 {
		for _, value := range holes {
			return value
		}
	}
	var text []byte
	for _, name := range sortedKeys(holes) {
		text = append(append(text, holes[name]...), 0xff)
	}
	return string(text)
}
