// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"strings"
	"testing"

	"shai.dev/monitor/internal/manifest"
)

func TestDirectoriesHoldNoOtherRule(t *testing.T) {
	tests := []struct {
		name, directory, other string
		want                   string // part of the error, "" for none
	}{
		{"apart", "/index/**", "/corpus/**", ""},
		{"names that only begin alike", "/index/**", "/index2/**", ""},
		{"another rule beneath", "/index/**", "/index/secret/**", "/index/secret/**"},
		{"a single file beneath", "/index/**", "/index/secret.txt", "/index/secret.txt"},
		{"the directory itself", "/index/**", "/index", "/index"},
		{"a placeholder beneath", "/index/**", "/index/{owner}/**", "/index/{owner}/**"},
		{"a placeholder that may become the directory", "/data/index/**", "/data/{owner}/**", "/data/{owner}/**"},
		{"a broader rule around it", "/data/index/**", "/data/**", ""},
		{"a directory that is not fixed", "/data/{owner}/**", "/corpus/**", "no placeholder or wildcard"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := manifest.PipelineSpec{Conduits: []manifest.Conduit{
				{Name: "own", Kind: manifest.KindFile, Directory: true,
					Paths: []manifest.ConduitPath{{Path: test.directory}}},
				{Name: "other", Kind: manifest.KindFile, Paths: []manifest.ConduitPath{{Path: test.other}}},
			}}
			err := checkDirectories(spec)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error that names %q", err, test.want)
			}
		})
	}
}
