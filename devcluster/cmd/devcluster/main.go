// SPDX-License-Identifier: BSD-2-Clause

// Command devcluster runs a small Kubernetes control plane on this machine: etcd, the API
// server and a few controllers in one process. Under the name kubectl it is kubectl.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// notRunning is the exit status of devcluster status if no devcluster serves.
const notRunning = 3

var errNotRunning = errors.New("not running")

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		kubectl(os.Args[1:])
		return
	}
	// This comes before the flags are parsed: all of them are kubectl's.
	if len(os.Args) > 1 && os.Args[1] == "kubectl" {
		chooseCluster()
		kubectl(os.Args[2:])
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := rootCommand().ExecuteContext(ctx)
	switch {
	case errors.Is(err, errNotRunning):
		os.Exit(notRunning)
	case err != nil:
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}
