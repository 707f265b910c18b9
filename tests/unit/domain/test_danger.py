"""Classes of danger and their order."""

from console.domain.calls.permission import UNRANKED, DangerClass, rank_of, worst_of


def test_the_worst_comes_first() -> None:
    assert [rank_of(one) for one in DangerClass] == [1, 2, 3, 4, 5] and rank_of("") == rank_of("x") == UNRANKED
    assert worst_of(["", "persists", "destroys", "spends"]) == "destroys" and worst_of([]) == "" == worst_of([""])
