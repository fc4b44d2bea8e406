// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"testing"
)

// observed is a shutdown that counts who waits for it.
type observed struct {
	context.Context
	end     chan struct{}
	waiting int
}

func (o *observed) Done() <-chan struct{} { return o.end }

func (o *observed) AfterFunc(func()) (stop func() bool) {
	o.waiting++
	return func() bool {
		o.waiting--
		return true
	}
}

// A server that runs for months keeps nothing of the requests that it has answered.
func TestRequestsAreForgotten(t *testing.T) {
	shutdown := &observed{Context: context.Background(), end: make(chan struct{})}
	ctx := context.WithValue(t.Context(), closing{}, context.Context(shutdown))
	for range 3 {
		limited, cancel := UntilClosing(ctx)
		if shutdown.waiting != 1 {
			t.Fatalf("%d wait for the shutdown", shutdown.waiting)
		}
		cancel()
		if limited.Err() == nil || shutdown.waiting != 0 {
			t.Fatalf("the request has ended: %v; %d wait for the shutdown", limited.Err(), shutdown.waiting)
		}
	}
}
