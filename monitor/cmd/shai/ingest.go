// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) ingestCommand() *cobra.Command {
	var remove bool
	command := &cobra.Command{
		Use:   "ingest PATH…",
		Short: "Catalogue documents that are new, changed or gone",
		Long: `Catalogue files of ingress conduits as they are now, without an apply: sessions go on. A
new file becomes a document; a changed one becomes another document, with a number and decisions
of its own; a directory stands for all beneath it. With --remove, the files are gone.

The monitor does all this by itself where it can watch directories (see "shai doctor"), except
with --no-ingest. This command returns when it is done, and says which files are no documents.

PATH is the path that the pipeline has, or that the file has on the monitor's machine. "-" reads
paths from the standard input, one a line. The exit code is 1 if a file is refused.`,
		Example: `  shai ingest /corpus/public/17.txt /corpus/private/alice
  shai ingest --remove /corpus/public/16.txt
  find /srv/data/corpus -newer stamp -type f | shai ingest - --output json`,
		Args: takes("PATH…"),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			paths, err := p.listed(arguments)
			if err != nil {
				return err
			}
			return p.ingest(ctx, paths, remove)
		}),
	}
	command.Flags().BoolVar(&remove, "remove", false, "the files are gone; those that exist are refused")
	return command
}

// maxListed limits the length of one line of a list, in bytes.
const maxListed = 64 << 10

// listed returns the arguments, with the lines of the standard input in the place of "-".
func (p *program) listed(arguments []string) (paths []string, err error) {
	for _, argument := range arguments {
		if argument != "-" {
			paths = append(paths, argument)
			continue
		}
		lines := bufio.NewScanner(p.stdin)
		lines.Buffer(nil, maxListed)
		for lines.Scan() {
			if lines.Text() != "" {
				paths = append(paths, lines.Text())
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("read paths from the standard input: %w", err)
		}
	}
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return nil, fmt.Errorf("path %q is not UTF-8, as names of documents are; rename the file", path)
		}
	}
	if len(paths) == 0 {
		return nil, errors.New("the standard input names no path; give one a line")
	}
	return paths, nil
}

// ingest sends the paths in as many requests as they need.
func (p *program) ingest(ctx context.Context, paths []string, remove bool) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	var total api.IngestResult
	for len(paths) > 0 && err == nil {
		some := paths[:min(len(paths), api.MaxIngestPaths)]
		paths = paths[len(some):]
		var one api.IngestResult
		one, err = client.Ingest(ctx, api.IngestRequest{Paths: some, Remove: remove}, p.progress())
		total.Add(one)
	}
	p.endProgress()
	if err != nil {
		return err
	}
	err = p.print(total, func(w io.Writer) { printIngested(w, total) })
	if err == nil && total.RefusedTotal > 0 {
		return errSaid
	}
	return err
}

func printIngested(w io.Writer, r api.IngestResult) {
	fmt.Fprintf(w, "%s added, %s renewed, %s removed, %s unchanged, in %s\n", grouped(r.Added), grouped(r.Renewed),
		grouped(r.Removed), grouped(r.Unchanged), time.Duration(r.DurationMicroseconds)*time.Microsecond)
	if r.RefusedTotal == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s refused:\n", counted(r.RefusedTotal, "path"))
	for _, one := range r.Refused {
		fmt.Fprintf(w, "  %s: %s\n", printable(one.Path), one.Reason)
	}
	if more := r.RefusedTotal - len(r.Refused); more > 0 {
		fmt.Fprintf(w, "  … and %s more\n", grouped(more))
	}
}
