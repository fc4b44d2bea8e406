// SPDX-License-Identifier: BSD-2-Clause

// Package server is the devcluster's process: etcd, the API server and a few controllers,
// which run in one directory until the context ends.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"

	"shai.dev/devcluster/internal/directory"
)

// poll is the interval at which a condition is checked that gives no notification.
const poll = 50 * time.Millisecond

// Settings configure a run.
type Settings struct {
	Directory directory.Directory
	Port      int // 0: that of the last run if it is free, or else any
	// Step is called with each step of the start, Ready when everything works, with the
	// port.
	Step  func(string)
	Ready func(port int)
}

// StepEtcd is the step in which etcd reads the data of earlier runs.
const StepEtcd = "starting etcd"

// Version returns the version of Kubernetes.
func Version() string { return version.Get().GitVersion }

// Run runs the devcluster until the context ends, or until it fails.
func Run(ctx context.Context, s Settings) (err error) {
	if strings.Contains(Version(), "Format") {
		return errors.New("this devcluster does not know its own Kubernetes version: build it with make build-devcluster, which sets that")
	}
	d := s.Directory
	if err := d.Create(); err != nil {
		return err
	}
	lock, err := d.Acquire()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := redirectLogs(d); err != nil {
		return err
	}
	listener, err := prepare(d, s.Port)
	if err != nil {
		return err
	}
	defer listener.Close() // a second close, unless the start failed before the API server had it
	state := directory.State{Port: listener.Addr().(*net.TCPAddr).Port, Started: time.Now(), Process: os.Getpid()}
	if err := d.Remember(state); err != nil {
		return err
	}
	err = runParts(ctx, s, listener, func() error {
		state.Ready = true
		return d.Remember(state)
	})
	state.Ready, state.Process = false, 0
	return errors.Join(err, d.Remember(state))
}

// prepare takes the port and writes the files that the parts and the clients read.
func prepare(d directory.Directory, port int) (net.Listener, error) {
	last, err := d.State()
	if err != nil {
		return nil, err
	}
	if err := ensureCertificates(d); err != nil {
		return nil, err
	}
	if err := directory.Replace(d.Authentication(), []byte(authentication)); err != nil {
		return nil, err
	}
	if err := os.Chdir(d.Run()); err != nil { // see socket
		return nil, fmt.Errorf("enter the devcluster's folder: %w", err)
	}
	listener, err := listen(port, last.Port)
	if err != nil {
		return nil, err
	}
	if err := writeKubeconfig(d, listener.Addr().(*net.TCPAddr).Port); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// runParts starts etcd, the API server and the controllers. It stops them in the opposite
// order when the context or one of them ends.
func runParts(ctx context.Context, s Settings, listener net.Listener, ready func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	s.Step(StepEtcd)
	etcd, err := startEtcd(ctx, s.Directory)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer etcd.Close()
	go func() {
		if err, failed := <-etcd.Err(); failed {
			cancel(fmt.Errorf("run etcd: %w", err))
		}
	}()

	s.Step("starting the API server")
	stopAPI, err := startAPI(s.Directory, listener, cancel)
	if err != nil {
		return err
	}
	defer stopAPI()
	port := listener.Addr().(*net.TCPAddr).Port
	config := clientConfig(s.Directory, port, controllersLeaf)
	if err := untilHealthy(ctx, config); err != nil {
		return unlessStopped(ctx, err)
	}

	s.Step("starting the controllers")
	controlled, stopControllers := context.WithCancel(context.Background())
	wait, err := startControllers(controlled, config, s.Directory)
	defer func() {
		stopControllers()
		if wait != nil {
			wait()
		}
	}()
	if err != nil {
		return err
	}
	if err := untilFurnished(ctx, config); err != nil {
		return unlessStopped(ctx, err)
	}

	if err := ready(); err != nil {
		return err
	}
	s.Ready(port)
	<-ctx.Done()
	s.Step("stopping")
	return unlessStopped(ctx, nil)
}

// unlessStopped returns why the run ended: nil if it was told to end, the cause if a part
// failed, else the error.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// startAPI runs the API server in a goroutine with a context of its own: it stops after
// the parts that use it. If it ends by itself, failed is called.
func startAPI(d directory.Directory, listener net.Listener, failed context.CancelCauseFunc) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	completed, err := apiServer(ctx, d, listener)
	if err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := serveAPI(ctx, completed)
		if err == nil && ctx.Err() == nil {
			err = errors.New("the API server stopped by itself")
		}
		if err != nil {
			failed(err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}, nil
}

// untilHealthy waits until the API server says that it is healthy.
func untilHealthy(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	return until(ctx, "the API server is ready", func(ctx context.Context) error {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// untilFurnished waits for the objects that every cluster has: without them, the API
// server could refuse the first object that a user creates.
func untilFurnished(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	core := client.CoreV1()
	return until(ctx, "the first namespaces are there", func(ctx context.Context) error {
		_, system := core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		_, account := core.ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return errors.Join(system, account)
	})
}

// until waits for a check to succeed. If the context ends first, it returns the check's
// last error.
func until(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(err, last))
	}
	return nil
}
