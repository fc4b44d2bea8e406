// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"slices"

	"shai.dev/monitor/internal/report/sources"
)

// qualified returns what was given with the namespace in the names of objects and results, if
// objects of several namespaces were given: one says nothing about another of the same name.
func qualified(given sources.All) sources.All {
	given.Results = slices.Clone(given.Results)
	given.Analyses, given.Pipelines = slices.Clone(given.Analyses), slices.Clone(given.Pipelines)
	names := map[string][]*string{} // by namespace
	for i := range given.Results {
		if results := &given.Results[i]; results.Namespace != "" { // not from a file
			names[results.Namespace] = append(names[results.Namespace], &results.Name)
		}
	}
	for i := range given.Analyses {
		run := &given.Analyses[i]
		in := run.Metadata.Namespace
		names[in] = append(names[in], &run.Metadata.Name, &run.Spec.Pipeline)
	}
	for i := range given.Pipelines {
		pipeline := &given.Pipelines[i].Metadata
		names[pipeline.Namespace] = append(names[pipeline.Namespace], &pipeline.Name)
	}
	if len(names) < 2 {
		return given
	}
	for namespace, within := range names {
		for _, name := range within {
			if namespace != "" {
				*name = namespace + "/" + *name
			}
		}
	}
	return given
}
