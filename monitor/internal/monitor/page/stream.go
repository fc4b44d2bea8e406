// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
)

// Limits of the streams of denials (server-sent events).
const (
	maxStreams = 8
	backlog    = 20               // denials before the first new one
	heartbeat  = 15 * time.Second // of a stream on which nothing happens
	patience   = 10 * time.Second // with a browser that does not read
)

// denials streams denials as they happen. Each stream reads the log by itself, so a browser
// that reads slowly delays no other, and no decision; after some time it loses its stream.
func (p *pages) denials(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		retryAfter(w, heartbeat)
		fail(w, api.Unavailable("follow denials", "close one of them", "%d windows follow them already", maxStreams))
		return
	}
	ctx, cancel := api.UntilClosing(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	events := &events{w: w, control: http.NewResponseController(w), end: cancel}
	events.write("event: begin\ndata: {}\n\n")
	var beating sync.WaitGroup
	beating.Go(func() { events.beat(ctx) })
	query := audit.Query{Kinds: []audit.Kind{audit.Denial}, Limit: backlog, Follow: true}
	err := p.source.Query(ctx, query, func(record audit.Record) error {
		text, err := json.Marshal(record)
		if err != nil {
			return err
		}
		return events.write("id: %d\nevent: denial\ndata: %s\n\n", record.Sequence, text)
	})
	if err != nil && ctx.Err() == nil {
		text, _ := json.Marshal(err.Error())
		_ = events.write("event: problem\ndata: %s\n\n", text)
	}
	cancel()
	beating.Wait()
}

// events is a stream to one browser. It is safe for concurrent use.
type events struct {
	end context.CancelFunc // called when the browser no longer reads

	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
}

func (e *events) write(format string, arguments ...any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.control.SetWriteDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = fmt.Fprintf(e.w, format, arguments...)
	}
	if err == nil {
		err = e.control.Flush()
	}
	if err == nil { // a deadline that has passed would break off the stream at its end
		err = e.control.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		e.end()
	}
	return err
}

// beat shows the browser, and proxies between, that the stream is alive.
func (e *events) beat(ctx context.Context) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if e.write(": alive\n\n") != nil {
				return
			}
		}
	}
}
