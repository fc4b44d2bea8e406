// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor"
)

func (p *program) restoreCommand() *cobra.Command {
	var state string
	command := &cobra.Command{
		Use:   "restore --state DIR [SNAPSHOT]",
		Short: "Put a snapshot of a monitor's catalog in its place",
		Long: `List the snapshots of the catalog in a monitor's state directory, or put one in the place
of the catalog. The monitor must be stopped to restore one. The file that was there is
kept beside it. Every change since the snapshot is lost: facts that were added or removed,
and bundles that were applied. Apply the manifests again, and repeat the changes of facts,
which "shai audit --kind fact" shows once the monitor runs.`,
		Example: `  shai restore --state /var/lib/shai
  shai restore --state /var/lib/shai 20261122T124821.000Z`,
		Args: cobra.MaximumNArgs(1),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			directory, err := filepath.Abs(state)
			if err != nil {
				return fmt.Errorf("--state: %w", err)
			}
			if len(arguments) == 0 {
				return p.listSnapshots(ctx, directory)
			}
			return p.restore(ctx, directory, arguments[0])
		}),
	}
	command.Flags().StringVar(&state, "state", "", "directory of the monitor's own state")
	_ = command.MarkFlagRequired("state")
	_ = command.MarkFlagDirname("state")
	return command
}

func (p *program) listSnapshots(ctx context.Context, state string) error {
	list, err := monitor.Snapshots(ctx, state)
	if err != nil {
		return err
	}
	if list == nil {
		list = []catalog.Snapshot{}
	}
	return p.print(list, func(w io.Writer) { printSnapshots(w, list) })
}

func printSnapshots(w io.Writer, list []catalog.Snapshot) {
	if len(list) == 0 {
		fmt.Fprintln(w, "there is no snapshot")
		return
	}
	rows := [][]string{{"SNAPSHOT", "TAKEN", "BUNDLE", "LABEL", "FACTS", "CONDUITS"}}
	for _, one := range list {
		if one.Damage != "" {
			rows = append(rows, []string{one.Name, one.Taken.Format(time.RFC3339), one.Damage})
			continue
		}
		rows = append(rows, []string{one.Name, one.Taken.Format(time.RFC3339),
			fmt.Sprintf("%d (%.12s)", one.Summary.Version, one.Summary.Hash), one.Summary.Label,
			strconv.Itoa(one.Summary.Facts), strconv.FormatUint(uint64(one.Summary.Conduits), 10)})
	}
	table(w, rows)
}

// restored is the output of shai restore.
type restored struct {
	Snapshot string `json:"snapshot"`
	Kept     string `json:"kept,omitempty"` // the path of the file that was there
}

func (p *program) restore(ctx context.Context, state, snapshot string) error {
	kept, err := monitor.Restore(ctx, state, snapshot)
	if err != nil {
		return err
	}
	return p.print(restored{snapshot, kept}, func(w io.Writer) {
		fmt.Fprintf(w, "the catalog is that of snapshot %s; what changed since is lost\n", snapshot)
		if kept != "" {
			fmt.Fprintf(w, "the file that was there is %s\n", kept)
		}
	})
}
