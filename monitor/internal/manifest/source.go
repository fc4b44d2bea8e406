// SPDX-License-Identifier: BSD-2-Clause

package manifest

// Source is the text of one manifest file: YAML, possibly with several documents, or
// JSON.
type Source struct {
	Name string `json:"name"` // the file's name as the user wrote it; used in errors only
	Text string `json:"text"`
}
