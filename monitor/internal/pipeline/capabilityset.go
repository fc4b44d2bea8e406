// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/kvcommand"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// capabilitySet holds the rights of one instance of a task with parameters, in the form
// in which a worker gets them. It is prepared in advance, immutable but for who holds it, and
// shared by all sessions of the instance.
type capabilitySet struct {
	subject  decision.Subject
	instance analysis.Instance // the subject's
	classes  []uint32          // readable, ascending; empty without an analysis
	native   sandbox.Native    // what its sessions open natively: documents of those classes
	keyValue string            // user of the key-value store, "" when the instance uses none
	analyzed bool
	others   []analysis.Other // accesses to conduits without a class that the analysis has validated
	expires  time.Time        // when one of its accesses expires, or it ends; zero: never
	ends     time.Time        // when the instance ends, by the clock; zero: never
	holding  holding          // the only part that changes
}

func (c *capabilitySet) holdsClass(class uint32) bool {
	_, found := slices.BinarySearch(c.classes, class)
	return found
}

// exceeds reports whether the set has something that another one, which may be nil, has not.
func (c *capabilitySet) exceeds(other *capabilitySet) bool {
	return other == nil ||
		slices.ContainsFunc(c.classes, func(class uint32) bool { return !other.holdsClass(class) }) ||
		slices.ContainsFunc(c.others, func(one analysis.Other) bool { return !slices.Contains(other.others, one) })
}

func (c *capabilitySet) close() {
	if c.native != nil {
		c.native.Close()
	}
}

// bind verifies the user's identity and finds the instance's capability set. The string
// is "analyzed" if the analysis foresaw the instance, else "mispredicted".
func (s *session) bind(request wire.Authenticate) (*capabilitySet, string, error) {
	if s.bound() != nil {
		return nil, "", fmt.Errorf("the session already has a user; open another connection for another user")
	}
	key, known := s.pipeline.services.publicKey(request.Principal)
	if !known {
		return nil, "", fmt.Errorf("principal %q is not known; register its public key", request.Principal)
	}
	text := wire.SignedText(s.task.service(), s.pipeline.name, request.Principal, s.nonce)
	if !ed25519.Verify(key, text, request.Signature[:]) {
		return nil, "", fmt.Errorf("the signature does not match %s's key and this connection's nonce",
			request.Principal)
	}
	return s.bindTo(request.Principal)
}

// bindTo binds the session to a user whose signature has been verified.
func (s *session) bindTo(principal string) (_ *capabilitySet, result string, err error) {
	if err := s.pipeline.sessions.claim(s, principal, s.task.sessionLimits().PerUser); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			s.pipeline.sessions.disclaim(s)
		}
	}()
	s.pipeline.services.Binding.RLock()
	defer s.pipeline.services.Binding.RUnlock()
	holds, who, err := s.decideBinding(principal)
	if err != nil {
		return nil, "", err
	}
	s.hold(holds, who)
	if holds.analyzed {
		return holds, metrics.Analyzed, nil
	}
	s.learnSet()
	return holds, metrics.Mispredicted, nil
}

// decideBinding decides whether the session may be a user's, and returns the instance's
// capability set. Called with binding held for reading.
func (s *session) decideBinding(principal string) (*capabilitySet, decision.Subject, error) {
	values, err := s.pipeline.derive(s.task, principal, s.region)
	if err != nil {
		return nil, decision.Subject{}, err
	}
	holds, err := s.pipeline.capabilities(s.task, values)
	if err != nil {
		return nil, decision.Subject{}, err
	}
	who := s.withConnection(holds.subject, principal)
	leaving := s.pipeline.decideAhead(who, policy.Leave, s.task.entrance.egress())
	if !leaving.Allowed {
		return nil, decision.Subject{}, fmt.Errorf("data may not leave to %s: %s", principal, leaving.Reason)
	}
	if err := s.task.checkFlows(who, s.placements()); err != nil {
		return nil, decision.Subject{}, err
	}
	return holds, who, nil
}

// placements returns the ends that the session holds, in its own slot.
func (s *session) placements() []placement {
	places := slices.Clone(s.task.perSession)
	for i := range places {
		places[i].end.slot = s.slot.number
	}
	return places
}

// answerBound sends the capability set that the session's mode grants. In modes shai and
// audit, documents of its classes are opened natively. In the dynamic modes every open asks
// the monitor.
func (s *session) answerBound(sequence uint64, bound wire.Bound, holds *capabilitySet) error {
	services := s.pipeline.services
	if holds == nil {
		return s.send(sequence, bound)
	}
	native, view := services.nothing, services.filler
	if !s.mode.IsDynamic() {
		native, view, bound.Classes = holds.native, services.viewRoot, holds.classes
	}
	grant, err := native.Grant()
	if err != nil {
		return fmt.Errorf("grant %s its documents: %w", holds.subject.Instance, err)
	}
	defer grant.Release()
	var files []*os.File
	if grant.Decisions != nil {
		bound.Flags |= wire.BoundView | wire.BoundDecisions
		files = append(files, view, grant.Decisions)
	}
	if holds.keyValue != "" {
		connection, err := s.pipeline.keyValueStore().Connect(holds.keyValue)
		if err != nil {
			return fmt.Errorf("connect %s to the key-value store: %w", holds.subject.Instance, err)
		}
		defer connection.Close()
		bound.Flags |= wire.BoundKeyValue
		files = append(files, connection)
	}
	bound.Directories = uint32(len(grant.Directories)) //nolint:gosec // at most wire.DirectoriesMax
	return s.send(sequence, bound, append(files, grant.Directories...)...)
}

// HasSets reports whether any capability set is prepared.
func (p *Pipeline) HasSets() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sets) > 0
}

// capabilities returns the prepared set of an instance. If the analysis did not foresee
// the instance, the set has no classes, so every access asks the monitor, and the
// instance is remembered for the next analysis.
func (p *Pipeline) capabilities(task *Task, values map[string]string) (*capabilitySet, error) {
	name := instanceOf(task, values).Name()
	if holds := p.setOf(name); holds != nil {
		return holds, nil
	}
	singles, err := analysis.RunSingles(p.plan, p.services.state(), instanceOf(task, values), time.Now())
	if err != nil {
		return nil, err
	}
	holds, err := p.prepare(p.services.state(), task, values, &analysis.Capabilities{Others: singles}, false)
	p.madeForSessions.Add(1) // after the key-value user is made: see installAgain
	if err != nil {
		return nil, err
	}
	p.services.predict(p.name, task.name, p.verified(values))
	inForce := p.putSet(holds, true)
	if inForce != holds {
		holds.close()
	}
	return inForce, nil
}

// prepare builds a capability set for a state: taint, perimeter, key-value user.
func (p *Pipeline) prepare(state *catalog.State, task *Task, values map[string]string, found *analysis.Capabilities,
	analyzed bool) (*capabilitySet, error) {
	classes := p.documentClasses(state, found.Reads)
	if err := p.services.View.EnsureClassDirectories(classes); err != nil {
		return nil, err
	}
	instance := instanceOf(task, values)
	name := instance.Name()
	taint, err := taintOf(state.Bind, task.spec, name, values)
	if err != nil {
		return nil, err
	}
	holds := &capabilitySet{
		subject: decision.Subject{
			Task: task.name, Instance: name, Taint: taint,
			Session: &policy.Session{Principal: values["user"], Region: values["region"]},
		},
		instance: instance, classes: classes, analyzed: analyzed, others: found.Others,
	}
	if at, ok := found.NextExpiry(); ok {
		holds.expires = at
	}
	if at, ok := p.plan.Ends(instance); ok {
		holds.ends = at
		if holds.expires.IsZero() || at.Before(holds.expires) {
			holds.expires = at
		}
	}
	directories := make([]string, len(classes))
	for i, class := range classes {
		directories[i] = p.services.View.ClassDirectory(class)
	}
	if holds.native, err = p.services.Backend.PrepareNative(directories); err != nil {
		return nil, fmt.Errorf("prepare the directories of %s: %w", name, err)
	}
	if err := p.installUser(state, holds); err != nil {
		holds.close()
		return nil, err
	}
	return holds, nil
}

// installUser makes the key-value user of a set, if it has tuples. A user that is there, as which sessions may be
// connected, loses what the set does not have, were it all.
func (p *Pipeline) installUser(state *catalog.State, holds *capabilitySet) error {
	grants, store := p.tupleGrants(holds.others), p.keyValueStore()
	if store == nil || len(grants) == 0 && !p.hasUser(store.UserName(holds.subject.Instance)) {
		return nil
	}
	user := kvfilter.User{Name: store.UserName(holds.subject.Instance), Grants: grants}
	p.permitTuples(state, user.Name, holds.others)
	if err := store.Install(context.Background(), []kvfilter.User{user}); err != nil {
		return fmt.Errorf("prepare key-value user of %s: %w", holds.subject.Instance, err)
	}
	holds.keyValue = user.Name
	return nil
}

// hasUser reports whether the store has a user.
func (p *Pipeline) hasUser(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.permitted[name]
	return known
}

// taintOf builds an instance's taint as its task's manifest describes it.
func taintOf(bind Bind, spec manifest.TaskSpec, name string, values map[string]string) (policy.Label, error) {
	var pairs []string
	for known, actual := range values {
		pairs = append(pairs, "{"+known+"}", actual)
	}
	instance := strings.NewReplacer(pairs...) // replaces nothing in a value
	arguments := map[string]string{}
	for parameter, value := range spec.Taint.Arguments {
		arguments[parameter] = instance.Replace(value)
	}
	bound, err := bind(catalog.Reference{Policy: spec.Taint.Name, Arguments: arguments})
	if err != nil {
		return policy.Label{}, fmt.Errorf("taint of %s: %w", name, err)
	}
	return bound.Label(name), nil
}

// tupleGrants returns the instance's validated accesses to tuples, in the form that the
// key-value store uses.
func (p *Pipeline) tupleGrants(accesses []analysis.Other) []kvfilter.Grant {
	var grants []kvfilter.Grant
	for _, conduit := range p.spec.Conduits {
		if conduit.Kind != manifest.KindTuple || conduit.Access == nil {
			continue
		}
		for _, access := range accesses {
			if access.Set != conduit.Name {
				continue
			}
			grant := kvfilter.Grant{Access: kvcommand.Read, Commands: conduit.Access.Read,
				Keys: []string{access.Conduit}}
			if access.Write {
				grant.Access = kvcommand.Write
				if slices.Contains(accesses, analysis.Other{Set: access.Set, Conduit: access.Conduit}) {
					grant.Access |= kvcommand.Read
				}
				grant.Commands = kvcommand.Within(grant.Access, conduit.Access.Write)
			}
			if len(grant.Commands) > 0 {
				grants = append(grants, grant)
			}
		}
	}
	return grants
}

// openConduit opens one document for a session. It decides first, unless the document's
// class is in the capability set.
func (s *session) openConduit(opening *metrics.Interception, who actor, id uint32) (*os.File, unix.Errno) {
	p := s.pipeline
	document, found := p.services.document(id)
	if !found {
		p.refused(metrics.Unknown, who.Subject, "open", fmt.Sprintf("conduit %d", id),
			"there is no conduit with this number", opening)
		return nil, unix.ENOENT
	}
	if !s.mayRead(opening, who, document) {
		return nil, unix.EACCES
	}
	file, err := sandbox.OpenDocument(p.services.viewRoot, document.place)
	if err != nil {
		p.refused(metrics.Unavailable, who.Subject, "open", document.conduit.Name, "open the document: "+err.Error(),
			opening)
		return nil, unix.EIO
	}
	// The monitor may open files that the task's user may not.
	if err := p.checkReadable(file); err != nil {
		file.Close()
		p.refused(metrics.Unavailable, who.Subject, "open", document.conduit.Name, err.Error(), opening)
		return nil, unix.EACCES
	}
	return file, 0
}
