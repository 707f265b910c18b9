"""The socket of the host's instance for accounts that are in Watchfloor's groups. What each of them may do is decided per request."""

from __future__ import annotations

from collections.abc import Callable

from console.domain.roles.rights import Role, roles_of
from console.killswitch.kernel.peers import why_unfit
from console.settings.places import Places
from console.supervisor.http.access import Trespasses
from console.supervisor.http.asgi import App, Door
from console.supervisor.http.peers import Peer, is_operator, may_be_member

MODE = 0o666
"""The folder above lets members in, and the kernel's word on the peer decides."""
PER_ACCOUNT = 16
NOT_A_MEMBER = f"You are in none of these groups: {', '.join(role.group for role in Role)}. Ask root to add you, then log in again."


def members_doors(places: Places, app: App, agents_uid: int, trespasses: Trespasses, notice: Callable[[str], None]) -> list[Door]:
    """The door for members, to be opened; none where the instance serves no other account. Why there is none is a notice."""
    if places.members_dir is None:
        return []
    if why := why_unfit(places.members_dir):
        notice(f"Only root can use this instance: {why}.")
        return []

    def accepts(peer: Peer) -> bool:
        if is_operator(peer, places.instance_id) or (may_be_member(peer, agents_uid) and roles_of(peer.groups)):
            return True
        trespasses.at_operators_door(peer)
        return False

    sock = places.members_dir / "operator.sock"
    return [Door(sock, app, accepts, mode=MODE, per_account=PER_ACCOUNT, not_served=NOT_A_MEMBER)]
