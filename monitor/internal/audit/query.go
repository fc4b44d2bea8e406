// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// Matches reports whether the query selects a record.
func (q Query) Matches(r Record) bool {
	switch {
	case len(q.Kinds) > 0 && !slices.Contains(q.Kinds, r.Kind),
		q.Principal != "" && q.Principal != r.Principal,
		q.Task != "" && q.Task != r.Task,
		q.Conduit != "" && q.Conduit != r.Conduit &&
			(!strings.HasSuffix(q.Conduit, "/") || !strings.HasPrefix(r.Conduit, q.Conduit)),
		!q.Since.IsZero() && r.Time.Before(q.Since),
		q.Before > 0 && r.Sequence >= q.Before,
		q.Allowed != nil && *q.Allowed != r.Allowed:
		return false
	}
	return true
}

// Query calls each for every matching record, oldest first, of the events that were
// appended before; how often a denial was repeated is recorded later. With query.Follow it
// continues with new ones until ctx ends or the log is closed, and returns nil.
func (l *Log) Query(ctx context.Context, query Query, each func(Record) error) error {
	_ = l.Flush(ctx) // records that were stored can be read, also while others cannot be written
	changed := l.change()
	at, err := backlog(ctx, l.source(), query, each)
	for err == nil && query.Follow {
		select {
		case <-ctx.Done():
			return nil
		case <-l.stopped:
			return nil
		case <-changed:
		}
		changed = l.change() // taken before reading, so that later writes wake us again
		at, err = advance(ctx, l.source(), at, query, each)
	}
	if query.Follow && ctx.Err() != nil {
		return nil //nolint:nilerr // a following reader ends with its context
	}
	return err
}

// Verify checks the whole chain.
func (l *Log) Verify(ctx context.Context) (Verification, error) {
	return verify(ctx, l.options.Directory, l.key, nil)
}

// VerifySlowly does the same and takes one processor for at most a part of the time: one in share,
// unless retention removes files faster than they are verified. Then it hurries.
func (l *Log) VerifySlowly(ctx context.Context, share int) (Verification, error) {
	return verify(ctx, l.options.Directory, l.key, newPace(share))
}

// source is a log that is read: its directory, and the key of its records.
type source struct {
	directory string
	key       *Key
}

func (l *Log) source() source { return source{l.options.Directory, l.key} }

// place is a reader's position.
type place struct {
	file   string // empty before the first file
	offset int64
}

// backlog passes on the log's records and returns the end of the log. With a limit, it
// reads files from the newest back, and no more of them than it needs.
func backlog(ctx context.Context, from source, query Query, each func(Record) error) (place, error) {
	if query.Limit <= 0 {
		return advance(ctx, from, place{}, query, each)
	}
	files, err := list(from.directory)
	if err != nil {
		return place{}, err
	}
	var found []Record
	var at place
	for i := len(files) - 1; i >= 0 && len(found) < query.Limit; i-- {
		var part []Record
		offset, err := from.scan(ctx, files[i], 0, query, func(r Record) error {
			if part = append(part, r); len(part) > 2*query.Limit {
				part = slices.Clone(part[len(part)-query.Limit:])
			}
			return nil
		})
		if err != nil {
			return at, err
		}
		if i == len(files)-1 {
			at = place{files[i], offset}
		}
		found = append(part, found...)
	}
	for _, record := range found[max(0, len(found)-query.Limit):] {
		if err := each(record); err != nil {
			return at, err
		}
	}
	return at, nil
}

// advance passes on the records that were written since a place, and returns the new
// place.
func advance(ctx context.Context, from source, at place, query Query, each func(Record) error) (place, error) {
	files, err := list(from.directory)
	if err != nil {
		return at, err
	}
	for _, file := range files {
		if file < at.file {
			continue
		}
		if file != at.file {
			at = place{file: file}
		}
		if at.offset, err = from.scan(ctx, file, at.offset, query, each); err != nil {
			return at, err
		}
	}
	return at, nil
}

// scan passes on the matching records of one file from an offset on, and returns the end
// of its last complete line.
func (s source) scan(ctx context.Context, file string, offset int64, query Query,
	each func(Record) error) (int64, error) {
	end, err := lines(file, offset, func(line []byte, _ int64, complete bool) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !complete {
			return nil
		}
		record, err := s.key.open(line)
		if err != nil || !query.Matches(record) {
			return nil //nolint:nilerr // Verify reports damaged lines; a query shows the others
		}
		return each(record)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return offset, nil // retention removed it since the files were listed
	}
	return end, err
}
