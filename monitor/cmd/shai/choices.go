// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/plainfile"
)

func (p *program) policyChoicesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "choices CONDUIT",
		Short: "Show the policy of one document, and who may choose which",
		Long: `Show which policy one document has, and which other ones the pipeline lets principals
choose for it (choices of its path in the Pipeline). Without choices, nobody may choose.`,
		Example: `  shai policy choices /corpus/friends/alice/1.txt`,
		Args:    takes("CONDUIT"),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			client, err := p.client()
			if err != nil {
				return err
			}
			item, err := client.ItemPolicy(ctx, arguments[0])
			if err != nil {
				return err
			}
			return p.print(item, func(w io.Writer) { printItem(w, item) })
		}),
	}
}

func (p *program) policySetCommand() *cobra.Command {
	var principal, keyFile string
	command := &cobra.Command{
		Use:   "set CONDUIT POLICY",
		Short: "Choose the policy of one document, as its owner",
		Long: `Choose another policy for one document, as a principal whom the pipeline lets do so. The
choice is signed with the key with which the principal logs in, which does not leave this
program. It is durable, and stays in force for new content of the same name, for as long as
the pipeline permits it.

POLICY is one of those that "shai policy choices" shows, or only its name, if the principal
has one choice of this name. The key is an Ed25519 key in PEM (PKCS #8), as made by
"openssl genpkey -algorithm ed25519".`,
		Example: `  shai policy set /corpus/friends/alice/1.txt private --principal alice --principal-key alice.pem
  shai policy set /corpus/friends/alice/1.txt 'friends(owner: "alice")' --principal alice \
    --principal-key alice.pem`,
		Args: takes("CONDUIT", "POLICY"),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			return p.choosePolicy(ctx, arguments[0], arguments[1], principal, keyFile)
		}),
	}
	command.Flags().StringVar(&principal, "principal", "", "who chooses")
	command.Flags().StringVar(&keyFile, "principal-key", "", "PEM file with the principal's private key")
	_ = command.MarkFlagRequired("principal")
	_ = command.MarkFlagRequired("principal-key")
	return command
}

func (p *program) choosePolicy(ctx context.Context, conduit, policy, principal, keyFile string) error {
	key, err := readPrincipalKey(keyFile)
	if err != nil {
		return err
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	item, err := client.ItemPolicy(ctx, conduit)
	if err != nil {
		return err
	}
	if policy, err = choiceNamed(item, principal, policy); err != nil {
		return err
	}
	request := api.ChoiceRequest{Conduit: conduit, Principal: principal, Policy: policy, Nonce: item.Nonce}
	request.Signature = hex.EncodeToString(ed25519.Sign(key, api.SignedChoice(item.Pipeline, request)))
	result, err := client.ChoosePolicy(ctx, request)
	if err != nil {
		return err
	}
	return p.print(result, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s, before: %s; %s reset\n", printable(conduit), result.Policy, result.Before,
			counted(result.SessionsReset, "session"))
	})
}

// choiceNamed returns the choice of a principal that a text names: as a whole, or by the name of
// its policy.
func choiceNamed(item api.ItemPolicy, principal, text string) (string, error) {
	var named, all []string
	for _, one := range item.Choices {
		if one.Principal != principal {
			continue
		}
		all = append(all, one.Policy)
		if one.Policy == text {
			return text, nil
		}
		if name, _, _ := strings.Cut(one.Policy, "("); name == text {
			named = append(named, one.Policy)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(all) == 0:
		return "", fmt.Errorf("pipeline %s lets %q choose nothing for %s; add choices to the path of the conduit", item.Pipeline,
			principal, item.Conduit)
	}
	return "", fmt.Errorf("%q may not choose %s for %s; expected %s", principal, text, item.Conduit,
		strings.Join(all, " or "))
}

// largestKey is more than a PEM file with one key and its comments has.
const largestKey = 64 << 10

// readPrincipalKey reads an Ed25519 key from a PEM file.
func readPrincipalKey(file string) (ed25519.PrivateKey, error) {
	text, err := plainfile.Read(file, largestKey)
	if err != nil {
		return nil, fmt.Errorf("read the principal's key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("read the principal's key: %s is no PEM file; make one with openssl genpkey -algorithm ed25519",
			file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err == nil && !ok {
		err = errors.New("it is no Ed25519 key")
	}
	if err != nil {
		return nil, fmt.Errorf("read the principal's key %s: %w; make one with openssl genpkey -algorithm ed25519", file, err)
	}
	return key, nil
}

func printItem(w io.Writer, item api.ItemPolicy) {
	fmt.Fprintf(w, "%s of pipeline %s: %s", printable(item.Conduit), item.Pipeline, item.Policy)
	if item.ChosenBy != "" {
		fmt.Fprintf(w, ", chosen by %s", printable(item.ChosenBy))
	}
	if len(item.Choices) == 0 {
		fmt.Fprint(w, "\nnobody may choose another policy for it\n")
		return
	}
	fmt.Fprint(w, "\n\n")
	rows := [][]string{{"PRINCIPAL", "MAY CHOOSE"}}
	for _, one := range item.Choices {
		rows = append(rows, []string{printable(one.Principal), one.Policy})
	}
	table(w, rows)
}
