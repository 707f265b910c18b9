"""YAML as people write it for review, and nothing that could be read in two ways."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from console.domain.errors import UsageProblem


class _Strict(yaml.SafeLoader):
    """SafeLoader that refuses what would be read in two ways, or would grow: a key twice, anchors, aliases, merges."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UsageProblem(f"Line {event.start_mark.line + 1}: anchors and aliases are not read.", "Write the value out.")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(getattr(key, "value", ""))
            if not isinstance(key, yaml.ScalarNode) or name in seen or name == "<<":
                raise UsageProblem(f"Line {key.start_mark.line + 1}: {name[:60]!r} is given twice or merged.", "Give every key once.")
            seen.add(name)
        return super().construct_mapping(node, deep)


def read_yaml(text: str, remedy: str) -> Any:
    """What the text says. Raises UsageProblem with the line, and ``remedy`` where it is no YAML. The caller bounds its length."""
    try:
        return yaml.load(text, _Strict)  # noqa: S506 - a SafeLoader, made stricter
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"Line {mark.line + 1}: " if mark is not None else ""
        raise UsageProblem(f"{where}not YAML: {getattr(error, 'problem', None) or 'unreadable'}.", remedy) from error
    except (RecursionError, ValueError) as error:
        raise UsageProblem("Not YAML that is read here.", remedy) from error
