"""Routes around the un-kill: what a rearm would release, the passphrase, and agents started again one by one. All stay up while killed."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api import messages as m
from console.services.fleet.core import Core
from console.services.rearm.passphrases import Passphrases
from console.services.rearm.relaunch import Relaunch
from console.services.rearm.service import Rearming
from console.services.routes.request_identity import asked_by, caller_of
from console.services.routes.responses import Handlers, answer, body_of


def rearm_routes(core: Core, rearming: Rearming, passphrases: Passphrases, relaunch: Relaunch) -> Handlers:
    """To be put before the routes of agents' verbs."""

    async def looked_at(_request: Request) -> Response:
        view = await rearming.review()
        view.was_running, view.was_running_left_out = await relaunch.was_running(view.kill_ids)
        return answer(view)

    async def shown(_request: Request) -> Response:
        return answer(await passphrases.view())

    async def changed(request: Request) -> Response:
        body, caller = await body_of(request, ep.CHANGE_PASSPHRASE.body), caller_of(request)
        return answer(await passphrases.change(body, caller, asked_by(request)))

    async def again(request: Request) -> Response:
        agent_id = core.agent_or_404(request.path_params["id"])
        body = await body_of(request, ep.AGAIN.body)
        new_id = await relaunch.start_again(agent_id, asked_by(request), body.dangerous_ok)
        agent = core.state.agents[new_id]
        view = m.LaunchedView(
            id=new_id,
            control_level=agent.control_level,
            network_mode=agent.network_mode,
            network_enforced=agent.network_enforced,
            notes=["Variables that were given at its first launch are not kept."],
        )
        return answer(view)

    return {
        ep.REARM: looked_at,
        ep.PASSPHRASE: shown,
        ep.CHANGE_PASSPHRASE: changed,
        ep.AGAIN: again,
    }
