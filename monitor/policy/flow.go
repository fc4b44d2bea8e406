// SPDX-License-Identifier: BSD-2-Clause

package policy

// flow lowers the body of a declassify clause to the obligations that it puts on derived
// data. For true there are none.
func (c *compiler) flow(body []*literalSyntax) []loweredObligation {
	var obligations []loweredObligation
	for _, item := range body {
		switch {
		case item.form == groupForm:
			obligations = append(obligations, c.flow(item.inner)...)
		case item.form == untilForm:
			exit := c.exit(item.inner)
			restricted := c.flow(item.left)
			if len(restricted) == 0 && len(c.mistakes) == 0 {
				c.fail(item.rangeOf(), CodeDeclassify, "isAsRestrictive(read, this.read)", "",
					"nothing stands before `until`")
			}
			for _, obligation := range restricted {
				obligation.exits = append(obligation.exits, exit)
				obligations = append(obligations, obligation)
			}
		default:
			if obligation, ok := restriction(item); ok {
				obligations = append(obligations, obligation)
			} else {
				c.fail(item.rangeOf(), CodeDeclassify, "`isAsRestrictive(read, this.read)`, perhaps with `until`, or `true`",
					"a condition under which the restriction ends stands after `until`",
					"a declassify rule cannot begin like this")
			}
		}
	}
	return obligations
}

// restriction recognises isAsRestrictive(read, this.read) and (read, this.update).
func restriction(item *literalSyntax) (loweredObligation, bool) {
	if item.form != predicateForm || item.name != signatures[opAtLeast].name || len(item.arguments) != 2 {
		return loweredObligation{}, false
	}
	downstream, own := item.arguments[0], item.arguments[1]
	ok := downstream.form == referenceTerm && downstream.name == "" && downstream.rule == readRule &&
		own.form == referenceTerm && own.name == "this" && own.rule != declassifyRule
	return loweredObligation{rule: own.rule}, ok
}

// exit lowers the part after until: a condition, and the restrictions that remain once it
// holds.
func (c *compiler) exit(body []*literalSyntax) loweredExit {
	condition, behind := c.splitExit(body)
	exit := loweredExit{behind: behind}
	if len(body) > 0 {
		exit.condition = c.clause(condition, Range{body[0].position, body[len(body)-1].end})
		exit.closed = exit.condition.closed()
	}
	return exit
}

func (c *compiler) splitExit(body []*literalSyntax) (condition []*literalSyntax, behind []loweredObligation) {
	for _, item := range body {
		switch item.form {
		case groupForm:
			innerCondition, innerBehind := c.splitExit(item.inner)
			condition, behind = append(condition, innerCondition...), append(behind, innerBehind...)
		case untilForm:
			leftCondition, restricted := c.splitExit(item.left)
			if len(restricted) == 0 {
				c.fail(item.rangeOf(), CodeDeclassify, "isAsRestrictive(read, this.read)", "",
					"nothing that could end stands before the inner `until`")
			}
			exit := c.exit(item.inner)
			for _, obligation := range restricted {
				obligation.exits = append(obligation.exits, exit)
				behind = append(behind, obligation)
			}
			condition = append(condition, leftCondition...)
		default:
			if obligation, ok := restriction(item); ok {
				behind = append(behind, obligation)
			} else {
				condition = append(condition, item)
			}
		}
	}
	return condition, behind
}
