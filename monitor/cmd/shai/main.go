// SPDX-License-Identifier: BSD-2-Clause

// Command shai runs the reference monitor and talks to it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor"
	"shai.dev/monitor/internal/sandbox"
)

func main() {
	sandbox.LaunchMain()
	catalog.CheckMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	program := &program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		environment: os.Getenv,
		probe:       probe,
		monitor:     runMonitor,
	}
	os.Exit(program.run(ctx, os.Args[1:]))
}

// runMonitor runs the monitor, also when the process that reads its messages has ended:
// daemon(8) does so while the monitor still stops its tasks. Tasks would inherit a signal
// that is ignored, but not one that is caught.
func runMonitor(ctx context.Context, options monitor.Options) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return monitor.Run(ctx, options)
}

// probe examines this machine for the monitor that this program would run.
func probe() (sandbox.Report, error) {
	supervisor, err := supervisorProgram("")
	if err != nil {
		return sandbox.Report{}, err
	}
	return sandbox.New(sandbox.Options{Supervisor: supervisor}).Probe(), nil
}
