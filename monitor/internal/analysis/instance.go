// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseInstance reads what [Instance.Name] writes.
func ParseInstance(name string) (Instance, error) {
	task, rest, has := strings.Cut(name, "(")
	if !has {
		return Instance{Task: name}, nil
	}
	instance := Instance{Task: task}
	for {
		value, after, err := firstArgument(rest)
		if err != nil {
			return Instance{}, fmt.Errorf("instance %q: %w", name, err)
		}
		instance.Arguments = append(instance.Arguments, value)
		if after == ")" {
			return instance, nil
		}
		var more bool
		if rest, more = strings.CutPrefix(after, ", "); !more {
			return Instance{}, fmt.Errorf("instance %q: expected task(value, value)", name)
		}
	}
}

// firstArgument reads the first value, and returns what follows it.
func firstArgument(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, `,)"(`)
		if end <= 0 {
			return "", "", fmt.Errorf("no value at %q", text)
		}
		return text[:end], text[end:], nil
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", fmt.Errorf("a value in quotes at %q: %w", text, err)
	}
	value, err = strconv.Unquote(quoted)
	return value, text[len(quoted):], err
}
