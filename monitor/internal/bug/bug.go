// SPDX-License-Identifier: BSD-2-Clause

// Package bug ends the program when the program itself is wrong. Nothing that a user
// writes, sends or has on disk may lead there: such mistakes get an error.
package bug

import "fmt"

// Report is what [Found] panics with.
type Report string

func (r Report) Error() string { return "bug in shai: " + string(r) + "; please report it" }

// Found panics: the program is in a state that no input may lead to.
func Found(format string, arguments ...any) { panic(Report(fmt.Sprintf(format, arguments...))) }
