# SPDX-License-Identifier: BSD-2-Clause
"""The envelope of a CustomResourceDefinition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crds import schema
from crds.schema import Schema, keyed, moment, number, record, rule_at_birth, text, word

if TYPE_CHECKING:
    from crds.condition import Condition

GROUP = "shai.dev"
VERSION = "v1alpha1"

AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_CONDITIONS = 16
NAME_RULE = rule_at_birth(
    f"self.metadata.name.matches('{schema.LABEL}')",
    "metadata.name is not a name; expected lower-case letters, digits and inner hyphens",
)


@dataclass(frozen=True)
class Column:
    """A column of ``kubectl get``; ``wide`` ones need ``-o wide``."""

    name: str
    path: str
    type: str = "string"
    about: str = ""
    wide: bool = False

    def render(self) -> dict[str, Any]:
        """Return the column for the definition."""
        made: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.about:
            made["description"] = self.about
        if self.wide:
            made["priority"] = 1
        return made


def condition_column(title: str, condition: str, part: str = "status", *, wide: bool = False) -> Column:
    """Make a column that shows a part of a condition."""
    return Column(title, f'.status.conditions[?(@.type=="{condition}")].{part}', wide=wide)


@dataclass(frozen=True)
class Resource:
    """One kind. ``status`` has the fields of its status besides the generation and the conditions."""

    kind: str
    plural: str
    short: str
    about: str
    spec: Schema
    columns: tuple[Column, ...]
    status: dict[str, Schema] | None = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)
    """By type."""
    namespaced: bool = True
    rules: tuple[Schema, ...] = ()
    selectable: tuple[str, ...] = ()
    scale: dict[str, str] | None = None
    longest_name: int = schema.LABEL_LENGTH

    def reasons(self, kind: str) -> frozenset[str]:
        """Return the reasons that a type of condition of this kind can have."""
        types = (kind, *self.conditions[kind].others)
        return frozenset(reason for condition in types for reason in self.conditions[condition].reasons)

    @property
    def file(self) -> str:
        """The definition's file beneath bases/."""
        return f"{self.plural}.yaml"

    def schema(self) -> Schema:
        """Return the schema of the whole object."""
        fields = {
            "apiVersion": {"description": f"Always {GROUP}/{VERSION}.", "type": "string"},
            "kind": {"description": f"Always {self.kind}.", "type": "string"},
            "metadata": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": self.longest_name}},
            },
            "spec": self.spec,
        }
        if self.status is not None:
            fields["status"] = self._status()
        return {
            "description": self.about,
            "type": "object",
            "required": ["spec"],
            "properties": fields,
            "x-kubernetes-validations": [NAME_RULE, *self.rules],
        }

    def _status(self) -> Schema:
        about = "What the operator has found and done. Written by the operator alone."
        observed = number(
            "The metadata.generation that this status is about; older than the object's: not yet looked at."
        )
        return record(about, {"observedGeneration": observed, "conditions": self._conditions(), **(self.status or {})})

    def _conditions(self) -> Schema:
        meanings = " ".join(f"{name}: {about}" for name, about in self.conditions.items())
        about = f"Where the object stands; kubectl wait --for=condition=… waits for it. {meanings}"
        item = record(
            "One aspect of where the object stands.",
            {
                "type": text("Which aspect.", longest=64, pattern=schema.CONDITION_TYPE),
                "status": word("Whether it holds; Unknown until it has been looked at.", "True", "False", "Unknown"),
                "observedGeneration": number("The metadata.generation that this condition is about."),
                "lastTransitionTime": moment("When the status last changed."),
                "reason": text("Why, in a word for programs.", longest=64, pattern=schema.CONDITION_REASON),
                "message": text(
                    "Why, and what to do, in a sentence for people.", longest=schema.MESSAGE_LENGTH, shortest=0
                ),
            },
            required=("type", "status", "lastTransitionTime", "reason", "message"),
        )
        return keyed(about, item, by="type", most=_CONDITIONS)

    def definition(self) -> dict[str, Any]:
        """Return the CustomResourceDefinition."""
        version: dict[str, Any] = {
            "name": VERSION,
            "served": True,
            "storage": True,
            "additionalPrinterColumns": [*(column.render() for column in self.columns), AGE],
            "schema": {"openAPIV3Schema": self.schema()},
        }
        if self.selectable:
            version["selectableFields"] = [{"jsonPath": path} for path in self.selectable]
        subresources: dict[str, Any] = {} if self.status is None else {"status": {}}
        if self.scale:
            subresources["scale"] = self.scale
        if subresources:
            version["subresources"] = subresources
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "shai"}},
            "spec": {
                "group": GROUP,
                "names": {
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                    "shortNames": [self.short],
                    "categories": ["shai"],
                },
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "versions": [version],
            },
        }
