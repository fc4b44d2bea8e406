// SPDX-License-Identifier: BSD-2-Clause

package server

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"

	"shai.dev/devcluster/internal/directory"
)

// socket is etcd's only endpoint: a unix socket in the working directory, which is the
// devcluster's private run folder. The name is relative because the path of a socket is
// limited to some hundred bytes, and that of a directory is not.
const socket = "etcd.sock"

// startEtcd opens the data and returns once etcd serves.
func startEtcd(ctx context.Context, d directory.Directory) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Name = "devcluster"
	config.Dir = d.Data()
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Host: socket}}
	// Members need addresses to advertise; nothing listens at these.
	config.AdvertiseClientUrls = []url.URL{{Scheme: "unix", Host: "client:0"}}
	config.AdvertisePeerUrls = []url.URL{{Scheme: "unix", Host: "peer:0"}}
	config.ListenPeerUrls = nil
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.EnableGRPCGateway = false
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // 0 would warn about every request
	config.LogLevel = "warn"
	config.LogOutputs = []string{"stderr"} // which is the log

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd on %s: %w", d.Data(), err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	etcd.Close()
	return nil, fmt.Errorf("start etcd on %s: %w", d.Data(), err)
}
