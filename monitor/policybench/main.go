// SPDX-License-Identifier: BSD-2-Clause

// Policybench measures how long Shai, OPA and Cedar take to say whether a user may read a
// document, for policies that mean the same in each of their languages. It first checks
// that they agree. It is a module of its own so that Shai does not depend on the others.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 30, "how often each engine is measured for each policy and answer")
	seed := flag.Uint64("seed", 1, "of users, documents and questions")
	output := flag.String("output", "out/bench", "directory for policy.json and policy.html")
	flag.Parse()
	if err := run(*rounds, *seed, *output); err != nil {
		fmt.Fprintln(os.Stderr, "policybench:", err)
		os.Exit(1)
	}
}

// questionsEach is the number of different questions of each policy and answer.
const questionsEach = 1000

func run(rounds int, seed uint64, output string) error {
	if rounds < 1 {
		return fmt.Errorf("%d rounds: there has to be at least one", rounds)
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // for measurements, to be repeated
	found := &results{Made: time.Now().UTC(), Go: runtime.Version(), Versions: versions(), Rounds: rounds}
	for _, s := range scenarios(random) {
		engines := make(map[string]engine)
		for _, b := range builders {
			var err error
			if engines[b.name], err = b.build(s); err != nil {
				return err
			}
		}
		mixed, allowed, denied := s.questions(random, questionsEach)
		for _, questions := range [][]question{mixed, allowed, denied} {
			if err := agree(s, engines, questions); err != nil {
				return err
			}
			found.Questions += len(questions)
		}
		for i, questions := range [][]question{allowed, denied} {
			line, err := measured(random, engines, questions, rounds)
			if err != nil {
				return err
			}
			line.Policy, line.Answer = s.name, []string{"allowed", "denied"}[i]
			found.Rows = append(found.Rows, line)
		}
	}
	if err := found.print(os.Stdout); err != nil {
		return err
	}
	return found.save(output)
}

// versions returns those of the other engines that this program was built with.
func versions() map[string]string {
	names := map[string]string{"github.com/open-policy-agent/opa": "opa", "github.com/cedar-policy/cedar-go": "cedar"}
	all := make(map[string]string)
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if name := names[module.Path]; name != "" {
				all[name] = module.Version
			}
		}
	}
	return all
}
