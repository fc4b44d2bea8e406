// SPDX-License-Identifier: BSD-2-Clause

package server

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"shai.dev/devcluster/internal/certificates"
	"shai.dev/devcluster/internal/directory"
)

// authentication requires credentials, except for the health endpoints, which return only
// "ok" and the names of checks.
const authentication = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
`

// apiServer makes a kube-apiserver that will serve at the listener.
func apiServer(ctx context.Context, d directory.Directory, listener net.Listener) (options.CompletedOptions, error) {
	folder := d.Certificates()
	flags := map[string]string{
		"etcd-servers":                     "unix://" + socket,
		"bind-address":                     loopback,
		"advertise-address":                loopback,
		"secure-port":                      strconv.Itoa(listener.Addr().(*net.TCPAddr).Port),
		"tls-cert-file":                    certificates.CertificateFile(folder, servingLeaf),
		"tls-private-key-file":             certificates.KeyFile(folder, servingLeaf),
		"client-ca-file":                   certificates.CertificateFile(folder, certificates.Authority),
		"authentication-config":            d.Authentication(),
		"authorization-mode":               "RBAC",
		"service-account-issuer":           "https://kubernetes.default.svc",
		"service-account-key-file":         certificates.KeyFile(folder, serviceAccountKey),
		"service-account-signing-key-file": certificates.KeyFile(folder, serviceAccountKey),
		"service-cluster-ip-range":         serviceRange,
		// The service "kubernetes" gets no endpoint: loopback addresses are not allowed
		// there, and no Pod runs that could use it.
		"endpoint-reconciler-type": "none",
		// This plugin makes volume claims wait for a controller that does not run here.
		"disable-admission-plugins": "StorageObjectInUseProtection",
		"profiling":                 "false",
		// When the server stops, open watches end at once instead of delaying it for a
		// minute.
		"shutdown-watch-termination-grace-period": "1s",
	}
	run := options.NewServerRunOptions()
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, some := range run.Flags().FlagSets {
		set.AddFlagSet(some)
	}
	for name, value := range flags {
		if err := set.Set(name, value); err != nil {
			return options.CompletedOptions{}, fmt.Errorf("set the API server's %s: %w", name, err)
		}
	}
	run.SecureServing.Listener = listener
	if err := run.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return options.CompletedOptions{}, fmt.Errorf("set the API server's features: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // its own clients' use of old APIs
	completed, err := run.Complete(ctx)
	if err == nil {
		err = utilerrors.NewAggregate(completed.Validate())
	}
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("set the API server up: %w", err)
	}
	return completed, nil
}

// serveAPI runs the API server until the context ends.
func serveAPI(ctx context.Context, completed options.CompletedOptions) error {
	if err := app.Run(ctx, completed); err != nil {
		return fmt.Errorf("run the API server: %w", err)
	}
	return nil
}
