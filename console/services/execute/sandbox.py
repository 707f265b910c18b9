"""What the sandbox of one executed call is made of: the agent's account and workspace, an environment made from nothing, bounds."""

from __future__ import annotations

import os

from console.domain.agent import Agent
from console.domain.guard import AGENT_VARIABLE, INSTANCE_VARIABLE
from console.policy.commands import SEARCH
from console.sandbox.execution import CallSpec
from console.settings.options import Options
from console.settings.places import Places


def spec_of(places: Places, options: Options, agent: Agent, call_id: str) -> CallSpec:
    """No socket, no token, no proxy, no key: what an agent has and a call of it does not need is not in there."""
    root = os.geteuid() == 0
    workspace = (places.workspaces_dir / agent.context_id).resolve()
    env = {
        # Where the policy looked for programs, in the same order: what a wrapper runs is what was judged.
        "PATH": ":".join(SEARCH),
        "HOME": "/tmp",  # noqa: S108 - the sandbox's own, empty: nobody's settings are read there
        "TMPDIR": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "WATCHFLOOR_WORKSPACE": str(workspace),
        # By these the second look of a kill knows whatever should ever be found outside of its cgroup.
        AGENT_VARIABLE: agent.agent_id,
        INSTANCE_VARIABLE: places.instance_id,
    }
    return CallSpec(
        agent_id=agent.agent_id,
        workspace=workspace,
        uid=options.agents.uid if root else os.geteuid(),
        gid=options.agents.gid if root else os.getegid(),
        env=env,
        hide=places.hidden,
        pids_max=options.execute.pids_max,
        memory_max_bytes=options.execute.memory_max_mib << 20,
        cpus=options.agents.cpus,
        scratch=places.output_dir / f".{agent.agent_id}.{call_id}",
    )
