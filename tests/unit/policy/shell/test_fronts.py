"""Programs that start others: what they start is found by every spelling, and what is not certain asks."""

import pytest

from console.domain.errors import UsageProblem
from console.policy.shell.fronts import Started, reaching, read_front, read_fronts
from tests.fakes.policy_world import catalogue


def read(line: str) -> Started:
    argv = tuple(line.split())
    front = catalogue().front_of(argv[0])
    assert front is not None
    return read_front(front, argv)


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("npx tsc --noEmit", "tsc --noEmit"),
        ("npm exec -- x y", "x y"),
        ("uv --quiet run --group test --no-sync pytest -x", "pytest -x"),
        ("uv run -- a", "a"),
        ("uv run -m pip install x", "pip install x"),
        ("uv run --module=pip x", "pip x"),
        ("python3.12 -W ignore -Im pip x", "pip x"),
        ("python -mpip x", "pip x"),
        ("coverage run --source=a -m pip x", "pip x"),
        ("pnpm -r exec a b", "a b"),
        ("cross-env A=1 B=2 c d", "c d"),
        ("bundle exec rake x", "rake x"),
        ("corepack pnpm publish", "pnpm publish"),
    ],
)
def test_what_is_started_is_found_behind_options(line: str, inner: str) -> None:
    found = read(line)
    assert (" ".join(found.inner), found.asks) == (inner, "")


@pytest.mark.parametrize(
    "line", ["npm run build", "npm -C a test", "yarn build", "cargo test publish", "go test ./...", "python a.py -m", "uv"]
)
def test_what_stays_in_the_workspace_starts_nothing_else(line: str) -> None:
    found = read(line)
    assert (found.inner, found.asks) == ((), "")


@pytest.mark.parametrize(
    "line", ["npm isntall", "npm --foo run install", "yarn", "npm config set a", "uv run --with a b", "deno run npm:x", "uv pip sync x"]
)
def test_what_may_reach_a_registry_or_is_not_certain_asks(line: str) -> None:
    assert read(line).asks


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("mkdocs gh-deploy", True),
        ("mkdocs -q -f a.yml gh-deploy", True),
        ("invoke docs:deploy", True),
        ("cmake --install b", True),
        ("mkdocs build", False),
        ("pytest install", False),
        ("playwright test login", False),
        ("mvn clean install", False),
    ],
)
def test_words_of_any_program_that_publish_or_install(line: str, asks: bool) -> None:
    every = catalogue().front_of("*")
    assert every is not None and bool(reaching(every, line.split())) is asks


def test_operands_that_are_texts_for_a_shell() -> None:
    front = catalogue().front_of("concurrently")
    assert front is not None and read_front(front, ("concurrently", "-n", "a", "npm run a", "npm run b")).texts == (
        "npm run a",
        "npm run b",
    )


def test_a_mistake_is_refused_with_its_name() -> None:
    mistakes: list[dict[str, object]] = [{"npm": {"typo": "x"}}, {"npm": []}, {"uv": {"starts": {"run": {"typo": 1}}}}]
    for broken in mistakes:
        with pytest.raises(UsageProblem, match="npm|uv run"):
            read_fronts(broken)
