// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"shai.dev/devcluster/internal/certificates"
)

// namespace makes one for a test.
func namespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	made, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, creating)
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

func TestAnonymousSeesHealthOnly(t *testing.T) {
	_, config := useShared(t)
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}})
	if err != nil {
		t.Fatal(err)
	}
	anonymous := &http.Client{Transport: transport}
	for path, want := range map[string]int{
		"/livez": http.StatusOK, "/readyz": http.StatusOK, "/healthz": http.StatusOK,
		"/": http.StatusUnauthorized, "/version": http.StatusUnauthorized, "/api": http.StatusUnauthorized,
		"/api/v1/namespaces": http.StatusUnauthorized, "/openapi/v3": http.StatusUnauthorized,
		"/metrics": http.StatusUnauthorized,
	} {
		response, err := anonymous.Get(config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s answers %d without credentials, want %d", path, response.StatusCode, want)
		}
	}
}

func TestACertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	_, config := useShared(t)
	folder := t.TempDir()
	leaf := certificates.Leaf{Name: "client", User: "administrator", Groups: []string{"system:masters"}}
	if err := certificates.Ensure(folder, time.Now(), []certificates.Leaf{leaf}, nil); err != nil {
		t.Fatal(err)
	}
	strange := rest.AnonymousClientConfig(config)
	strange.CertFile, strange.KeyFile = certificates.CertificateFile(folder, leaf.Name),
		certificates.KeyFile(folder, leaf.Name)
	if _, err := clientOf(t, strange).CoreV1().Namespaces().List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a certificate of another authority, listing gives %v", err)
	}
	if _, err := clientOf(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("with its own, listing gives %v", err)
	}
}

// A service account may do what a role says, and nothing before. The role view
// is filled by a controller.
func TestRolesDecide(t *testing.T) {
	_, config := useShared(t)
	administrator := clientOf(t, config)
	in := namespace(t, administrator)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	if _, err := administrator.CoreV1().ServiceAccounts(in).Create(t.Context(), account, creating); err != nil {
		t.Fatal(err)
	}
	token, err := administrator.CoreV1().ServiceAccounts(in).CreateToken(t.Context(), "reader",
		&authenticationv1.TokenRequest{}, creating)
	if err != nil {
		t.Fatal(err)
	}
	own := rest.AnonymousClientConfig(config)
	own.BearerToken = token.Status.Token
	reader := clientOf(t, own)
	list := func() error {
		_, err := reader.CoreV1().ConfigMaps(in).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Errorf("without a role, listing gives %v", err)
	}
	_, err = administrator.RbacV1().RoleBindings(in).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in, Name: "reader"}},
	}, creating)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role allows to list", list)
	if _, err := reader.CoreV1().ConfigMaps(in).Create(t.Context(), note("no"), creating); !apierrors.IsForbidden(err) {
		t.Errorf("with a role to view, creating gives %v", err)
	}
	if _, err := reader.CoreV1().Secrets(in).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("with a role to view, listing secrets gives %v", err)
	}
}

func TestTokenSecretsAreFilled(t *testing.T) {
	_, config := useShared(t)
	client := clientOf(t, config)
	in := namespace(t, client)
	eventually(t, "the namespace has its service account", func() error {
		_, err := client.CoreV1().ServiceAccounts(in).Get(t.Context(), "default", getting)
		return err
	})
	_, err := client.CoreV1().Secrets(in).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type: corev1.SecretTypeServiceAccountToken,
	}, creating)
	if err != nil {
		t.Fatal(err)
	}
	own := rest.AnonymousClientConfig(config)
	eventually(t, "the secret holds a token", func() error {
		secret, err := client.CoreV1().Secrets(in).Get(t.Context(), "token", getting)
		if err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
			err = fmt.Errorf("it holds %d entries", len(secret.Data))
		}
		own.BearerToken = string(secret.Data[corev1.ServiceAccountTokenKey])
		return err
	})
	if _, err := clientOf(t, own).CoreV1().Secrets(in).List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("with the token, listing secrets gives %v: it should be known, but have no right", err)
	}
}

// TestListensOnLoopbackOnly reads what the kernel says of the process's sockets.
func TestListensOnLoopbackOnly(t *testing.T) {
	d, _ := useShared(t)
	status, _ := d.status(t)
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", status.Process))
	if err != nil || len(open) == 0 {
		t.Fatalf("the process's descriptors: %d, %v", len(open), err)
	}
	own := map[string]bool{} // sockets, by inode
	for _, descriptor := range open {
		target, _ := os.Readlink(descriptor) // it may have been closed since
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	const listening, loopback = "0A", "0100007F" // as the kernel writes them
	var found []string
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", status.Process, table))
		if os.IsNotExist(err) {
			continue // a machine without IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if !own[fields[9]] || strings.HasPrefix(table, "tcp") && fields[3] != listening {
				continue
			}
			found = append(found, table+" "+fields[1])
			if address, _, _ := strings.Cut(fields[1], ":"); address != loopback {
				t.Errorf("it listens at %s (%s)", fields[1], table)
			}
		}
	}
	if len(found) != 1 {
		t.Errorf("it listens at %q, want one address", found)
	}
}
