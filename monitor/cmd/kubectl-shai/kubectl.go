// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// kubectl makes requests to the API server with the user's own kubectl, which knows every way to log
// in that a kubeconfig can name.
type kubectl struct {
	program, namespace, context, kubeconfig string
}

// run runs kubectl and returns what it prints.
func (k kubectl) run(ctx context.Context, arguments ...string) ([]byte, error) {
	return k.give(ctx, nil, arguments...)
}

// give runs kubectl with an input.
func (k kubectl) give(ctx context.Context, input []byte, arguments ...string) ([]byte, error) {
	all := arguments
	for flag, value := range map[string]string{
		"--namespace": k.namespace, "--context": k.context, "--kubeconfig": k.kubeconfig,
	} {
		if value != "" {
			all = append(all, flag+"="+value)
		}
	}
	command := exec.CommandContext(ctx, k.program, all...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &stdout, &stderr
	err := command.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%s is not in PATH; install kubectl, or give --kubectl", k.program)
	case err != nil && stderr.Len() > 0:
		return nil, errors.New(strings.TrimSpace(stderr.String()))
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", k.program, strings.Join(arguments, " "), err)
	}
	return stdout.Bytes(), nil
}

// get reads one object.
func (k kubectl) get(ctx context.Context, kind, name string) (object, error) {
	var found object
	text, err := k.run(ctx, "get", kind+".shai.dev", name, "--output=json")
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	return found, err
}

// list reads the objects of a kind, of all namespaces if all is set.
func (k kubectl) list(ctx context.Context, kind string, all bool) ([]object, error) {
	arguments := []string{"get", kind + ".shai.dev", "--output=json"}
	if all {
		arguments = append(arguments, "--all-namespaces")
	}
	var found struct {
		Items []object `json:"items"`
	}
	text, err := k.run(ctx, arguments...)
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	return found.Items, err
}

// patch merges a change into an object.
func (k kubectl) patch(ctx context.Context, kind, name string, change any) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = k.run(ctx, "patch", kind+".shai.dev", name, "--type=merge", "--patch="+string(text))
	return err
}
