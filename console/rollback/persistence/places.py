"""The table: where something lies that a person, a login, a timer or another tool starts later. Data only; a row more is a place more."""

from __future__ import annotations

import json
from collections.abc import Iterable

from console.domain.process.assets import resource
from console.rollback.persistence.findings import Place, Where

SHELL = "your next shell"
LOGIN = "your next login"
GIT = "your next git command there"
TESTS = "your next test run there"
PYTHON = "every start of that Python"
EDITOR = "your editor, when that folder is opened"
ROOT_TIMER = "cron or systemd, as root"
SHIM = "you, whenever that command is typed"


def _rows(kind: str, where: Where, runs: str, patterns: Iterable[str], part: str = "", *, executable: bool = False) -> tuple[Place, ...]:
    return tuple(Place(kind, where, pattern, runs, part, executable) for pattern in patterns)


def _coding_agents(where: Where) -> tuple[Place, ...]:
    """Files that coding agents read when they start: each program's rows, from ``resources/persistence/coding_agents.json``."""
    told = json.loads(resource("persistence", "coding_agents.json").read_bytes())[where.value]
    return tuple(one for row in told for one in _rows(row["kind"], where, row["runs"], row["patterns"], row.get("part", "")))


_BASH = (".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc")
_ZSH = (".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".config/zsh/.z*")
_FISH = (".config/fish/config.fish", ".config/fish/conf.d/*", ".config/fish/functions/*")
_X = (".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".config/autostart/*", ".config/autostart-scripts/*", ".config/environment.d/*",
      ".config/plasma-workspace/env/*", ".pam_environment")  # fmt: skip
HOME: tuple[Place, ...] = (
    *_rows("shell start file", Where.HOME, SHELL, (*_BASH, *_ZSH, *_FISH)),
    *_rows("session start file", Where.HOME, LOGIN, _X),
    *_rows("ssh access", Where.HOME, "a login with that key, or your next ssh", (".ssh/authorized_keys", ".ssh/authorized_keys2")),
    *_rows("ssh settings", Where.HOME, "your next ssh, or the next login by ssh", (".ssh/rc", ".ssh/config", ".ssh/environment")),
    *_rows("systemd user unit", Where.HOME, "systemd, at your login or by a timer", (
        ".config/systemd/user/**", ".local/share/systemd/user/**",
    )),
    *_rows("git settings", Where.HOME, "your next git command anywhere", (".gitconfig", ".config/git/config"), "git"),
    *_rows("git hook", Where.HOME, "your next git command anywhere", (".config/git/hooks/*", ".config/git/attributes")),
    *_rows("command on your PATH", Where.HOME, SHIM, (".local/bin/*", "bin/*"), executable=True),
    *_rows("python start file", Where.HOME, PYTHON, (
        ".local/lib/python*/site-packages/*.pth", ".local/lib/python*/site-packages/sitecustomize.py",
        ".local/lib/python*/site-packages/usercustomize.py", ".pythonrc*", ".ipython/profile_default/startup/*",
    )),
    *_rows("node settings", Where.HOME, "your next npm command", (".npmrc", ".yarnrc", ".yarnrc.yml")),
    *_rows("folder environment", Where.HOME, SHELL, (".envrc", ".config/direnv/direnvrc", ".config/direnv/lib/*")),
    *_rows("editor settings", Where.HOME, "your next start of the editor", (
        ".config/Code/User/settings.json", ".config/Code/User/tasks.json", ".vimrc", ".vim/plugin/*", ".config/nvim/init.*", ".gdbinit",
    )),
    *_coding_agents(Where.HOME),
)  # fmt: skip
"""In the home of an operator, and at the top of a workspace, which is the HOME of its agents."""

SYSTEM: tuple[Place, ...] = (
    *_rows("cron job", Where.SYSTEM, ROOT_TIMER, (
        "etc/crontab", "etc/anacrontab", "etc/cron.d/*", "etc/cron.hourly/*", "etc/cron.daily/*", "etc/cron.weekly/*", "etc/cron.monthly/*",
    )),
    *_rows("cron job", Where.SYSTEM, "cron, as the account it is named after", ("var/spool/cron/crontabs/*", "var/spool/cron/tabs/*")),
    *_rows("at job", Where.SYSTEM, "at, once", ("var/spool/cron/atjobs/*", "var/spool/at/*")),
    *_rows("systemd unit", Where.SYSTEM, "systemd, at boot or by a timer", (
        "etc/systemd/system/**", "run/systemd/system/**", "usr/local/lib/systemd/system/**", "etc/init.d/*", "etc/rc.local",
    )),
    *_rows("systemd user unit", Where.SYSTEM, "systemd, at every login", ("etc/systemd/user/**", "usr/local/lib/systemd/user/**")),
    *_rows("systemd generator", Where.SYSTEM, "systemd, at boot and at every reload", (
        "etc/systemd/system-generators/*", "etc/systemd/user-generators/*", "run/systemd/system-generators/*",
        "usr/local/lib/systemd/system-generators/*", "usr/local/lib/systemd/user-generators/*",
    )),
    *_rows("lingering account", Where.SYSTEM, "systemd, at boot: its user units", ("var/lib/systemd/linger/*",)),
    *_rows("session start file", Where.SYSTEM, "every desktop login", ("etc/xdg/autostart/*", "etc/X11/Xsession.d/*")),
    *_rows("shell start file", Where.SYSTEM, "every shell or login", (
        "etc/profile", "etc/profile.d/*", "etc/bash.bashrc", "etc/zsh/*", "etc/fish/config.fish", "etc/fish/conf.d/*", "etc/environment",
        "etc/environment.d/*",
    )),
    *_rows("loader settings", Where.SYSTEM, "every program that starts", ("etc/ld.so.preload", "etc/ld.so.conf.d/*")),
    *_rows("ssh settings", Where.SYSTEM, "every login by ssh", ("etc/ssh/sshrc", "etc/ssh/sshd_config", "etc/ssh/sshd_config.d/*")),
    *_rows("sudo rule", Where.SYSTEM, "the accounts that it names", ("etc/sudoers", "etc/sudoers.d/*")),
    *_rows("git settings", Where.SYSTEM, "every git command on this machine", ("etc/gitconfig",), "git"),
    *_rows("command on your PATH", Where.SYSTEM, SHIM, ("usr/local/bin/*", "usr/local/sbin/*"), executable=True),
    *_rows("python start file", Where.SYSTEM, PYTHON, (
        "usr/local/lib/python*/dist-packages/*.pth", "usr/local/lib/python*/site-packages/*.pth", "etc/python*/sitecustomize.py",
        "usr/local/lib/python*/*-packages/sitecustomize.py", "usr/local/lib/python*/*-packages/usercustomize.py",
    )),
)  # fmt: skip

WORKSPACE: tuple[Place, ...] = (
    *_rows("git folder elsewhere", Where.WORKSPACE, GIT, (".git",)),
    *_rows("python start file", Where.WORKSPACE, PYTHON, ("*.pth", "sitecustomize.py", "usercustomize.py")),
    *_rows("test start file", Where.WORKSPACE, TESTS, ("conftest.py",)),
    *_rows("node scripts", Where.WORKSPACE, "your next npm command there", ("package.json",), "scripts"),
    *_rows("node settings", Where.WORKSPACE, "your next npm command there", (".npmrc", ".yarnrc", ".yarnrc.yml")),
    *_rows("folder environment", Where.WORKSPACE, "your next shell there", (".envrc",)),
    *_rows("git hook manager", Where.WORKSPACE, "pre-commit, with your next git commit there", (".pre-commit-config.yaml",)),
    *_rows("git hook manager", Where.WORKSPACE, "husky, with your next git command there", (".husky/**", ".huskyrc*", "husky.config.*")),
    *_rows("git hook manager", Where.WORKSPACE, "lefthook, with your next git command there", (
        "lefthook*.yml", "lefthook*.yaml", "lefthook*.toml", "lefthook*.json", ".lefthook*.yml", ".lefthook*.yaml", ".lefthook/**",
    )),
    *_rows("git hook manager", Where.WORKSPACE, "overcommit, with your next git command there", (".overcommit.yml", ".git-hooks/**")),
    *_rows("git hook manager", Where.WORKSPACE, "simple-git-hooks, with your next git command there", (
        ".simple-git-hooks.*", "simple-git-hooks.*",
    )),
    *_rows("git hook manager", Where.WORKSPACE, "lint-staged, with your next git commit there", (".lintstagedrc*", "lint-staged.config.*")),
    *_rows("git hook", Where.WORKSPACE, GIT, (".githooks/*",)),
    *_rows("command of a virtual environment", Where.WORKSPACE, "you or your editor, with that Python environment", (
        ".venv/bin/*", "venv/bin/*", "env/bin/*",
    ), executable=True),
    *_rows("CI file", Where.WORKSPACE, "GitHub Actions, with the next push", (".github/workflows/*", ".github/actions/**")),
    *_rows("CI file", Where.WORKSPACE, "GitLab CI, with the next push", (".gitlab-ci.yml", ".gitlab/ci/*")),
    *_rows("CI file", Where.WORKSPACE, "CircleCI, with the next push", (".circleci/*",)),
    *_rows("CI file", Where.WORKSPACE, "Azure Pipelines, with the next push", ("azure-pipelines*.yml",)),
    *_rows("CI file", Where.WORKSPACE, "Jenkins, with its next build", ("Jenkinsfile*",)),
    *_rows("CI file", Where.WORKSPACE, "Bitbucket Pipelines, with the next push", ("bitbucket-pipelines.yml",)),
    *_rows("CI file", Where.WORKSPACE, "Travis CI, with the next push", (".travis.yml",)),
    *_rows("CI file", Where.WORKSPACE, "Buildkite, with the next push", (".buildkite/*",)),
    *_rows("CI file", Where.WORKSPACE, "Drone or Woodpecker, with the next push", (".drone.yml", ".woodpecker.yml", ".woodpecker/*")),
    *_rows("editor settings", Where.WORKSPACE, EDITOR, (
        ".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".devcontainer/devcontainer.json", ".exrc", ".nvim.lua",
        ".gdbinit",
    )),
    *_coding_agents(Where.WORKSPACE),
)  # fmt: skip
"""Anywhere in a workspace, by the end of a path."""

LINKED_FOLDERS: tuple[Place, ...] = tuple(
    {
        (p.kind, p.pattern.split("/")[0]): Place(p.kind, p.where, p.pattern.split("/")[0], p.runs) for p in WORKSPACE if "/" in p.pattern
    }.values()
)
"""A link, where the table has a folder."""

REPOSITORY: tuple[Place, ...] = (
    *_rows("git hook", Where.WORKSPACE, GIT, ("hooks/*", "hooks")),
    *_rows("git settings", Where.WORKSPACE, GIT, ("config", "config.worktree"), "git"),
    *_rows("git attributes", Where.WORKSPACE, GIT, ("info/attributes",)),
)
"""Inside a ``.git`` folder, and inside any folder that git would take for a bare repository, by the end of a path."""
REPOSITORY_LEAVES_OUT = ("*.sample",)
"""Hooks that git ships and never runs."""
IN_SESSION_HOME = "the next agent of this session: its HOME is the workspace"


def on_path(folders: Iterable[str], home: str) -> tuple[Place, ...]:
    """Rows for the folders of a PATH that lie in ``home`` and are not in the table."""
    known = {".local/bin", "bin"}
    found = []
    for folder in folders:
        if folder.startswith(home.rstrip("/") + "/"):
            inside = folder[len(home.rstrip("/")) + 1 :].strip("/")
            if inside and inside not in known and ".." not in inside.split("/") and not any(c in inside for c in "*?["):
                known.add(inside)
                found.append(Place("command on your PATH", Where.HOME, f"{inside}/*", SHIM, executable=True))
    return tuple(found)
