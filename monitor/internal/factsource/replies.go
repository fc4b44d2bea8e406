// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// ErrReply is returned for a reply of a store that is too large, or not in its protocol.
var ErrReply = errors.New("the store's reply is refused")

const (
	maxElements  = 2 * maxFacts // of arrays: the keys of a fetch, and their members
	maxNesting   = 8            // arrays in arrays; XREAD needs 5
	maxReplyLine = 4096         // a status, an error, a number or a length
)

// replies is a connection to a store that refuses what the client cannot read safely. The client
// (redigo) allocates what a reply announces, before anything of it has arrived, and calls itself for
// each array in an array: a short reply could end the monitor. So replies reads the protocol (RESP2)
// along, and the client gets nothing of a read with a refused line in it.
type replies struct {
	net.Conn
	left     int    // bytes that may still come
	elements int    // elements that may still be announced
	line     []byte // what has come of an unfinished line
	text     int    // bytes of a bulk string that are still to come
	ending   bool   // the next line is the end of a bulk string
	open     []int  // elements still to come of unfinished arrays, outermost first
	refused  error
}

// renew begins to count bytes and elements anew.
func (r *replies) renew() { r.left, r.elements = maxBytes, maxElements }

// Read implements [net.Conn].
func (r *replies) Read(into []byte) (int, error) {
	if r.refused != nil {
		return 0, r.refused
	}
	count, err := r.Conn.Read(into)
	if refusal := r.follow(into[:count]); refusal != nil {
		r.refused = fmt.Errorf("%w: %w", ErrReply, refusal)
		return 0, r.refused
	}
	return count, err
}

// follow reads along what has come.
func (r *replies) follow(data []byte) error {
	for len(data) > 0 {
		count := min(r.text, len(data))
		if r.text == 0 {
			if count = bytes.IndexByte(data, '\n') + 1; count == 0 {
				count = len(data)
			}
		}
		if r.left -= count; r.left < 0 {
			return fmt.Errorf("it has more than the %d bytes that are read at once; divide the facts among several sources", maxBytes)
		}
		if r.text > 0 {
			r.text -= count
		} else if err := r.followLine(data[:count]); err != nil {
			return err
		}
		data = data[count:]
	}
	return nil
}

// followLine reads along a line, or a part of one.
func (r *replies) followLine(part []byte) error {
	if len(r.line)+len(part) > maxReplyLine {
		return foreign("a line of more than %d bytes", maxReplyLine)
	}
	r.line = append(r.line, part...)
	if part[len(part)-1] != '\n' {
		return nil
	}
	line, ended := bytes.CutSuffix(r.line, []byte("\r\n"))
	r.line = r.line[:0]
	switch {
	case !ended:
		return foreign("a line that does not end with CR LF: %.40q", line)
	case r.ending && len(line) > 0:
		return foreign("a text that is longer than announced")
	case r.ending:
		r.ending = false
		r.complete()
		return nil
	case len(line) == 0:
		return foreign("an empty line")
	}
	switch line[0] {
	case '+', '-', ':':
		r.complete()
		return nil
	case '$', '*':
		return r.announced(line[0], string(line[1:]))
	}
	return foreign("a line that begins with %q", line[0])
}

// announced reads along the length of a bulk string or an array.
func (r *replies) announced(kind byte, text string) error {
	length, err := strconv.Atoi(text)
	tooLong := errors.Is(err, strconv.ErrRange)
	switch {
	case text == "-1": // there is none
		r.complete()
		return nil
	case length < 0, err != nil && !tooLong:
		return foreign("the length %.40q", text)
	case kind == '$' && (tooLong || length > r.left):
		return tooMuch("a text of %.40s bytes; at most %d bytes are read at once in all", text, maxBytes)
	case kind == '$':
		r.text, r.ending = length, true
		return nil
	case tooLong || length > r.elements:
		return tooMuch("an array of %.40s elements; at most %d are read at once in all", text, maxElements)
	case length == 0:
		r.complete()
		return nil
	case len(r.open) == maxNesting:
		return foreign("arrays nested deeper than %d levels", maxNesting)
	}
	r.elements -= length
	r.open = append(r.open, length)
	return nil
}

// complete counts a value that has come, and the arrays of which it is the last element.
func (r *replies) complete() {
	for last := len(r.open) - 1; last >= 0; last-- {
		if r.open[last]--; r.open[last] > 0 {
			return
		}
		r.open = r.open[:last]
	}
}

func tooMuch(format string, values ...any) error {
	return fmt.Errorf("it announces "+format+"; divide the facts among several sources, or give the socket of a Redis or "+
		"Valkey server that you trust with them", values...)
}

func foreign(format string, values ...any) error {
	return fmt.Errorf("it has "+format+"; give the socket of a Redis or Valkey server", values...)
}
