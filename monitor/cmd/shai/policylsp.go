// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/languageserver"
)

func (p *program) policyServerCommand() *cobra.Command {
	var stdio bool
	command := &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor that shows policies",
		Long: `Speak the Language Server Protocol on standard input and output about policy files (.pol) and
the policies inside of manifests (.yaml): mistakes while one types, what a word means, completion,
definitions, references, renaming and, of policy files, formatting. Policies may include those of
other files in the directory, and are compared with the relations that manifests there declare.
Files are read, and never written.`,
		Example: `  shai policy lsp
  vim.lsp.start({name = "shai", cmd = {"shai", "policy", "lsp"}})   -- Neovim`,
		Args: cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			return languageserver.Serve(ctx, p.stdin, unclosed{p.stdout})
		}),
	}
	command.Flags().BoolVar(&stdio, "stdio", true, "for editors that say so: there is no other way")
	return command
}

// unclosed is output that stays open when the server has ended.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
