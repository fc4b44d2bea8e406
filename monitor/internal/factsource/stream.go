// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// stream is a stream of changes. An entry has the fields op (add, remove, replace),
// conduit, says and tuple (a JSON array). The position is the identifier of the last
// entry that was read.
type stream struct {
	spec       manifest.FactRedis
	declared   manifest.Declared
	login      Login
	block      time.Duration
	replayTime time.Duration // how long a replay may take
	store      *store        // nil between connections
}

const (
	start         = "0-0" // the position before the first entry
	entriesAtOnce = 1000
	// blockTime is how long a fetch waits for an entry. It is shorter than the time limit
	// for a reply.
	blockTime = 5 * time.Second
)

// Pause implements [Source].
func (s *stream) Pause() time.Duration { return 0 }

// Close implements [Source].
func (s *stream) Close() {
	if s.store != nil {
		s.store.release()
	}
	s.store = nil
}

// Fetch implements [Source].
func (s *stream) Fetch(ctx context.Context, position string) (update Update, err error) {
	if position == "" {
		// A bundle waits for this, so it ends, also if entries arrive as fast as they are read.
		s.Close()
		limited, cancel := context.WithTimeoutCause(ctx, s.replayTime, fmt.Errorf("its end was not reached within %v; "+
			"begin a new stream with the facts that hold now, or divide them among several sources", s.replayTime))
		defer cancel()
		defer s.Close()
		ctx = limited
	}
	defer func() {
		if err != nil {
			s.Close()
			err = fmt.Errorf("fetch facts from stream %s of %s: %w", s.spec.Stream.Key, s.spec.Socket,
				cmp.Or(context.Cause(ctx), err))
		}
	}()
	if s.store == nil {
		if s.store, err = connect(ctx, s.spec.Socket, s.login); err != nil {
			return Update{}, err
		}
	}
	if position == "" {
		return s.everything()
	}
	steps, next, err := s.read(position, s.block)
	if err == nil {
		err = s.checkNothingMissed(position)
	}
	if err != nil {
		return Update{}, err
	}
	return Update{Steps: steps, Position: next}, nil
}

// everything replays the stream from its beginning.
func (s *stream) everything() (Update, error) {
	standing := newReplay()
	position := start
	for {
		steps, next, err := s.read(position, 0)
		if err != nil {
			return Update{}, err
		}
		if len(steps) == 0 {
			break
		}
		position = next
		if err := standing.follow(steps); err != nil {
			return Update{}, err
		}
	}
	if err := s.checkNothingMissed(start); err != nil {
		return Update{}, err
	}
	return Update{Whole: &catalog.Fetched{Position: position, Facts: standing.facts()}}, nil
}

// checkNothingMissed checks, after entries were read, that no entries between them and
// the position were deleted before. Trimming deletes the oldest entries first, so none is
// missing while the entry at the position exists. At the start, no entry may ever have
// been deleted.
func (s *stream) checkNothingMissed(position string) error {
	info, err := s.info()
	if err != nil {
		return err
	}
	if position == start {
		if deleted := info.added - info.length; deleted > 0 {
			return fmt.Errorf("entries that were deleted unread: %d; their changes are lost: begin a new stream (DEL), "+
				"and do not trim it", deleted)
		}
		return nil
	}
	at, err := redis.Values(s.store.Do("XRANGE", s.spec.Stream.Key, position, position))
	if err != nil || len(at) > 0 || info.last == position {
		return err
	}
	return fmt.Errorf("entry %s, the last one read, was deleted, and others may have been deleted unread; "+
		"begin a new stream (DEL), give the source another name, and keep entries for longer", position)
}

// about is the store's information about a stream.
type about struct {
	length, added int64
	last          string // identifier of the newest entry so far, even if it was deleted
}

func (s *stream) info() (found about, err error) {
	kind, err := redis.String(s.store.Do("TYPE", s.spec.Stream.Key))
	if err != nil {
		return found, err
	}
	if kind != "stream" {
		return found, fmt.Errorf("there is no such stream (the key's type is %s); make it with XADD or XGROUP CREATE … MKSTREAM", kind)
	}
	words, err := redis.Values(s.store.Do("XINFO", "STREAM", s.spec.Stream.Key))
	if err != nil {
		return found, err
	}
	for i := 0; i+1 < len(words); i += 2 {
		switch name, _ := redis.String(words[i], nil); name {
		case "length":
			found.length, err = redis.Int64(words[i+1], err)
		case "entries-added": // since Redis 7
			found.added, err = redis.Int64(words[i+1], err)
		case "last-generated-id":
			found.last, err = redis.String(words[i+1], err)
		}
	}
	return found, err
}

// read returns the steps after a position. It waits for one up to the given time. What a store may send is
// limited for each read: the whole stream, with changes that later ones undo, may be larger than its facts.
func (s *stream) read(position string, wait time.Duration) (steps []catalog.Step, next string, err error) {
	s.store.replies.renew()
	arguments := []any{"COUNT", entriesAtOnce}
	if wait > 0 {
		arguments = append(arguments, "BLOCK", wait.Milliseconds())
	}
	reply, err := redis.Values(s.store.Do("XREAD", append(arguments, "STREAMS", s.spec.Stream.Key, position)...))
	if errors.Is(err, redis.ErrNil) {
		return nil, position, nil
	}
	if err != nil {
		return nil, "", err
	}
	var key string
	var entries []any
	if _, err := redis.Scan(reply, &reply); err != nil {
		return nil, "", err
	}
	if _, err := redis.Scan(reply, &key, &entries); err != nil {
		return nil, "", err
	}
	next = position
	for _, entry := range entries {
		id, step, err := stepOf(entry)
		if err == nil && step.Verb != catalog.StepRemove {
			err = s.check(step.Fact)
		}
		if err != nil {
			return nil, "", fmt.Errorf("entry %s: %w; correct the stream's writer, and delete the entry (XDEL)",
				id, err)
		}
		steps, next = append(steps, step), id
	}
	return steps, next, nil
}

// check compares a fact with what the source declares, and with what the monitor can use. It is not compared with
// others: a writer may add a network's next region before it removes the last one, and there is none in between.
func (s *stream) check(fact policy.Fact) error {
	tuple := policy.NewTuple(fact.Arguments...)
	if err := s.declared.Check(fact.Conduit, fact.Relation, tuple); err != nil {
		return err
	}
	if err := new(knownfacts.Checker).Check(fact.Conduit, fact.Relation, tuple); err != nil {
		return err
	}
	return fits(fact.Conduit, fact.Relation, fact.Arguments)
}

// stepOf reads an entry.
func stepOf(entry any) (id string, step catalog.Step, err error) {
	parts, err := redis.Values(entry, nil)
	if err != nil || len(parts) != 2 {
		return id, step, errors.New("the store's reply is malformed")
	}
	id, _ = redis.String(parts[0], nil)
	fields, err := redis.StringMap(parts[1], nil)
	if err != nil {
		return id, step, err
	}
	if pairs, _ := parts[1].([]any); len(pairs) != 2*len(fields) {
		return id, step, errors.New("a field is given twice")
	}
	step.Verb = catalog.Verb(fields["op"])
	switch {
	case step.Verb != catalog.StepAdd && step.Verb != catalog.StepRemove && step.Verb != catalog.StepReplace:
		return id, step, fmt.Errorf("op is %q; expected add, remove or replace", fields["op"])
	case fields["conduit"] == "" || fields["says"] == "":
		return id, step, errors.New("conduit or says is missing")
	}
	for _, name := range []string{"conduit", "says", "tuple"} {
		if _, err := text([]byte(fields[name]), name); err != nil {
			return id, step, err
		}
	}
	var tuple policy.Tuple
	if err := wellFormed([]byte(fields["tuple"])); err != nil {
		return id, step, fmt.Errorf("tuple: %w", err)
	}
	if err := json.Unmarshal([]byte(fields["tuple"]), &tuple); err != nil {
		return id, step, fmt.Errorf("tuple is %.60q; expected a JSON array of texts, whole numbers and {\"time\":…}",
			fields["tuple"])
	}
	step.Fact = policy.Fact{Conduit: fields["conduit"], Relation: fields["says"], Arguments: tuple.Values()}
	return id, step, nil
}
