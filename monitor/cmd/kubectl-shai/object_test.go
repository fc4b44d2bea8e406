// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func read(t *testing.T, text string) object {
	t.Helper()
	var found object
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestStanding(t *testing.T) {
	for _, test := range []struct{ status, reason string }{
		{`{}`, "Pending"},
		{`{"observedGeneration": 1, "conditions": [{"type": "RolledOut", "status": "True", "reason": "Complete"}]}`,
			"Pending"}, // of an earlier spec
		{`{"observedGeneration": 2, "conditions": [{"type": "RolledOut", "status": "True", "reason": "Complete"}]}`,
			"Complete, ended"},
		{`{"observedGeneration": 2, "conditions": [{"type": "RolledOut", "status": "False", "reason": "Progressing"}]}`,
			"Progressing"},
		{`{"observedGeneration": 2, "conditions": [{"type": "RolledOut", "status": "Unknown", "reason": "Pending"}]}`,
			"Pending"},
		{`{"observedGeneration": 2, "conditions": [{"type": "RolledOut", "status": "True", "reason": "Complete"},
			{"type": "Accepted", "status": "False", "reason": "Invalid"}]}`, "Invalid, ended"},
	} {
		s := standing(read(t, `{"metadata": {"name": "p", "generation": 2}, "status": `+test.status+`}`))
		got := s.Reason
		if s.Ended {
			got += ", ended"
		}
		if got != test.reason {
			t.Errorf("%s: %s, want %s", test.status, got, test.reason)
		}
	}
}

func TestEarlierRevision(t *testing.T) {
	policy := read(t, `{"metadata": {"name": "p"}, "spec": {"text": "new", "mode": "Enforce"}}`)
	var revisions []object
	for _, text := range []string{
		`{"policy": "p", "revision": 1, "text": "first", "mode": "Enforce"}`,
		`{"policy": "p", "revision": 2, "text": "new", "mode": "Audit"}`,
		`{"policy": "p", "revision": 3, "text": "new", "mode": "Enforce"}`,
		`{"policy": "other", "revision": 9, "text": "foreign", "mode": "Enforce"}`,
	} {
		revisions = append(revisions, read(t, `{"spec": `+text+`}`))
	}
	for number, want := range map[int]string{0: "2", 1: "1", 3: "3", 9: "has no revision 9; it has 3, 2, 1"} {
		found, err := earlier(policy, revisions, number)
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("to %d: %v, want %s", number, err, want)
		case err == nil && string(rune('0'+found.Spec.Revision)) != want:
			t.Errorf("to %d: revision %d, want %s", number, found.Spec.Revision, want)
		}
	}
	if _, err := earlier(policy, revisions[2:3], 0); err == nil {
		t.Error("a policy without another revision goes back to one")
	}
}

func TestWrong(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`{"kind": "Task", "metadata": {"name": "t", "generation": 2}, "status": {"observedGeneration": 1}}`, "NotSeen"},
		{`{"kind": "Task", "metadata": {"name": "t"}, "status": {"conditions": [
			{"type": "Ready", "status": "False", "reason": "Invalid", "message": "a"}]}}`, "Ready=Invalid"},
		{`{"kind": "Task", "metadata": {"name": "t"}, "status": {"conditions": [
			{"type": "Ready", "status": "True", "reason": "Accepted"}]}}`, ""},
		{`{"kind": "TaskRun", "metadata": {"name": "t"}, "status": {"conditions": [
			{"type": "Succeeded", "status": "False", "reason": "Cancelled"}]}}`, ""},
	} {
		var got []string
		for _, one := range wrong(read(t, test.text)) {
			got = append(got, one.Reason)
		}
		if strings.Join(got, ",") != test.want {
			t.Errorf("%s: %v, want %q", test.text, got, test.want)
		}
	}
}
