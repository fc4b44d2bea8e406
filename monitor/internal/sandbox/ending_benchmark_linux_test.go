// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
)

// BenchmarkEnding measures how long the end of a task with many processes takes, by each
// way to end it.
func BenchmarkEnding(b *testing.B) {
	program, err := victimPath()
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct {
		name     string
		confined bool
		waived   plan.Protection
	}{
		{"cgroup", false, 0},
		{"group", true, plan.TaskCgroup},
		{"namespace", false, plan.TaskCgroup},
		{"search", false, plan.TaskCgroup | plan.TaskNamespace},
	} {
		for _, processes := range []int{250, 3000} {
			b.Run(fmt.Sprintf("%s/%d", way.name, processes), func(b *testing.B) {
				spec := Spec{Spec: plan.Spec{Name: "breeder", WorkingDirectory: "/",
					Command: []string{program, "breed", fmt.Sprint(processes)}, Runtime: []string{filepath.Dir(program)},
					Confined: way.confined, Limits: plan.Limits{Processes: 3100}}, waived: way.waived}
				for b.Loop() {
					b.StopTimer()
					task := bred(b, spec)
					now, cancel := context.WithCancel(b.Context())
					cancel()
					b.StartTimer()
					if err := task.Stop(now); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// bred starts a program and returns when it has made its processes.
func bred(b *testing.B, spec Spec) Task {
	b.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer read.Close()
	spec.Stdout = write
	task, err := newBackend(b).Start(b.Context(), spec, &scripted{})
	write.Close()
	if err != nil {
		b.Fatal(err)
	}
	if line, err := bufio.NewReader(read).ReadString('\n'); line != "ready\n" {
		b.Fatalf("the program said %q: %v", line, err)
	}
	return task
}
