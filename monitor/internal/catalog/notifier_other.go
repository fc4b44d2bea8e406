// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux

package catalog

import "errors"

// notifier would report what happens in directories. Here nothing does that for files that
// are not open: kqueue(2) needs a descriptor of each.
type notifier struct{}

func newNotifier(int) (*notifier, error) {
	return nil, errors.New("this system has no fanotify")
}

func (*notifier) ensure(string) error             { return nil }
func (*notifier) forget(string)                   {}
func (*notifier) drop(string)                     {}
func (*notifier) directory(string) (string, bool) { return "", false }
func (*notifier) run(func([]happening))           {}
func (*notifier) isSettled() bool                 { return true }
func (*notifier) close() error                    { return nil }
