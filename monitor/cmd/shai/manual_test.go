// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	manualPage = "../../man/shai.8"
	// The commands' part of the page stands between these lines.
	manualBegins = ".\\\" Commands, written by go test ./cmd/shai -run TestManual -rewrite:\n"
	manualEnds   = ".\\\" End of the commands.\n"
)

// TestManual checks that the manual page has every command and every flag, with what
// the help says of them.
func TestManual(t *testing.T) {
	text, err := os.ReadFile(manualPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), manualBegins)
	_, after, ok2 := strings.Cut(rest, manualEnds)
	if !ok1 || !ok2 {
		t.Fatalf("%s: expected the lines %q and %q", manualPage, manualBegins, manualEnds)
	}
	root := (&program{environment: func(string) string { return "" }}).root()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	page := before + manualBegins + manualOf(root) + manualEnds + after
	if *rewrite {
		if err := os.WriteFile(manualPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), page); diff != "" {
		t.Errorf("%s (run with -rewrite to accept):\n%s", manualPage, diff)
	}
}

// manualOf renders the flags of all commands, then each command, in mdoc(7).
func manualOf(root *cobra.Command) string {
	var out strings.Builder
	out.WriteString(".Ss Flags of all commands\n")
	manualFlags(&out, root.PersistentFlags())
	for _, command := range root.Commands() {
		manualCommand(&out, command)
	}
	return out.String()
}

func manualCommand(out *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(out, ".Ss %s\n", command.CommandPath())
	if command.Runnable() {
		fmt.Fprintf(out, ".Dl %s\n.Pp\n", mdocText(command.UseLine()))
	}
	if command.Name() == "completion" || command.Name() == "help" { // of cobra
		fmt.Fprintf(out, "%s.\n", mdocText(command.Short))
		return
	}
	long := command.Long
	if long == "" {
		long = command.Short + "."
	}
	for n, paragraph := range strings.Split(long, "\n\n") {
		if n > 0 {
			out.WriteString(".Pp\n")
		}
		out.WriteString(mdocSentences(strings.ReplaceAll(paragraph, "\n", " ")))
	}
	manualFlags(out, command.LocalNonPersistentFlags())
	if command.Example != "" {
		fmt.Fprintf(out, ".Pp\nExamples:\n.Bd -literal -offset indent\n%s\n.Ed\n", mdocExample(command.Example))
	}
	for _, sub := range command.Commands() {
		manualCommand(out, sub)
	}
}

func manualFlags(out *strings.Builder, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	out.WriteString(".Bl -tag -width Ds\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		argument, usage := pflag.UnquoteUsage(flag)
		out.WriteString(".It ")
		if flag.Shorthand != "" {
			fmt.Fprintf(out, "Fl %s , ", flag.Shorthand)
		}
		fmt.Fprintf(out, "Fl \\-%s", flag.Name)
		if argument != "" {
			fmt.Fprintf(out, " Ar %s", argument)
		}
		// The default of the socket is not the same on all systems.
		none := []string{"", "0", "false", "[]", defaultSocket}
		if !slices.Contains(none, flag.DefValue) {
			usage += "; default: " + flag.DefValue
		}
		fmt.Fprintf(out, "\n%s\n", mdocText(usage))
	})
	out.WriteString(".El\n")
}

var sentenceEnd = regexp.MustCompile(`([.:]) ([A-Z"])`)

// mdocSentences begins each sentence on a line of its own, as mdoc(7) wants it.
func mdocSentences(text string) string {
	var out strings.Builder
	for line := range strings.Lines(sentenceEnd.ReplaceAllString(text, "$1\n$2")) {
		fmt.Fprintln(&out, mdocText(strings.TrimSuffix(line, "\n")))
	}
	return out.String()
}

func mdocExample(text string) string {
	lines := strings.Split(text, "\n")
	for n, line := range lines {
		lines[n] = mdocText(strings.TrimPrefix(line, "  "))
	}
	return strings.Join(lines, "\n")
}

// mdocText escapes what roff would take for an instruction, and hyphens that are typed.
func mdocText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "--", `\-\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
