// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/policy"
)

// tuple decodes the values of a fact. The policy language distinguishes "1" from 1, so a
// number that is meant as a text needs quotes, as everywhere in YAML.
func (d *decoder) tuple(node *yaml.Node, path string) policy.Tuple {
	if node.Kind != yaml.SequenceNode {
		d.fail(node, path, "write it as [\"alice\", 17]", "expected a list of values, got %s", describe(node))
		return policy.Tuple{}
	}
	if len(node.Content) > policy.MaxArguments {
		d.fail(node, path, "", "the tuple has %d values; at most %d are allowed", len(node.Content),
			policy.MaxArguments)
		return policy.Tuple{}
	}
	values := make([]policy.Value, len(node.Content))
	for i, item := range node.Content {
		value, ok := factValue(item)
		if !ok {
			d.fail(item, fmt.Sprintf("%s[%d]", path, i), "put a text in quotes",
				"expected a text, a whole number of 64 bits or a time, got %s", describe(item))
			continue
		}
		values[i] = value
	}
	return policy.NewTuple(values...)
}

// factValue reads one value. {time: …} is the form of a time in JSON, which has none of
// its own.
func factValue(node *yaml.Node) (policy.Value, bool) {
	switch {
	case node.Kind == yaml.AliasNode:
		return factValue(node.Alias)
	case node.Kind == yaml.MappingNode && len(node.Content) == 2 && node.Content[0].Value == "time":
		instant, err := time.Parse(time.RFC3339Nano, node.Content[1].Value)
		return policy.Time(instant), err == nil
	case node.Kind != yaml.ScalarNode:
		return policy.Value{}, false
	case node.Tag == "!!str":
		return policy.String(node.Value), len(node.Value) <= policy.MaxString
	case node.Tag == "!!int":
		number, err := strconv.ParseInt(node.Value, 10, 64)
		return policy.Integer(number), err == nil
	case node.Tag == "!!timestamp":
		instant, err := time.Parse(time.RFC3339Nano, node.Value)
		return policy.Time(instant), err == nil
	}
	return policy.Value{}, false
}
