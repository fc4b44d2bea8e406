// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func scenarioNamed(t *testing.T, random *rand.Rand, name string) *scenario {
	t.Helper()
	for _, s := range scenarios(random) {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return nil
}

// The policies of the engines mean the same. A policy that means something else is found.
func TestEnginesAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, s := range scenarios(random) {
		engines := make(map[string]engine)
		for _, b := range builders {
			var err error
			if engines[b.name], err = b.build(s); err != nil {
				t.Fatal(err)
			}
		}
		mixed, allowed, denied := s.questions(random, 50)
		for _, questions := range [][]question{mixed, allowed, denied} {
			if err := agree(s, engines, questions); err != nil {
				t.Error(err)
			}
		}
	}
	few := scenarioNamed(t, random, "friends (100)")
	stricter := *few
	stricter.name = "private"
	_, allowed, _ := few.questions(random, 200)
	engines := make(map[string]engine)
	for _, b := range builders {
		e, err := b.build(few)
		if b.name == "cedar" {
			e, err = b.build(&stricter)
		}
		if err != nil {
			t.Fatal(err)
		}
		engines[b.name] = e
	}
	if err := agree(few, engines, allowed); err == nil || !strings.HasPrefix(err.Error(), "Cedar") {
		t.Errorf("another policy of Cedar was not found: %v", err)
	}
}
