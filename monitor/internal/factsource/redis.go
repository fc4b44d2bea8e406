// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"context"
	"fmt"
	"net"
	"time"
	"unicode/utf8"

	"github.com/gomodule/redigo/redis"
)

const dialTime = 5 * time.Second

// store is a connection to a store.
type store struct {
	redis.Conn
	replies *replies
	release func()
}

// connect opens a connection that ends with ctx. The caller must call release.
func connect(ctx context.Context, socket string, login Login) (*store, error) {
	dialer := net.Dialer{Timeout: dialTime}
	raw, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the store at %s: %w; is it running?", socket, err)
	}
	limited := &replies{Conn: raw}
	limited.renew()
	connection := redis.NewConn(limited, fetchTime, fetchTime)
	// A blocked command ends when its connection does.
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	release := func() {
		stop()
		connection.Close()
	}
	if login != (Login{}) {
		if _, err := connection.Do(login.Command, login.User, login.Password); err != nil {
			release()
			return nil, fmt.Errorf("authenticate at the store %s: %w", socket, err)
		}
	}
	return &store{Conn: connection, replies: limited, release: release}, nil
}

// text refuses texts that policies cannot contain.
func text(raw []byte, what string) (string, error) {
	if !utf8.Valid(raw) {
		return "", fmt.Errorf("%s is not UTF-8: %.40q", what, raw)
	}
	return string(raw), nil
}
