"""Collectives that go on beside products: where that is faster, what is written, and results stay right."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.errors import ShardlogError
from shardlog.executing.partitioning import put_beside, windows_of
from shardlog.partition.device_program import DeviceProgram
from shardlog.partition.facts.knowledge import RuleReader
from shardlog.partition.finishing.collective_matmul import windows
from shardlog.partition.forms import FORMS
from shardlog.partition.improving import Aim
from shardlog.program.mlir.modules import ops_in

from ..support.drawing import by_day

# On this machine the products of a part take as long as handing it on.
MACHINE = """\
name = "even"
flops = 1e9
memory_bandwidth = 1e12
memory = 1
overlaps = {overlaps}
[links]
bandwidth = {bandwidth}
latency = 1e-9
"""
MLP = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%x: tensor<64x128xf32> {sdy.sharding = #rows}, %up: tensor<128x256xf32> {sdy.sharding = #columns},
                %gate: tensor<128x256xf32> {sdy.sharding = #columns}, %down: tensor<256x128xf32> {sdy.sharding = #rows})
    -> (tensor<64x128xf32> {sdy.sharding = #rows}) {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  %1 = stablehlo.dot_general %x, %gate, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<64x256xf32>
  %3 = stablehlo.dot_general %2, %down, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  return %3 : tensor<64x128xf32>
}
"""  # noqa: E501
Array = npt.NDArray[np.float32]


def machine(folder: Path, bandwidth: float = 1e9, overlaps: str = "true") -> str:
    """The file of a machine."""
    file = folder / "machine.toml"
    file.write_text(MACHINE.format(bandwidth=bandwidth, overlaps=overlaps))
    return str(file)


def written(program: DeviceProgram) -> list[str]:
    """The collectives and products of a program as it is written."""
    with program.combined.context, ir.Location.unknown():
        names = [op.operation.name.partition(".")[2] for op in ops_in(program.combined)]
    kinds = ("dot_general", "all_gather", "all_reduce", "reduce_scatter", "collective_permute")
    return [name for name in names if name in kinds]


@pytest.mark.parametrize("form", FORMS)
def test_a_gather_and_a_scatter_are_rings_of_products(form: Any, tmp_path: Path) -> None:
    topology = machine(tmp_path)
    program = shardlog.run(MLP).partition(form, topology=topology, collective_matmul=True)
    # Both products take the parts that come; what the last one leaves is summed on its way.
    first = ["collective_permute", "dot_general", "dot_general"] * 3 + ["dot_general"] * 2
    assert written(program) == first + ["dot_general"] + ["collective_permute", "dot_general"] * 3
    assert [c.kind for c in program.collectives] == ["all-gather", "reduce-scatter"]
    plain = shardlog.run(MLP).partition(form, topology=topology)
    assert written(plain) == ["all_gather", *["dot_general"] * 3, "reduce_scatter"]
    # A part is handed on in 8 us, beside products that take longer: the time of the collectives is saved.
    collectives = sum(item.seconds for item in plain.cost(topology).collectives())
    # What is gathered is never there as a whole.
    assert plain.cost(topology).peak > program.cost(topology).peak
    assert plain.cost(topology).seconds - program.cost(topology).seconds == pytest.approx(collectives)
    rng = np.random.default_rng(0)
    x, up, gate, down = (
        rng.integers(-3, 4, shape).astype(np.float32)
        for shape in ((64, 128), (128, 256), (128, 256), (256, 128))
    )
    (got,) = program.compile()(x, up, gate, down)
    np.testing.assert_array_equal(got, ((x @ up) * (x @ gate)) @ down)


def test_why_says_what_it_saves(tmp_path: Path) -> None:
    program = shardlog.run(MLP).partition(topology=machine(tmp_path), collective_matmul=True)
    said = program.why(0)
    assert said.beside is not None
    assert (said.beside.products, said.beside.devices) == (2, 4)
    assert said.beside.apart > said.beside.beside
    assert "take less time than the collective" in " ".join(str(said).split())
    assert "4 parts, beside 2 products" in str(said)
    assert "beside" not in str(shardlog.run(MLP).partition().why(0))


def test_it_stays_a_collective_where_that_is_faster(tmp_path: Path) -> None:
    result = shardlog.run(MLP)
    for topology in ("cpu", machine(tmp_path, overlaps="false")):
        assert not result.partition(topology=topology, collective_matmul=True).windows
    # Each part of a product reads all of the weights: on a machine with little bandwidth that takes longer.
    slow = Path(machine(tmp_path)).read_text().replace("1e12", "1e6")
    (tmp_path / "slow.toml").write_text(slow)
    assert not result.partition(topology=str(tmp_path / "slow.toml"), collective_matmul=True).windows
    with pytest.raises(ShardlogError, match="no machine is given"):
        result.partition(collective_matmul=True)


TWICE = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
func.func @main(%x: tensor<64x128xf32> {sdy.sharding = #rows}, %y: tensor<64x128xf32> {sdy.sharding = #rows},
                %up: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<64x256xf32>, tensor<64x256xf32>) {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  %1 = stablehlo.dot_general %y, %up, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  return %0, %1 : tensor<64x256xf32>, tensor<64x256xf32>
}
"""  # noqa: E501


def test_collectives_that_are_alike_are_rings_each(tmp_path: Path) -> None:
    program = shardlog.run(TWICE).partition(topology=machine(tmp_path), collective_matmul=True)
    assert written(program) == (["collective_permute", "dot_general"] * 3 + ["dot_general"]) * 2


def test_rings_are_as_many_as_there_is_memory_for(tmp_path: Path) -> None:
    topology, result = machine(tmp_path), shardlog.run(MLP)
    program = result.partition(topology=topology)
    windows_found = windows_of(result.result, program, topology)
    assert len(written(program)) == 5
    for most, number in ((2, 2), (1, 1), (0, 0)):
        put_beside(program, windows_found, Aim(memory=most, peak=lambda program: len(program.windows)))
        assert len(program.windows) == number
        saved = [each.apart - each.beside for window, each in windows_found if window in program.windows]
        best = sorted((each.apart - each.beside for _, each in windows_found), reverse=True)[:number]
        assert saved == pytest.approx(best)
    assert written(program) == ["all_gather", *["dot_general"] * 3, "reduce_scatter"]


def test_what_something_else_needs_is_gathered(tmp_path: Path) -> None:
    result = "-> (tensor<64x128xf32> {sdy.sharding = #rows}"
    whole = MLP.replace(
        result, f"{result}, tensor<64x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}"
    )
    whole = whole.replace(
        "return %3 : tensor<64x128xf32>", "return %3, %x : tensor<64x128xf32>, tensor<64x128xf32>"
    )
    program = shardlog.run(whole).partition(topology=machine(tmp_path), collective_matmul=True)
    assert [c.kind for c in program.collectives] == ["all-gather", "reduce-scatter"]
    assert [window.gathers for window in program.windows] == [False]


def random_product(random: Random) -> tuple[str, list[Array], Array]:
    """A product whose operands and result are sharded at random, its inputs and its result."""
    sizes = {"b": 8, "m": 16, "n": 24, "k": 32}
    batch = ["b"] if random.random() < 0.4 else []
    lhs, rhs = [*batch, *random.sample("mk", 2)], [*batch, *random.sample("kn", 2)]
    result = [*batch, "m", "n"]

    def type_of(dims: list[str]) -> str:
        return f"tensor<{'x'.join(str(sizes[d]) for d in dims)}xf32>"

    def sharding(dims: list[str]) -> str:
        free, lists = random.sample(["x", "y"], 2), []
        for _ in dims:
            taken = [free.pop() for _ in range(random.randint(0, len(free)))]
            lists.append("{" + ", ".join(f'"{axis}"' for axis in taken) + "}")
        random.shuffle(lists)
        return f"{{sdy.sharding = #sdy.sharding<@mesh, [{', '.join(lists)}]>}}"

    named = f"batching_dims = {[0]} x {[0]}, " if batch else ""
    dims = f"{named}contracting_dims = [{lhs.index('k')}] x [{rhs.index('k')}]"
    types = f"({type_of(lhs)}, {type_of(rhs)}) -> {type_of(result)}"
    module = (
        'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'
        f"func.func @main(%a: {type_of(lhs)} {sharding(lhs)}, %b: {type_of(rhs)} {sharding(rhs)})"
        f" -> ({type_of(result)} {sharding(result)}) {{\n"
        f"  %0 = stablehlo.dot_general %a, %b, {dims} : {types}\n  return %0 : {type_of(result)}\n}}\n"
    )
    rng = np.random.default_rng(random.randint(0, 1 << 30))
    a, b = (rng.integers(-4, 5, [sizes[d] for d in dims]).astype(np.float32) for dims in (lhs, rhs))
    return module, [a, b], np.einsum(f"{''.join(lhs)},{''.join(rhs)}->{''.join(result)}", a, b)


@pytest.mark.parametrize("seeds", by_day([range(20)], [range(20), range(20, 200)]), ids=str)
def test_random_products(seeds: range) -> None:
    """Whatever could go on beside a product does: along batch, free and contracted dimensions."""
    kinds = set[tuple[bool, bool]]()
    for seed in seeds:
        random = Random(seed)
        module, inputs, expected = random_product(random)
        result = shardlog.run(module)
        program = result.partition(random.choice(FORMS))
        with program.module.context:
            windows_found = list(windows(program.sent, RuleReader(result.result.book)))
        if not windows_found:
            continue
        window = random.choice(windows_found)
        program.windows = [window]
        (product,) = window.products
        kinds.add((window.gathers, product.dim(2) is None))
        np.testing.assert_array_equal(program.compile()(*inputs)[0], expected, err_msg=module)
    assert kinds == {(True, False), (True, True), (False, False)}
