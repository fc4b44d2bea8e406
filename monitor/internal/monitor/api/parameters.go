// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/policy"
)

// modeRequest is the body of a change of mode.
type modeRequest struct {
	Mode string `json:"mode"`
}

func badParameter(name, format string, arguments ...any) error {
	return &Problem{Title: "read parameter " + name, Status: http.StatusBadRequest,
		Detail: fmt.Sprintf(format, arguments...)}
}

// known refuses unknown parameters. If a misspelled one was ignored, the answer would be
// to another question.
func known(values url.Values, names ...string) error {
	for name := range values {
		if !slices.Contains(names, name) {
			return badParameter(name, "it is not one of %s", strings.Join(names, ", "))
		}
	}
	return WellFormed(values)
}

// WellFormed refuses texts that are not UTF-8: they would come back as another name's, since
// answers are JSON.
func WellFormed(values url.Values) error {
	for name, texts := range values {
		for _, text := range texts {
			if !utf8.ValidString(text) {
				return badParameter(name, "%q is not UTF-8, as all names are", text)
			}
		}
	}
	return nil
}

func questionOf(values url.Values) (Question, error) {
	if err := known(values, "pipeline", "principal", "region", "conduit", "access", "task"); err != nil {
		return Question{}, err
	}
	q := Question{
		Pipeline: values.Get("pipeline"), Principal: values.Get("principal"), Region: values.Get("region"),
		Conduit: values.Get("conduit"), Access: values.Get("access"), Task: values.Get("task"),
	}
	if q.Access == "" {
		q.Access = "read"
	}
	switch {
	case q.Access != "read" && q.Access != "write":
		return q, badParameter("access", "%q is neither read nor write", q.Access)
	case q.Conduit == "":
		return q, badParameter("conduit", "it is missing")
	case q.Principal == "" && q.Task == "":
		return q, badParameter("principal", "it is missing, and no task is given either")
	}
	return q, nil
}

func questionValues(q Question) url.Values {
	values := url.Values{}
	for name, value := range map[string]string{
		"pipeline": q.Pipeline, "principal": q.Principal, "region": q.Region,
		"conduit": q.Conduit, "access": q.Access, "task": q.Task,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// defaultReaders is how many users an answer lists if the question does not say.
const defaultReaders = 100

func readersRequestOf(values url.Values) (ReadersRequest, error) {
	if err := known(values, "pipeline", "conduit", "access", "limit"); err != nil {
		return ReadersRequest{}, err
	}
	r := ReadersRequest{Pipeline: values.Get("pipeline"), Conduit: values.Get("conduit"), Access: values.Get("access"),
		Limit: defaultReaders}
	if r.Conduit == "" {
		return r, badParameter("conduit", "it is missing")
	}
	if text := values.Get("limit"); text != "" {
		var err error
		if r.Limit, err = strconv.Atoi(text); err != nil || r.Limit < 1 || r.Limit > MaxReaders {
			return r, badParameter("limit", "%q is not a number from 1 to %d", text, MaxReaders)
		}
	}
	return r, nil
}

func (r ReadersRequest) values() url.Values {
	values := url.Values{"conduit": {r.Conduit}, "limit": {strconv.Itoa(r.Limit)}}
	for name, value := range map[string]string{"pipeline": r.Pipeline, "access": r.Access} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

func auditQueryOf(values url.Values) (audit.Query, error) {
	if err := known(values, "kind", "principal", "conduit", "task", "since", "allowed", "limit", "follow"); err != nil {
		return audit.Query{}, err
	}
	q := audit.Query{Principal: values.Get("principal"), Conduit: values.Get("conduit"), Task: values.Get("task")}
	for _, kind := range values["kind"] {
		if !slices.Contains(audit.Kinds, audit.Kind(kind)) {
			return q, badParameter("kind", "%q is not a kind of record", kind)
		}
		q.Kinds = append(q.Kinds, audit.Kind(kind))
	}
	var err error
	if text := values.Get("since"); text != "" {
		if q.Since, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return q, badParameter("since", "%q is not an RFC 3339 time", text)
		}
	}
	if text := values.Get("allowed"); text != "" {
		allowed, err := strconv.ParseBool(text)
		if err != nil {
			return q, badParameter("allowed", "%q is neither true nor false", text)
		}
		q.Allowed = &allowed
	}
	if text := values.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 0 || q.Limit > 1_000_000 {
			return q, badParameter("limit", "%q is not a number from 0 to 1000000", text)
		}
	}
	if text := values.Get("follow"); text != "" {
		if q.Follow, err = strconv.ParseBool(text); err != nil {
			return q, badParameter("follow", "%q is neither true nor false", text)
		}
	}
	return q, nil
}

func auditValues(q audit.Query) url.Values {
	values := url.Values{}
	for _, kind := range q.Kinds {
		values.Add("kind", string(kind))
	}
	for name, value := range map[string]string{"principal": q.Principal, "conduit": q.Conduit, "task": q.Task} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if !q.Since.IsZero() {
		values.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if q.Allowed != nil {
		values.Set("allowed", strconv.FormatBool(*q.Allowed))
	}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Follow {
		values.Set("follow", "true")
	}
	return values
}

// check refuses facts that no conduit can hold.
func (c FactChange) check() error {
	if len(c.Add)+len(c.Remove) == 0 {
		return Invalid("change facts", "give facts to add or to remove", "there are none")
	}
	for _, fact := range slices.Concat(c.Remove, c.Add) {
		what := fmt.Sprintf("change fact %q says %s%s", fact.Conduit, fact.Says, fact.Tuple)
		switch {
		case fact.Conduit == "" || fact.Says == "":
			return Invalid(what, "give conduit, says and tuple", "the conduit or the relation is missing")
		case slices.Contains(fact.Tuple.Values(), policy.Value{}):
			return Invalid(what, "name every value", "a fact has no wildcards")
		}
	}
	return nil
}
