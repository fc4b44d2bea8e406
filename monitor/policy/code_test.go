// SPDX-License-Identifier: BSD-2-Clause

package policy

// codeInfo describes a code for people.
type codeInfo struct {
	Code     Code
	Severity Severity
	About    string // one sentence without its full stop
}

var codes = []codeInfo{
	{CodeSyntax, SeverityError, "the text is no policy: a token or a form that the language does not have"},
	{CodeLimit, SeverityError, "a limit is exceeded"},
	{CodeUnknownPredicate, SeverityError, "no predicate has the name"},
	{CodeUnknownName, SeverityError, "a lower-case name is neither a parameter nor a word that the predicate knows"},
	{CodeAmbiguous, SeverityError, "a name is both a parameter and a word that the predicate knows"},
	{CodeArguments, SeverityError, "a predicate has the wrong number or form of arguments"},
	{CodeUnbound, SeverityError, "no literal gives the variable a value"},
	{CodeUsedOnce, SeverityError, "a variable is used once, so it restricts nothing; one that is meant to begins with `_`"},
	{CodeDeclassify, SeverityError, "a declassify clause has no form that the language knows, or the clauses do not fit together"},
	{CodeInclude, SeverityError, "a policy that is included gets wrong arguments, has errors, or includes itself in turn"},
	{CodeMissing, SeverityError, "a policy that is included does not exist"},
	{CodeUnsupplied, SeverityError, "nobody supplies the value that a predicate asks for"},
	{CodeRelation, SeverityError, "a relation has another number or other types of arguments than a fact source declares"},
	{CodeUnreadable, SeverityError, "a file of a directory that is examined cannot be read"},
	{CodeUnusedParameter, SeverityWarning, "no clause uses the parameter"},
	{CodeNeverEqual, SeverityWarning, "values of different types are compared: they are never equal, and never in an order"},
	{CodeNeverHolds, SeverityWarning, "the clause can never hold"},
	{CodeNotKept, SeverityWarning, "no declassify clause keeps the read rule, so it restricts nobody"},
	{CodeDuplicate, SeverityWarning, "the clause says the same as an earlier one"},
	{CodeDiamond, SeverityWarning, "a policy is included twice with the same arguments"},
	{CodeTaskName, SeverityWarning, "a task's name stands for a principal; tasks are called `task/<name>`"},
	{CodeUndeclared, SeverityWarning, "no fact source declares the relation"},
	{CodeUnspoken, SeverityWarning, "an `each` asks a conduit that no fact source declares: it holds for an empty list"},
}
