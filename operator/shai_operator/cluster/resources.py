# SPDX-License-Identifier: BSD-2-Clause
"""The resource classes for requests, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.resources.admissionregistration_v1 import ValidatingWebhookConfiguration
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.batch_v1 import Job
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import ConfigMap, Event, Namespace, Secret
from lightkube.resources.networking_v1 import NetworkPolicy
from lightkube.resources.rbac_authorization_v1 import ClusterRole

from shai_operator.reconcile.objects import CLUSTER_SCOPED, GROUP, PLURALS, VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping


def _resource(kind: str) -> Any:
    make = create_global_resource if kind in CLUSTER_SCOPED else create_namespaced_resource
    return make(GROUP, VERSION, kind, PLURALS[kind])


RESOURCES: Mapping[str, Any] = {
    **{kind: _resource(kind) for kind in PLURALS},
    "ConfigMap": ConfigMap,
    "Secret": Secret,
    "Namespace": Namespace,
    "Lease": Lease,
    "Job": Job,
    "NetworkPolicy": NetworkPolicy,
    "Event": Event,
    "CustomResourceDefinition": CustomResourceDefinition,
    "ValidatingWebhookConfiguration": ValidatingWebhookConfiguration,
    "ClusterRole": ClusterRole,
}
"""Every kind that the operator reads or writes."""

WITHOUT_NAMESPACE = CLUSTER_SCOPED | {"CustomResourceDefinition", "ValidatingWebhookConfiguration", "ClusterRole"}
