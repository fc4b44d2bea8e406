// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/edition"
	"shai.dev/monitor/internal/monitor"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/taskid"
)

// monitorFlags are the command-line flags of shai monitor.
type monitorFlags struct {
	data, state, library, secrets string
	supervisor                    string
	listen, clientCA, page        string
	define, runtimes, allow       []string
	cpus                          string
	logFormat                     string
	taskIDs, taskRegistry         string
	giveData, noLearning          bool
	noIngest                      bool
	auditSize                     string
	sessions                      pipeline.SessionLimits
}

func (p *program) monitorCommand() *cobra.Command {
	var flags monitorFlags
	command := &cobra.Command{
		Use:   "monitor --data DIR --state DIR",
		Short: "Run the reference monitor",
		Long: `Run the reference monitor until it is interrupted. It starts tasks in their sandboxes,
binds sessions to users, decides on accesses that the offline analysis did not foresee,
and records them. It listens on --socket. With --listen it also listens on an address,
where it only answers clients with a certificate by --client-ca.`,
		Example: `  shai monitor --data /srv/data --state /var/lib/shai
  shai monitor --data out/data --state out/state --socket out/shai.sock \
    --define JAVA_HOME=/opt/java --runtime 'java=$(JAVA_HOME),/lib,/usr/lib,/lib64'
  shai monitor --data /srv/data --state /var/lib/shai --allow-source https://facts.example.org/friends/
  shai monitor --data /srv/data --state /var/lib/shai --listen :8443 \
    --certificate monitor.pem --key monitor.key --client-ca operators.pem`,
		Args: cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			options, err := p.monitorOptions(flags)
			if err != nil {
				return err
			}
			return p.monitor(ctx, options)
		}),
	}
	f := command.Flags()
	f.StringVar(&flags.data, "data", "", "directory of the pipelines' files: /corpus/x in a manifest is DIR/corpus/x")
	f.StringVar(&flags.state, "state", "", "directory of the monitor's own state, on the same file system as --data")
	f.StringArrayVar(&flags.define, "define", nil, "NAME=VALUE for $(NAME) in manifests and in --runtime; may be repeated")
	f.StringArrayVar(&flags.runtimes, "runtime", nil,
		"NAME=PATH,PATH…, files and directories that the tasks with this spec.runtimeName may execute and read beside their conduits: "+
			"programs, interpreters, libraries; may be repeated; a path that contains a comma is given as the value of a variable")
	f.StringArrayVar(&flags.allow, "allow-source", nil,
		"a source of facts or a socket that manifests may name: https://HOST[:PORT][/PATH], http://…, unix:/PATH; "+
			"a path that ends in / allows what is beneath it; may be repeated; default: none but $(REDIS_SOCKET)")
	f.StringVar(&flags.library, "library", "",
		"directory with libshai.so; default: searched for beside the program")
	f.StringVar(&flags.supervisor, "supervisor", "",
		"the program shai-supervisor, which tasks with sessions need on Linux; default: beside this program")
	f.StringVar(&flags.secrets, "secrets", "", "file with the key-value store's secrets")
	f.StringVar(&flags.cpus, "cpus", "", "processors that tasks run on, such as 0,2-3; default: all")
	f.StringVar(&flags.listen, "listen", "", "address to listen on besides the socket; needs --certificate, --key and --client-ca")
	f.StringVar(&flags.page, "page", "",
		"address 127.0.0.1:PORT, such as 127.0.0.1:8650, at which a browser shows the page of shai explain; "+
			"the link is in the file page-link of --state")
	f.StringVar(&flags.clientCA, "client-ca", "", "PEM file with the certificate authority of clients")
	f.StringVar(&flags.taskIDs, "task-ids", "",
		"users of tasks and groups of pipelines, FIRST-LAST, one number for each; default 70000-79999")
	f.StringVar(&flags.taskRegistry, "task-id-registry", "",
		"file in which all monitors of a machine record the users of pipelines and tasks; "+
			"default /var/lib/shai-tasks/ids.json")
	f.BoolVar(&flags.giveData, "give-data", false,
		"give documents that tasks cannot read to the group of the pipeline's tasks; "+
			"without it, apply and status name them")
	f.BoolVar(&flags.noLearning, "no-learning", false,
		"do not add accesses that the analysis did not foresee to the sets of running sessions, for measurements: "+
			"the monitor decides on each of them every time")
	f.BoolVar(&flags.noIngest, "no-ingest", false,
		"do not catalogue documents that come, change or go by themselves: only shai apply and shai ingest do")
	f.StringVar(&flags.auditSize, "audit-size", "4GiB",
		"size of the audit log, such as 500MiB; the monitor removes its oldest records when it has more")
	f.IntVar(&flags.sessions.PerUser, "sessions-per-user", 0,
		"how many sessions with a pipeline a user may have at a time; default: half of its workers, rounded up")
	f.IntVar(&flags.sessions.PerPeer, "connections-per-address", 0,
		"how many connections of an address may be without a user for more than a second; default: half of the workers, rounded up")
	f.IntVar(&flags.sessions.Waiting, "waiting-connections", pipeline.DefaultWaiting,
		"how many connections may wait for a worker (Linux); beyond, the address with the most loses its latest one")
	f.IntVar(&flags.sessions.PerWorker, "sessions-per-worker", pipeline.DefaultPerWorker,
		"how many sessions a worker may have, one after the other (Linux); 1: each session has a process of its own")
	f.DurationVar(&flags.sessions.Login, "login-time", pipeline.DefaultLoginTime,
		"how long a connection may be without a user")
	f.DurationVar(&flags.sessions.Lifetime, "session-time", pipeline.DefaultLifetime, "how long a session may last")
	f.StringVar(&flags.logFormat, "log-format", "text", "text or json")
	_ = command.MarkFlagRequired("data")
	_ = command.MarkFlagRequired("state")
	_ = command.MarkFlagDirname("data")
	_ = command.MarkFlagDirname("state")
	return command
}

func checkLimits(l pipeline.SessionLimits) error {
	if l.PerUser < 0 || l.PerPeer < 0 || l.Login <= 0 || l.Lifetime <= 0 {
		return errors.New("--sessions-per-user, --connections-per-address, --login-time and --session-time: expected numbers above 0")
	}
	if l.Waiting < 1 || l.Waiting > pipeline.MaxWaiting {
		return fmt.Errorf("--waiting-connections %d: expected a number from 1 to %d", l.Waiting, pipeline.MaxWaiting)
	}
	if l.PerWorker < 1 {
		return fmt.Errorf("--sessions-per-worker %d: expected a number above 0", l.PerWorker)
	}
	return nil
}

// monitorOptions checks the flags and makes all paths absolute.
func (p *program) monitorOptions(flags monitorFlags) (options monitor.Options, err error) {
	options = monitor.Options{
		Listen: flags.listen, Certificate: p.target.Certificate, Key: p.target.Key, ClientCA: flags.clientCA,
		Page:    flags.page,
		Secrets: flags.secrets, Sessions: flags.sessions, GiveData: flags.giveData, NoLearning: flags.noLearning,
		NoIngest: flags.noIngest,
		Version:  edition.Version(),
	}
	if options.Data, err = realDirectory(flags.data); err != nil {
		return options, fmt.Errorf("--data: %w; make it, or name another", err)
	}
	if err := os.MkdirAll(flags.state, 0o700); err != nil {
		return options, fmt.Errorf("--state: %w", err)
	}
	if options.State, err = realDirectory(flags.state); err != nil {
		return options, fmt.Errorf("--state: %w", err)
	}
	if options.Socket, err = filepath.Abs(p.target.Socket); err != nil {
		return options, fmt.Errorf("--socket: %w", err)
	}
	// These paths are compared with paths in manifests.
	for _, path := range []*string{&options.Secrets, &options.Key, &options.Certificate, &options.ClientCA} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return options, err
		}
	}
	if options.Define, err = definitions(flags.define); err != nil {
		return options, err
	}
	if options.Runtimes, err = runtimeroot.Define(flags.runtimes, options.Define); err != nil {
		return options, fmt.Errorf("--runtime %w", err)
	}
	if options.Allowed, err = allowlist.Parse(flags.allow); err != nil {
		return options, fmt.Errorf("--allow-source %w", err)
	}
	if options.TaskIDs, err = taskRegistry(flags); err != nil {
		return options, err
	}
	if options.AuditSize, err = auditSize(flags.auditSize); err != nil {
		return options, err
	}
	if err = checkLimits(flags.sessions); err != nil {
		return options, err
	}
	if options.CPUs, err = processors(flags.cpus); err != nil {
		return options, err
	}
	if options.Library, err = libraryDirectory(flags.library); err != nil {
		return options, err
	}
	if options.Supervisor, err = supervisorProgram(flags.supervisor); err != nil {
		return options, err
	}
	options.Logger, err = p.logger(flags.logFormat)
	return options, err
}

// realDirectory returns a directory's path without symbolic links: the monitor compares
// it with the real paths of files.
func realDirectory(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", err
	}
	about, err := os.Stat(resolved)
	if err != nil {
		return "", err
	}
	if !about.IsDir() {
		return "", fmt.Errorf("%s is not a directory", path)
	}
	return resolved, nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func definitions(list []string) (map[string]string, error) {
	defined := map[string]string{}
	for _, one := range list {
		name, value, ok := strings.Cut(one, "=")
		if !ok || !variableName.MatchString(name) {
			return nil, fmt.Errorf("--define %q: expected NAME=VALUE", one)
		}
		if _, twice := defined[name]; twice {
			return nil, fmt.Errorf("--define %s is given twice", name)
		}
		defined[name] = value
	}
	return defined, nil
}

// taskRegistry returns the registry of users for a range such as "70000-79999".
func taskRegistry(flags monitorFlags) (taskid.Registry, error) {
	registry := taskid.Registry{}
	if flags.taskRegistry != "" {
		path, err := filepath.Abs(flags.taskRegistry)
		if err != nil {
			return registry, fmt.Errorf("--task-id-registry: %w", err)
		}
		registry.Path = path
	}
	if flags.taskIDs != "" {
		from, to, _ := strings.Cut(flags.taskIDs, "-")
		first, err1 := strconv.ParseUint(from, 10, 32)
		last, err2 := strconv.ParseUint(to, 10, 32)
		if err1 != nil || err2 != nil {
			return registry, fmt.Errorf("--task-ids %q: expected a range of numbers such as 70000-79999", flags.taskIDs)
		}
		registry.Range = taskid.Range{First: uint32(first), Last: uint32(last)}
		if err := registry.Range.Check(); err != nil {
			return registry, fmt.Errorf("--task-ids: %w", err)
		}
	}
	return registry.OrDefault(), nil
}

// minAuditSize leaves the log room for a few files.
const minAuditSize = 16 << 20

var sizePattern = regexp.MustCompile(`^([0-9]{1,6})(MiB|GiB)$`)

// auditSize reads a size such as "500MiB".
func auditSize(text string) (int64, error) {
	parts := sizePattern.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("--audit-size %q: expected a size such as 500MiB or 4GiB", text)
	}
	size, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("--audit-size %q: %w", text, err)
	}
	if size <<= 20; parts[2] == "GiB" {
		size <<= 10
	}
	if size < minAuditSize {
		return 0, fmt.Errorf("--audit-size %q: expected at least %dMiB", text, minAuditSize>>20)
	}
	return size, nil
}

// maxProcessor is the largest processor number (the kernel's CPU_SETSIZE - 1).
const maxProcessor = 1023

// processors reads a list such as "0,2-3".
func processors(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 0 || last < first || last > maxProcessor {
			return nil, fmt.Errorf("--cpus %q: expected numbers and ranges such as 0,2-3", text)
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}

// libraryDirectory finds libshai.so: in the given directory, or beside the program, as in
// the build directory and in an installation.
func libraryDirectory(given string) (string, error) {
	candidates := []string{given}
	if given == "" {
		program, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find libshai.so: %w; give --library", err)
		}
		beside := filepath.Dir(program)
		candidates = []string{filepath.Join(beside, "../runtime"), filepath.Join(beside, "../lib/shai"),
			"/usr/lib/shai"}
	}
	for _, candidate := range candidates {
		if _, err := os.Stat(filepath.Join(candidate, "libshai.so")); err == nil {
			return realDirectory(candidate)
		}
	}
	return "", fmt.Errorf("find libshai.so: it is not in %s; build it with make build, or give --library",
		strings.Join(candidates, ", "))
}

// supervisorProgram returns the path of shai-supervisor: the given one, or that beside the
// program. Only tasks with sessions need it, so it may be missing.
func supervisorProgram(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find shai-supervisor: %w; give --supervisor", err)
	}
	return filepath.Join(filepath.Dir(program), "shai-supervisor"), nil
}

func (p *program) logger(format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(p.stderr, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(p.stderr, nil)), nil
	}
	return nil, fmt.Errorf("--log-format %q is not known; expected text or json", format)
}
