// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/kvfilter"
)

// keyValueFiles are the files that keyvalue configure writes.
type keyValueFiles struct {
	Configuration string `json:"configuration"` // for redis-server
	Secrets       string `json:"secrets"`       // for shai monitor --secrets
	Socket        string `json:"socket"`
}

func (p *program) keyValueCommand() *cobra.Command {
	return group("keyvalue", "Prepare the key-value store that holds tuples", p.keyValueConfigureCommand())
}

func (p *program) keyValueConfigureCommand() *cobra.Command {
	var directory, store string
	var persist bool
	command := &cobra.Command{
		Use:   "configure --directory DIR",
		Short: "Write the configuration and the secrets of a confined key-value store",
		Long: `Write a configuration for redis-server or valkey-server in which no user has any
rights until the monitor grants them, and the secrets with which the monitor is its
administrator. Start the store with the configuration and the monitor with the
secrets. The secrets are new each time: restart both after running this again.`,
		Example: `  shai keyvalue configure --directory /var/lib/shai/keyvalue
  redis-server /var/lib/shai/keyvalue/redis.conf
  shai monitor --secrets /var/lib/shai/keyvalue/secrets.json --data /srv/data --state /var/lib/shai`,
		Args: cobra.NoArgs,
		RunE: p.does(func(context.Context, []string) error {
			files, err := configureKeyValue(directory, store, persist)
			if err != nil {
				return fmt.Errorf("configure key-value store: %w", err)
			}
			return p.print(files, func(w io.Writer) {
				fmt.Fprintf(w, "configuration  %s\nsecrets        %s\nsocket         %s\n",
					files.Configuration, files.Secrets, files.Socket)
			})
		}),
	}
	f := command.Flags()
	f.StringVar(&directory, "directory", "",
		"directory for the configuration, the secrets and the store's data; made if it is missing")
	f.StringVar(&store, "store-socket", "", "unix socket that the store listens on; default DIR/redis.sock")
	f.BoolVar(&persist, "persist", false, "keep tuples across restarts of the store")
	_ = command.MarkFlagRequired("directory")
	_ = command.MarkFlagDirname("directory")
	return command
}

// configureKeyValue draws secrets and writes both files, readable by the owner only.
func configureKeyValue(directory, store string, persist bool) (keyValueFiles, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return keyValueFiles{}, err
	}
	directory, err := realDirectory(directory)
	if err != nil {
		return keyValueFiles{}, err
	}
	if store == "" {
		store = filepath.Join(directory, "redis.sock")
	}
	if store, err = filepath.Abs(store); err != nil {
		return keyValueFiles{}, err
	}
	files := keyValueFiles{
		Configuration: filepath.Join(directory, "redis.conf"),
		Secrets:       filepath.Join(directory, "secrets.json"),
		Socket:        store,
	}
	secrets := kvfilter.NewSecrets()
	text, err := kvfilter.Configuration(kvfilter.Server{Socket: store, Directory: directory, Persist: persist}, secrets)
	if err != nil {
		return keyValueFiles{}, err
	}
	encoded, err := json.Marshal(secrets) //nolint:gosec // the file of secrets is what is written here, with mode 0600
	if err != nil {
		return keyValueFiles{}, err
	}
	for name, content := range map[string][]byte{files.Configuration: []byte(text), files.Secrets: encoded} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return keyValueFiles{}, err
		}
	}
	return files, nil
}
