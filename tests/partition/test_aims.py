"""What a program is to be like: fast on a machine, within a bound on memory, chosen in some time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardlog
from shardlog.cost.inlining import inlined
from shardlog.cost.machine import Allocation
from shardlog.cost.machine import machine as known_machine
from shardlog.cost.memory import peak_memory
from shardlog.errors import ShardlogError
from shardlog.partition.choice import tuning
from shardlog.partition.choice.costs import Costs
from shardlog.partition.choice.variables import Row
from shardlog.session import Session

from ..support import models
from ..support.drawing import by_day
from ..support.programs import array
from ..support.scanned import scanned_step
from ..support.traits import TRAITS

# To gather the weight costs 3/4 of its bytes, to add up products in parts twice 3/4 of theirs.
PRODUCT = """\
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""  # noqa: E501
MACHINE = """\
flops = {flops}
memory_bandwidth = 1e12
memory = {memory}
[links]
bandwidth = {bandwidth}
latency = {latency}
"""


DEPTHS = by_day([1], [1, 2])  # layers of a model


@pytest.fixture(scope="module", params=DEPTHS)
def lstm(request: pytest.FixtureRequest) -> Session:
    return shardlog.run(models.text("lstm", depth=request.param))


def machine(folder: Path, *, memory: float = 1.0, **numbers: float) -> str:
    file = folder / "machine.toml"
    file.write_text(MACHINE.format(memory=memory, **numbers))
    return str(file)


def test_work_counts_as_the_machine_does_it(tmp_path: Path) -> None:
    result = shardlog.run(PRODUCT)
    slow = machine(tmp_path, flops=1e6, bandwidth=1e9, latency=0.0)
    collectives = result.partition(
        topology=slow
    ).collectives  # in eight parts, though nothing is sharded on "y"
    assert [(c.kind, c.axes, c.slot) for c in collectives] == [
        ("all-reduce", ("x",), "result"),
        ("all-gather", ("y",), "result"),
    ]
    # Where links are nothing to the latency of a step: two all-gathers take as many steps as one sum.
    free = machine(tmp_path, flops=1e30, bandwidth=1e9, latency=1.0)
    kinds = [c.kind for c in result.partition(topology=free).collectives]
    assert kinds == ["all-reduce"] or kinds == ["all-gather", "all-gather"]


def test_sums_of_which_a_compiler_makes_one_cost_what_one_does_to_begin(tmp_path: Path) -> None:
    # Eight sums, as those of gradients: one step after the other they take longer than to gather the batch.
    products = [f"""
      %{n} = stablehlo.slice %a [0:512, {16 * n}:{16 * n + 16}] : (tensor<512x128xf32>) -> tensor<512x16xf32>
      %s{n} = stablehlo.dot_general %{n}, %{n}, contracting_dims = [0] x [0]
        : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<16x16xf32>""" for n in range(8)]  # fmt: skip
    results = ", ".join(f"%s{n}" for n in range(8))
    types = ", ".join(["tensor<16x16xf32>"] * 8)
    whole = ", ".join(["tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"] * 8)
    result = shardlog.run(f"""
    sdy.mesh @mesh = <["x"=8]>
    func.func @main(%a: tensor<512x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
        -> ({whole}) {{{"".join(products)}
      return {results} : {types}
    }}""")
    file = machine(tmp_path, flops=1e15, bandwidth=1e9, latency=2e-5)
    text = Path(file).read_text()
    for combines, kinds in (("[]", {"all-gather"}), ('["all-reduce"]', {"all-reduce"})):
        Path(file).write_text(f"combines = {combines}\n{text}")
        assert {c.kind for c in result.partition(topology=file).collectives} == kinds


BOUND = [("transformer", False, 1), ("transformer", False, 2), ("grouped_query", True, 2)]


@pytest.mark.parametrize(("name", "scan", "depth"), by_day(BOUND[:1], BOUND))
def test_a_bound_on_memory_holds(name: str, scan: bool, depth: int) -> None:
    result = shardlog.run(models.text(name, scan=scan, depth=depth))
    plain = result.partition(keep_shardings=False)
    bound = int(peak_memory(inlined(plain.module, TRAITS), Allocation(), TRAITS) * 0.98)
    smaller = result.partition(keep_shardings=False, memory=bound)
    assert peak_memory(inlined(smaller.module, TRAITS), Allocation(), TRAITS) <= bound
    # Bytes are not all that the choice counts: a collective costs as much as some bytes.
    decided = [c for c in result.partition(keep_shardings=True).collectives if c.total]
    each = sum(c.total for c in decided) / sum(c.executions or 1 for c in decided) / tuning.COLLECTIVES
    least, other = (
        sum(c.total + each * (c.executions or 1) for c in program.collectives) for program in (plain, smaller)
    )
    assert least <= other


def test_only_users_far_apart_gather_a_value_again() -> None:
    """Two calls need all of %a, and the products between them need memory."""

    def result(products: int) -> Session:
        squared = "stablehlo.dot_general %{0}, %{0}, contracting_dims = [1] x [0] : (T, T) -> T"
        lines = [f"%{n + 1} = {squared.format(n)}" for n in range(products)]
        text = f"""
            sdy.mesh @mesh = <["x"=4]>
            func.func @main(%a: T {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> T {{
              %0 = stablehlo.custom_call @mine(%a) : (T) -> T
              {" ".join(lines)}
              %b = stablehlo.custom_call @mine(%a) : (T) -> T
              %c = stablehlo.dot_general %{products}, %b, contracting_dims = [1] x [0] : (T, T) -> T
              return %c : T
            }}"""
        return shardlog.run(re.sub(r"\bT\b", "tensor<512x512xf32>", text))

    far, near = result(79), result(19)
    assert len(far.partition(keep_shardings=True).collectives) == 1
    bounded = far.partition(keep_shardings=True, memory="3.5MiB")
    assert [(c.kind, c.value, c.bytes) for c in bounded.collectives] == 2 * [("all-gather", "%arg0", 786432)]
    with pytest.raises(ShardlogError, match="no program was found"):
        near.partition(keep_shardings=True, memory="3.5MiB")


def test_what_sends_hardly_less_does_not_need_much_more_memory() -> None:
    result = shardlog.run(models.text("mixture_of_experts"))

    def needs(**options: Any) -> tuple[int, int]:
        program = result.partition(**options)
        peak = peak_memory(inlined(program.module, TRAITS), Allocation(), TRAITS)
        return peak, sum(c.total for c in program.collectives)

    (kept, _), (peak, sent), (most, least) = needs(keep_shardings=True), needs(), needs(memory="1GiB")
    assert kept < peak < 0.9 * most and most > 1.25 * kept
    assert least <= sent < 1.05 * least


def test_half_of_what_is_sent_is_not_worth_a_third_more_memory() -> None:
    def loss(weights: tuple[jax.Array, jax.Array], rows: jax.Array) -> Any:
        @jax.checkpoint
        def cell(state: tuple[jax.Array, jax.Array], row: jax.Array) -> Any:
            hidden, memory = state
            given, forgotten, new, shown = jnp.split(row @ weights[0] + hidden @ weights[1], 4, -1)
            memory = jax.nn.sigmoid(forgotten) * memory + jax.nn.sigmoid(given) * jnp.tanh(new)
            hidden = jax.nn.sigmoid(shown) * jnp.tanh(memory)
            return (hidden, memory), hidden

        zeros = jnp.zeros((32, 64))
        return (jax.lax.scan(cell, (zeros, zeros), jnp.swapaxes(rows, 0, 1))[1] ** 2).mean()

    weight, rows = array((64, 256), None, "model"), array((32, 24, 64), "data")
    result = shardlog.run(jax.jit(jax.grad(loss)), (weight, weight), rows)
    kept, program = result.partition(keep_shardings=True), result.partition()
    peaks = [peak_memory(inlined(each.module, TRAITS), Allocation(), TRAITS) for each in (kept, program)]
    assert peaks[1] < 1.25 * peaks[0]
    assert sum(c.total for c in program.collectives) < 0.7 * sum(c.total for c in kept.collectives)


@pytest.mark.parametrize(("depth", "train"), by_day([(1, False)], [(1, False), (2, True)]))
def test_a_program_fits_the_memory_of_the_machine_that_it_is_for(
    depth: int, train: bool, tmp_path: Path
) -> None:
    result = shardlog.run(models.text("transformer", depth=depth, train=train))

    def needs(memory: float) -> int:
        given = machine(tmp_path, memory=memory / 2**30, flops=1e12, bandwidth=1e9, latency=1e-5)
        return peak_memory(inlined(result.partition(topology=given).module, TRAITS), Allocation(), TRAITS)

    plain = needs(2.0**30)
    assert needs(plain * 0.9) <= plain * 0.9
    assert needs(1000) == plain  # nothing fits in so little


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", by_day(["recommender"], ["resnet", "recommender"]))
def test_a_bound_that_the_shardings_of_propagation_meet_is_met(name: str, depth: int) -> None:
    result, allocation = shardlog.run(models.text(name, depth=depth)), known_machine("v5e").allocation
    kept = result.partition(topology="v5e", keep_shardings=True)
    least = peak_memory(inlined(kept.module, TRAITS), allocation, TRAITS)
    bound = result.partition(topology="v5e", memory=least)
    assert peak_memory(inlined(bound.module, TRAITS), allocation, TRAITS) <= least


def test_less_memory_costs_a_fast_program_little() -> None:
    """What ops need besides the homes of values has a price too: else none with the least time was small."""
    result = shardlog.run(models.text("decode"))
    fast = result.partition(topology="v5e").cost("v5e")
    bound = int(fast.peak * 0.9)
    small = result.partition(topology="v5e", memory=bound).cost("v5e")
    assert small.peak <= bound
    assert small.seconds < 1.25 * fast.seconds


def test_where_no_fast_program_is_small_enough_one_that_sends_little_may_be() -> None:
    result = shardlog.run(scanned_step())
    small = result.partition(memory="25MiB").cost("h100").peak
    assert small <= 25 * 2**20
    assert result.partition(topology="h100", memory="25MiB").cost("h100").peak <= small
    with pytest.raises(ShardlogError, match="no program was found that needs at most 20 MiB"):
        result.partition(topology="h100", memory="20MiB")


@pytest.mark.parametrize("name", by_day(["decode"], ["recommender", "decode"]))
def test_a_bound_holds_for_the_program_that_is_compiled(name: str) -> None:
    """On CPUs, where collectives are combined and products turned before."""
    result = shardlog.run(models.text(name))
    plain = result.partition(topology="cpu").cost("cpu").peak
    for bound in (plain - 1, int(plain * 0.9)):
        try:
            program = result.partition(topology="cpu", memory=bound)
        except ShardlogError as error:
            least = int(str(error).rpartition("(")[2].partition(" byte")[0].replace(",", ""))
            assert least > bound
            program = result.partition(topology="cpu", memory=least)
            bound = least
        assert program.cost("cpu").peak <= bound


def test_a_program_that_does_not_fit_its_machine_says_so(tmp_path: Path) -> None:
    small = machine(tmp_path, flops=1e12, bandwidth=1e9, latency=0.0, memory=2.0**-30)
    program = shardlog.run(PRODUCT).partition(topology=small)
    assert program.exceeds == program.cost(small).peak
    assert not shardlog.run(PRODUCT).partition(topology="v5e").exceeds


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"memory": 1.5}, "1.5 is not a size"),
        ({"memory": -1}, "-1 is not a size"),
        ({"memory": "16 gigabytes"}, "'16 gigabytes' is not a size"),
        ({"memory": "0.0001B"}, "less than a byte"),
        ({"seconds": float("nan")}, "nan is not a time"),
        ({"topology": 3}, "3 is not a topology"),
        ({"form": "manaul"}, "there is no form 'manaul'"),
        ({"keep_shardings": True, "pins": ["%0=[{}, {}]"]}, "pins have no effect"),
        ({"pins": ["%7=[{}, {}]"]}, "there is no value %7"),
    ],
)
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ShardlogError, match=re.escape(said)):
        shardlog.run(PRODUCT).partition(**options)


def test_absurd_meshes_are_refused() -> None:
    with pytest.raises(ShardlogError, match="a mesh of 536,870,912 devices is not partitioned for"):
        shardlog.run(PRODUCT, mesh=f"x={2**27},y=4").partition()


def test_options_as_text() -> None:
    result = shardlog.run(PRODUCT)
    program = result.partition(memory="1MiB", pins=['%0=[{"y"}, {}]'])
    pinned = result.pin('%0=[{"y"}, {}]').change.after
    assert program.cost("v5e").sent == pinned.bytes


def test_a_bound_that_nothing_meets_names_the_largest_values(lstm: Session) -> None:
    with pytest.raises(ShardlogError, match="the least that was found is") as error:
        lstm.partition(keep_shardings=False, memory=1000)
    assert "the largest values" in str(error.value.hint)


def test_the_choice_is_as_good_as_the_bound_says() -> None:
    homes = shardlog.run(models.text("recommender")).partition(keep_shardings=False, seconds=1000).found
    assert homes is not None
    assert 0 < homes.bound <= homes.cost
    assert homes.bound == pytest.approx(homes.cost, rel=2e-2)


def test_without_time_nothing_is_priced(lstm: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """On large meshes prices take most of the time."""
    priced: list[int] = []
    price = Costs._term

    def counted(costs: Costs, number: Row, *others: Any) -> Any:
        priced.append(number)
        return price(costs, number, *others)

    monkeypatch.setattr(Costs, "_term", counted)
    lstm.partition(seconds=0)
    assert priced == []
    lstm.partition(memory="100MiB")
    assert priced


def test_without_time_the_shardings_are_those_of_propagation(lstm: Session) -> None:
    homes = lstm.partition(keep_shardings=False, seconds=0).found
    assert homes is not None
    assert not homes.plan.homes
