// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// refusing answers every admission request with no.
func refusing(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID,
		Result: &metav1.Status{Message: "the webhook says no"}}
	if err := json.NewEncoder(w).Encode(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// deniedEventually waits until config maps are refused in the namespace: what
// admits them is read by the API server a moment after it was written.
func deniedEventually(t *testing.T, client kubernetes.Interface, in, message string) {
	t.Helper()
	eventually(t, "creating is denied", func() error {
		_, err := client.CoreV1().ConfigMaps(in).Create(t.Context(), note("some"), creating)
		if err == nil {
			return errors.Join(errors.New("it was admitted"),
				client.CoreV1().ConfigMaps(in).Delete(t.Context(), "some", metav1.DeleteOptions{}))
		}
		if !strings.Contains(err.Error(), message) {
			return err
		}
		return nil
	})
}

func inNamespace(in string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": in}}
}

var configMaps = registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
	Resources: []string{"configmaps"}}

func TestAWebhookOnThisMachineIsAsked(t *testing.T) {
	_, config := useShared(t)
	client := clientOf(t, config)
	in := namespace(t, client)
	server := httptest.NewTLSServer(http.HandlerFunc(refusing))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	fail, none := registrationv1.Fail, registrationv1.SideEffectClassNone
	hooks := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: in},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name:         "no.example.dev",
			ClientConfig: registrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create}, Rule: configMaps,
			}},
			NamespaceSelector:       inNamespace(in),
			FailurePolicy:           &fail,
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, creating)
	if err != nil {
		t.Fatal(err)
	}
	deniedEventually(t, client, in, "the webhook says no")
	if _, err := client.CoreV1().ConfigMaps(namespace(t, client)).Create(t.Context(), note("elsewhere"),
		creating); err != nil {
		t.Errorf("where the webhook is not asked: %v", err)
	}
	server.Close()
	deniedEventually(t, client, in, "failed calling webhook") // its failure policy
	if err := hooks.Delete(t.Context(), in, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAnAdmissionPolicyIsEnforced(t *testing.T) {
	_, config := useShared(t)
	client := clientOf(t, config)
	in := namespace(t, client)
	policies, bindings := client.AdmissionregistrationV1().ValidatingAdmissionPolicies(),
		client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(t.Context(), &registrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: in},
		Spec: registrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &registrationv1.MatchResources{ResourceRules: []registrationv1.NamedRuleWithOperations{{
				RuleWithOperations: registrationv1.RuleWithOperations{
					Operations: []registrationv1.OperationType{registrationv1.Create}, Rule: configMaps,
				},
			}}},
			Validations: []registrationv1.Validation{{Expression: "false", Message: "the policy says no"}},
		},
	}, creating)
	if err != nil {
		t.Fatal(err)
	}
	_, err = bindings.Create(t.Context(), &registrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: in},
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: in, ValidationActions: []registrationv1.ValidationAction{registrationv1.Deny},
			MatchResources: &registrationv1.MatchResources{NamespaceSelector: inNamespace(in)},
		},
	}, creating)
	if err != nil {
		t.Fatal(err)
	}
	deniedEventually(t, client, in, "the policy says no")
	if _, err := client.CoreV1().ConfigMaps(namespace(t, client)).Create(t.Context(), note("elsewhere"),
		creating); err != nil {
		t.Errorf("where the policy does not hold: %v", err)
	}
}
