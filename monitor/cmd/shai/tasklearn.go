// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/audit/records"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/offline"
	"shai.dev/monitor/internal/plainfile"
)

// learnFlags are the command-line flags of shai task learn.
type learnFlags struct {
	manifests offlineFlags
	records   string
}

// learntTask is the result of shai task learn: the manifest, and what it is made of.
type learntTask struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   manifest.Metadata `json:"metadata"`
	Spec       manifest.TaskSpec `json:"spec"`
}

// learnt is what programs get.
type learnt struct {
	offline.Learnt

	Task learntTask `json:"task"`
}

func (p *program) taskLearnCommand() *cobra.Command {
	var flags learnFlags
	command := &cobra.Command{
		Use:   "learn PIPELINE TASK -f FILE",
		Short: "Make a Task manifest of what the audit log says that the task has used",
		Long: `Print the Task of the manifests with the conduits that its runs have read and written, as the
audit log has them: run it in mode audit before, which records what would be denied and lets it
happen. The log is the monitor's; with --records, it is the output of "shai audit --limit 0
--output json", and no monitor is needed.

Declared reads and writes stay: accesses that were foreseen are not in the log. Of conduits that
are not declared, it has opens by the path in the data directory, and documents of sessions. If the declared
taint does not allow what was done, and the policy of something that was read does when it is the
taint, it becomes the taint. The exit code is 3 if some access stays denied; each is named.`,
		Example: `  shai task learn syse indexer -f pipeline.yaml > indexer.yaml
  shai audit --task indexer --limit 0 --output json > run.json
  shai task learn syse indexer -f pipeline.yaml --records run.json --output json`,
		Args: takes("PIPELINE", "TASK"),
		PreRunE: func(*cobra.Command, []string) error {
			if len(flags.manifests.files) == 0 {
				return errors.New("name the manifests of the pipeline with -f")
			}
			return nil
		},
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			return p.learnTask(ctx, flags, arguments[0], arguments[1])
		}),
	}
	flags.manifests.add(command)
	command.Flags().StringVar(&flags.records, "records", "",
		"file with audit records as JSON, - for standard input, instead of the monitor's")
	_ = command.MarkFlagFilename("records")
	return command
}

func (p *program) learnTask(ctx context.Context, flags learnFlags, pipeline, task string) error {
	log, err := p.recordsOf(ctx, flags.records, task)
	if err != nil {
		return err
	}
	return p.offline(ctx, flags.manifests, offline.Options{}, func(project *offline.Project) error {
		found, err := project.Learn(pipeline, task, log, time.Now())
		if err != nil {
			return err
		}
		made := learnt{found, learntTask{manifest.APIVersion, "Task", found.Task.Metadata, found.Task.Spec}}
		if p.output == "text" {
			err = printYAML(p.stdout, made.Task)
			p.explainLearnt(found)
		} else {
			err = p.print(made, nil)
		}
		if err == nil && len(found.Refused) > 0 {
			return errNo
		}
		return err
	})
}

// recordsOf returns the records of a task: of a file, or of the monitor.
func (p *program) recordsOf(ctx context.Context, file, task string) (log []records.Record, err error) {
	if file == "" {
		client, err := p.client()
		if err != nil {
			return nil, err
		}
		err = client.Query(ctx, audit.Query{Task: task}, func(r records.Record) error {
			log = append(log, r)
			return nil
		})
		return log, err
	}
	text, err := p.recordText(file)
	switch {
	case errors.Is(err, plainfile.ErrTooLong):
		return nil, fmt.Errorf("--records: %w; give the records of one task, which shai audit --task prints", err)
	case err != nil:
		return nil, fmt.Errorf("--records: %w", err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		err = json.Unmarshal(text, &log)
	} else {
		log, err = recordLines(text)
	}
	if err != nil {
		return nil, fmt.Errorf("--records %s: %w; expected what shai audit --output json prints", file, err)
	}
	return log, nil
}

// largestRecords is more than half a million records.
const largestRecords = 256 << 20

func (p *program) recordText(file string) ([]byte, error) {
	if file != "-" {
		return plainfile.Read(file, largestRecords)
	}
	text, err := io.ReadAll(io.LimitReader(p.stdin, largestRecords+1))
	if err == nil && len(text) > largestRecords {
		err = fmt.Errorf("%w: standard input has more than %d bytes", plainfile.ErrTooLong, largestRecords)
	}
	return text, err
}

// recordLines reads one record a line, as the log itself has them.
func recordLines(text []byte) (log []records.Record, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for decoder.More() {
		var record records.Record
		if err := decoder.Decode(&record); err != nil {
			return nil, err
		}
		log = append(log, record)
	}
	return log, nil
}

// explainLearnt says beside the manifest what is new in it, and what stays denied.
func (p *program) explainLearnt(found offline.Learnt) {
	var out strings.Builder
	for _, part := range []struct {
		what  string
		names []string
	}{{"reads, too", found.Reads}, {"writes, too", found.Writes}, {"no conduit of the pipeline", found.Uncovered}} {
		if len(part.names) > 0 {
			fmt.Fprintf(&out, "%s: %s\n", part.what, strings.Join(part.names, ", "))
		}
	}
	if found.Taint {
		fmt.Fprintf(&out, "taint: %s, with which what was done is allowed; the declared one does not allow it\n",
			found.Task.Spec.Taint.Name)
	}
	for _, one := range found.Refused {
		fmt.Fprintf(&out, "stays denied: %s of %s by %s: %s\n", one.Access, one.Conduit, one.Instance, one.Reason)
	}
	io.WriteString(p.stderr, printableLines(out.String()))
}
