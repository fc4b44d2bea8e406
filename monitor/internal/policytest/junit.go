// SPDX-License-Identifier: BSD-2-Clause

package policytest

import (
	"encoding/xml"
	"fmt"
)

// The elements of JUnit's XML that continuous integration reads.
type (
	junitSuites struct {
		XMLName xml.Name      `xml:"testsuites"`
		Suites  []*junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes outcomes in JUnit's form, one suite for each file.
func JUnit(outcomes []Outcome) ([]byte, error) {
	var all junitSuites
	var suite *junitSuite
	for _, one := range outcomes {
		if suite == nil || suite.Name != one.File {
			suite = &junitSuite{Name: one.File}
			all.Suites = append(all.Suites, suite)
		}
		found := junitCase{Name: one.Name, Class: one.File, File: one.File, Line: one.Line}
		suite.Tests++
		if !one.Passed {
			suite.Failures++
			found.Failure = &junitFailure{Message: one.Wrong, Text: one.Sentence + "\n" + one.Derivation.String()}
		}
		suite.Cases = append(suite.Cases, found)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write results as XML: %w", err)
	}
	return append([]byte(xml.Header), append(text, '\n')...), nil
}
