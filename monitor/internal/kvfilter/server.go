// SPDX-License-Identifier: BSD-2-Clause

package kvfilter

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Secrets are known to the monitor and the store, but not to tasks.
type Secrets struct {
	// AuthCommand is the name of AUTH in this store. A task does not know it, so the task
	// cannot authenticate its connection as another user, even with a password that it
	// has learned.
	AuthCommand string
	// ResetCommand is the name of RESET. A supervisor resets a connection with it between
	// two users.
	ResetCommand string
	// Administrator is the monitor's own user.
	Administrator string
	Password      string
}

// ReadSecrets reads the file that "shai keyvalue configure" has written.
func ReadSecrets(path string) (Secrets, error) {
	var secrets Secrets
	text, err := os.ReadFile(path)
	if err != nil {
		return secrets, fmt.Errorf("read key-value secrets: %w", err)
	}
	if err := json.Unmarshal(text, &secrets); err != nil {
		return secrets, fmt.Errorf("read key-value secrets %s: %w", path, err)
	}
	return secrets, nil
}

// NewSecrets draws new secrets, for one run of the store.
func NewSecrets() Secrets {
	return Secrets{AuthCommand: "auth-" + randomHex(), ResetCommand: "reset-" + randomHex(),
		Administrator: "shai-monitor", Password: randomHex()}
}

// randomHex returns 256 random bits. crypto/rand.Read never fails.
func randomHex() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:])
	return hex.EncodeToString(bits[:])
}

// HashPassword returns a password in the form that ACL rules use. The passwords here are
// random 256-bit strings, for which a plain SHA-256 is enough.
func HashPassword(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// Server describes where the store keeps its socket and its data.
type Server struct {
	Socket    string // absolute path of the unix socket; there is no network port
	Directory string // absolute path; append-only file and snapshots
	Persist   bool   // keep tuples across restarts (append-only file, fsync each second)
}

// Configuration returns the text of the configuration file to start redis-server with. It
// contains the administrator's password hash and the secret name of AUTH: write it with
// mode 0600, where no task can read it.
//
// AUTH, HELLO, RESET and QUIT bypass access lists in the store (they must work before
// authentication). Renaming is the only way to take the first three from tasks. The monitor and
// supervisors use AUTH and RESET by their new names, and HELLO is not needed.
func Configuration(server Server, secrets Secrets) (string, error) {
	for _, path := range []string{server.Socket, server.Directory} {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\"\\\r\n") {
			return "", fmt.Errorf("key-value store: path %q must be absolute, without quotes, backslashes and line breaks", path)
		}
	}
	if err := checkUserName(secrets.Administrator); err != nil {
		return "", err
	}
	appendOnly := "no"
	if server.Persist {
		appendOnly = "yes"
	}
	lines := []string{
		"port 0",
		fmt.Sprintf("unixsocket %q", server.Socket),
		"unixsocketperm 700",
		fmt.Sprintf("dir %q", server.Directory),
		"databases 1",
		"daemonize no",
		`save ""`,
		"appendonly " + appendOnly,
		"appendfsync everysec",
		"maxclients 20000",
		"enable-protected-configs no",
		"enable-debug-command no",
		"enable-module-command no",
		"acl-pubsub-default resetchannels",
		"acllog-max-len 128",
		"user default off resetpass resetkeys resetchannels -@all",
		fmt.Sprintf("user %s on #%s ~* resetchannels +@all -@scripting -@pubsub", secrets.Administrator,
			HashPassword(secrets.Password)),
		"rename-command AUTH " + secrets.AuthCommand,
		`rename-command HELLO ""`,
		"rename-command RESET " + secrets.ResetCommand,
	}
	return strings.Join(lines, "\n") + "\n", nil
}
