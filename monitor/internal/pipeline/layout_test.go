// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
)

// layoutPipeline has every kind of conduit.
var layoutPipeline = manifest.PipelineSpec{Conduits: []manifest.Conduit{
	{Name: "documents", Kind: manifest.KindFile, Ingress: true, Paths: []manifest.ConduitPath{{Path: "/corpus/**"}}},
	{Name: "index", Kind: manifest.KindFile, Directory: true,
		Paths: []manifest.ConduitPath{{Path: "/index/a/**"}, {Path: "/index/b/**"}}},
	{Name: "scratch", Kind: manifest.KindFile, Directory: true, Paths: []manifest.ConduitPath{{Path: "/scratch/**"}}},
	{Name: "profiles", Kind: manifest.KindTuple, Paths: []manifest.ConduitPath{{Path: "profile:{user}"}}},
	{Name: "queries", Kind: manifest.KindPipe, Slots: 2, From: "worker", To: "search"},
	{Name: "results", Kind: manifest.KindChannel, Slots: 2, From: "search", To: "worker"},
	{Name: "forward", Kind: manifest.KindPipe, Slots: 1, From: "search", To: "back"},
	{Name: "partial", Kind: manifest.KindPipe, From: "back", To: "search"},
	{Name: "web", Kind: manifest.KindConnection, Task: "worker", Listen: "127.0.0.1:1"},
}}

// The numbers are an interface: tasks are started with them, and manifests' programs
// are written for the paths.
func TestLayout(t *testing.T) {
	for _, test := range []struct {
		task string
		spec manifest.TaskSpec
		want []string
	}{
		{"indexer", manifest.TaskSpec{Reads: []string{"documents"}, Writes: []string{"index"}},
			[]string{"16 /shai/view read", "17 /index/a read write", "18 /index/b read write"}},
		{"search", manifest.TaskSpec{Reads: []string{"index", "queries", "partial"},
			Writes: []string{"results", "forward"}},
			[]string{"16 /shai/view read", "17 /index/a read", "18 /index/b read",
				"32 /shai/pipe/queries/0 read", "33 /shai/pipe/queries/1 read",
				"96 /shai/channel/results/0 write", "128 /shai/channel-checked/results/0 write checked",
				"97 /shai/channel/results/1 write", "129 /shai/channel-checked/results/1 write checked",
				"34 /shai/pipe/forward write", "35 /shai/pipe/partial read"}},
		{"worker", manifest.TaskSpec{Reads: []string{"documents", "profiles", "results"},
			Writes: []string{"queries", "web"}},
			[]string{"16 /shai/view read", "32 /shai/pipe/queries/0 write", "33 /shai/pipe/queries/1 write",
				"96 /shai/channel/results/0 read", "97 /shai/channel/results/1 read"}},
		{"stranger", manifest.TaskSpec{}, []string{"16 /shai/view read"}},
	} {
		task := manifest.Task{Metadata: manifest.Metadata{Name: test.task}, Spec: test.spec}
		places, err := layout(layoutPipeline, task)
		if err != nil {
			t.Errorf("%s: %v", test.task, err)
		}
		var got []string
		for _, place := range places[0] {
			line := fmt.Sprintf("%d %s", place.capability.Number, place.capability.Prefix)
			for bit, word := range []string{" read", " write"} {
				if place.capability.Rights&(1<<bit) != 0 {
					line += word
				}
			}
			if place.end.checked {
				line += " checked"
			}
			got = append(got, line)
		}
		if difference := cmp.Diff(test.want, got); difference != "" {
			t.Errorf("%s:\n%s", test.task, difference)
		}
	}
}

// A conduit that does not fit the reserved numbers is an error that names the remedy; it
// never gets a number that means something else.
func TestLayoutLimits(t *testing.T) {
	directory := manifest.Conduit{Name: "index", Kind: manifest.KindFile, Directory: true}
	for i := range 16 {
		directory.Paths = append(directory.Paths, manifest.ConduitPath{Path: fmt.Sprintf("/index/%d/**", i)})
	}
	fits := directory
	fits.Paths = directory.Paths[:15]
	pipes := func(slots int) []manifest.Conduit {
		return []manifest.Conduit{{Name: "a", Kind: manifest.KindPipe, Slots: 32, From: "t"},
			{Name: "b", Kind: manifest.KindPipe, Slots: slots, To: "t"}}
	}
	channels := func(slots int) []manifest.Conduit {
		return []manifest.Conduit{{Name: "a", Kind: manifest.KindChannel, Slots: 16, From: "t"},
			{Name: "b", Kind: manifest.KindChannel, Slots: slots, To: "t"}}
	}
	for _, test := range []struct {
		name     string
		conduits []manifest.Conduit
		want     string
	}{
		{"15 directories", []manifest.Conduit{fits}, ""},
		{"16 directories", []manifest.Conduit{directory}, "more than 16 directories; put some beneath a common one"},
		{"64 pipes", pipes(32), ""},
		{"65 pipes", pipes(33), "more than 64 pipe ends; use fewer slots"},
		{"32 channels", channels(16), ""},
		{"33 channels", channels(17), "more than 32 channel ends; use fewer slots"},
	} {
		_, err := layout(manifest.PipelineSpec{Conduits: test.conduits},
			manifest.Task{Metadata: manifest.Metadata{Name: "t"}, Spec: manifest.TaskSpec{Reads: []string{"index"}}})
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}
