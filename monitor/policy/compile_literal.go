// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"slices"
)

func (c *compiler) predicate(item *literalSyntax, level *scope) literal {
	op := predicates[item.name]
	if op == opInvalid {
		hint := "if it is a fact, say whose: `\"conduit\" says " + item.name + "(…)`"
		if closest := nearest(item.name, predicateNames); closest != "" {
			hint = "did you mean " + closest + "?"
		}
		c.fail(item.named(), CodeUnknownPredicate, "", hint, "unknown predicate `%s`", item.name)
		return literal{}
	}
	known := signatures[op]
	if len(item.arguments) != known.arity {
		c.fail(item.rangeOf(), CodeArguments, fmt.Sprintf("%d", known.arity), "", "%s has %d arguments", item.name,
			len(item.arguments))
		return literal{}
	}
	result := literal{op: op, position: item.position, end: item.end}
	if op == opAtLeast {
		result.references = &[2]reference{c.reference(item.arguments[0], level), c.reference(item.arguments[1], level)}
		if (result.references[0].rule == declassifyRule) != (result.references[1].rule == declassifyRule) {
			c.fail(item.rangeOf(), CodeArguments, "two declassify rules, or two of read and update", "",
				"%s compares rules of different kinds", item.name)
		}
		return result
	}
	for i, argument := range item.arguments {
		if argument.form == nameTerm && known.words != nil && i == known.word && c.isWord(argument, known) {
			result.arguments = append(result.arguments, c.word(argument, known))
			continue
		}
		result.arguments = append(result.arguments, c.argument(op, argument, level))
	}
	if op == opPrefix && result.arguments[1].kind == StringValue {
		if _, ok := parsePrefix(result.arguments[1]); !ok {
			c.fail(item.arguments[1].rangeOf(), CodeArguments, `an address prefix such as "10.0.0.0/8"`, "",
				"%s is no address prefix", result.arguments[1])
		}
	}
	return result
}

// argument is term, with a hint for a task's name as a principal.
func (c *compiler) argument(op operation, argument termSyntax, level *scope) Value {
	unknown := argument.form == nameTerm && !slices.Contains(c.declaration.Parameters, argument.name)
	if op != opKey || !unknown || nearest(argument.name, c.declaration.Parameters) != "" {
		return c.term(argument, level)
	}
	c.fail(argument.rangeOf(), CodeUnknownName, "a declared parameter",
		fmt.Sprintf("a principal stands in double quotes, %q; a task without a user is \"task/%s\"", argument.name,
			argument.name),
		"unknown name `%s`", argument.name)
	return Value{}
}

// isWord reports whether a name is no parameter. One that is both is a mistake, since who reads cKindIs(output)
// takes it for the kind. Parameters had such names before these were words: elsewhere, they may.
func (c *compiler) isWord(argument termSyntax, known signature) bool {
	if !slices.Contains(c.declaration.Parameters, argument.name) {
		return true
	}
	if slices.Contains(known.words, argument.name) {
		c.fail(argument.rangeOf(), CodeAmbiguous, "one meaning",
			fmt.Sprintf("rename the parameter, or write %q for the word", argument.name),
			"`%s` is a parameter of the policy, and a word that %s knows", argument.name, known.name)
	}
	return false
}

func (c *compiler) word(argument termSyntax, known signature) Value {
	if !slices.Contains(known.words, argument.name) {
		hint := ""
		if closest := nearest(argument.name, known.words); closest != "" {
			hint = "did you mean " + closest + "?"
		}
		c.fail(argument.rangeOf(), CodeUnknownName, fmt.Sprintf("one of %v", known.words), hint, "%s does not know `%s`",
			known.name, argument.name)
	}
	return String(argument.name)
}

func (c *compiler) reference(argument termSyntax, level *scope) reference {
	if argument.form != referenceTerm {
		c.fail(argument.rangeOf(), CodeArguments, "a rule such as `read`, `this.read` or `P.read`", "", "%s is no rule",
			argument)
		return reference{}
	}
	result := reference{rule: argument.rule}
	switch argument.name {
	case "":
	case "this":
		result.base = Value{kind: kindThis}
	default:
		number, _ := level.find(argument.name)
		c.mention(number, argument)
		result.base = Value{kind: kindVariable, number: number}
	}
	return result
}

// mention counts a use of a variable.
func (c *compiler) mention(number int64, where termSyntax) {
	if c.uses[number].times++; c.uses[number].times == 1 {
		c.uses[number].first = where.rangeOf()
	}
}

func (c *compiler) says(item *literalSyntax, level *scope) literal {
	result := literal{op: opSays, position: item.position, end: item.end,
		content: &content{relation: item.name, conduit: c.conduit(item.conduit, level)}}
	if item.willsay {
		result.op = opWillsay
	}
	if item.offset != nil {
		result.content.positioned = true
		result.content.offset = c.term(*item.offset, level)
	}
	for _, argument := range item.arguments {
		result.arguments = append(result.arguments, c.term(argument, level))
	}
	return result
}

func (c *compiler) conduit(term termSyntax, level *scope) Value {
	value := c.term(term, level)
	if value.kind == IntegerValue || value.kind == TimeValue || value == String("") {
		c.fail(term.rangeOf(), CodeArguments, "a conduit's name", "", "%s cannot say anything", term)
	}
	return value
}

func (c *compiler) each(item *literalSyntax, level *scope) literal {
	result := literal{op: opEach, position: item.position, end: item.end,
		content: &content{relation: item.name, conduit: c.conduit(item.conduit, level), positioned: item.offset != nil}}
	if item.willsay {
		result.op = opEachWillsay
	}
	if item.rangeEnd != nil {
		result.content.offset, result.content.rangeEnd = c.term(*item.offset, level), c.term(*item.rangeEnd, level)
	}
	inner := &scope{parent: level, names: make(map[string]int64)}
	result.content.localFrom = len(c.names)
	if item.offset != nil && item.rangeEnd == nil {
		c.declareTerm(inner, *item.offset)
		result.content.offset = c.term(*item.offset, inner)
	}
	for _, argument := range item.arguments {
		c.declareTerm(inner, argument)
		result.arguments = append(result.arguments, c.term(argument, inner))
	}
	result.content.patternTo = len(c.names)
	result.content.condition = c.body(item.inner, c.scope(inner, item.inner))
	result.content.localTo = len(c.names)
	return result
}

func (c *compiler) term(term termSyntax, level *scope) Value {
	switch term.form {
	case constantTerm:
		return term.value
	case anonymousTerm:
		return c.variable("")
	case thisTerm:
		return Value{kind: kindThis}
	case variableTerm:
		number, found := level.find(term.name)
		if !found {
			number = c.variable(term.name).number
		}
		c.mention(number, term)
		return Value{kind: kindVariable, number: number}
	case nameTerm:
		if i := slices.Index(c.declaration.Parameters, term.name); i >= 0 {
			return Value{kind: kindParameter, number: int64(i)}
		}
		hint := "strings stand in double quotes, variables begin with a capital"
		if closest := nearest(term.name, c.declaration.Parameters); closest != "" {
			hint = "did you mean " + closest + "?"
		}
		c.fail(term.rangeOf(), CodeUnknownName, "a declared parameter", hint, "unknown name `%s`", term.name)
	case referenceTerm:
		c.fail(term.rangeOf(), CodeArguments, "a value", "rules are compared with isAsRestrictive only",
			"the rule %s is no value", term)
	}
	return Value{}
}
