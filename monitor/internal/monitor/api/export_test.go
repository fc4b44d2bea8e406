// SPDX-License-Identifier: BSD-2-Clause

package api

// Patterns returns the patterns of the table of requests.
func (h *Handler) Patterns() []string {
	patterns := []string{"GET /metrics"}
	for pattern := range h.requests() {
		patterns = append(patterns, pattern)
	}
	return patterns
}
