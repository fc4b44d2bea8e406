// SPDX-License-Identifier: BSD-2-Clause

package server

import (
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"shai.dev/devcluster/internal/certificates"
	"shai.dev/devcluster/internal/directory"
)

const (
	loopback = "127.0.0.1"
	// serviceRange is the range of services' addresses. serviceAddress, the first one, is
	// that of the API server.
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1"

	servingLeaf       = "apiserver"
	administratorLeaf = "administrator"
	controllersLeaf   = "controllers"
	serviceAccountKey = "service-accounts"
)

// masters is the group that RBAC does not limit.
const masters = "system:masters"

// leaves returns the certificates that a devcluster needs.
func leaves() []certificates.Leaf {
	return []certificates.Leaf{
		{
			Name: servingLeaf, User: "kube-apiserver",
			Hosts: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
			Addresses: []net.IP{net.ParseIP(loopback), net.ParseIP(serviceAddress)},
		},
		{Name: administratorLeaf, User: "administrator", Groups: []string{masters}},
		{Name: controllersLeaf, User: "devcluster-controllers", Groups: []string{masters}},
	}
}

// ensureCertificates makes the missing keys and certificates, and replaces those that are
// no longer valid.
func ensureCertificates(d directory.Directory) error {
	return certificates.Ensure(d.Certificates(), time.Now(), leaves(), []string{serviceAccountKey})
}

// URL returns the address of the API server.
func URL(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }

// clientConfig returns a client of the API server with one of the certificates.
func clientConfig(d directory.Directory, port int, leaf string) *rest.Config {
	folder := d.Certificates()
	return &rest.Config{
		Host:      URL(port),
		UserAgent: "devcluster",
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   certificates.CertificateFile(folder, certificates.Authority),
			CertFile: certificates.CertificateFile(folder, leaf),
			KeyFile:  certificates.KeyFile(folder, leaf),
		},
	}
}

// writeKubeconfig writes the administrator's credentials, all in one file.
func writeKubeconfig(d directory.Directory, port int) error {
	config := clientConfig(d, port, administratorLeaf)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("read the administrator's certificate: %w", err)
	}
	const name = "devcluster"
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: config.Host,
			CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: config.CertData,
			ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: "default"}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return directory.Replace(d.Kubeconfig(), text)
}

// listen takes the port: the wanted one, or else that of the last run if it is free, or
// else any.
func listen(wanted, last int) (net.Listener, error) {
	if wanted == 0 && last != 0 {
		if listener, err := listenAt(last); err == nil {
			return listener, nil
		}
	}
	listener, err := listenAt(wanted)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another --port, or 0 for a free one", err)
	}
	return listener, nil
}

func listenAt(port int) (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("%s:%d", loopback, port))
}
