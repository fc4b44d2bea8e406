// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// near returns a hint that names the candidate that word most likely means, or "" if none
// is similar.
func near(word string, candidates []string) string {
	best, distance := "", len(word)/3+2
	for _, candidate := range candidates {
		if d := editDistance(strings.ToLower(word), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// didYouMean returns the hint of near, or a list of the candidates if there are few.
func didYouMean(word string, candidates []string) string {
	if hint := near(word, candidates); hint != "" || len(candidates) == 0 || len(candidates) > 16 {
		return hint
	}
	return "known: " + strings.Join(slices.Sorted(slices.Values(candidates)), ", ")
}

// editDistance counts the insertions, removals, replacements and swaps of neighbours that
// turn a into b. Words of more than 64 bytes are never similar.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
