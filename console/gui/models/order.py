"""How trees of agents stand: who is whose child, and which trees need a person or are over."""

from __future__ import annotations

from console.gui.models.row import CALM, Row


def ranks_of(rows: dict[str, Row], children: dict[str, list[Row]]) -> dict[str, int]:
    """id -> the most urgent rank in its tree; of trees that are over the root, behind all others; calm trees are absent."""
    return _over(children) | _urgent(rows)


def _over(children: dict[str, list[Row]]) -> dict[str, int]:
    """Roots of trees in which every agent is over, with the last rank of all."""
    found: dict[str, int] = {}
    for root in children[""]:
        stack, seen = [root], set[str]()  # parents may lead in a circle
        while stack and stack[-1].is_over:
            at = stack.pop()
            if at.id not in seen:
                seen.add(at.id)
                stack.extend(children.get(at.id, ()))
        if not stack:
            found[root.id] = CALM + 1
    return found


def _urgent(rows: dict[str, Row]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows.values():
        rank, at = row.rank, row
        while rank < CALM and found.get(at.id, CALM) > rank:
            found[at.id] = rank
            above = rows.get(at.view.parent_id or "")
            if above is None:
                break
            at = above
    return found


def indent_again(rows: list[Row]) -> None:
    """Indents rows that no longer stand as the tree does: one that is not below its own parent must not look like another's child, and
    names its parent instead."""
    line, places, names = list[str](), dict[str, int](), {row.id: row.name for row in rows}
    for row in rows:
        parent = row.view.parent_id or ""
        place = places.get(parent, len(line))
        is_below = place < len(line) and line[place] == parent
        row.indent = place + 1 if is_below else 0
        row.child_of = "" if is_below else names.get(parent, "")
        del line[row.indent :]
        line.append(row.id)
        places[row.id] = row.indent


def children_of(rows: dict[str, Row]) -> dict[str, list[Row]]:
    """Children by parent in the order they came; roots under "". Parents that lead in a circle would hide their rows: those are roots."""
    children: dict[str, list[Row]] = {"": []}
    for row in rows.values():
        parent = row.view.parent_id
        children.setdefault(parent if parent and parent in rows and parent != row.id else "", []).append(row)
    reached = {row.id for row in children[""]}
    stack = list(children[""])
    while stack:
        for kid in children.get(stack.pop().id, ()):
            if kid.id not in reached:
                reached.add(kid.id)
                stack.append(kid)
    if len(reached) != len(rows):
        children[""].extend(row for row in rows.values() if row.id not in reached)
    return children
