"""Protocols for the objects of MLIR's bindings, with the members that this package uses.

The classes of ops and values differ between the lines of jaxlib. Once a dialect is loaded, they are specific
to an op or a type. Attributes and types have classes of their own, so the members that return them are
``Any``. A parameter is ``Any`` too, if a class of the bindings requires its own class of value or op.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Protocol


class Value(Hashable, Protocol):
    """The result of an op, or the argument of a block. Equal values are one."""

    @property
    def owner(self) -> Any:
        """The op or the block that it belongs to."""

    @property
    def type(self) -> Any:
        """Its type, of the class of that type."""

    @property
    def uses(self) -> Iterator[Any]:
        """The operands that it is: each with its ``owner`` and ``operand_number``."""

    def replace_all_uses_with(self, with_: Any, /) -> None:
        """Has another value take its place."""

    def replace_all_uses_except(self, with_: Any, exceptions: Any, /) -> None:
        """The same, but for the operands of some ops."""

    def set_type(self, type_: Any, /) -> None:
        """Gives it another type."""

    def get_name(self) -> str:
        """Its name in the text of its function."""


class Operation(Hashable, Protocol):
    """An op, as the general class has it."""

    @property
    def name(self) -> Any:
        """The name of the op with its dialect; of the class of an op, an attribute may have this name."""

    @property
    def operation(self) -> Any:
        """The op as the general class has it."""

    @property
    def attributes(self) -> Any:
        """Its attributes, by name."""

    @property
    def operands(self) -> Any:
        """The values that it uses."""

    @property
    def results(self) -> Any:
        """The values that it makes."""

    @property
    def regions(self) -> Any:
        """Its regions, each with its ``blocks``."""

    @property
    def opview(self) -> Any:
        """The op as the class of its name has it."""

    @property
    def location(self) -> Any:
        """Its place in the source."""

    @property
    def parent(self) -> Any:
        """The op around it."""

    @property
    def context(self) -> Any:
        """The context that it was made in."""

    def erase(self) -> None:
        """Takes it out of its block; nothing may use its results."""

    def clone(self, ip: Any = None) -> Any:
        """A copy of it at a place."""


class PlacedOperation(Operation, Protocol):
    """An op whose class knows its block, as the general class does."""

    @property
    def block(self) -> Any:
        """The block that it stands in."""


class Attributes(Protocol):
    """Attributes by name: those of an op, or the entries of a dictionary."""

    def __contains__(self, name: str, /) -> bool:
        """Whether there is an attribute of this name."""

    def __getitem__(self, name: str, /) -> Any:
        """The attribute of this name, of its own class."""

    def __len__(self) -> int:
        """Their number."""


class FunctionOp(Operation, Protocol):
    """A function."""

    @property
    def arguments(self) -> Any:
        """The arguments of its body."""

    @property
    def type(self) -> Any:
        """Its type, with ``inputs`` and ``results``."""
