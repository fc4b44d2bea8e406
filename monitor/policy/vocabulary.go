// SPDX-License-Identifier: BSD-2-Clause

package policy

import "strings"

// Predicate describes a predicate for people.
type Predicate struct {
	Name  string
	Form  string   // "concat(X, Y, Z)"
	About string   // when it holds, one sentence
	Words []string // that its argument may be without quotes
	// By says who supplies its value; "" if nobody does, and then Missing says why.
	By      string
	Missing string
}

// vocabulary has the forms of predicates, and when each holds. A test requires that each is
// listed.
var vocabulary = [operations]struct{ form, about string }{
	opAdd:         {"add(X, Y, Z)", "X is Y plus Z. Of X and one of the others, the third is found."},
	opSub:         {"sub(X, Y, Z)", "X is Y minus Z. Of X and one of the others, the third is found."},
	opMul:         {"mul(X, Y, Z)", "X is Y times Z."},
	opDiv:         {"div(X, Y, Z)", "X is Y divided by Z, without the rest."},
	opRem:         {"rem(X, Y, Z)", "X is what remains when Y is divided by Z."},
	opConcat:      {"concat(X, Y, Z)", "X is Y followed by Z; any one of the three is found from the others."},
	opType:        {"vType(X, string)", "X is a string, an integer or a time."},
	opEq:          {"eq(X, Y)", "X and Y are equal. Values of different types never are."},
	opNeq:         {"neq(X, Y)", "X and Y are not equal."},
	opLt:          {"lt(X, Y)", "X is less than Y."},
	opLe:          {"le(X, Y)", "X is less than Y, or equal."},
	opGt:          {"gt(X, Y)", "X is greater than Y."},
	opGe:          {"ge(X, Y)", "X is greater than Y, or equal."},
	opKey:         {"sKeyIs(K)", "The session is authenticated as principal K. A task without a user is \"task/NAME\"."},
	opIP:          {"sIpIs(IP)", "The connected party has this address."},
	opPrefix:      {"ipPrefix(IP, \"10.0.0.0/8\")", "An address lies in a prefix."},
	opRegion:      {"sRegionIs(R)", "The session's region is R. Without a region it does not hold."},
	opTime:        {"timeIs(T)", "T is the time now."},
	opName:        {"cNameIs(N)", "N is the name of the conduit that is written, or by which data leave."},
	opID:          {"cIdIs(I)", "I is the number of the conduit that is written, or by which data leave."},
	opExists:      {"cIdExists(I)", "There is a conduit with number I."},
	opKind:        {"cKindIs(file)", "The conduit that is written, or by which data leave, is of this kind."},
	opLength:      {"cCurrLenIs(L)", "The conduit has L bytes before the write."},
	opNewLength:   {"cNewLenIs(L)", "The conduit has L bytes after the write."},
	opInternal:    {"cIsInternal()", "The conduit connects tasks of the pipeline."},
	opHasPolicy:   {"hasPol(I, P)", "P is the policy of conduit number I."},
	opContentType: {"cTypeIs(T)", "The conduit's content has the declared shape T."},
	opAtLeast:     {"isAsRestrictive(P, Q)", "Rule P is at least as restrictive as rule Q."},
	opSays:        {"C says t(X)", "Conduit C holds the tuple."},
	opWillsay:     {"C willsay t(X)", "The write that is being made puts the tuple there."},
	opEach:        {"each in C says t(X) { condition }", "The condition holds for every such tuple."},
	opEachWillsay: {"each in C willsay t(X) { condition }",
		"The write consists of nothing but such tuples, and the condition holds for each."},
}

// Predicates lists all predicates, those about tuples last.
func Predicates() []Predicate {
	var all []Predicate
	for op := opInvalid + 1; op < operations; op++ {
		s := supplies[op]
		one := Predicate{Name: signatures[op].name, Form: vocabulary[op].form, About: vocabulary[op].about,
			Words: signatures[op].words, Missing: s.missing}
		var by []string
		for rule, whom := range s.by {
			if whom != "" && (len(by) == 0 || by[len(by)-1] != whom) {
				by = append(by, whom)
			}
			if whom == "" && one.Missing != "" && s.by != [3]string{} {
				one.Missing = "in the " + ruleNames[rule] + " rule: " + s.missing
			}
		}
		one.By = strings.Join(by, "; ")
		all = append(all, one)
	}
	return all
}

// Keywords lists the words that have a meaning of their own, each with what it means.
func Keywords() map[string]string {
	return map[string]string{
		"policy":     "Begins a policy: policy name(parameters) { clauses }.",
		"includes":   "The clauses of these policies belong to this one, too.",
		"read":       "A clause of the read rule: who may read. As a term: the read rule of the conduit that is written.",
		"update":     "A clause of the update rule: who may write.",
		"declassify": "Which restrictions follow derived data, and the exits by which they end.",
		"until":      "Before it stand restrictions, after it the exit that ends them.",
		"each":       "each in C says t(X) { condition }: the condition holds for every such tuple.",
		"in":         "each in C says t(X) { condition }: the condition holds for every such tuple.",
		"says":       "C says t(X): conduit C holds the tuple.",
		"willsay":    "C willsay t(X): the write that is being made puts the tuple there.",
		"this":       "The name of the policy's own conduit.",
		"true":       "Always holds.",
	}
}
