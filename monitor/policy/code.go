// SPDX-License-Identifier: BSD-2-Clause

package policy

// The codes of errors in a policy's text, or of a text that cannot be read.
const (
	CodeSyntax           Code = "syntax"
	CodeLimit            Code = "limit"
	CodeUnknownPredicate Code = "unknown-predicate"
	CodeUnknownName      Code = "unknown-name"
	CodeAmbiguous        Code = "ambiguous-name"
	CodeArguments        Code = "arguments"
	CodeUnbound          Code = "unbound-variable"
	CodeUsedOnce         Code = "variable-used-once"
	CodeDeclassify       Code = "declassify"
	CodeInclude          Code = "include"
	CodeMissing          Code = "missing-policy"
	CodeUnsupplied       Code = "unsupplied"
	CodeRelation         Code = "relation"
	CodeUnreadable       Code = "unreadable-file"
)

// The codes of warnings about a policy's text.
const (
	CodeUnusedParameter Code = "unused-parameter"
	CodeNeverEqual      Code = "never-equal"
	CodeNeverHolds      Code = "never-holds"
	CodeNotKept         Code = "read-not-kept"
	CodeDuplicate       Code = "duplicate-clause"
	CodeDiamond         Code = "included-twice"
	CodeTaskName        Code = "task-name"
	CodeUndeclared      Code = "undeclared-relation"
	CodeUnspoken        Code = "undeclared-conduit"
)
