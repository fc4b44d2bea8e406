// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"errors"
	"io"
)

// The layout of pages that hold keys and values (bbolt's internal/common/page.go).
const (
	pageFlags    = 8 // in the header
	pageCount    = 10
	pageOverflow = 12
	pageHeader   = 16
	leafFlag     = 2

	elementSize  = 16
	bucketFlag   = 1
	bucketHeader = 16 // of a value that is a bucket: its page, and a number
)

var errSizes = errors.New("the sizes on one of its pages are wrong")

// pages are those of a database's file.
type pages struct {
	file io.ReaderAt
	size int64 // of one
}

// element is a key on a page, with a value or a page below.
type element struct {
	begin, key, value int // of the key on the page; sizes
	isBucket          bool
	below             uint64
}

func elementAt(page []byte, number int) element {
	at := pageHeader + number*elementSize
	word := func(i int) int { return int(binary.NativeEndian.Uint32(page[at+4*i:])) }
	if binary.NativeEndian.Uint16(page[pageFlags:]) == leafFlag {
		return element{begin: at + word(1), key: word(2), value: word(3), isBucket: word(0)&bucketFlag != 0}
	}
	return element{begin: at + word(0), key: word(1), below: binary.NativeEndian.Uint64(page[at+8:])}
}

// check examines the sizes of keys and values on a page and on those below it. The database's
// own check, which has to come before, leaves out those of buckets, and the database would read
// as much as they say, beyond the end of the file, too. Keys and values have no gaps.
func (p pages) check(id uint64) error {
	at := int64(id) * p.size //nolint:gosec // the database's check has found the page in the file
	var header [pageHeader]byte
	if _, err := p.file.ReadAt(header[:], at); err != nil {
		return err
	}
	page := make([]byte, p.size*(1+int64(binary.NativeEndian.Uint32(header[pageOverflow:]))))
	if _, err := p.file.ReadAt(page, at); err != nil {
		return err
	}
	_, err := p.checkElements(page)
	return err
}

// checkElements returns where a page's last value ends.
func (p pages) checkElements(page []byte) (end int, err error) {
	if len(page) < pageHeader {
		return 0, errSizes
	}
	count := int(binary.NativeEndian.Uint16(page[pageCount:]))
	if end = pageHeader + count*elementSize; end > len(page) {
		return 0, errSizes
	}
	for i := range count {
		e := elementAt(page, i)
		if e.begin != end || e.begin+e.key+e.value > len(page) {
			return 0, errSizes
		}
		end = e.begin + e.key + e.value
		switch {
		case e.below != 0:
			err = p.check(e.below)
		case e.isBucket:
			err = p.checkBucket(page[e.begin+e.key : end])
		}
		if err != nil {
			return 0, err
		}
	}
	return end, nil
}

// checkBucket examines a value that is a bucket: it names a page, or has one in itself.
func (p pages) checkBucket(value []byte) error {
	if len(value) < bucketHeader {
		return errSizes
	}
	root, own := binary.NativeEndian.Uint64(value), value[bucketHeader:]
	if root != 0 {
		if len(own) > 0 {
			return errSizes
		}
		return p.check(root)
	}
	if end, err := p.checkElements(own); err != nil || end != len(own) {
		return errSizes
	}
	return nil
}
