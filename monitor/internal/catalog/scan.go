// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"shai.dev/monitor/policy"
)

// RegisterFiles registers every regular file beneath data that a rule of an ingress set
// covers. Files that no longer exist stay registered; [View.Verify] counts them. It
// returns the number of files found.
func (c *Catalog) RegisterFiles(ctx context.Context, data string, progress Progress) (uint64, *Change, error) {
	total := &Change{Before: c.State(), After: c.State()}
	var names []string
	var found uint64
	flush := func() error {
		if len(names) == 0 {
			return nil
		}
		_, change, err := c.Register(names)
		total.After = change.After
		total.Moved = append(total.Moved, change.Moved...)
		total.Classes = append(total.Classes, change.Classes...)
		names = names[:0]
		if progress != nil {
			progress(found, 0)
		}
		return err
	}
	for _, root := range ingressRoots(c.State()) {
		err := filepath.WalkDir(filepath.Join(data, root), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if errors.Is(err, syscall.ENAMETOOLONG) {
				return fs.SkipDir // as for names that checkName refuses; a task can make such directories
			}
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			relative, err := filepath.Rel(data, path)
			if err != nil {
				return err
			}
			name := "/" + filepath.ToSlash(relative)
			if err := checkName(name); err != nil {
				return nil //nolint:nilerr // such a file has no policy, so nobody has access
			}
			found++
			if names = append(names, name); len(names) == registerBatch {
				return errors.Join(flush(), ctx.Err())
			}
			return ctx.Err()
		})
		if err != nil {
			return found, total, fmt.Errorf("register files beneath %s: %w", filepath.Join(data, root), err)
		}
	}
	if err := flush(); err != nil {
		return found, total, err
	}
	return found, total, nil
}

// ingressRoots returns the directories that can contain ingress files, none within
// another.
func ingressRoots(state *State) []string {
	roots := make(map[string]bool)
	for i, rule := range state.rules.bundle.Rules {
		if !rule.Ingress || rule.Kind != policy.FileConduit {
			continue
		}
		roots[strings.TrimPrefix(state.rules.patterns[i].Root(), "/")] = true
	}
	var kept []string
	for _, root := range sortedKeys(roots) {
		if len(kept) == 0 || root != kept[len(kept)-1] && !strings.HasPrefix(root, kept[len(kept)-1]+"/") &&
			kept[len(kept)-1] != "" {
			kept = append(kept, root)
		}
	}
	return kept
}
