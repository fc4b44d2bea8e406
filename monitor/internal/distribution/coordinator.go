// SPDX-License-Identifier: BSD-2-Clause

package distribution

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"shai.dev/monitor/internal/analysis"
)

const (
	pathWork   = "/work"
	pathShards = "/shards/"
	// maxResults limits the results of all shards together, in bytes: as much as a monitor imports.
	maxResults = 1 << 30
	// spareConnections is how many connections there may be beside two for each shard.
	spareConnections = 64
	// headTime is how long a handshake, and the head of a request, may take.
	headTime = 10 * time.Second
	// endTime is how long a worker that has sent the last result may take to read the answer.
	endTime = 5 * time.Second
)

// Work is what workers get, and into how many shards it is divided.
type Work struct {
	File   *os.File // from its beginning; several workers read it at the same time
	Shards int      // from 1
}

// Serve gives the work to the workers that connect to the listener, until it has the result of
// each shard, and returns them in the order of the shards. The directory has this side's identity.
// Tell, if set, is called with the number of shards that are done.
//
// A shard may be computed twice, because a worker was lost; its results have to be equal then. If
// they are not, one of the machines computes wrongly, and the error says so.
func Serve(ctx context.Context, listener net.Listener, directory string, work Work, tell func(done int)) ([][]byte,
	error) {
	config, err := serverTLS(directory)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	c := &coordinator{work: work, results: make([][]byte, work.Shards), tell: tell, over: make(chan struct{})}
	limited := netutil.LimitListener(listener, 2*work.Shards+spareConnections)
	server := &http.Server{Handler: c.handler(), ReadHeaderTimeout: headTime}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(tls.NewListener(limited, config)) }()
	select {
	case <-c.over:
		err = c.failure
	case err = <-failed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if server.Shutdown(ending) != nil {
		_ = server.Close() // who still reads is cut off
	}
	if err != nil {
		return nil, fmt.Errorf("distribute the analysis: %w", err)
	}
	return c.results, nil
}

// coordinator collects results. It is safe for concurrent use.
type coordinator struct {
	work Work
	tell func(done int)
	over chan struct{} // closed when all results are there, or a failure is

	mutex   sync.Mutex
	results [][]byte
	done    int
	bytes   int
	coming  int64 // bytes that are being read
	failure error
	ended   bool
}

func (c *coordinator) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathWork, c.giveWork)
	mux.HandleFunc("PUT "+pathShards+"{number}/{of}", c.takeResult)
	return mux
}

func (c *coordinator) giveWork(w http.ResponseWriter, r *http.Request) {
	info, err := c.work.File.Stat()
	if err != nil {
		http.Error(w, "the work cannot be read", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(c.work.File, 0, info.Size()))
}

func (c *coordinator) takeResult(w http.ResponseWriter, r *http.Request) {
	shard, err := analysis.ParseShard(r.PathValue("number") + "/" + r.PathValue("of"))
	if err != nil || shard.Of != c.work.Shards {
		http.Error(w, fmt.Sprintf("expected one of %d shards", c.work.Shards), http.StatusBadRequest)
		return
	}
	if !c.receive(r.ContentLength) {
		http.Error(w, fmt.Sprintf("expected results of %d bytes at most, with their length", maxResults),
			http.StatusRequestEntityTooLarge)
		return
	}
	defer c.received(r.ContentLength)
	result, err := io.ReadAll(r.Body) // as long as it says
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if found, err := analysis.ShardOf(result); err != nil || found != shard {
		http.Error(w, "this is not the result of shard "+shard.String(), http.StatusBadRequest)
		return
	}
	if err := c.keep(shard, result); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// receive admits so many bytes, if with those that are being read they are not too many: results that
// come at the same time take no more memory than all of them may.
func (c *coordinator) receive(length int64) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if length < 0 || length > maxResults-c.coming {
		return false
	}
	c.coming += length
	return true
}

func (c *coordinator) received(length int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.coming -= length
}

// keep keeps the first result of a shard, and compares others with it.
func (c *coordinator) keep(shard analysis.Shard, result []byte) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	known := c.results[shard.Number-1]
	switch {
	case c.ended:
		return errors.New("the analysis has ended")
	case known != nil && bytes.Equal(known, result):
		return nil
	case known != nil:
		return c.end(fmt.Errorf("shard %s has two results that differ: one of the machines has another version of "+
			"shai, computes wrongly, or was tampered with", shard))
	case c.bytes+len(result) > maxResults:
		return c.end(fmt.Errorf("the results of the shards have more than %d bytes, which no monitor imports", maxResults))
	}
	c.results[shard.Number-1] = result
	c.done++
	c.bytes += len(result)
	if c.tell != nil {
		c.tell(c.done)
	}
	if c.done == c.work.Shards {
		_ = c.end(nil)
	}
	return nil
}

// end ends the collection, and returns the failure.
func (c *coordinator) end(failure error) error {
	c.failure, c.ended = failure, true
	close(c.over)
	return failure
}
