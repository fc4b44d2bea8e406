// SPDX-License-Identifier: BSD-2-Clause

package lifecycle

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"shai.dev/devcluster/internal/directory"
	"shai.dev/devcluster/internal/server"
)

// Serve runs the devcluster's own process until SIGTERM or SIGINT. With untilInputEnds it
// also ends when standard input ends, and so with the process that started it.
func Serve(d directory.Directory, port int, untilInputEnds bool) error {
	reports, err := newReporter()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if untilInputEnds {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	err = server.Run(ctx, server.Settings{
		Directory: d, Port: port,
		Step: func(step string) { reports.send(report{Step: step}) },
		Ready: func(port int) {
			at := endpoint(d, port, os.Getpid())
			reports.send(report{Ready: &at})
		},
	})
	if held := (*directory.HeldError)(nil); errors.As(err, &held) {
		reports.send(report{Held: true})
	} else if err != nil {
		reports.send(report{Failure: err.Error()})
	}
	return err
}
