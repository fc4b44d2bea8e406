// SPDX-License-Identifier: BSD-2-Clause

package lifecycle

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"shai.dev/devcluster/internal/directory"
)

// A Status is the state of the devcluster in a directory.
type Status struct {
	Endpoint
	Running bool      `json:"running"`
	Ready   bool      `json:"ready"`
	Reason  string    `json:"reason,omitempty"` // why it is not ready
	Started time.Time `json:"started,omitzero"`
}

// Look returns the status of a directory.
func Look(ctx context.Context, d directory.Directory) (Status, error) {
	process, err := d.Holder()
	if err != nil {
		return Status{}, err
	}
	state, err := d.State()
	if err != nil {
		return Status{}, err
	}
	status := Status{Endpoint: Endpoint{Directory: string(d)}}
	switch {
	case process == 0 && state.Process != 0:
		status.Reason = fmt.Sprintf("its process was killed; its data are kept, devcluster up starts it again; the log is %s", d.Log())
	case process == 0:
		status.Reason = "it is not running"
	case process != state.Process:
		status.Running, status.Reason = true, "it is starting"
	default:
		status.Running, status.Endpoint, status.Started = true, endpoint(d, state.Port, process), state.Started
		if err := healthy(ctx, d); err != nil {
			status.Reason = err.Error()
		} else if !state.Ready {
			status.Reason = "it is starting"
		} else {
			status.Ready = true
		}
	}
	return status, nil
}

// healthy asks the API server itself whether it is healthy.
func healthy(ctx context.Context, d directory.Directory) error {
	config, err := client(d)
	if err != nil {
		return err
	}
	asking, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client from %s: %w", d.Kubeconfig(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := asking.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return fmt.Errorf("the API server is not healthy: %w: the log is %s", err, d.Log())
	}
	return nil
}

// ReadyClient returns the configuration of an administrator's client of a devcluster
// that serves.
func ReadyClient(ctx context.Context, d directory.Directory) (*rest.Config, error) {
	status, err := Look(ctx, d)
	if err != nil {
		return nil, err
	}
	if !status.Ready {
		return nil, fmt.Errorf("there is no devcluster to ask in %s: %s: run devcluster up", d, status.Reason)
	}
	return client(d)
}

func client(d directory.Directory) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", d.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: run devcluster down and up to write it again", d.Kubeconfig(), err)
	}
	return config, nil
}
