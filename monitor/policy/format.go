// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"bytes"
	"strings"
)

// Format returns the file's canonical text. Parsing it gives an equal File, except for
// positions. Comments inside a clause move in front of it.
func (f *File) Format() []byte {
	var out bytes.Buffer
	for i, declaration := range f.Policies {
		if i > 0 {
			out.WriteByte('\n')
		}
		declaration.format(&out)
	}
	writeComments(&out, "", f.trailing)
	return out.Bytes()
}

func writeComments(out *bytes.Buffer, indent string, comments []string) {
	for _, comment := range comments {
		out.WriteString(strings.TrimRight(indent+"# "+comment, " ") + "\n")
	}
}

func (d *Declaration) format(out *bytes.Buffer) {
	writeComments(out, "", d.comments)
	indent := ""
	if d.Name != "" {
		indent = "  "
		out.WriteString("policy " + d.Name)
		if len(d.Parameters) > 0 {
			out.WriteString(d.signature())
		}
		d.formatIncludes(out)
		out.WriteString(" {\n")
	}
	width := 0
	for _, clause := range d.clauses {
		width = max(width, len(clause.head.String()))
	}
	for _, clause := range d.clauses {
		writeComments(out, indent, clause.comments)
		head := clause.head.String()
		prefix := indent + head + strings.Repeat(" ", width-len(head)) + " :- "
		out.WriteString(prefix + formatBody(clause.body, strings.Repeat(" ", len(prefix))) + ".\n")
	}
	if d.Name != "" {
		writeComments(out, indent, d.trailing)
		out.WriteString("}\n")
	}
}

func (d *Declaration) formatIncludes(out *bytes.Buffer) {
	for i, include := range d.Includes {
		out.WriteString([]string{" includes ", ", "}[min(i, 1)] + include.String())
	}
}

// String writes the policy with its arguments: friends(owner).
func (i Include) String() string {
	if len(i.arguments) == 0 {
		return i.Name
	}
	return (&literalSyntax{name: i.Name, arguments: i.arguments}).call()
}

// lineWidth is the column at which a body is broken after a comma.
const lineWidth = 110

// formatBody writes a conjunction; continuation lines start with indent.
func formatBody(body []*literalSyntax, indent string) string {
	if len(body) == 0 {
		return "true"
	}
	if body[0].form == untilForm && indent != "" && len(indent)+len(body[0].String()) > lineWidth {
		return formatBody(body[0].left, indent) + "\n" + indent + "until " + formatBody(body[0].inner, indent+"      ")
	}
	var out strings.Builder
	column := len(indent)
	for i, literal := range body {
		text := literal.String()
		if i > 0 {
			out.WriteString(",")
			if column+len(text)+2 > lineWidth && indent != "" {
				out.WriteString("\n" + indent)
				column = len(indent)
			} else {
				out.WriteString(" ")
				column += 2
			}
		}
		out.WriteString(text)
		column += len(text)
	}
	return out.String()
}

// String writes the literal on one line.
func (l *literalSyntax) String() string {
	switch l.form {
	case groupForm:
		return "(" + formatBody(l.inner, "") + ")"
	case untilForm:
		return formatBody(l.left, "") + " until " + formatBody(l.inner, "")
	case saysForm:
		return l.place() + l.call()
	case eachForm:
		return "each in " + l.place() + l.call() + " { " + formatBody(l.inner, "") + " }"
	default:
		return l.call()
	}
}

func (l *literalSyntax) place() string {
	text := l.conduit.String()
	if l.offset != nil {
		text += "@" + l.offset.String()
	}
	if l.rangeEnd != nil {
		text += ".." + l.rangeEnd.String()
	}
	if l.willsay {
		return text + " willsay "
	}
	return text + " says "
}

func (l *literalSyntax) call() string {
	arguments := make([]string, len(l.arguments))
	for i, argument := range l.arguments {
		arguments[i] = argument.String()
	}
	return l.name + "(" + strings.Join(arguments, ", ") + ")"
}

// String writes the term.
func (t termSyntax) String() string {
	switch t.form {
	case constantTerm:
		return t.value.String()
	case referenceTerm:
		if t.name != "" {
			return t.name + "." + t.rule.String()
		}
		return t.rule.String()
	default:
		return t.name
	}
}
