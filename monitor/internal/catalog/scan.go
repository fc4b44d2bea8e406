// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"syscall"

	"shai.dev/monitor/policy"
)

// RegisterFiles registers every regular file beneath data that a rule of an ingress set
// covers. Files that no longer exist stay registered; [View.Verify] counts them. It
// returns the number of files found.
func (c *Catalog) RegisterFiles(ctx context.Context, data string, progress Progress) (uint64, *Change, error) {
	return c.RegisterListing(ctx, filesBeneath(ctx, data, ingressRoots(c.State())), progress)
}

// filesBeneath lists the regular files of some directories of data by the names that their
// conduits have, in the order of a walk. It leaves out those whose name no conduit can have: they have no
// policy, so nobody has access.
func filesBeneath(ctx context.Context, data string, roots []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, root := range roots {
			root = filepath.Join(data, root)
			err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
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
				if checkName(name) == nil && !yield(name, nil) {
					return errStopped
				}
				return ctx.Err()
			})
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				yield("", fmt.Errorf("register files beneath %s: %w", root, err))
				return
			}
		}
	}
}

// errStopped ends a walk whose files nobody wants any more.
var errStopped = errors.New("stopped")

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
