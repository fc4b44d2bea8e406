// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"time"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
)

// Explain implements [api.Service].
func (m *Monitor) Explain(_ context.Context, question api.Question) (api.Explanation, error) {
	title := "explain"
	p, err := m.pipeline(title, question.Pipeline)
	if err != nil {
		return api.Explanation{}, err
	}
	state := m.state()
	conduit, what, err := accessOf(title, state, question.Conduit, question.Access)
	if err != nil {
		return api.Explanation{}, err
	}
	who, err := p.Asked(question.Task, question.Principal, question.Region, what)
	if errors.Is(err, pipeline.ErrNoTask) {
		err = noTask(title, p, question.Task)
	}
	if err != nil {
		return api.Explanation{}, api.Invalid(title, "", "%v", err)
	}
	question.Pipeline = p.Name()
	access := decision.Flow{Who: who.Subject, What: what, Conduit: conduit}
	return decision.Explain(question, access, who.TaintOf, state, time.Now()).InMode(p.Mode().String()), nil
}
