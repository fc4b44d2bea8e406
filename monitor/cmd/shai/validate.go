// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) validateCommand() *cobra.Command {
	var logFormat string
	command := &cobra.Command{
		Use:   "validate --socket PATH",
		Short: "Check manifests for other programs",
		Long: `Answer POST /v1/validations at a socket of its own, until it is interrupted. It keeps
no state, enforces nothing and needs no privileges: the operator runs it to check
manifests that Kubernetes receives. To check files by hand, use "shai policy check".`,
		Example: `  shai validate --socket /tmp/validate.sock
  curl --unix-socket /tmp/validate.sock http://shai/v1/validations \
    --data '{"sources": [{"name": "a.yaml", "text": "…"}], "alone": true}'`,
		Args: cobra.NoArgs,
	}
	command.RunE = p.does(func(ctx context.Context, _ []string) error {
		if !command.Flags().Changed("socket") {
			return fmt.Errorf("name a socket with --socket: the default one is the monitor's")
		}
		logger, err := p.logger(logFormat)
		if err != nil {
			return err
		}
		socket, err := filepath.Abs(p.target.Socket)
		if err != nil {
			return fmt.Errorf("--socket: %w", err)
		}
		logger.Info("checking manifests", "socket", socket)
		return api.ServeValidations(ctx, socket)
	})
	command.Flags().StringVar(&logFormat, "log-format", "text", "text or json")
	return command
}
