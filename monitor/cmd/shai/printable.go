// SPDX-License-Identifier: BSD-2-Clause

package main

import "shai.dev/monitor/internal/shape"

// printable escapes what has no shape of its own. Tasks choose the names of files, and users
// write facts. A name must neither control the terminal of the person who reads it nor look like
// another name or another line.
func printable(text string) string { return shape.Visible(text) }

// printableLines is printable for a text of several lines, whose line breaks stay.
func printableLines(text string) string { return shape.Lines(text) }
