// SPDX-License-Identifier: BSD-2-Clause

package lifecycle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"shai.dev/devcluster/internal/directory"
	"shai.dev/devcluster/internal/server"
)

// A child is the devcluster's process as its parent sees it.
type child struct {
	directory directory.Directory
	command   *exec.Cmd
	pipe      *os.File
	reports   *bufio.Scanner
	step      string // the last one reported
}

// errHeld says that another devcluster took the directory first.
var errHeld = errors.New("another devcluster runs there")

// launch starts a devcluster's process. A bound one ends with this process.
func launch(d directory.Directory, port int, bound bool) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the devcluster's program: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer write.Close()
	command := exec.Command(program, "serve", "--directory", string(d), "--port", strconv.Itoa(port))
	command.Stderr = os.Stderr // until it has opened its log
	command.ExtraFiles = []*os.File{write}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of the terminal's Ctrl-C
	if bound {
		command.Args = append(command.Args, "--until-input-ends")
		// The pipe is neither written to nor closed; it ends with this process.
		_, err = command.StdinPipe()
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		read.Close()
		return nil, fmt.Errorf("start the devcluster's process: %w", err)
	}
	return &child{directory: d, command: command, pipe: read, reports: bufio.NewScanner(read), step: "starting"}, nil
}

// untilReady follows the start. If the context ends first, or the start fails, no process
// is left.
func (c *child) untilReady(ctx context.Context, progress func(string)) (Endpoint, error) {
	release := context.AfterFunc(ctx, c.stop)
	defer release()
	for c.reports.Scan() {
		var r report
		if err := json.Unmarshal(c.reports.Bytes(), &r); err != nil {
			r.Failure = fmt.Sprintf("read the devcluster's report %q: %v", c.reports.Bytes(), err)
			c.stop()
		}
		switch {
		case r.Ready != nil:
			return *r.Ready, nil
		case r.Held:
			_ = c.command.Wait() // its status adds nothing
			return Endpoint{}, errHeld
		case r.Failure != "":
			_ = c.command.Wait()
			return Endpoint{}, c.explained(errors.New(r.Failure))
		default:
			c.step = r.Step
			progress(r.Step)
		}
	}
	err := c.command.Wait()
	if ctx.Err() != nil {
		return Endpoint{}, fmt.Errorf("%s, while %s: %w: stopped again; the log is %s", c.directory, c.step,
			context.Cause(ctx), c.directory.Log())
	}
	return Endpoint{}, c.died(err)
}

// untilEnded waits for the process, and stops it when the context ends.
func (c *child) untilEnded(ctx context.Context, progress func(string)) error {
	release := context.AfterFunc(ctx, c.stop)
	defer release()
	for c.reports.Scan() {
		var r report
		if err := json.Unmarshal(c.reports.Bytes(), &r); err == nil && r.Step != "" {
			c.step = r.Step
			progress(r.Step)
		} else if r.Failure != "" {
			_ = c.command.Wait()
			return errors.New(r.Failure)
		}
	}
	if err := c.command.Wait(); err != nil {
		return c.died(err)
	}
	return nil
}

// stop asks the process to end, and kills it if it does not.
func (c *child) stop() {
	_ = c.command.Process.Signal(syscall.SIGTERM) // unless it has ended
	time.AfterFunc(StopPatience, func() { _ = c.command.Process.Kill() })
}

// died describes the end of a process that sent no report.
func (c *child) died(err error) error {
	how := "it ended"
	if err != nil {
		how = err.Error()
	}
	return c.explained(fmt.Errorf("the devcluster in %s died while %s (%s); its log %s says: %s",
		c.directory, c.step, how, c.directory.Log(), c.directory.LastWords()))
}

// explained adds the remedy to an error about damaged data.
func (c *child) explained(err error) error {
	if c.step != server.StepEtcd {
		return err
	}
	return fmt.Errorf("%w: if the data are damaged, move %s away and start again; all objects are lost then", err,
		c.directory.Data())
}
