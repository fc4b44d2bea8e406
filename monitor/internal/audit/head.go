// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// mark is a position in the chain. The zero mark is before the first record.
type mark struct {
	sequence uint64
	hash     string
}

// The head is overwritten after its records are on disk, so it is never ahead of them: if
// the log ends before the head, records have been removed. The chain alone cannot show
// that its end is missing.
const headFormat = "%020d %s\n"

func readHead(directory string) (mark, error) {
	text, err := os.ReadFile(filepath.Join(directory, headName))
	if err == nil && len(text) == 0 {
		return mark{hash: origin}, nil // begun, nothing synced yet
	}
	if err != nil {
		return mark{}, fmt.Errorf("read audit head: %w", err)
	}
	var head mark
	_, err = fmt.Sscanf(string(text), headFormat, &head.sequence, &head.hash)
	if err != nil || string(text) != fmt.Sprintf(headFormat, head.sequence, head.hash) ||
		len(head.hash) != len(origin) || (head.sequence == 0) != (head.hash == origin) ||
		strings.Trim(head.hash, "0123456789abcdef") != "" {
		return mark{}, fmt.Errorf("read audit head %s: it is not a sequence number and a hash",
			filepath.Join(directory, headName))
	}
	return head, nil
}

func writeHead(file io.WriterAt, m mark) error {
	_, err := file.WriteAt(fmt.Appendf(nil, headFormat, m.sequence, m.hash), 0)
	return err
}
