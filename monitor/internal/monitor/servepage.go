// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/page"
)

// PageLink is the file in the state directory that holds the next link to the page. Each link
// can be used once.
const PageLink = "page-link"

func (m *Monitor) pageSource() page.Source {
	return struct {
		*Monitor
		*audit.Log
	}{m, m.audit}
}

// servePage serves the page on the loopback network until ctx ends, if the options say so, or
// until the function is called that it returns, which waits for the end.
func (m *Monitor) servePage(ctx context.Context) (end func() error, err error) {
	if m.options.Page == "" {
		return func() error { return nil }, nil
	}
	site, err := page.Listen(m.options.Page)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(m.options.State, PageLink)
	gate := page.NewGate(site, func(ticket string) {
		if err := replaceFile(path, []byte(site.Link(ticket, api.Question{})+"\n")); err != nil {
			m.logger.Error("no link to the page can be stored", "file", path, "error", err)
		}
	})
	m.logger.Info("page", "address", site.Listeners[0].Addr().String(), "link", path)
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(ctx, site.Listeners, page.New(m.pageSource(), gate)) }()
	return func() error {
		stop()
		return errors.Join(<-ended, os.Remove(path))
	}, nil
}

func closeAll(listeners []net.Listener) error {
	var failures []error
	for _, one := range listeners {
		failures = append(failures, one.Close())
	}
	return errors.Join(failures...)
}
