// SPDX-License-Identifier: BSD-2-Clause

package policytest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

// Suffixes are the ends of the names of test files. Files of manifests are not called so.
func Suffixes() []string { return manifest.TestSuffixes() }

// Suite is a file of tests with the policies that they are about.
type Suite struct {
	File     string
	Policies Policies
	// Reads are the files that the suite was made of, for those who watch them.
	Reads []string

	tests []test
}

// test is a question with the answer that is expected.
type test struct {
	name     string
	position manifest.Position
	subject  *policy.Template // the policy that the question is about
	// ask binds the question to a policy: the subject, or the subject without a clause.
	ask     func(subject *policy.Template) (Question, error)
	allowed bool
	reason  string // that a denial has to give, as a part of it
}

// Find lists the test files that paths mean: files, and those in directories and beneath
// them.
func Find(paths ...string) ([]string, error) {
	var files []string
	for _, path := range paths {
		about, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("find tests: %w", err)
		}
		if !about.IsDir() {
			if filepath.Ext(path) == ".pol" {
				return nil, fmt.Errorf("find tests: %s is a policy; name the file of its tests: %s", path,
					strings.TrimSuffix(path, ".pol")+Suffixes()[0])
			}
			files = append(files, path)
			continue
		}
		before := len(files)
		err = filepath.WalkDir(path, func(at string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && manifest.IsTest(at) {
				files = append(files, at)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("find tests: %w", err)
		}
		if len(files) == before {
			return nil, fmt.Errorf("find tests: no file in %s ends in %s", path, strings.Join(Suffixes(), " or "))
		}
	}
	return slices.Compact(files), nil
}

// ReadSuite reads a file of tests, and the policies that it names. An error in it is a
// [manifest.Errors] with every one found; one in the policies as of [ReadPolicies].
func ReadSuite(path string) (*Suite, error) {
	text, err := plainfile.Read(path, manifest.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("read tests: %w", err)
	}
	var written suiteFile
	document := manifest.ReadDocument(manifest.Source{Name: path, Text: string(text)}, &written)
	suite := &Suite{File: path, Reads: []string{path}}
	about := besides(path)
	if written.Policy != "" {
		about = filepath.Join(filepath.Dir(path), written.Policy)
	}
	suite.Reads = append(suite.Reads, about)
	if _, err := os.Stat(about); err != nil {
		document.Fail("policy", "name the policy's file, beside this one: policy: friends.pol", "%v", err)
		return suite, document.Err()
	}
	if suite.Policies, err = ReadPolicies(about); err != nil {
		return suite, err
	}
	// Of a file with mistakes everything else is checked all the same: all are reported at once.
	r := &reader{suite: suite, document: document, file: written}
	r.tests()
	return suite, document.Err()
}

// besides is the policy's file that a test file without "policy" is about: friends.pol of
// friends_test.yaml.
func besides(path string) string {
	for _, suffix := range Suffixes() {
		if stem, found := strings.CutSuffix(path, suffix); found {
			return stem + ".pol"
		}
	}
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".pol"
}
