"""The visits of completion, and their annotations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .notes import Note
    from .options import ChosenOption


class Held(NamedTuple):
    """An annotation, and who gave it: a visit, by its number, to a ``slot`` of its op; or the program (visit
    -1) to result ``slot`` of a node, or to argument ``slot`` (node -1). Calls pass annotations on to other
    functions than ``function``, which has the node."""

    note: Note
    visit: int
    function: str
    node: int
    slot: int


@dataclass(frozen=True)
class Visit:
    """An op that was given annotations: its function and node, in the order of the traversal. ``seen`` are
    the annotations that it saw, by slot."""

    function: str
    node: int
    direction: int
    seen: tuple[tuple[int, Held], ...]
    chosen: ChosenOption


@dataclass(frozen=True)
class Added:
    """A constraint that completion adds: the node of the module before it that it stands in front of, and
    the annotation that it says, of an operand or result of ``of``."""

    before: int
    of: int
    held: Held


@dataclass(frozen=True)
class CompletedFunction:
    """What completion did to a function: the annotations of results and arguments, as many as it has, and
    constraints in the order of the text. Nodes have the numbers that they had before."""

    annotations: Mapping[tuple[int, int], Held]  # by the node (-1: the function) and which result (argument)
    added: tuple[Added, ...]

    def node(self, before: int) -> int:
        """The number that a node, or the function (-1), has behind completion."""
        return before + bisect_right(self._places, before)

    def added_nodes(self) -> Iterator[tuple[int, Added]]:
        """The constraints, each with its node."""
        return ((added.before + i, added) for i, added in enumerate(self.added))

    @cached_property
    def _places(self) -> list[int]:
        return [added.before for added in self.added]

    @cached_property
    def annotated(self) -> dict[tuple[int, int], Held]:
        """The annotations of the completed function, by node (-1: the function) and result (argument) in the
        numbers that it has now."""
        annotations = {(self.node(n), i): held for (n, i), held in self.annotations.items()}
        return annotations | {(node, 0): added.held for node, added in self.added_nodes()}
