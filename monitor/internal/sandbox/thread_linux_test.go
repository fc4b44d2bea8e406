// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
)

// otherThreadMarker makes keeper and launcher work on another thread than their
// first.
const otherThreadMarker = "SHAI_TEST_OTHER_THREAD"

// launchMain is LaunchMain in the form that the current test needs.
func launchMain() {
	if os.Getenv(otherThreadMarker) == "" {
		LaunchMain()
		return
	}
	launcherEnvironment = append(launcherEnvironment, otherThreadMarker+"=1")
	runtime.LockOSThread() // occupies the first thread
	done := make(chan struct{})
	go func() {
		LaunchMain()
		close(done)
	}()
	<-done
}

// Go may have moved the main goroutine before main begins; the one exec of a task
// must not depend on that.
func TestLauncherOnAnyThread(t *testing.T) {
	before := launcherEnvironment
	t.Cleanup(func() { launcherEnvironment = before })
	launcherEnvironment = append(slices.Clone(before), otherThreadMarker+"=1")
	got := run(t, Spec{Spec: plan.Spec{
		Command: []string{"/bin/echo", "begun"}, Runtime: runtimeOf(), Confined: true}}, &scripted{})
	if got.err != nil || got.output != "begun\n" {
		t.Errorf("%q, %v", got.output, got.err)
	}
}
