// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"shai.dev/monitor/internal/plainfile"
)

// Key is the secret with which the monitor seals records (HMAC-SHA256). Without it nobody
// can change, remove or replace a record unnoticed. It protects nothing from those who can
// read it, such as root.
type Key struct {
	secret []byte
	id     string // names the key without revealing it
}

// A key file holds one line: this format's name and the key, in hexadecimal.
const (
	keyFormat = "shai-audit-key-1 "
	keyLength = sha256.Size
)

// errNoKey says that a log was written with a key and is read without one.
var errNoKey = errors.New("it is sealed with the monitor's key; give the key's file with --audit-key")

// KeyFile returns the default path of a log's key: beside the log, not in it, so that
// those who may write the log only cannot read the key.
func KeyFile(directory string) string { return filepath.Clean(directory) + ".key" }

// ReadKey reads a key from a file that the monitor has made.
func ReadKey(path string) (*Key, error) {
	file, err := plainfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read key of the audit log: %w", err)
	}
	text, err := readSmall(file, "restore the file from a backup")
	if err != nil {
		return nil, fmt.Errorf("read key of the audit log: %w", err)
	}
	digits, isKey := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), keyFormat)
	secret, err := hex.DecodeString(digits)
	if !isKey || err != nil || len(secret) != keyLength {
		return nil, fmt.Errorf("read key of the audit log: %s is not a key that a monitor has made; "+
			"restore the file from a backup", path)
	}
	return newKey(secret), nil
}

func newKey(secret []byte) *Key {
	key := &Key{secret: secret}
	key.id = key.mac([]byte("the name of this key"))[:16]
	return key
}

func (k *Key) mac(text []byte) string {
	digest := hmac.New(sha256.New, k.secret)
	digest.Write(text)
	return hex.EncodeToString(digest.Sum(nil))
}

// ownKey reads the key of a log that is about to be written, or makes it.
func ownKey(directory string) (*Key, error) {
	path := KeyFile(directory)
	about, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if sealed(directory) {
			return nil, fmt.Errorf("open audit log %s: its key %s is missing; restore it from a backup, "+
				"or move the log away to begin another", directory, path)
		}
		return makeKey(path)
	case err != nil:
		return nil, fmt.Errorf("open key of the audit log: %w", err)
	case about.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("open key of the audit log: other users have access to %s (mode %04o); "+
			"close it with chmod 600, and move the log away if they may have read the key", path, about.Mode().Perm())
	}
	return ReadKey(path)
}

// sealed reports whether a log was written with a key.
func sealed(directory string) bool {
	if _, err := os.Stat(witnessFile(directory)); err == nil {
		return true
	}
	text, err := readHeadText(filepath.Join(directory, headName))
	return err == nil && strings.HasPrefix(string(text), headFormat)
}

// makeKey makes a key. The file is complete when it gets its name.
func makeKey(path string) (*Key, error) {
	secret := make([]byte, keyLength)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("make key of the audit log: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("make key of the audit log: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = fmt.Fprintf(file, "%s%x\n", keyFormat, secret)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("make key of the audit log: %w", err)
	}
	return newKey(secret), nil
}
