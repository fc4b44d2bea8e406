// SPDX-License-Identifier: BSD-2-Clause

// Command kubectl-shai is a plugin of kubectl: kubectl shai. It asks the API server alone, by way of
// kubectl, so it has the rights of the kubeconfig, and no others.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	program := &program{stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(program.run(ctx, os.Args[1:]))
}
