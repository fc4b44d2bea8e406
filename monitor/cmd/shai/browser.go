// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/page"
)

// opened is what shai explain --browser prints of each link.
type opened struct {
	Link string `json:"link"`
}

// browse serves the page that explains decisions on this machine until ctx ends, with a
// question that it answers at first. The page asks the monitor through this program's own
// connection, a socket or TLS, and only what its handler asks: the browser never talks to the
// monitor.
func (p *program) browse(ctx context.Context, at string, question api.Question) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	if _, err := client.Status(ctx); err != nil {
		return err
	}
	site, err := page.Listen(at)
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "shai-page-") // for this user only
	if err != nil {
		return errors.Join(fmt.Errorf("open the page: %w", err), site.Close())
	}
	defer os.RemoveAll(directory)
	links := 0
	gate := page.NewGate(site, func(ticket string) {
		link := site.Link(ticket, question)
		if links++; links == 1 {
			p.show(link, directory)
			return
		}
		// A terminal that takes no output must not keep the window waiting that was opened.
		go func() {
			_ = p.print(opened{link}, func(w io.Writer) { fmt.Fprintf(w, "opened; for another window: %s\n", link) })
		}()
	})
	return api.Serve(ctx, site.Listeners, page.New(client, gate))
}

// show prints a link, and opens it if there is a desktop. Other users see the arguments of
// programs, so the browser is given a file of this user's that leads to the link.
func (p *program) show(link, directory string) {
	_ = p.print(opened{link}, func(w io.Writer) {
		fmt.Fprintf(w, "%s\n\nOpen it in a browser on this machine; it can be used once. From another machine, forward its\n"+
			"port with ssh -L. Ctrl-C ends the page.\n", link)
	})
	if p.environment("DISPLAY") == "" && p.environment("WAYLAND_DISPLAY") == "" {
		return
	}
	file := filepath.Join(directory, "open.html")
	text := `<!DOCTYPE html><meta http-equiv="refresh" content="0; url=` + html.EscapeString(link) + `">`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Fprintf(p.stderr, "shai: the link cannot be opened: %v\n", err)
		return
	}
	opener := exec.Command("xdg-open", file)
	if err := opener.Start(); err != nil {
		fmt.Fprintf(p.stderr, "shai: the link cannot be opened: %v\n", err)
		return
	}
	go func() { _ = opener.Wait() }() // what became of it the person sees
}
