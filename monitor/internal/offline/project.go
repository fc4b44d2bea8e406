// SPDX-License-Identifier: BSD-2-Clause

// Package offline answers the monitor's questions about manifests without a monitor: it makes
// a catalog of them in a directory of its own, and asks the same functions.
package offline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/meaning"
	"shai.dev/monitor/policy"
)

// Options say what there is besides the manifests.
type Options struct {
	// Data is the directory with the pipelines' files and the files of facts; "" for none.
	Data   string
	Define map[string]string // values of $(NAME)
	Facts  []policy.Fact     // in addition to those of the manifests
	// Conduits are names of files that count as there, in addition to those in Data.
	Conduits []string
	// Examples makes up documents if there is no Data: for Users, and for the first users that
	// the manifests speak of.
	Examples bool
	Users    []string
}

// Project is what manifests mean. It is not safe for concurrent use.
type Project struct {
	// Missing says what is not known without a monitor, and so left out of every answer.
	Missing []string

	catalog   *catalog.Catalog
	state     *catalog.State
	plans     map[string]*analysis.Plan
	modes     map[string]string // of pipelines
	close     func() error
	principal map[string]*manifest.Principal
	tasks     map[string]*manifest.Task
	texts     map[string]manifest.PolicyText
}

// Load reads manifests. Mistakes in them are a [manifest.Errors]. The caller calls Close.
func Load(ctx context.Context, sources []manifest.Source, options Options) (_ *Project, err error) {
	set := manifest.Parse(sources...)
	bundle, err := set.Bundle()
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "shai-offline-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the catalog: %w", err)
	}
	p := &Project{plans: map[string]*analysis.Plan{}, modes: map[string]string{},
		principal: map[string]*manifest.Principal{},
		tasks:     map[string]*manifest.Task{}, texts: textsOf(set, bundle),
		close: func() error { return os.RemoveAll(directory) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	for _, one := range bundle.Tasks() {
		p.tasks[one.Metadata.Name] = one
	}
	for _, one := range bundle.Principals() {
		p.principal[one.Metadata.Name] = one
	}
	if err := p.plan(bundle, options.Define); err != nil {
		return nil, err
	}
	return p, p.fill(ctx, bundle, directory, options)
}

// Close removes the catalog.
func (p *Project) Close() error { return p.close() }

// plan resolves every pipeline.
func (p *Project) plan(bundle *manifest.Bundle, define map[string]string) error {
	var failures manifest.Errors
	for _, one := range bundle.Pipelines() {
		resolved, err := bundle.Resolve(one.Metadata.Name, complete(bundle, one, define))
		var found manifest.Errors
		if errors.As(err, &found) {
			failures = append(failures, found...)
			continue
		}
		if err != nil {
			return err
		}
		plan, err := analysis.PlanOf(resolved)
		if err != nil {
			return err
		}
		p.plans[one.Metadata.Name], p.modes[one.Metadata.Name] = plan, resolved.Pipeline.Spec.Mode
	}
	if len(failures) > 0 {
		return failures
	}
	return nil
}

var variable = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// complete gives variables without a value a path as their value, or in an address one on
// loopback. They are for programs and sockets of the machine that a pipeline will run on, and no
// decision rests on these.
func complete(bundle *manifest.Bundle, pipeline *manifest.Pipeline, define map[string]string) map[string]string {
	all := map[string]string{}
	for _, found := range variable.FindAllStringSubmatch(string(bundle.Canonical()), -1) {
		all[found[1]] = "/" + found[1]
	}
	for _, conduit := range pipeline.Spec.Conduits {
		for _, address := range []string{conduit.Listen, conduit.Service} {
			for _, found := range variable.FindAllStringSubmatch(address, -1) {
				all[found[1]] = "127.0.0.1"
				if found[0] == address {
					all[found[1]] += ":8640"
				}
			}
		}
	}
	for _, known := range pipeline.Spec.Variables {
		delete(all, known.Name)
	}
	maps.Copy(all, define)
	return all
}

// fill makes the catalog.
func (p *Project) fill(ctx context.Context, bundle *manifest.Bundle, directory string, options Options) error {
	data, err := p.data(bundle, directory, options.Data)
	if err != nil {
		return err
	}
	next, err := meaning.ForCatalog(bundle, data)
	if err != nil {
		return err
	}
	next.Sources = nil // nothing is fetched
	c, err := catalog.Open(filepath.Join(directory, "catalog"))
	if err != nil {
		return err
	}
	remove := p.close
	p.catalog = c
	p.close = func() error { return errors.Join(c.Close(), remove()) }
	if _, err := c.Apply(next); err != nil {
		return err
	}
	if len(options.Facts) > 0 {
		if _, err := c.AtOnce().ChangeFacts(nil, options.Facts); err != nil {
			return err
		}
	}
	if options.Data != "" {
		if _, _, err := c.RegisterFiles(ctx, options.Data, nil); err != nil {
			return err
		}
	}
	p.state = c.State()
	names := options.Conduits
	if options.Data == "" && options.Examples {
		names = append(slices.Clone(names), p.examples(next.Rules, options.Users, time.Now())...)
	}
	if len(names) > 0 {
		if _, _, err := c.Register(names); err != nil {
			return err
		}
		p.state = c.State()
	}
	return nil
}

// data returns the directory that fact files are read from. Without one of the user's, it is
// one with an empty file in the place of each, and Missing says so.
func (p *Project) data(bundle *manifest.Bundle, directory, given string) (string, error) {
	data := filepath.Join(directory, "data")
	for _, source := range bundle.FactSources() {
		name := "FactSource " + source.Metadata.Name
		switch {
		case source.Spec.Fetched():
			p.Missing = append(p.Missing, name+": its facts are fetched by a monitor; give them with --facts FILE")
		case source.Spec.File != nil && given == "":
			p.Missing = append(p.Missing, fmt.Sprintf("%s: its facts are in the file %s of the data directory; name it with --data",
				name, source.Spec.File.Path))
			path := filepath.Join(data, source.Spec.File.Path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return "", err
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return "", err
			}
		}
	}
	if given != "" {
		return given, nil
	}
	return data, os.MkdirAll(data, 0o700)
}

// mostExamples limits the users for whom documents are made up.
const mostExamples = 20

// examples makes up a document for each path of ingress files and each of the first users,
// since without documents there is nothing to decide on.
func (p *Project) examples(rules []catalog.Rule, asked []string, now time.Time) []string {
	users := append(p.users(now), asked...)
	var names []string
	for _, rule := range rules {
		if !rule.Ingress || rule.Kind != policy.FileConduit {
			continue
		}
		for _, user := range users {
			names = append(names, example(rule.Path, user))
		}
	}
	if len(names) > 0 {
		p.Missing = append(p.Missing, "documents: without --data, one counts as there for each path and user, called example")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// users are the first users that the manifests speak of, or one that is made up.
func (p *Project) users(now time.Time) []string {
	found := map[string]bool{}
	for name := range p.principal {
		found[name] = true
	}
	for _, plan := range p.plans {
		for _, instance := range plan.Instances(p.state, now) {
			if parameters, _ := plan.Parameters(instance.Task); len(parameters) > 0 {
				if at := slices.Index(parameters, "user"); at >= 0 {
					found[instance.Arguments[at]] = true
				}
			}
		}
	}
	users := slices.Sorted(maps.Keys(found))
	if len(users) == 0 {
		return []string{"somebody"}
	}
	return users[:min(len(users), mostExamples)]
}

// example is a name that a path matches, with the user in the place of its placeholders.
func example(path, user string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if segment == "*" || segment == "**" {
			segments[i] = "example"
			continue
		}
		for {
			before, after, opened := strings.Cut(segments[i], "{")
			_, following, closed := strings.Cut(after, "}")
			if !opened || !closed {
				break
			}
			segments[i] = before + user + following
		}
	}
	return strings.Join(segments, "/")
}

// Pipeline returns the plan of a pipeline; without a name, that of the only one.
func (p *Project) Pipeline(name string) (*analysis.Plan, error) {
	names := slices.Sorted(maps.Keys(p.plans))
	switch {
	case name == "" && len(names) == 1:
		return p.plans[names[0]], nil
	case len(names) == 0:
		return nil, errors.New("the manifests have no Pipeline; give its file with -f, too")
	case name == "":
		return nil, fmt.Errorf("the manifests have %d pipelines; name one with --pipeline: %s", len(names),
			strings.Join(names, ", "))
	case p.plans[name] == nil:
		return nil, fmt.Errorf("the manifests have no pipeline %q; expected %s", name, strings.Join(names, ", "))
	}
	return p.plans[name], nil
}

// State is the catalog's state that the manifests lead to.
func (p *Project) State() *catalog.State { return p.state }

// Conduit returns a conduit by its name in the pipeline, with the policy that its path gives
// it.
func (p *Project) Conduit(name string) (policy.Conduit, error) {
	conduit, covered := p.state.ConduitNamed(name)
	if !covered {
		return conduit, fmt.Errorf("no path of the manifests covers the conduit %q; use its name in the pipeline, such as /corpus/public/17.txt",
			name)
	}
	return conduit, nil
}
