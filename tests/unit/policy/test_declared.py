"""What sources.json declares only ever denies."""

from console.policy.declared import Declared

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
