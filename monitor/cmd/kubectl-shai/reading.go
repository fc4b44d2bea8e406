// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/reading"
)

const (
	readingKind = "memberreadings"
	// pollEvery is the time between two looks at a reading: a member answers in milliseconds.
	pollEvery = 100 * time.Millisecond
	// cleanUpTime limits the removal of a reading of which nobody waits for an answer any more.
	cleanUpTime = 10 * time.Second
)

// reader asks members for what they show to administrators only. Each question is an object of the
// kind MemberReading with a key of its own; only this program can open the answer.
type reader struct {
	kubectl kubectl
	member  string
	timeout time.Duration
	user    string // as the API server names it; asked for once
}

// flags adds the flags of all commands that read.
func (r *reader) flags(command *cobra.Command) {
	command.Flags().StringVar(&r.member, "member", "", "the member that answers; default: the run's, or the first that can")
	command.Flags().DurationVar(&r.timeout, "timeout", time.Minute, "how long to wait for each page")
}

// question is the spec of a MemberReading without its reader.
type question struct {
	Pipeline string                 `json:"pipeline,omitempty"`
	Log      *logQuestion           `json:"log,omitempty"`
	Explain  *accessQuestion        `json:"explain,omitempty"`
	Audit    *reading.AuditQuestion `json:"audit,omitempty"`
}

type accessQuestion struct {
	Principal string `json:"principal,omitempty"`
	Region    string `json:"region,omitempty"`
	Task      string `json:"task,omitempty"`
	Conduit   string `json:"conduit"`
	Access    string `json:"access"`
}

type logQuestion struct {
	TaskRun   string `json:"taskRun,omitempty"`
	Task      string `json:"task,omitempty"`
	Principal string `json:"principal,omitempty"`
	Region    string `json:"region,omitempty"`
	Previous  bool   `json:"previous,omitempty"`
	Before    string `json:"before,omitempty"`
}

// read asks one question, and returns the answer and the member that gave it. Later questions go to
// the same member.
func (r *reader) read(ctx context.Context, asked question) (reading.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	key, err := reading.NewKey()
	if err != nil {
		return reading.Answer{}, err
	}
	name, err := r.create(ctx, asked, key.Recipient())
	if err != nil {
		return reading.Answer{}, err
	}
	defer r.remove(ctx, name)
	found, err := r.await(ctx, name)
	if err != nil {
		return reading.Answer{}, err
	}
	answer, err := key.Open(found.Status.Sealed)
	if err == nil && answer.Refusal != "" {
		err = fmt.Errorf("member %s: %s", found.Status.Member, answer.Refusal)
	}
	r.member = found.Status.Member
	return answer, err
}

func (r *reader) create(ctx context.Context, asked question, recipient []byte) (string, error) {
	if err := r.whoami(ctx); err != nil {
		return "", err
	}
	name := "reading-" + strings.ToLower(rand.Text()[:16])
	object := map[string]any{
		"apiVersion": "shai.dev/v1alpha1", "kind": "MemberReading", "metadata": map[string]string{"name": name},
		"spec": struct {
			User      string `json:"user"`
			PublicKey []byte `json:"publicKey"`
			Member    string `json:"member,omitempty"`
			question
		}{r.user, recipient, r.member, asked},
	}
	text, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	_, err = r.kubectl.give(ctx, text, "create", "--filename=-", "--output=name")
	return name, explained(err)
}

// explained adds to the API server's refusals what its user can do.
func explained(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "cannot create resource \"memberreadings\""):
		return fmt.Errorf("%w\nthe role shai-member-reader has this right; an administrator of the cluster gives it: "+
			"kubectl -n NAMESPACE create rolebinding NAME --clusterrole=shai-member-reader --user=USER", err)
	case strings.Contains(err.Error(), "no matches for kind \"MemberReading\""):
		return fmt.Errorf("%w\nthe kind is missing; apply it: kubectl apply --server-side -k crds", err)
	}
	return err
}

// whoami asks the API server who its user is.
func (r *reader) whoami(ctx context.Context) error {
	if r.user != "" {
		return nil
	}
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	text, err := r.kubectl.run(ctx, "auth", "whoami", "--output=json")
	if err == nil {
		err = json.Unmarshal(text, &review)
	}
	r.user = review.Status.UserInfo.Username
	return err
}

// await waits until a reading has been answered or refused.
func (r *reader) await(ctx context.Context, name string) (object, error) {
	for {
		found, err := r.kubectl.get(ctx, readingKind, name)
		said := found.find("Succeeded")
		switch {
		case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
			return object{}, fmt.Errorf("there was no answer within %v; see whether the operator runs: "+
				"kubectl -n shai-system get pods", r.timeout)
		case ctx.Err() != nil:
			return object{}, ctx.Err()
		case err != nil:
			return object{}, err
		case found.Status.CompletionTime != "" && said.Status == "True":
			return found, nil
		case found.Status.CompletionTime != "":
			return object{}, fmt.Errorf("%s: %s", said.Reason, said.Message)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

// remove deletes a reading. If that fails, the operator deletes it after a minute.
func (r *reader) remove(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	_, _ = r.kubectl.run(ctx, "delete", readingKind+".shai.dev", name, "--wait=false", "--ignore-not-found")
}
