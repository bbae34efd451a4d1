"""A plugin for pytest: the fixture and the marker ``shardlog``, and ``--shardlog-update``.

pytest loads it wherever shardlog is installed, so modules are imported when a test needs them.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .errors import ShardlogError, check_options, closest

if TYPE_CHECKING:
    from .checks.expect import Difference
    from .runs.choice import ProgramChoice
    from .runs.collectives import Collective
    from .session import Session

_UPDATE = "--shardlog-update"
_MARKER = (
    "shardlog(**options): options of shardlog.run and of Session.partition for the programs of a test, "
    'as in mesh="data=8", topology="v5e"'
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that writes snapshots."""
    group = parser.getgroup("shardlog")
    group.addoption(_UPDATE, action="store_true", help="write the present shardings to the snapshots")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows errors of the test's author without the frames of shardlog: the message says all of it."""
    failure = call.excinfo
    ours = failure is not None and isinstance(failure.value, ShardlogError)
    if failure is None or not ours or "shardlog" not in getattr(item, "fixturenames", ()):
        return (yield)
    package, last = Path(__file__).parent, failure.tb
    while (after := last.tb_next) and package not in Path(after.tb_frame.f_code.co_filename).parents:
        last = after
    last.tb_next = None
    report = yield
    if call.when == "setup":  # raised by the marker, which has no line
        report.longrepr = str(failure.value)
    return report


@pytest.fixture
def shardlog(request: pytest.FixtureRequest) -> Checks:
    """Checks of the shardings and collectives of programs; the marker ``shardlog`` has their options."""
    options: dict[str, Any] = {}
    for marker in request.node.iter_markers("shardlog"):  # the nearest first
        if marker.args:
            hint = 'options have names, as in topology="v5e"'
            raise ShardlogError(f"{marker.args[0]!r} has no name", where="marker shardlog", hint=hint)
        options = {**marker.kwargs, **options}
    _check_options(options)
    snapshot = request.path.parent / "__shardlog__" / request.path.stem / f"{_stem(request.node.name)}.toml"
    return Checks(options, snapshot, update=request.config.getoption(_UPDATE))


class Checks:
    """The fixture ``shardlog``: runs programs and asserts what was decided.

    An assertion without a function is about the program that was run last.
    """

    def __init__(self, options: Mapping[str, Any], snapshot: Path, *, update: bool) -> None:
        self._options, self._snapshot, self._update = dict(options), snapshot, update
        self._session: Session | None = None
        self._choice: ProgramChoice

    @property
    def session(self) -> Session:
        """The ``Session`` of the program that was run last. Raises ShardlogError if none was."""
        if self._session is None:
            hint = "call shardlog.run(function, *args) or shardlog.assert_sharded(...) before"
            raise ShardlogError("no program was run in this test", where="fixture shardlog", hint=hint)
        return self._session

    def run(self, function: Any, *args: Any, **options: Any) -> Session:
        """Runs a program as ``shardlog.run`` does, and returns its ``Session``.

        ``options`` are those of ``shardlog.run`` and of ``Session.partition``, beside those of the marker.
        """
        from .api import run
        from .runs.choice import ProgramChoice

        given = self._options | options
        of_program = {option.name for option in fields(ProgramChoice)}
        self._choice = ProgramChoice(**{name: given.pop(name) for name in of_program & given.keys()})
        self._session = run(function, *args, **given)
        return self._session

    def assert_sharded(
        self, function: Any, args: tuple[Any, ...], expected: Mapping[str, Any], **options: Any
    ) -> Session:
        """Runs a program and asserts the shardings of some of its values; returns its ``Session``.

        ``expected`` has a ``PartitionSpec``, or a sharding as text, for each name. Names and patterns are
        those of files of expectations, as in ``"params['layers'][*]['w']"``. The message says why each value
        differs. Raises ShardlogError for malformed shardings, and if ``args`` is neither a tuple nor a list.
        """
        __tracebackhide__ = True
        if not isinstance(args, tuple | list):  # a single array would be taken apart into its rows
            hint = "expected a tuple with all arguments, as in (x, w) or (x,)"
            raise ShardlogError(f"args is of type {type(args).__name__}", where="assert_sharded", hint=hint)
        from .checks.expect import Expected
        from .checks.expectations import Expectation, Expectations

        session = self.run(function, *args, **options)
        texts = {name: _text(name, sharding) for name, sharding in expected.items()}
        entries = tuple(Expectation(name, (text,), 0, 1) for name, text in texts.items())
        differences = Expected(session).differences(Expectations("expected", (), entries))
        if differences:
            raise AssertionError(
                _differences([replace(d, where=f"expected[{d.key!r}]") for d in differences])
            )
        return session

    def assert_no_collective(self, kind: str | None = None, *, axis: str | None = None) -> None:
        """Asserts that the program has no collective of this kind ("all-gather"), over this axis.

        By default of any kind, and over any axis. The message says where each is and why.
        """
        __tracebackhide__ = True
        if kind is not None:
            _check_kind(kind)
        if axis is not None:
            self._check_axis(axis)
        unwanted = [
            each
            for each in self._collectives()
            if kind in (None, each.kind)
            and (axis is None or axis in {name.partition(":")[0] for name in each.axes})
        ]
        if unwanted:
            raise AssertionError(self._explained(unwanted))

    def assert_collectives(self, expected: Mapping[str, int]) -> None:
        """Asserts how many collectives of each kind the program has; kinds that are left out must be none."""
        __tracebackhide__ = True
        for kind in expected:
            _check_kind(kind)
        collectives = self._collectives()
        counts = {kind: sum(each.kind == kind for each in collectives) for kind in (*expected, *_kinds())}
        wrong = {kind for kind, count in counts.items() if count != expected.get(kind, 0)}
        parts = (f"{counts[kind]} {kind}, not {expected.get(kind, 0)}" for kind in counts if kind in wrong)
        if wrong:
            listed = self._explained([each for each in collectives if each.kind in wrong])
            raise AssertionError(f"{', '.join(parts)}\n{listed}")

    def assert_snapshot(self, name: str = "") -> None:
        """Asserts that arguments and results are sharded as in the snapshot of this test.

        Snapshots are in ``__shardlog__`` beside the test, in the format of ``shardlog expect``; with
        ``--shardlog-update`` they are written. ``name`` tells several snapshots of a test apart.
        """
        __tracebackhide__ = True
        from .checks.expect import check, update

        path = self._snapshot.with_stem(f"{self._snapshot.stem}-{_stem(name)}") if name else self._snapshot
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            update(self.session, path)
            return
        if not path.exists():
            raise AssertionError(f"there is no snapshot {path}: pytest {_UPDATE} writes it")
        if differences := check(self.session, path):
            raise AssertionError(
                f"{_differences(differences)}\npytest {_UPDATE} accepts the present shardings"
            )

    def _collectives(self) -> tuple[Collective, ...]:
        __tracebackhide__ = True
        return self.session.programs.asked(self._choice).collectives

    def _check_axis(self, axis: str) -> None:
        axes = {name for mesh in self.session.result.program.shardings.meshes.meshes for name, _ in mesh.axes}
        if axis not in axes:
            raise ShardlogError(
                f"there is no axis {axis!r}", where="assert", hint=closest(axis, sorted(axes))
            )

    def _explained(self, collectives: list[Collective]) -> str:
        program = self.session.programs.asked(self._choice)
        return "\n\n".join([self._choice.line, *(str(program.why(each.number)) for each in collectives)])


def _check_options(options: Mapping[str, Any]) -> None:
    """Raises ShardlogError for an option of the marker that neither run nor partition has."""
    if not options:
        return
    from .runs.choice import ProgramChoice
    from .runs.options import NAMES

    names = [*NAMES, *(option.name for option in fields(ProgramChoice))]
    check_options(options, names, "marker shardlog")


def _differences(differences: list[Difference]) -> str:
    return "\n".join(map(str, differences))


def _stem(name: str) -> str:
    """A name of a test or a snapshot, as a file has it."""
    return re.sub(r"[^\w.\[\]=-]", "_", name)


def _text(name: str, sharding: Any) -> str:
    from jax.sharding import PartitionSpec

    if isinstance(sharding, str | PartitionSpec):
        return str(sharding)
    hint = "expected a PartitionSpec, or a sharding as text"
    raise ShardlogError(f"{sharding!r} is not a sharding", where=f"expected[{name!r}]", hint=hint)


def _kinds() -> tuple[str, ...]:
    from .cost.hlo import KINDS

    return KINDS


def _check_kind(kind: str) -> None:
    if kind not in _kinds():
        raise ShardlogError(f"there is no collective {kind!r}", where="assert", hint=closest(kind, _kinds()))
