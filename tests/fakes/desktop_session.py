"""A real desktop's notification daemon (dunst) on a display (Xvfb) and a session bus of its own; ended by pid."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, HeaderFields, Properties, message_bus, new_method_call, new_signal
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import unwrap_msg

from tests.fakes.instance import listens, until

_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""
_DUNST = DBusAddress("/org/freedesktop/Notifications", bus_name="org.freedesktop.Notifications", interface="org.dunstproject.cmd0")


class DesktopSession:
    """``with DesktopSession(folder) as it:``; ``it.address`` is the bus. ``daemon`` False: nobody shows notifications.

    ``stays``: each stays on the screen until somebody acts on it, however slow this machine is; else as long as the console asks for.
    """

    def __init__(self, folder: Path, *, daemon: bool = True, stays: bool = True) -> None:
        folder.mkdir(mode=0o700)
        self.folder, self._daemon, self._stays = folder, daemon, stays
        self.address = f"unix:path={folder / 'bus'}"
        self._programs: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> DesktopSession:
        config = self.folder / "bus.conf"
        config.write_text(_BUS.format(socket=self.folder / "bus"))  # no activation: nothing of this machine's is started on this bus
        self._start({}, "dbus-daemon", "--nofork", f"--config-file={config}")
        until(lambda: listens(self.folder / "bus"), words="the bus listens")
        if self._daemon:
            read, write = os.pipe()
            self._start({}, "Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24", "-nolisten", "tcp", give=(write,))
            os.close(write)
            with os.fdopen(read) as pipe:
                display = pipe.readline().strip()
            rules = self.folder / "dunstrc"
            menu = self.folder / "menu"  # dunst shows the choices of its notifications in a menu program: here a person who knows the label
            menu.write_text(f'#!/bin/sh\ntee -a {self.folder}/offered | grep -F -m1 "$(cat {self.folder}/label)"\n')
            menu.chmod(0o700)
            rules.write_text(
                f'[global]\nmarkup = full\nformat = "<b>%s</b>\\n%b"\ndmenu = {menu}\n'
                + ("[urgency_normal]\noverride_dbus_timeout = 3600\n" if self._stays else "")
            )
            self._start({"DISPLAY": f":{display}", "HOME": str(self.folder)}, "dunst", "-config", str(rules))
            until(self._answers, words="dunst has its name on the bus")
        return self

    def _start(self, more: dict[str, str], *argv: str, give: tuple[int, ...] = ()) -> None:
        environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
        environment |= {"DBUS_SESSION_BUS_ADDRESS": self.address, **more}
        null = subprocess.DEVNULL
        self._programs.append(subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, env=environment, pass_fds=give))

    def _answers(self) -> bool:
        try:
            self._ask("NotificationListHistory")
        except Exception:  # noqa: BLE001 - whatever it is, it does not answer yet
            return False
        return True

    def _ask(self, method: str, signature: str | None = None, *arguments: object) -> tuple[Any, ...]:
        with open_dbus_connection(self.address) as bus:
            return tuple(unwrap_msg(bus.send_and_get_reply(new_method_call(_DUNST, method, signature, arguments), timeout=60)))

    def click(self, place: int = 0) -> None:
        """A person clicks a notification that is on the screen; 0: the first."""
        self._ask("NotificationAction", "u", place)

    def choose(self, label: str) -> str:
        """A person opens the menu of what is on the screen, and takes the first choice of that label. Returns what the menu offered."""
        (self.folder / "label").write_text(label)
        (self.folder / "offered").write_text("")
        self._ask("ContextMenuCall")
        until(lambda: (self.folder / "offered").read_text() != "", words="the menu opens")
        return (self.folder / "offered").read_text()

    def forge(self, path: str, member: str, signature: str, *body: object) -> None:
        """Another program sends a signal to each on the bus, as if it were the daemon. No match rule keeps such a one away."""
        with open_dbus_connection(self.address) as bus:
            [names] = unwrap_msg(bus.send_and_get_reply(message_bus.ListNames(), timeout=60))
            for name in (one for one in names if one.startswith(":")):
                signal = new_signal(DBusAddress(path, interface="org.freedesktop.Notifications"), member, signature, body)
                signal.header.fields[HeaderFields.destination] = name
                bus.send(signal)

    def displayed(self) -> int:
        """How many notifications are on the screen."""
        return int(self._property("displayedLength"))

    def waits(self) -> int:
        """How many have no room on the screen yet."""
        return int(self._property("waitingLength"))

    def _property(self, name: str) -> int:
        with open_dbus_connection(self.address) as bus:
            [[_, value]] = unwrap_msg(bus.send_and_get_reply(Properties(_DUNST).get(name), timeout=60))
            return int(value)

    def shown(self) -> list[dict[str, Any]]:
        """What the daemon was asked to show, newest first: ``summary``, ``body``, ``message`` (the Pango markup it paints), ``urgency``."""
        self._ask("NotificationCloseAll")
        [history] = self._ask("NotificationListHistory")
        return [{name: value for name, (_, value) in one.items()} for one in history]

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.terminate()
            program.wait(timeout=60)
