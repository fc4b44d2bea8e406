// SPDX-License-Identifier: BSD-2-Clause

package server

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"shai.dev/devcluster/internal/certificates"
	"shai.dev/devcluster/internal/directory"
)

// These are the controllers of kube-controller-manager without which objects do not
// behave as in a real cluster: dependents are deleted with their owners, a deleted
// namespace is emptied, service accounts and their token secrets are made, and aggregated
// roles (admin, edit, view) get rules. No controller for Pods and nodes is here. They are
// built from the controllers' own packages: the whole controller manager keeps its
// settings in globals, which the API server in the same process already uses.

const (
	workers = 5
	// firstSync limits the time in which the garbage collector learns all objects. After
	// it, the garbage collector begins with those that it knows.
	firstSync = 30 * time.Second
	// resync is the delay before a new custom resource's owner references are followed.
	resync = 2 * time.Second
	// namespaceResync repeats the sync of all namespaces, in case one was missed.
	namespaceResync = 5 * time.Minute
)

// controllers holds what the controllers of one run share.
type controllers struct {
	config    *rest.Config // of a user who may impersonate
	directory directory.Directory
	informers informers.SharedInformerFactory
	started   chan struct{} // closed once the informers run
	running   sync.WaitGroup
}

// startControllers starts all controllers. They stop when the context ends. wait returns
// when they have stopped.
func startControllers(ctx context.Context, config *rest.Config, d directory.Directory) (wait func(), err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the controllers: %w", err)
	}
	c := &controllers{
		config: config, directory: d, started: make(chan struct{}),
		informers: informers.NewSharedInformerFactory(client, 0),
	}
	starts := []func(context.Context) error{c.tokens, c.serviceAccounts, c.roles, c.namespaces, c.garbage}
	for _, start := range starts {
		if err := start(ctx); err != nil {
			return nil, fmt.Errorf("start the controllers: %w", err)
		}
	}
	c.informers.Start(ctx.Done())
	close(c.started)
	return func() {
		c.running.Wait()
		c.informers.Shutdown()
	}, nil
}

// as returns the configuration of the service account that a controller uses in every
// cluster.
func (c *controllers) as(name string) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.QPS, config.Burst = 200, 400
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
	}
	return config
}

// tokens fills secrets of the type kubernetes.io/service-account-token. It has no service
// account of its own in any cluster.
func (c *controllers) tokens(ctx context.Context) error {
	folder := c.directory.Certificates()
	key, err := keyutil.PrivateKeyFromFile(certificates.KeyFile(folder, serviceAccountKey))
	if err != nil {
		return fmt.Errorf("read the service accounts' key: %w", err)
	}
	authority, err := os.ReadFile(certificates.CertificateFile(folder, certificates.Authority))
	if err != nil {
		return fmt.Errorf("read the authority's certificate: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	core := c.informers.Core().V1()
	controller, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(),
		core.Secrets(), client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: authority})
	if err != nil {
		return err
	}
	c.running.Go(func() { controller.Run(ctx, workers) })
	return nil
}

func (c *controllers) serviceAccounts(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.as("service-account-controller"))
	if err != nil {
		return err
	}
	core := c.informers.Core().V1()
	controller, err := serviceaccountcontroller.NewServiceAccountsController(core.ServiceAccounts(), core.Namespaces(),
		client,
		serviceaccountcontroller.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	c.running.Go(func() { controller.Run(ctx, 1) })
	return nil
}

func (c *controllers) roles(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.as("clusterrole-aggregation-controller"))
	if err != nil {
		return err
	}
	controller := clusterroleaggregation.NewClusterRoleAggregation(c.informers.Rbac().V1().ClusterRoles(),
		client.RbacV1())
	c.running.Go(func() { controller.Run(ctx, workers) })
	return nil
}

func (c *controllers) namespaces(ctx context.Context) error {
	config := c.as("namespace-controller")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	controller := namespace.NewNamespaceController(ctx, client, objects,
		client.Discovery().ServerPreferredNamespacedResources,
		c.informers.Core().V1().Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
	c.running.Go(func() { controller.Run(ctx, workers) })
	return nil
}

func (c *controllers) garbage(ctx context.Context) error {
	config := c.as("generic-garbage-collector")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	ignored := map[schema.GroupResource]struct{}{}
	for resource := range garbagecollector.DefaultIgnoredResources() {
		ignored[resource] = struct{}{}
	}
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, objects,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())), ignored,
		informerfactory.NewInformerFactory(c.informers, metadatainformer.NewSharedInformerFactory(objects, 0)),
		c.started)
	if err != nil {
		return err
	}
	c.running.Go(func() { collector.Run(ctx, workers, firstSync) })
	// It needs a discovery client of its own, because this loop resets the mapper's.
	discovery, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c.running.Go(func() { collector.Sync(ctx, discovery.Discovery(), resync) })
	return nil
}
