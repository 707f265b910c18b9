"""The descriptions are read strictly, and say something of every program they name."""

import copy

import pytest

from console.domain.errors import UsageProblem
from console.policy.shell.programs import KINDS, read_catalogue
from tests.fakes.policy_world import catalogue, data


def test_the_products_own_data_is_whole() -> None:
    known = catalogue()
    assert len(known.programs) > 400 and "eval" in known.builtins and "**/.git/**" in known.protected
    for name, described in known.programs.items():
        assert described.is_described or described.swallows, name
        assert set(described.options.values()) <= KINDS | {"flags", "optional"}


def test_versions_read_as_the_program() -> None:
    known = catalogue()
    assert known.of("python3.11") is known.of("python") is not None
    assert known.of("nothing-of-this-name") is None


@pytest.mark.parametrize(
    "name", ["bash", "python3", "node", "perl", "make", "npm", "docker", "vim", "xargs", "env", "sudo", "ssh", "kubectl"]
)
def test_what_runs_other_programs_is_known_to(name: str) -> None:
    described = catalogue().of(name)
    assert described is not None and described.swallows


def test_mistakes_are_refused_with_their_place() -> None:
    whole = data("programs.json")
    changes: list[dict[str, object]] = [{"typo": "-x"}, {"operands": "reads*"}, {"flags": 3}, {"commands": []}]
    for change in changes:
        broken = copy.deepcopy(whole)
        broken["programs"]["cat"].update(change)
        with pytest.raises(UsageProblem, match="cat|string|object"):
            read_catalogue(broken)
    for missing in ("programs", "swallowers", "runners", "protected", "builtins"):
        with pytest.raises(UsageProblem):
            read_catalogue({name: value for name, value in whole.items() if name != missing})


@pytest.mark.parametrize("pair", ["--output", "-o=--output", "--output=-out"])
def test_a_spelling_is_a_long_option_and_its_letter(pair: str) -> None:
    with pytest.raises(UsageProblem, match="cat"):
        read_catalogue(data("programs.json") | {"spellings": {"cat": pair}})
