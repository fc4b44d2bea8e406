// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/creachadair/jrpc2/channel"
)

// Limits of what an editor sends. A manifest in JSON's form is at most a few times as long as it is.
const (
	maxHeader  = 4 << 10
	maxMessage = 16 << 20
)

var (
	errHeader        = errors.New("a message begins with no header of the Language Server Protocol")
	errLongHeader    = fmt.Errorf("the header of a message has more than %d bytes", maxHeader)
	errNoLength      = errors.New("the header of a message has no Content-Length that is a number of bytes")
	errLongMessage   = fmt.Errorf("a message has more than %d bytes; close the document that is so long", maxMessage)
	errPartOfMessage = errors.New("the input ends in a message")
)

// framing reads messages as [channel.LSP] does, which makes room for as many bytes as a header names, and
// reads headers without an end.
type framing struct {
	channel.Channel // writes
	in              *bufio.Reader
}

func newFraming(in io.Reader, out io.WriteCloser) framing {
	return framing{channel.LSP(strings.NewReader(""), out), bufio.NewReaderSize(in, maxHeader)}
}

// Recv returns the next message, and io.EOF if there is none.
func (f framing) Recv() ([]byte, error) {
	length, err := f.header()
	if err != nil {
		return nil, err
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(f.in, message); err != nil {
		return nil, partOf(err)
	}
	return message, nil
}

// header returns the length that a header names.
func (f framing) header() (int, error) {
	length, read := "", 0
	for {
		line, err := f.in.ReadSlice('\n')
		read += len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || read > maxHeader:
			return 0, errLongHeader
		case err != nil && read > 0:
			return 0, partOf(err)
		case err != nil:
			return 0, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, isField := strings.Cut(text, ":")
		if !isField {
			return 0, errHeader
		}
		if strings.EqualFold(name, "Content-Length") {
			length = strings.TrimSpace(value)
		}
	}
	size, err := strconv.ParseUint(length, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || size > maxMessage:
		return 0, errLongMessage
	case err != nil:
		return 0, errNoLength
	}
	return int(size), nil
}

func partOf(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errPartOfMessage
	}
	return err
}
