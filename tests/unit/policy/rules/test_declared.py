"""What sources.json declares only ever denies."""

from console.policy.rules.declared import Declared

SOURCES = Declared(
    managers={"pip": True, "npm": False},
    registries=("https://packages.example.org/simple/",),
    blocked_packages=("subprocess32", "pyautogui"),
    web_enabled=True,
    allowed_domains=("api.github.com", "*.example.org"),
    blocked_domains=("*.internal", "bad.example.org"),
    git_enabled=True,
    allowed_remotes=("https://github.com/*",),
)


def test_packages() -> None:
    assert SOURCES.package("pip", "pandas") is None
    assert SOURCES.package("pip", "PyAutoGUI") and SOURCES.package("npm", "left-pad") and SOURCES.package("conda", "x")


def test_a_manager_that_is_not_enabled_is_not_there_by_any_of_its_programs() -> None:
    def refused(line: str, *names: str) -> bool:
        argv = tuple(line.split())
        return SOURCES.manager(frozenset(names or argv[:1]), argv) is not None

    assert (
        refused("npm ls")
        and refused("npx x")
        and refused("./tool i", "tool", "npm")
        and refused("conda list")
        and refused("apt-get update")
    )
    assert refused("python3 -m conda list") and refused("python3 -Imconda.cli list", "python3.11", "python")
    assert refused("node /usr/lib/node_modules/npm/bin/npm-cli.js i x") and refused("python3 -m conda")
    assert not refused("pip list") and not refused("python3 -m pip list") and not refused("python3 -m") and not refused("git commit -m npm")
    assert Declared().manager(frozenset({"pip"}), ("pip",)), "nothing declared: nothing there"


def test_registries() -> None:
    assert SOURCES.registry("https://packages.example.org/simple") is None and SOURCES.registry("https://evil.example/simple/")


def test_web() -> None:
    assert SOURCES.web("https://api.github.com/x") is None and SOURCES.web("https://a.example.org") is None
    for url in (
        "https://github.com/",
        "https://bad.example.org/",
        "https://x.internal/",
        "http://0x7f.1/",
        "https://api.github.com@evil.example/",
    ):
        assert SOURCES.web(url), url
    assert Declared(web_enabled=False).web("https://a.example/") and Declared().web("https://a.example/") is None


def test_remotes() -> None:
    assert SOURCES.remote("https://github.com/a/b") is None
    for url in (
        "https://github.com.evil.example/a",
        "https://gitlab.com/a",
        "https://github.com/../x",
        "https://github.com/%2e%2e/x",
        "ssh://github.com/a",
    ):
        assert SOURCES.remote(url), url
    assert Declared(git_enabled=False).remote("https://github.com/a") and Declared().remote("https://x.example/") is None
