# SPDX-License-Identifier: BSD-2-Clause
"""Selectors of objects by their labels, as the API server evaluates them.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/, and `Requirement.Matches` of
k8s.io/apimachinery, with which a test compares this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector finds an object with these labels; an empty one finds all, and None finds nothing.

    All requirements have to be met. One with an operator that is not known is not.
    """
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    equal = all(labels.get(key) == value for key, value in wanted.items())
    return equal and all(_met(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def _met(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement["key"])
    values = requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
