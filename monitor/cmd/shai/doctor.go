// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/sandbox"
)

func (p *program) doctorCommand() *cobra.Command {
	var channels bool
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine can enforce",
		Long: `Examine this machine and show what its kernel can enforce: full, partial or none. If it
is none, tasks of confined pipelines do not start, and the exit code is 1.

With --channels, start two confined tasks in the directory for temporary files, one that may
read a file and one that may only write it, and show how many bits the first can send to the
second by each known channel. A closed one carries half of the bits right, as guessing does.
If one that the sandbox has to prevent is open, the exit code is 1.`,
		Example: `  shai doctor
  shai doctor --output json
  shai doctor --channels`,
		Args: cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			if channels {
				return p.measureChannels(ctx)
			}
			report, err := p.probe()
			if err != nil {
				return err
			}
			err = p.print(report, func(w io.Writer) { printMachine(w, report) })
			if err == nil && report.Enforcement != "full" && report.Enforcement != "partial" {
				return errSaid
			}
			return err
		}),
	}
	command.Flags().BoolVar(&channels, "channels", false, "measure the channels between tasks")
	return command
}

// probedBits is enough for a closed channel to be told from an open one.
const probedBits = 1000

func (p *program) measureChannels(ctx context.Context) error {
	channels, err := sandbox.MeasureChannels(ctx, os.TempDir(), probedBits)
	if err != nil {
		return err
	}
	if err := p.print(channels, func(w io.Writer) { printChannels(w, channels) }); err != nil {
		return err
	}
	if slices.ContainsFunc(channels, func(c sandbox.Channel) bool { return !c.Timed && !c.Closed() }) {
		return errSaid
	}
	return nil
}

func printChannels(w io.Writer, channels []sandbox.Channel) {
	rows := [][]string{{"CHANNEL", "RIGHT", "SENT", "SHARE", "BITS/S", ""}}
	for _, channel := range channels {
		verdict := "closed"
		switch {
		case channel.Timed:
			verdict = "by time: not prevented"
		case !channel.Closed():
			verdict = "OPEN"
		}
		rows = append(rows, []string{channel.Name, strconv.Itoa(channel.Right), strconv.Itoa(channel.Sent),
			fmt.Sprintf("%.1f %%", 100*float64(channel.Right)/float64(channel.Sent)),
			fmt.Sprintf("%.0f", channel.BitsPerSecond), verdict})
	}
	table(w, rows)
}

func printMachine(w io.Writer, report sandbox.Report) {
	fmt.Fprintf(w, "%s, %s: enforcement %s\n\n", report.System, either(report.Backend, "no backend"),
		report.Enforcement)
	rows := [][]string{{"", "FEATURE", "FOUND", "NEEDED", "ENFORCES"}}
	for _, feature := range report.Features {
		mark := "ok"
		if !feature.Present {
			mark = "MISSING"
		}
		rows = append(rows, []string{mark, feature.Name, feature.Found, feature.Needed, feature.Effect})
	}
	table(w, rows)
}
