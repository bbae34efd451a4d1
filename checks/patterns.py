"""One pattern for names that differ in numbers, as layers do:
``params['ResBlock_*']['Conv_*']['kernel']``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

# Numbers that count: indices, and what ends a part of a path. Not those of %arg0 and result#0.
_NUMBER = re.compile(r"(?<=\[)\d+(?=\])|(?<=[A-Za-z_])\d+(?=['\"\].\[]|$)")

Shardings = tuple[str, ...]


def folded(
    entries: Mapping[str, Shardings], holds: Callable[[str, Shardings], bool]
) -> Iterator[tuple[str, Shardings]]:
    """The entries, folded: names that differ only in numbers and have one sharding become one pattern, with
    stars for as many of the numbers as possible. ``holds`` says whether everything that a pattern matches has
    that sharding."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in entries:
        groups[tuple(_NUMBER.split(name)) if _is_path(name) else (name,)].append(name)
    for names in groups.values():
        for pattern, alike in _alike(names, entries).items():
            if len(alike) > 1 and holds(pattern, entries[alike[0]]):
                yield pattern, entries[alike[0]]
            else:
                yield from ((name, entries[name]) for name in alike)


def _is_path(name: str) -> bool:
    return not name.startswith("%") and "*" not in name


def _alike(names: Sequence[str], entries: Mapping[str, Shardings]) -> dict[str, list[str]]:
    """Names of one form by their pattern: a number is a star where that puts none together that differ."""
    numbers = {name: _NUMBER.findall(name) for name in names}
    stars = set[int]()
    for i in range(len(numbers[names[0]])):
        if len({numbers[name][i] for name in names}) > 1:
            together = _by_pattern(names, stars | {i})
            if all(len({entries[name] for name in alike}) == 1 for alike in together.values()):
                stars.add(i)
    return _by_pattern(names, stars)


def _by_pattern(names: Sequence[str], stars: set[int]) -> dict[str, list[str]]:
    by_pattern: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_pattern[_starred(name, stars)].append(name)
    return by_pattern


def _starred(name: str, stars: set[int]) -> str:
    """A name with stars in place of some of its numbers."""
    count = iter(range(len(name)))
    return _NUMBER.sub(lambda match: "*" if next(count) in stars else match[0], name)
