// SPDX-License-Identifier: BSD-2-Clause

// Package shellword writes words of shell commands, for remedies in messages.
package shellword

import "strings"

// safe are the characters that need no quotes in a shell.
const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:@"

// Quote returns a text as one word of a shell command, in quotes if it needs them.
func Quote(text string) string {
	if text != "" && strings.Trim(text, safe) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
