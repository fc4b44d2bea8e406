// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/edition"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/internal/report"
	"shai.dev/monitor/internal/report/boards"
	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/page"
	"shai.dev/monitor/internal/report/sources"
)

// reportFlags are the command-line flags of shai report.
type reportFlags struct {
	title, file    string
	server         string
	last, from, to string
	scrape         time.Duration
}

func (p *program) reportCommand() *cobra.Command {
	var flags reportFlags
	var wanted *boards.Wanted
	command := &cobra.Command{
		Use:   "report [FILE|DIRECTORY|-]…",
		Short: "Write one HTML file that shows what enforcement costs and what it stops",
		Long: `Write a report of what was measured: one HTML file, which needs no network. Each file is
known by its content: results.json and samples.csv of a benchmark, session.json of make
bench-session, result.json of make scenario, objects as kubectl get -o json prints them (ConfigMaps of Benchmarks,
AnalysisRuns, Pipelines, Tasks) or as manifests, audit records, and the result of a leak
attempt. Of a directory the files directly in it are read, and those of other kinds left
out; "-" is the standard input. With --prometheus the report has the panels of the
dashboard Overhead in a range of time.

Audit records name users and documents: only its owner can read the file.`,
		Example: `  shai report out/demo/results out/bench
  kubectl get configmaps,analysisruns,pipelines,tasks -o json | shai report -
  shai report --prometheus http://127.0.0.1:9090 --last 7d --file week.html
  shai report out/scenarios/spike
  shai report results.json --output json`,
		PreRunE: func(_ *cobra.Command, arguments []string) (err error) {
			if len(arguments) == 0 && flags.server == "" {
				return errors.New("nothing to report on: give files of a measurement, --prometheus, or both")
			}
			wanted, err = flags.wanted()
			return err
		},
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			return p.report(ctx, flags, wanted, arguments)
		}),
	}
	f := command.Flags()
	f.StringVar(&flags.file, "file", "",
		`HTML file to write, or - (default "report.html", none with --output json or yaml)`)
	f.StringVar(&flags.title, "title", "What enforcement costs, and what it stops", "title of the report")
	f.StringVar(&flags.server, "prometheus", "", "URL of a Prometheus that scrapes the monitors")
	f.StringVar(&flags.last, "last", "1h", "range until now: 30m, 6h, 7d")
	f.StringVar(&flags.from, "from", "", "beginning of the range, an RFC 3339 time, instead of --last")
	f.StringVar(&flags.to, "to", "", "end of the range, an RFC 3339 time; default: now")
	f.DurationVar(&flags.scrape, "scrape-interval", 15*time.Second, "how often Prometheus reads its targets")
	command.MarkFlagsMutuallyExclusive("last", "from")
	return command
}

// wanted returns the range to ask for; nil without Prometheus.
func (f reportFlags) wanted() (*boards.Wanted, error) {
	if f.server == "" {
		if f.from != "" || f.to != "" {
			return nil, errors.New("--from and --to are of a range in Prometheus; give --prometheus URL, too")
		}
		return nil, nil
	}
	last, err := model.ParseDuration(f.last)
	if err != nil || last <= 0 {
		return nil, fmt.Errorf("--last %q: expected a duration such as 30m, 6h or 7d", f.last)
	}
	if f.scrape < time.Second {
		return nil, fmt.Errorf("--scrape-interval %s: expected a second or more", f.scrape)
	}
	wanted := &boards.Wanted{Server: f.server, Last: time.Duration(last), Scrape: f.scrape}
	for _, end := range []struct {
		flag, text string
		into       *time.Time
	}{{"--from", f.from, &wanted.From}, {"--to", f.to, &wanted.To}} {
		if end.text == "" {
			continue
		}
		if *end.into, err = time.Parse(time.RFC3339, end.text); err != nil {
			return nil, fmt.Errorf("%s %q: expected a time such as 2026-03-01T12:00:00Z", end.flag, end.text)
		}
	}
	return wanted, nil
}

// ownersOnly are the permissions of a report: audit records name users and documents.
const ownersOnly = 0o600

// report reads everything, and writes the page, the figures or both.
func (p *program) report(ctx context.Context, flags reportFlags, wanted *boards.Wanted, paths []string) error {
	input := report.Input{Title: flags.title, Made: time.Now(), Version: edition.Version()}
	if err := p.readSources(&input.Given, paths); err != nil {
		return err
	}
	if wanted != nil {
		read, err := boards.Read(ctx, *wanted, p.panelProgress)
		p.endProgress()
		if err != nil {
			return err
		}
		input.Range = read
	}
	made := report.Compose(input)
	if p.output != "text" && flags.file == "" {
		return p.print(made, nil)
	}
	file := either(flags.file, "report.html")
	text, err := page.Render(made)
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := p.stdout.Write(text)
		return err
	}
	if err := replaceFile(file, text, ownersOnly); err != nil {
		return err
	}
	return p.print(made, func(w io.Writer) { printReport(w, made, file) })
}

// printReport says what a report shows first, and what it lacks.
func printReport(w io.Writer, made figure.Report, file string) {
	for _, highlight := range made.Highlights {
		fmt.Fprintf(w, "%s: %s (%s)\n", printable(highlight.Label), printable(highlight.Value),
			printable(highlight.Remark))
	}
	for _, absent := range made.Absent {
		fmt.Fprintf(w, "not in it: %s; %s\n", printable(absent.What), printable(absent.Remedy))
	}
	fmt.Fprintf(w, "wrote %s\n", printable(file))
}

// panelProgress draws a line that overwrites itself, on a terminal only.
func (p *program) panelProgress(number, of int, title string) {
	if isTerminal(p.stderr) {
		fmt.Fprintf(p.stderr, "\r\x1b[Kasking Prometheus, panel %d of %d: %s", number, of, title)
	}
}

// largestSource is the size of the largest file that is read, in bytes.
const largestSource = 64 << 20

// readSources reads files, the files directly in directories, and the standard input.
func (p *program) readSources(given *sources.All, paths []string) error {
	for _, path := range paths {
		if path == "-" {
			if err := addSource(given, "the standard input", p.stdin); err != nil {
				return err
			}
			continue
		}
		about, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("read what to report on: %w", err)
		}
		if about.IsDir() {
			err = readDirectory(given, path)
		} else {
			err = readSource(given, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readDirectory reads the files of known forms that are directly in a directory.
func readDirectory(given *sources.All, path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("read what to report on: %w", err)
	}
	found := false
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".json", ".csv", ".yaml", ".yml":
		default:
			continue
		}
		if !entry.Type().IsRegular() {
			continue
		}
		err := readSource(given, filepath.Join(path, entry.Name()))
		if errors.Is(err, sources.ErrUnknown) {
			continue
		}
		if err != nil {
			return err
		}
		found = true
	}
	if !found {
		return fmt.Errorf("read %s: no file directly in it is of a known form; expected %s", path, sources.Forms)
	}
	return nil
}

func readSource(given *sources.All, path string) error {
	file, err := plainfile.Open(path)
	if err != nil {
		return fmt.Errorf("read what to report on: %w", err)
	}
	defer file.Close()
	return addSource(given, path, file)
}

func addSource(given *sources.All, name string, reader io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(reader, largestSource+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > largestSource {
		return fmt.Errorf("read %s: it is larger than %d MiB: give a part of it", name, largestSource>>20)
	}
	return given.Add(name, text)
}
