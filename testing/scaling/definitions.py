# SPDX-License-Identifier: BSD-2-Clause
"""The objects that are applied: policies, and pipelines of one task each, which share the policies among them."""

from __future__ import annotations

from typing import Any

API = "shai.dev/v1alpha1"
NAMESPACE, POOL = "scale", "scale"


def definitions(policies: int, pipelines: int, *, run: str = "Once") -> list[dict[str, Any]]:
    """Return policies and pipelines; ``run`` is how the tasks run."""
    made = [policy(number) for number in range(policies)]
    for number in range(pipelines):
        own = list(range(number, policies, pipelines)) or [number % policies]
        paths = [{"path": f"/p{number}/{policy}/**", "policy": {"name": f"policy-{policy}"}} for policy in own]
        conduits = [{"name": f"files-{number}", "kind": "file", "directory": True, "ingress": True, "paths": paths}]
        task = {"command": ["/bin/true"], "runtimeName": "system", "run": run, "taint": {"name": f"policy-{own[0]}"}}
        rollout = {"steps": [{"members": "100%", "pauseSeconds": 0}], "limits": {"minimumSessions": 0}}
        more = {"pool": POOL, "tasks": [f"task-{number}"], "conduits": conduits, "rollout": rollout}
        made.append(_object("Task", f"task-{number}", **task))
        made.append(_object("Pipeline", f"pipeline-{number}", **more))
    return made


def policy(number: int, change: int = 0) -> dict[str, Any]:
    """Return a policy; each ``change`` has another text."""
    remark = f"# change {change}\n" if change else ""
    text = f"policy policy_{number} {{\n  read   :- true.\n  update :- true.\n}}\n{remark}"
    return _object("Policy", f"policy-{number}", text=text)


def pool(members: int = 0, network: str = "") -> dict[str, Any]:
    """Return the pool, with as many members."""
    runtimes = [{"name": "system", "paths": ["/bin", "/lib", "/lib64", "/usr/lib", "/usr/bin"]}]
    more = {"network": {"addresses": network}, "maxMembers": members, "scaleIn": {"drainSeconds": 0}} if members else {}
    return _object(
        "JailPool",
        POOL,
        allowedNamespaces={"names": [NAMESPACE]},
        provider="local",
        replicas=members,
        runtimes=runtimes,
        **more,
    )


def _object(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
