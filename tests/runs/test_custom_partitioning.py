"""Functions that ``custom_partitioning`` wraps: their ``partition`` is called as XLA calls it, and what it
gives is what each device runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.experimental import custom_partitioning
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from shardlog.errors import ShardlogError
from shardlog.partition.forms import FORMS

P: Any = PartitionSpec
lax: Any = jax.lax


def on(*spec: Any) -> NamedSharding:
    """A sharding on 4x2 devices."""
    return NamedSharding(Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("d", "t")), P(*spec))


def numbers(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).random(shape, np.float32)


def said(trees: Any) -> tuple[tuple[tuple[int, ...], str], ...]:
    return tuple((leaf.shape, str(leaf.sharding.spec)) for leaf in jax.tree.leaves(trees))


class Wrapped:
    """Functions whose partition functions take down what they are given."""

    def __init__(self) -> None:
        self.given = set[Any]()

    def wrap(self, function: Any, partition: Any, rule: str | None, **options: Any) -> Any:
        def noted(*args: Any) -> Any:
            self.given.add((said(args[-2]), said(args[-1])))
            return partition(*args)

        wrapped: Any = custom_partitioning.custom_partitioning(function, options.pop("static", ()))  # type: ignore[no-untyped-call]
        wrapped.def_partition(partition=noted, sharding_rule=rule, **options)
        return wrapped

    def ring(self) -> Any:
        """Each row beside the one before, and the sum of all: by a permutation, a gather and the device's
        number, in parts of rows alone."""

        def partition(mesh: Any, args: Any, result: Any) -> Any:
            rows = NamedSharding(mesh, P("d", None))

            def local(x: Any) -> Any:
                last = lax.ppermute(x[-1:], "d", [(i, (i + 1) % 4) for i in range(4)])
                every = lax.all_gather(x, "d", tiled=True).sum(0, keepdims=True)
                return jnp.concatenate([last, x[:-1]]) + every + lax.axis_index("d") * 0

            return mesh, local, rows, (rows,)

        return self.wrap(lambda x: jnp.roll(x, 1, 0) + x.sum(0), partition, "i j -> i j")

    def product(self) -> Any:
        """A matrix product, summed over the axes of the contracted dimension, in the given parts."""

        def partition(mesh: Any, args: Any, result: Any) -> Any:
            rows, summed = args[0].sharding.spec
            columns = None if (given := result.sharding.spec[1]) == summed else given

            def local(x: Any, w: Any) -> Any:
                return lax.psum(x @ w, summed) if summed else x @ w

            takes = NamedSharding(mesh, P(rows, summed)), NamedSharding(mesh, P(summed, columns))
            return mesh, local, NamedSharding(mesh, P(rows, columns)), takes

        return self.wrap(lambda x, y: x @ y, partition, "i k, k j -> i j", reduction_factors=("k",))


Case = Callable[[Wrapped], tuple[Any, tuple[Any, ...]]]
CASES: dict[str, tuple[Case, list[str]]] = {}


def case(*kinds: str) -> Callable[[Case], Case]:
    def add(made: Case) -> Case:
        CASES[made.__name__] = made, list(kinds)
        return made

    return add


@case()
def elementwise(w: Wrapped) -> Any:
    def partition(mesh: Any, args: Any, result: Any) -> Any:
        return mesh, lambda x: x * 2, args[0].sharding, (args[0].sharding,)

    double = w.wrap(lambda x: x * 2, partition, "i j -> i j")
    return jax.jit(lambda x: double(x) + 1, in_shardings=on("d", "t")), (numbers(16, 8),)


@case("all-reduce")
def contracted(w: Wrapped) -> Any:
    product = w.product()
    f = jax.jit(lambda x, y: jnp.sin(product(jnp.cos(x), y)), in_shardings=(on("d", "t"), on("t", None)))
    return f, (numbers(16, 8), numbers(8, 4))


@case("all-to-all", "all-reduce")
def taken_otherwise(w: Wrapped) -> Any:
    def partition(mesh: Any, args: Any, result: Any) -> Any:
        takes = NamedSharding(mesh, P("d", "t")), NamedSharding(mesh, P("t", None))
        return mesh, lambda x, y: lax.psum(x @ y, "t"), NamedSharding(mesh, P("d", None)), takes

    product = w.wrap(lambda x, y: x @ y, partition, "i k, k j -> i j", reduction_factors=("k",))
    f = jax.jit(lambda x, y: jnp.sin(product(x, y)), in_shardings=(on("d", None), on(None, "t")))
    return f, (numbers(16, 8), numbers(8, 4))


@case("all-reduce", "all-reduce")
def differentiated(w: Wrapped) -> Any:
    product = w.product()
    times = jax.custom_vjp(product)
    times.defvjp(lambda x, y: (product(x, y), (x, y)), lambda r, g: (product(g, r[1].T), product(r[0].T, g)))
    loss = jax.grad(lambda x, y: (times(jnp.sin(x), y) ** 2).sum(), argnums=(0, 1))
    return jax.jit(loss, in_shardings=(on("d", "t"), on("t", None))), (numbers(16, 8), numbers(8, 4))


@case("all-gather", "collective-permute", "all-gather", "all-reduce")
def scanned(w: Wrapped) -> Any:
    ring = w.ring()

    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (ring(c) * 0.1, c.sum()), x, None, length=3)

    return jax.jit(f, in_shardings=on("d", "t")), (numbers(16, 8),)


@case("all-gather", *["collective-permute", "all-gather"] * 2)
def in_a_function_called_twice(w: Wrapped) -> Any:
    ring = w.ring()
    inner = jax.jit(lambda x: ring(jnp.cos(x)))
    return jax.jit(lambda x: inner(inner(x)), in_shardings=on("d", "t")), (numbers(16, 8),)


@case("all-reduce")
def several_results(w: Wrapped) -> Any:
    def partition(mesh: Any, args: Any, result: Any) -> Any:
        rows, columns = args[0].sharding.spec
        gives = {"double": args[0].sharding, "sum": NamedSharding(mesh, P(rows))}

        def local(x: Any) -> Any:
            return {"double": x * 2, "sum": lax.psum(x.sum(1), columns)}

        return mesh, local, gives, (args[0].sharding,)

    both = w.wrap(lambda x: {"double": x * 2, "sum": x.sum(1)}, partition, "i j -> i j, i")
    f = jax.jit(lambda x: jnp.sin(both(x)["double"]) + both(x)["sum"][:, None], in_shardings=on("d", "t"))
    return f, (numbers(16, 8),)


@case()
def static_arguments(w: Wrapped) -> Any:
    def partition(k: int, mode: str, mesh: Any, args: Any, result: Any) -> Any:
        local = (lambda x: x * k) if mode == "times" else (lambda x: x + k)
        return mesh, local, args[0].sharding, (args[0].sharding,)

    both = w.wrap(
        lambda x, k, mode: x * k if mode == "times" else x + k, partition, "i j -> i j", static=(1, 2)
    )
    f = jax.jit(lambda x: both(both(x, 3, "times"), 5, "plus"), in_shardings=on("d", "t"))
    return f, (numbers(16, 8),)


@case("all-gather")
def functions_inside(w: Wrapped) -> Any:
    def partition(mesh: Any, args: Any, result: Any) -> Any:
        rows = NamedSharding(mesh, P("d", None))
        return mesh, lambda x: jax.jit(jax.nn.relu)(jax.scipy.special.erf(x)), rows, (rows,)

    smooth = w.wrap(lambda x: jax.nn.relu(jax.scipy.special.erf(x)), partition, "i j -> i j")
    return jax.jit(lambda x: smooth(smooth(jax.nn.relu(x))), in_shardings=on("d", "t")), (numbers(16, 8),)


@case("collective-permute", "all-reduce", "collective-permute")
def on_another_mesh(w: Wrapped) -> Any:
    other = Mesh(np.array(jax.devices()[:8]).reshape(2, 2, 2), ("a", "b", "c"))

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        cut = NamedSharding(other, P(("a", "c"), "b"))
        return other, lambda x: x - lax.psum(x.sum(0, keepdims=True), ("a", "c")), cut, (cut,)

    centred = w.wrap(lambda x: x - x.sum(0), partition, "i j -> i j")
    return jax.jit(lambda x: centred(x + 1) + 1, in_shardings=on("d", "t")), (numbers(16, 8),)


@case()
def small_floats_and_truths(w: Wrapped) -> Any:
    def partition(mesh: Any, args: Any, result: Any) -> Any:
        cut = NamedSharding(mesh, P("d", "t"))
        return mesh, lambda x, b: (jnp.where(b, x, -x), ~b), (cut, cut), (cut, cut)

    both = w.wrap(lambda x, b: (jnp.where(b, x, -x), ~b), partition, "i j, i j -> i j, i j")
    x = numbers(16, 8)
    return jax.jit(both, in_shardings=(on("d", "t"),) * 2), (x.astype(jnp.bfloat16), x > 0.5)


@pytest.mark.parametrize("name", CASES)
def test_programs_run_as_with_xla(name: str) -> None:
    made, kinds = CASES[name]
    wrapped = Wrapped()
    function, inputs = made(wrapped)
    lowered = function.lower(*inputs)
    want = lowered.compile()(*inputs)
    by_xla, wrapped.given = wrapped.given, set()
    result = shardlog.run(lowered)
    for form in FORMS if kinds else FORMS[:1]:
        partitioned = result.partition(form)
        assert wrapped.given == by_xla
        assert [collective.kind for collective in partitioned.collectives] == kinds
        got = partitioned.compile()(*inputs)
        for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            assert mine.dtype == theirs.dtype
            a, b = (np.asarray(each, np.float32) for each in (mine, theirs))
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_collectives_serve_the_call_with_their_causes() -> None:
    function, inputs = contracted(Wrapped())
    session = shardlog.run(function, *inputs)
    partitioned = session.partition()
    (collective,) = partitioned.collectives
    assert (collective.op, collective.slot, collective.axes) == ("stablehlo.custom_call", "result", ("t",))
    assert Path(collective.where.partition(":")[0]).name == Path(__file__).name
    assert "the annotation of %arg0 at x" in collective.causes
    text = str(partitioned.why(0))
    assert "for result of stablehlo.custom_call" in text
    assert "as its partition function says" in " ".join(text.split())
    (conflict,) = session.conflicts()
    assert (conflict.collective, conflict.bytes) == ("all-reduce", collective.bytes)


def test_without_a_rule_its_functions_say_how_results_are_sharded() -> None:
    """As GSPMD asks them. Here what each device gives fits no other sharding of the result."""

    def infer(mesh: Any, args: Any, result: Any) -> Any:
        return args[0].sharding

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        return mesh, lambda x: x * 2, result.sharding, (args[0].sharding,)

    double = custom_partitioning.custom_partitioning(lambda x: x * 2)  # type: ignore[no-untyped-call]
    double.def_partition(partition, infer, lambda mesh, user: user.sharding)  # type: ignore[no-untyped-call]
    jax.config.update("jax_use_shardy_partitioner", False)  # type: ignore[no-untyped-call]
    try:
        function = jax.jit(lambda x: double(double(x + 1)) + 1, in_shardings=on("d", None))
        result = shardlog.run(function, numbers(16, 8))
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)  # type: ignore[no-untyped-call]
    got = result.partition().compile()(numbers(16, 8))
    np.testing.assert_allclose(got, (numbers(16, 8) + 1) * 4 + 1, rtol=1e-6)


@pytest.mark.parametrize("partitioner", ["xla", "shardlog"])
def test_jit(partitioner: Any) -> None:
    function, inputs = contracted(Wrapped())
    shardings = on("d", "t"), on("t", None)
    got = shardlog.jit(function.__wrapped__, in_shardings=shardings, partitioner=partitioner)(*inputs)
    np.testing.assert_allclose(got, function(*inputs), rtol=1e-4)


def test_its_functions_live_as_long_as_the_run() -> None:
    """The module names them by their addresses: what is lowered may be gone when it is partitioned."""
    function, inputs = contracted(Wrapped())
    result = shardlog.run(function, *inputs)
    jax.clear_caches()  # type: ignore[no-untyped-call]
    want = np.sin(np.cos(inputs[0]) @ inputs[1])
    np.testing.assert_allclose(result.compile()(*inputs), want, rtol=1e-4)
    np.testing.assert_allclose(result.partition().compile()(*inputs), want, rtol=1e-4)


def test_each_is_asked_once() -> None:
    wrapped, calls = Wrapped(), list[int]()

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        calls.append(1)
        return mesh, lambda x: x * 2, args[0].sharding, (args[0].sharding,)

    double = wrapped.wrap(lambda x: x * 2, partition, "i j -> i j")
    result = shardlog.run(jax.jit(double, in_shardings=on("d", "t")), numbers(16, 8))
    result.partition()
    result.partition("replica", keep_shardings=True)
    assert result.conflicts() == ()
    assert len(calls) == 1


def test_what_it_computes_is_where_it_is_called() -> None:
    """And not at the lines of what asked for it, which would be in the program."""
    function, inputs = contracted(Wrapped())
    result = shardlog.run(function, *inputs)
    partitioned = result.partition()
    (product,) = (item for item in partitioned.cost().items if item.op == "stablehlo.dot_general")
    assert product.where == partitioned.collectives[0].where

    def asked() -> bytes:
        return shardlog.run(function, *inputs).partition().bytecode()

    assert asked() == partitioned.bytecode()


def _fails(mesh: Any, args: Any, result: Any) -> Any:
    raise RuntimeError("no such layout\nof many")


def _prints(mesh: Any, args: Any, result: Any) -> Any:
    """XLA ends the process with it, whoever partitions."""

    def local(x: Any) -> Any:
        jax.debug.print("{}", x)
        return x

    return mesh, local, args[0].sharding, (args[0].sharding,)


def _lies(mesh: Any, args: Any, result: Any) -> Any:
    return mesh, lambda x: x.sum(0), args[0].sharding, (args[0].sharding,)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (_fails, "RuntimeError: no such layout\n"),
        (_lies, "ValueError: Mismatch in result shapes"),
        (_prints, "calls back into Python"),
    ],
)
def test_a_partition_function_that_fails(partition: Any, message: str) -> None:
    double = Wrapped().wrap(lambda x: x * 2, partition, "i j -> i j")
    result = shardlog.run(jax.jit(lambda x: double(x), in_shardings=on("d", "t")), numbers(16, 8))
    with pytest.raises(ShardlogError, match=message) as error:
        result.partition()
    assert Path(error.value.where.partition(":")[0]).name == Path(__file__).name
    assert error.value.hint and "\n" not in error.value.message


def test_a_partition_function_that_fails_where_xla_asks_it() -> None:
    double = Wrapped().wrap(lambda x: x * 2, _fails, "i j -> i j")
    lowered = jax.jit(lambda x: double(x), in_shardings=on("d", "t")).lower(numbers(16, 8))
    with pytest.raises(ShardlogError, match="RuntimeError: no such layout\n") as error:
        shardlog.run(lowered).compile()
    assert Path(error.value.where.partition(":")[0]).name == Path(__file__).name
    assert "custom_partitioning" in error.value.hint


def test_xla_is_not_there_to_ask_for_a_file(tmp_path: Path) -> None:
    function, inputs = contracted(Wrapped())
    path = tmp_path / "program.mlir"
    path.write_text(function.lower(*inputs).as_text())
    with pytest.raises(ShardlogError, match="custom_partitioner: KeyError") as error:
        shardlog.run(path, view="compiled")
    assert "custom_partitioning" in error.value.hint


@pytest.mark.parametrize(
    "command",
    [["partition", "--list"], ["cost"], ["conflicts"], ["exec", "--random"], ["why", "--collective", "0"]],
    ids=lambda command: command[0],
)
def test_a_file_has_no_functions(command: list[str], tmp_path: Path) -> None:
    function, inputs = contracted(Wrapped())
    path = tmp_path / "program.mlir"
    path.write_text(function.lower(*inputs).as_text())
    name, *options = command
    ran = subprocess.run(
        [sys.executable, "-m", "shardlog", name, str(path), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    where, _, rest = ran.stderr.partition(": error: ")
    assert where.startswith(f"{path}:") and "custom_partitioning" in rest and "hint:" in rest
    assert len(ran.stderr.splitlines()) == 2


def test_neither_has_text() -> None:
    function, inputs = contracted(Wrapped())
    lowered = function.lower(*inputs)
    result = shardlog.run(lowered.as_text())
    for ask in (result.compile, partial(result.partition, refuse=False)):
        with pytest.raises(ShardlogError, match="Python function"):
            ask()
