from __future__ import annotations

import dataclasses

import pytest

from compat.records import cached, create_unchecked, kept, of_values, record, replace, values_of


@record(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass(frozen=True)
class Reference:
    x: int
    y: int = 0


@pytest.mark.parametrize(
    ("args", "kwargs"), [((1,), {}), ((1, 2), {}), ((), {"x": 1}), ((1,), {"y": 5}), ((), {"y": 1, "x": 2})]
)
def test_construction_agrees_with_a_frozen_dataclass(args, kwargs):
    mine, theirs = Point(*args, **kwargs), Reference(*args, **kwargs)
    assert (mine.x, mine.y) == (theirs.x, theirs.y)
    assert repr(mine) == repr(theirs).replace("Reference", "Point")
    assert values_of(mine) == dataclasses.astuple(theirs)


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1})])
def test_wrong_fields_are_refused_as_by_a_dataclass(args, kwargs):
    with pytest.raises(TypeError):
        Reference(*args, **kwargs)
    with pytest.raises(TypeError):
        Point(*args, **kwargs)


def test_fields_cannot_be_set_or_deleted():
    point = Point(1)
    with pytest.raises(AttributeError):
        point.x = 2
    with pytest.raises(AttributeError):
        del point.x
    assert point == Point(1, 0)


def test_equality_and_hash_are_by_value_and_by_class():
    class Other(Point):
        pass

    assert Point(1, 2) == Point(1, 2)
    assert hash(Point(1, 2)) == hash(Point(y=2, x=1))
    assert Point(1, 2) != Point(2, 1)
    assert Point(1) != (1, 0)
    assert Point(1) != Other(1)


def test_replace_makes_a_changed_copy():
    point = Point(1, 2)
    assert replace(point, y=3) == Point(1, 3)
    assert replace(Reference(1), y=3) == Reference(1, 3), "a real dataclass"
    assert point == Point(1, 2)
    with pytest.raises(TypeError):
        replace(point, z=3)


def test_a_quick_record_is_like_any_other():
    assert create_unchecked(Point, {"x": 1}) == Point(1)
    assert repr(create_unchecked(Point, {"x": 1, "y": 2})) == repr(Point(1, 2))
    assert of_values(Point, values_of(Point(1, 2))) == Point(1, 2)


def test_a_cached_function_runs_once_for_each_combination_of_arguments():
    asked: list[tuple[object, ...]] = []

    @cached
    def known(*args: object) -> int | None:
        asked.append(args)
        if args == ("wrong",):
            raise ValueError("wrong")
        return len(args) or None

    assert [known(), known(1, "a"), known(), known(1, "a"), known(None)] == [None, 2, None, 2, 1]
    assert asked == [(), (1, "a"), (None,)]
    for _ in range(2):  # an error is not kept, as by functools.cache
        with pytest.raises(ValueError, match="wrong"):
            known("wrong")
    assert asked[3:] == [("wrong",), ("wrong",)]


def test_a_kept_method_runs_once_for_each_instance_and_combination_of_arguments():
    class Doubled:
        def __init__(self, name: str) -> None:
            self.name, self.asked = name, list[tuple[str, int]]()

        @kept
        def twice(self, text: str, times: int) -> str | None:
            """Repeat it."""
            self.asked.append((text, times))
            if times < 0:
                raise ValueError("wrong")
            return (self.name + text) * times or None

    one, other = Doubled("1"), Doubled("2")
    assert [one.twice("a", 2), other.twice("a", 2), one.twice("a", 0), one.twice("a", 2)] == ["1a1a", "2a2a", None, "1a1a"]
    assert one.twice("a", 0) is None
    assert (one.asked, other.asked) == ([("a", 2), ("a", 0)], [("a", 2)])
    for _ in range(2):  # an error is not kept
        with pytest.raises(ValueError, match="wrong"):
            one.twice("b", -1)
    assert one.asked[2:] == [("b", -1), ("b", -1)]
    assert Doubled.twice.__doc__ == "Repeat it."
