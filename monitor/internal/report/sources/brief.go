// SPDX-License-Identifier: BSD-2-Clause

package sources

import "strings"

// An error says so much of what is wrong with a text: the beginning, and the end, where the advice is.
const headOfError, tailOfError = 600, 300

// brief is an error about what a text says. What it quotes may be as long as the text.
type brief struct{ error }

func (b brief) Error() string {
	said := b.error.Error()
	if len(said) <= headOfError+tailOfError {
		return said
	}
	head, tail := said[:headOfError], said[len(said)-tailOfError:]
	return strings.ToValidUTF8(head, "") + " … " + strings.ToValidUTF8(tail, "")
}

func (b brief) Unwrap() error { return b.error }
