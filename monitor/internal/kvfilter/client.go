// SPDX-License-Identifier: BSD-2-Clause

package kvfilter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ErrUnknownUser is returned for a user that was never installed, or was removed.
var ErrUnknownUser = errors.New("key-value user is not installed")

const (
	dialTimeout  = 5 * time.Second
	replyTimeout = 30 * time.Second
	batchSize    = 512 // users per pipelined batch; limits the size of the buffers
)

// User holds the rights of one task instance.
type User struct {
	Name   string // Store.UserName(instance)
	Grants []Grant
}

// Store installs the users of one pipeline in a running key-value store and returns
// connections that are authenticated as them. It draws the passwords, which never leave
// the process. It is safe for concurrent use.
type Store struct {
	socket  string
	secrets Secrets
	prefix  string // of its users' names; no other Store has the same

	exchange sync.Mutex // one pipeline at a time on the administrator's connection
	admin    redis.Conn

	mu        sync.RWMutex
	passwords map[string]string // installed users only
}

// Open connects to the store as its administrator, for a pipeline. It removes all users of
// pipelines of this name: an earlier Store left them there when its monitor was killed. It
// cannot tell them from users of a monitor that still runs, so a key-value store serves one
// monitor. The caller closes the Store.
func Open(ctx context.Context, socket string, secrets Secrets, pipeline string) (*Store, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the key-value store at %s: %w; is redis-server running?", socket, err)
	}
	admin := redis.NewConn(connection, replyTimeout, replyTimeout)
	if _, err := admin.Do(secrets.AuthCommand, secrets.Administrator, secrets.Password); err != nil {
		_ = admin.Close()
		return nil, fmt.Errorf("authenticate at the key-value store %s: %w; was it started with this monitor's configuration?", socket, err)
	}
	if secrets.ResetCommand == "" {
		_ = admin.Close()
		return nil, fmt.Errorf("the secrets of the key-value store %s are of an earlier version; run shai keyvalue configure "+
			"again and restart the store", socket)
	}
	store := &Store{socket: socket, secrets: secrets, admin: admin, passwords: make(map[string]string),
		prefix: userPrefix(pipeline) + randomHex()[:16] + "-"}
	if err := store.removeEarlier(userPrefix(pipeline)); err != nil {
		_ = admin.Close()
		return nil, err
	}
	return store, nil
}

func (s *Store) removeEarlier(prefix string) error {
	names, err := redis.Strings(s.admin.Do("ACL", "USERS"))
	if err != nil {
		return fmt.Errorf("list the users of the key-value store %s: %w", s.socket, err)
	}
	return s.remove(slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) }))
}

// UserName returns the user of a task instance. Another Store has another for the same
// instance, so that closing one leaves the users of the other.
func (s *Store) UserName(instance string) string { return s.prefix + shortHash(instance) }

// Close removes the Store's users, which ends their connections, and ends the
// administrator's connection.
func (s *Store) Close() error {
	err := s.Retain(nil)
	s.exchange.Lock()
	defer s.exchange.Unlock()
	return errors.Join(err, s.admin.Close())
}

// Install gives users exactly the rights of their grants. A user that exists is replaced
// in one step, and its open connections get the new rights at once. After an error, every
// user of the call has either its old rights or its new ones, and Connect refuses the
// users that are new. A repeated call completes the work.
func (s *Store) Install(ctx context.Context, users []User) error {
	for len(users) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("install key-value users: %w", err)
		}
		batch := users[:min(batchSize, len(users))]
		users = users[len(batch):]
		if err := s.installBatch(batch); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) installBatch(users []User) error {
	commands := make([][]any, 0, len(users))
	drawn := make(map[string]string, len(users))
	for _, user := range users {
		password, known := s.password(user.Name)
		if !known {
			password = randomHex()
		}
		rules, err := ACLRules(user.Name, HashPassword(password), user.Grants)
		if err != nil {
			return err
		}
		command := []any{"ACL", "SETUSER", user.Name}
		for _, rule := range rules {
			command = append(command, rule)
		}
		commands = append(commands, command)
		drawn[user.Name] = password
	}
	if err := s.pipeline(commands); err != nil {
		return fmt.Errorf("install %d key-value users: %w", len(users), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, password := range drawn {
		s.passwords[name] = password
	}
	return nil
}

// Retain removes all of the Store's users but the named ones; the key-value store closes
// their connections. After an error they may still be there, though nobody is connected
// as one any more; Open removes them.
func (s *Store) Retain(names map[string]bool) error {
	var gone []string
	s.mu.Lock()
	for name := range s.passwords {
		if !names[name] {
			gone = append(gone, name)
			delete(s.passwords, name)
		}
	}
	s.mu.Unlock()
	return s.remove(gone)
}

func (s *Store) remove(names []string) error {
	if len(names) == 0 {
		return nil
	}
	command := []any{"ACL", "DELUSER"}
	for _, name := range names {
		command = append(command, name)
	}
	if err := s.pipeline([][]any{command}); err != nil {
		return fmt.Errorf("remove %d key-value users: %w", len(names), err)
	}
	return nil
}

// pipeline sends the commands together and reads all their replies. The error is the
// first refusal.
func (s *Store) pipeline(commands [][]any) error {
	s.exchange.Lock()
	defer s.exchange.Unlock()
	for _, command := range commands {
		name, _ := command[0].(string)
		if err := s.admin.Send(name, command[1:]...); err != nil {
			return err
		}
	}
	if err := s.admin.Flush(); err != nil {
		return err
	}
	var refusal error
	for range commands {
		if _, err := s.admin.Receive(); err != nil && refusal == nil {
			refusal = err
		}
	}
	return refusal
}

// Length returns the length of the text with a key, 0 if there is none. What is no text is an error.
func (s *Store) Length(key string) (int64, error) {
	s.exchange.Lock()
	defer s.exchange.Unlock()
	length, err := redis.Int64(s.admin.Do("STRLEN", key))
	if err != nil {
		return 0, fmt.Errorf("measure a tuple in the key-value store: %w", err)
	}
	return length, nil
}

// Append adds to the text with a key, in one step.
func (s *Store) Append(key string, text []byte) error { return s.set("APPEND", key, text) }

// Replace puts a text in the place of the one with a key, in one step.
func (s *Store) Replace(key string, text []byte) error { return s.set("SET", key, text) }

func (s *Store) set(command, key string, text []byte) error {
	if err := s.pipeline([][]any{{command, key, text}}); err != nil {
		return fmt.Errorf("write a tuple to the key-value store: %w", err)
	}
	return nil
}

func (s *Store) password(name string) (string, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	password, known := s.passwords[name]
	return password, known
}

// Credentials returns an installed user's password.
func (s *Store) Credentials(name string) (password string, err error) {
	password, known := s.password(name)
	if !known {
		return "", fmt.Errorf("authenticate at the key-value store as %s: %w", name, ErrUnknownUser)
	}
	return password, nil
}

// Access says how a task's supervisor connects users by itself.
type Access struct {
	Socket                    string
	AuthCommand, ResetCommand string // what AUTH and RESET are called in this store
}

// Access returns how to connect. It never changes.
func (s *Store) Access() Access {
	return Access{Socket: s.socket, AuthCommand: s.secrets.AuthCommand, ResetCommand: s.secrets.ResetCommand}
}

// Connect opens a connection that is authenticated as the user. The caller closes the file.
func (s *Store) Connect(name string) (_ *os.File, err error) {
	password, err := s.Credentials(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("connect to the key-value store %s as %s: %w", s.socket, name, err)
		}
	}()
	connection, err := net.DialTimeout("unix", s.socket, dialTimeout)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return nil, err
	}
	if _, err := connection.Write(authentication(s.secrets.AuthCommand, name, password)); err != nil {
		return nil, err
	}
	// Not one byte more is read than the reply has: the rest of the connection is the task's.
	reply := make([]byte, len(authenticated))
	if _, err := io.ReadFull(connection, reply); err != nil {
		return nil, err
	}
	if string(reply) != authenticated {
		return nil, fmt.Errorf("the store refused the user: %q", reply)
	}
	return connection.(*net.UnixConn).File()
}

// authenticated is the store's reply to a user that it knows (RESP2).
const authenticated = "+OK\r\n"

// authentication returns the request in the store's protocol (RESP2).
func authentication(words ...string) []byte {
	request := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(word), word)
	}
	return request
}
