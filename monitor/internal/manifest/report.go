// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"cmp"
	"slices"

	"shai.dev/monitor/policy"
)

// Report is the result of checking a set of manifests.
type Report struct {
	Bundle   *Bundle // nil when there are errors
	Errors   Errors  // in the order of the files
	Warnings Errors  // what is allowed but probably not intended
	// Parameters holds those of each policy whose text is correct.
	Parameters map[string][]string
	// Composed holds the text of each Policy that includes another one of the set, with the clauses of
	// that one in place, for those who keep Policies apart from each other. It is made by
	// [Set.ReportComposed] only.
	Composed map[string]string
	// Surroundings are the facts and tasks among which policies are examined.
	Surroundings policy.Surroundings
}

// Bundle checks that the objects fit together. The error is an [Errors] with all errors,
// including those that [Parse] found.
func (s *Set) Bundle() (*Bundle, error) {
	report, err := s.Report()
	if err != nil {
		return nil, err
	}
	return report.Bundle, report.Errors.orNil()
}

// Report checks everything. The error is one of this program, not of the manifests.
func (s *Set) Report() (Report, error) { return s.report(false) }

// ReportComposed is Report, with the texts of policies that include others.
func (s *Set) ReportComposed() (Report, error) { return s.report(true) }

func (s *Set) report(composed bool) (Report, error) {
	c := newChecker()
	c.stored = s.stored
	c.index(s.objects)
	c.check(s.objects)
	var texts map[string]string
	if composed {
		texts = c.composedTexts()
	}
	report := Report{
		Surroundings: c.around,
		Errors:       append(slices.Clone(s.errors), c.errors...).inOrder(),
		Warnings:     c.warnings.inOrder(), Parameters: map[string][]string{}, Composed: texts,
	}
	for name, template := range c.templates {
		report.Parameters[name] = template.Parameters()
	}
	if len(report.Errors) > 0 {
		return report, nil
	}
	objects := slices.Clone(s.objects)
	slices.SortFunc(objects, func(a, b *object) int {
		return cmp.Or(
			cmp.Compare(slices.Index(kindOrder, a.kind), slices.Index(kindOrder, b.kind)),
			cmp.Compare(a.name, b.name),
		)
	})
	var err error
	if report.Bundle, err = render(objects); err != nil {
		return report, err
	}
	report.Bundle.enforced, report.Bundle.around = c.enforced(objects), c.around
	return report, nil
}
