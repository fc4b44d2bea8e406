// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/factsource"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

// exitNo is the exit code of a question whose answer is no.
const exitNo = 3

// errNo ends a command whose answer, which it has printed, is no.
var errNo = errors.New("the answer is no")

// sessionFlags say for whom a question is asked.
type sessionFlags struct{ principal, region, address, at string }

func (f *sessionFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.principal, "principal", "", `who asks: a user's name, or "task/NAME"; default: nobody`)
	flags.StringVar(&f.region, "region", "", "region that the principal connects from")
	flags.StringVar(&f.address, "address", "", "IP address that the principal connects from")
	flags.StringVar(&f.at, "time", "", "an RFC 3339 time instead of now: 2027-01-31T00:00:00Z")
}

// environment returns the session and the clock.
func (f *sessionFlags) environment() (policy.Environment, error) {
	session := &policy.Session{Principal: f.principal, Region: f.region}
	if f.address != "" {
		ip, err := netip.ParseAddr(f.address)
		if err != nil {
			return policy.Environment{}, usage("--address %q: expected an IP address such as 192.0.2.1", f.address)
		}
		session.IP = ip
	}
	now, err := instantOf(f.at)
	return policy.Environment{Session: session, Now: now, Explain: true}, err
}

// instantOf returns the time that a flag gives, or the present one.
func instantOf(at string) (time.Time, error) {
	if at == "" {
		return time.Now(), nil
	}
	now, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return now, usage("--time %q: expected a time such as 2027-01-31T00:00:00Z", at)
	}
	return now, nil
}

// argumentsOf reads NAME=VALUE pairs of --argument.
func argumentsOf(pairs []string) (map[string]string, error) {
	arguments := map[string]string{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := arguments[name]; !ok || name == "" || twice {
			return nil, usage("--argument %q: expected NAME=VALUE, each name once", pair)
		}
		arguments[name] = value
	}
	return arguments, nil
}

// factsOf reads files of fact statements.
func factsOf(paths []string) ([]policy.Fact, error) {
	var facts []policy.Fact
	for _, path := range paths {
		file, err := plainfile.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read facts: %w", err)
		}
		found, err := factsource.ReadStatements(file, path, manifest.Declared{})
		file.Close()
		if err != nil {
			return nil, err
		}
		facts = append(facts, found...)
	}
	return facts, nil
}

// said fails with the mistakes in a policy or a manifest, each with its line. Programs find them
// where they look for the answer.
func (p *program) said(err error) error {
	found, known := findingsOf(err)
	if !known {
		return err
	}
	if p.output != "text" {
		err := p.print(struct {
			Findings []finding `json:"findings"`
		}{found}, nil)
		return cmp.Or(err, errSaid)
	}
	texts := map[string]string{}
	readTexts(found, texts)
	var out strings.Builder
	printFindings(&out, found, texts)
	fmt.Fprint(p.stderr, printableLines(out.String()))
	return errSaid
}
