// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
)

// ItemPolicy implements [api.Service].
func (m *Monitor) ItemPolicy(_ context.Context, conduit string) (api.ItemPolicy, error) {
	item, ok := m.catalog.Item(conduit)
	if !ok {
		return api.ItemPolicy{}, noItem(conduit)
	}
	return itemPolicy(conduit, item), nil
}

func noItem(conduit string) error {
	return api.NotFound("policy of "+conduit, "give the path that the pipeline has; shai ingest catalogues a file",
		"it is no document that is catalogued")
}

func itemPolicy(conduit string, item catalog.Item) api.ItemPolicy {
	name, _, _ := strings.Cut(item.Set, "/")
	out := api.ItemPolicy{Pipeline: name, Conduit: conduit, Number: item.Number, Policy: item.Policy.String(),
		ChosenBy: item.By, Choices: []api.PolicyChoice{}, Nonce: item.Nonce}
	for _, one := range item.Choices {
		out.Choices = append(out.Choices, api.PolicyChoice{Principal: one.By, Policy: one.Policy.String()})
	}
	return out
}

// passedOn says which session's task has passed a choice on; it is empty for one that comes by the API.
type passedOn struct{ task, instance string }

// ChoosePolicy implements [api.Service].
func (m *Monitor) ChoosePolicy(ctx context.Context, request api.ChoiceRequest) (api.ChoiceResult, error) {
	return m.chooseFor(ctx, passedOn{}, request)
}

// chooseFor makes a choice. For sessions that begin, it is one step, like a change of facts. Whatever is
// refused is refused before it waits for other changes: anybody's task can ask.
func (m *Monitor) chooseFor(ctx context.Context, by passedOn, request api.ChoiceRequest) (api.ChoiceResult, error) {
	if result, _, err := m.checkChoice(request); err != nil {
		m.recordRefused(by, request, result, err)
		return result, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	result, err := m.choosePolicy(ctx, request)
	if err != nil {
		m.recordRefused(by, request, result, err)
	} else {
		m.recordChosen(by, request, result)
	}
	return result, err
}

// choiceEvent describes a choice, made or not. What a policy is called is recorded only if the principal may
// choose it: else a task could write any text into the log.
func choiceEvent(by passedOn, request api.ChoiceRequest, result api.ChoiceResult) audit.Event {
	event := audit.Event{Principal: request.Principal, Operation: "choose", Pipeline: result.Pipeline, Task: by.task,
		Instance: by.instance, Conduit: request.Conduit}
	if slices.Contains(result.Choices, api.PolicyChoice{Principal: request.Principal, Policy: request.Policy}) {
		event.Policy = request.Policy
	}
	return event
}

func (m *Monitor) recordRefused(by passedOn, request api.ChoiceRequest, result api.ChoiceResult, why error) {
	event := choiceEvent(by, request, result)
	event.Kind, event.Reason = audit.Denial, why.Error()
	m.record(event)
}

// recordChosen records what has happened, as checkChoice has promised: not even a disk that is full since
// then keeps it out of the log. Choices are made one by one, so few are promised at a time.
func (m *Monitor) recordChosen(by passedOn, request api.ChoiceRequest, result api.ChoiceResult) {
	event := choiceEvent(by, request, result)
	event.Kind, event.Allowed, event.Reason = audit.Document, true, "before: "+result.Before
	m.lost(event, m.audit.AppendPromised(event))
}

// checkChoice decides on a choice by the state of this moment, and returns the policy that it names.
func (m *Monitor) checkChoice(request api.ChoiceRequest) (api.ChoiceResult, catalog.Reference, error) {
	item, ok := m.catalog.Item(request.Conduit)
	if !ok {
		return api.ChoiceResult{}, catalog.Reference{}, noItem(request.Conduit)
	}
	result := api.ChoiceResult{ItemPolicy: itemPolicy(request.Conduit, item), Before: item.Policy.String()}
	if err := m.verifyChoice(result.Pipeline, request); err != nil {
		return result, catalog.Reference{}, err
	}
	chosen := chosenPolicy(item, request)
	if err := item.Check(request.Principal, chosen, request.Nonce); err != nil {
		return result, catalog.Reference{}, refusedChoice(result, request, err)
	}
	if !m.audit.CanPromise() { // users could fill the reserve, which is for changes of administrators
		return result, catalog.Reference{}, api.Unavailable("choose a policy",
			"try again when the monitor is ready (shai status)", "the choice cannot be recorded")
	}
	return result, chosen, nil
}

// choosePolicy checks a choice again, because keys, bundle and document may have changed while it has
// waited. Called with changing held.
func (m *Monitor) choosePolicy(ctx context.Context, request api.ChoiceRequest) (api.ChoiceResult, error) {
	result, chosen, err := m.checkChoice(request)
	if err != nil {
		return result, err
	}
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	change, err := m.catalog.Choose(request.Conduit, request.Principal, chosen, request.Nonce)
	if err != nil && !errors.Is(err, catalog.ErrView) {
		return result, refusedChoice(result, request, err) // the file, or the time, has changed since the check
	}
	defer m.outdate()()
	result.SessionsReset, err = m.followMove(ctx, change)
	if err != nil {
		m.logger.Error("the monitor decides on a document when it is read", "conduit", request.Conduit, "error", err)
	}
	if item, ok := m.catalog.Item(request.Conduit); ok {
		result.ItemPolicy = itemPolicy(request.Conduit, item)
	}
	return result, nil
}

// verifyChoice checks who makes a choice, by the key with which he logs in.
func (m *Monitor) verifyChoice(pipeline string, request api.ChoiceRequest) error {
	key, known := m.state().PrincipalKey(request.Principal)
	signature, err := hex.DecodeString(request.Signature)
	if !known || err != nil || !ed25519.Verify(key, api.SignedChoice(pipeline, request), signature) {
		return api.Denied("choose a policy", "sign the choice with the key with which this principal logs in",
			"the signature is not of principal %q and this choice", request.Principal)
	}
	return nil
}

// chosenPolicy returns the policy that a request names, if it is one of the choices for the item.
// Any other one is not permitted.
func chosenPolicy(item catalog.Item, request api.ChoiceRequest) catalog.Reference {
	for _, one := range item.Choices {
		if one.By == request.Principal && one.Policy.String() == request.Policy {
			return one.Policy
		}
	}
	return catalog.Reference{}
}

func refusedChoice(about api.ChoiceResult, request api.ChoiceRequest, err error) error {
	switch {
	case errors.Is(err, catalog.ErrOutdated):
		return api.Conflict("choose a policy", "ask for the document's policy again, and sign what it says",
			"something else was chosen for the document meanwhile, its content is new, or the offer is older than 10 minutes")
	case errors.Is(err, catalog.ErrNotPermitted):
		remedy := "add a choice to the path of the conduit, in the Pipeline"
		if permitted := choosable(about.ItemPolicy, request.Principal); len(permitted) > 0 {
			remedy = "choose " + strings.Join(permitted, " or ")
		}
		return api.Denied("choose a policy", remedy, "the pipeline does not let %q choose this policy for %s",
			request.Principal, request.Conduit)
	}
	return err
}

// choosable returns the policies that a principal may choose for a document.
func choosable(about api.ItemPolicy, principal string) (policies []string) {
	for _, one := range about.Choices {
		if one.Principal == principal {
			policies = append(policies, one.Policy)
		}
	}
	return policies
}

// followMove lets analyses and live sessions follow a document that has moved to another class. It
// decides at once for the instances with sessions; others are decided on in the background. It
// returns the number of sessions that have ended. Called with changing and Binding held.
func (m *Monitor) followMove(ctx context.Context, change *catalog.Change) (reset int, err error) {
	if change.Taken {
		reset, err = m.followConduits(ctx, change)
	}
	m.postpone(change)
	failures := []error{err}
	for _, name := range slices.Sorted(maps.Keys(m.pipelines)) {
		p := m.pipelines[name]
		failures = append(failures, m.decideForActive(ctx, p, change.Classes))
		for _, move := range change.Moved {
			reset += p.EndStale([]uint32{move.To})
			reset += p.EndWithout(move, change.After)
		}
		settle(p)
	}
	return reset, errors.Join(failures...)
}

// decideForActive decides on classes for the instances with sessions. Called with changing and
// Binding held.
func (m *Monitor) decideForActive(ctx context.Context, p *pipeline.Pipeline, classes []uint32) error {
	known := m.analyses[p.Name()]
	if len(classes) == 0 || known == nil || known.result == nil || known.plan != p.Plan() ||
		!known.result.Current(m.state()) {
		return nil
	}
	s, affected := m.decided(ctx, p.Name(), classes, p.ActiveInstances())
	if s.err != nil {
		return s.err
	}
	ending, err := m.putInForce(s)
	ending.Wait()
	if err == nil {
		publish(p, affected)
	}
	return err
}
