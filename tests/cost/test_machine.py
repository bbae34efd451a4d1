"""Machines: links of rings, rows and nodes, and what is wrong with a description."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardlog.cost.exchange import prices
from shardlog.cost.facts import sending, solver_of
from shardlog.cost.machine import MACHINES, Torus, machine, names
from shardlog.errors import ShardlogError

from ..support.machines import MACHINE
from ..support.traits import TRAITS


@pytest.mark.parametrize("name", names())
def test_known_machines(name: str) -> None:
    target = machine(name)
    assert target.flops / target.memory_bandwidth > (1 if name == "cpu" else 100)
    assert target.memory_bandwidth > target.link.bandwidth
    assert target.network is None or target.network.link.bandwidth < target.link.bandwidth


def test_rings_send_both_ways_and_rows_one_way() -> None:
    ring = machine("v5p").link.bandwidth
    cube, row = machine("v5p:4x4x4"), machine("v5p:2x2x2")
    assert cube.link_of((), [[0, 1, 2, 3]]).bandwidth == ring
    assert row.link_of((), [[0, 1]]).bandwidth == ring / 2
    # A group along two dimensions has the links of both; half a ring is a row.
    assert cube.link_of((), [range(16)]).bandwidth == 2 * ring
    assert cube.link_of((), [[0, 1]]).bandwidth == ring / 2


def test_collectives_take_time_to_start(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(MACHINE.format(flops=1, bandwidth=1) + "start = 3")
    own = machine(str(path))
    price = prices(own, TRAITS).collective
    assert price is not None
    # Three steps each, and along one axis the start.
    assert price("all-gather", 4, ("model",), ()).once == (3 * 0.5 + 3) * own.link.bandwidth
    assert price("all-gather", 4, ("data",), ()).once == 3 * 0.5 * own.link.bandwidth


def test_collectives_of_gpus_take_the_fastest_protocol() -> None:
    def busy(kind: str, size: float, name: str = "h100", devices: int = 8) -> float:
        """The bandwidth that nccl-tests shows as busbw: bytes that a device sends, per second."""
        target = machine(name)
        sent = size * (devices - 1) / devices * (2 if kind == "all-reduce" else 1)
        facts = sending(kind, devices, sent, target.link)
        ((seconds,),) = solver_of(target, TRAITS).solve(facts)["seconds"]
        return sent / float(seconds)

    # Switches add up what many devices send: 480 GB/s, where rings reach 370. Others go around the ring.
    assert busy("all-reduce", 8e9) == pytest.approx(4.78e11, rel=0.01)
    assert busy("all-gather", 8e9) == pytest.approx(3.7e11, rel=0.01)
    assert busy("all-reduce", 8e9, devices=2) == pytest.approx(3.7e11, rel=0.01)
    assert busy("all-reduce", 8e9, "a100") == pytest.approx(2.35e11, rel=0.01)
    sizes = [busy("all-gather", 1 << n) for n in range(10, 32, 2)]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.01 * sizes[-1]


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("protocols = [[0.92,", "protocols = [[92,", "links.protocols is "),
        ("protocols = [[0.92, ", "protocols = [[", "links.protocols is "),
        ("protocols = [[0.92, 1.9e-06, 1.4e-05], [0.38, 6e-07, 6.6e-06]]", "protocols = 3", "protocols is 3"),
        ("[switches]", "[switch]", "a machine has no switch"),
        ("start = 2.3e-05", "", "there is no switches.start"),
    ],
    ids=["share", "two numbers", "no list", "switch", "no start"],
)
def test_protocols_and_switches_that_are_wrong(right: str, wrong: str, said: str, tmp_path: Path) -> None:
    text, file = (MACHINES / "h100.toml").read_text(encoding="utf-8"), tmp_path / "own.toml"
    assert right in text
    file.write_text(text.replace(right, wrong, 1), encoding="utf-8")
    with pytest.raises(ShardlogError, match=said):
        machine(str(file))


def test_peaks_by_type() -> None:
    # A table gives some types their own; "f8" stands for all of eight bits.
    h100 = machine("h100")
    assert h100.peak("bf16") == h100.flops == 2 * h100.peak("f32")
    assert h100.peak("f8E4M3FN") == h100.peak("f8E5M2") > h100.flops
    assert machine("v5e").peak("f32") == machine("v5e").flops


def test_between_nodes_devices_send_side_by_side() -> None:
    h100 = machine("h100")
    assert h100.network is not None
    network = h100.network.link.bandwidth
    assert h100.link_of((), [range(8)]) == h100.link
    assert h100.link_of((), [[0, 8]]).bandwidth == network
    assert h100.link_of((), [[0, 1, 8, 9]]).bandwidth == 2 * network
    # Eight together are faster than the links of one node.
    assert h100.link_of((), [range(32)]).bandwidth == min(8 * network, h100.link.bandwidth)


def test_what_compilers_fuse_costs_the_choice_less(tmp_path: Path) -> None:
    v5e, plain = machine("v5e"), prices(machine("cpu"), TRAITS)
    assert prices(v5e, TRAITS).touched == 4 * v5e.memory_bandwidth / v5e.link.bandwidth
    assert plain.touched == machine("cpu").memory_bandwidth / machine("cpu").link.bandwidth
    path = tmp_path / "own.toml"
    path.write_text("fuses = 2\n" + MACHINE.format(flops=1, bandwidth=1))
    own = machine(str(path))
    assert prices(own, TRAITS).touched == 2 * own.memory_bandwidth / own.link.bandwidth
    path.write_text("fuses = 0\n" + MACHINE.format(flops=1, bandwidth=1))
    with pytest.raises(ShardlogError, match="fuses is 0"):
        machine(str(path))


def test_names_are_machines_and_paths_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("v5e", "own"):
        Path(name).write_text(MACHINE.format(flops=1, bandwidth=1))
    assert machine("v5e") != machine("own") == machine("./v5e")


def test_what_is_wrong_with_a_machine(tmp_path: Path) -> None:
    with pytest.raises(ShardlogError, match="there is no topology v5x") as error:
        machine("v5x")
    assert "did you mean v5" in error.value.hint
    file = tmp_path / "m.toml"
    for text, said in (
        ("flops = [", "cannot read the topology"),
        ("flops = " + "{a = " * 5000, "cannot read the topology: it is nested too deeply"),
        (MACHINE.format(flops='"fast"', bandwidth=1), "flops is 'fast'"),
        (MACHINE.format(flops=0, bandwidth=1), "flops is 0"),
        ("flops = 1", r"there is no table \[links\]"),
        ('combines = "sums"\n' + MACHINE.format(flops=1, bandwidth=1), "combines is 'sums'"),
        ('combines = ["sum"]\n' + MACHINE.format(flops=1, bandwidth=1), "expected a list of some of all-g"),
        (MACHINE.replace("memory =", "memori =").format(flops=1, bandwidth=1), "has no memori"),
        (MACHINE.format(flops=1, bandwidth=1) + "[network]\nwithin = 1.5", "within is 1.5"),
        (MACHINE.format(flops=1, bandwidth=1) + "[peaks]\nfp8 = 1", "there is no type fp8"),
        (MACHINE.format(flops=1, bandwidth=1) + "[peaks]\nf23 = 1", "there is no type f23"),
        (MACHINE.format(flops=1, bandwidth=1) + "[peaks]\nf8E9 = 1", "there is no type f8E9"),
        (MACHINE.format(flops=1, bandwidth=1) + "[peaks]\nf32 = 0", "f32 is 0"),
        (MACHINE.format(flops=1, bandwidth=1) + "[torus]\nshape = 4", "shape is 4"),
        (MACHINE.replace("flops =", "#").format(flops=1, bandwidth=1), "there is no flops"),
        (MACHINE.format(flops="1e300", bandwidth=1), "flops is 1e[+]300"),
        (MACHINE.format(flops="1" + "0" * 400, bandwidth=1), "flops is 10"),
        (MACHINE.format(flops=1, bandwidth="1e-300"), "memory_bandwidth is 1e-300"),
        (MACHINE.replace('"test"', "[1]").format(flops=1, bandwidth=1), r"name is \[1\]"),
        (MACHINE.format(flops=1, bandwidth=1) + "[network]\nwithin = 2", "there is no network.bandwidth"),
        (
            MACHINE.format(flops=1, bandwidth=1) + "[links.z]\nspeed = 2",
            "a machine has no links.z.speed",
        ),
        (MACHINE.format(flops=1, bandwidth=1) + "[links.z]\nring = 2", "links.z.ring is 2"),
        (MACHINE.format(flops=1, bandwidth=1) + "[links.z]\nstart = -1", "links.z.start is -1"),
        (
            MACHINE.format(flops=1, bandwidth=1).replace("latency = ", "latency = -")
            + "[links.z]\nbandwidth = 1",
            "error: links.latency is -",
        ),
        (MACHINE.replace('"test"', '""').format(flops=1, bandwidth=1), "name is ''\n  hint: expected a line"),
        (MACHINE.format(flops=1, bandwidth=1) + "[allocation]\nplatform = 2", "allocation.platform is 2"),
        (
            MACHINE.format(flops=1, bandwidth=1) + "[allocation]\nalignment = 1\naddress = 0\nlanes = 1.5",
            "allocation.lanes is 1.5\n  hint: expected a number of elements",
        ),
        (
            MACHINE.format(flops=1, bandwidth=1) + '[allocation]\nplatform = "gpu"',
            "platform is 'gpu'\n  hint: expected 'cpu'",
        ),
        (
            MACHINE.format(flops=1, bandwidth=1) + "[torus]\nshape = [2, 4]\ncloses = 4\ndimensions = 1",
            "a torus 2x4 is of too many dimensions\n  hint: expected 1",
        ),
    ):
        file.write_text(text)
        with pytest.raises(ShardlogError, match=said):
            machine(str(file))
    file.write_text(MACHINE.format(flops=1, bandwidth=1))
    with pytest.raises(ShardlogError, match="the mesh has no axis model") as error:
        machine(str(file), ["data", "mode"])
    assert "did you mean" in error.value.hint


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ShardlogError, match=r"there is no file .*nothing\.toml"):
        machine(str(tmp_path / "nothing.toml"))
    with pytest.raises(ShardlogError, match="cannot read the topology: Is a directory"):
        machine(str(tmp_path))
    with pytest.raises(ShardlogError, match=r"there is no topology \n"):
        machine("")
    file = tmp_path / "m.toml"
    file.write_text(MACHINE.format(flops=1, bandwidth=1) + "[torus]\nshape = [2, 2]\ncloses = 4")
    with pytest.raises(ShardlogError, match="a torus of 4 devices is too small"):
        machine(str(file), devices=8)
    assert machine(f"{file}:2x4", devices=8).torus == Torus((2, 4), 4)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("v5e:", "there is no shape after the colon"),
        ("v5e:2by4", "there is no shape 2by4"),
        ("v5e:2x2", "a torus of 4 devices"),
        ("h100:8", "H100 SXM in nodes of 8 has no shape"),
        ("v5e:2x2x2", "a torus 2x2x2 is of too many dimensions\n  hint: expected 2 at most"),
        ("v6e:2x2x2", "of too many dimensions"),
        ("v5p:2x2x2x2", "of too many dimensions\n  hint: expected 3 at most"),
        ("v5e:32x8", "a torus 32x8 is too long\n  hint: expected 16 devices in a row"),
        ("v5e:3x3", "a torus 3x3 is of parts of hosts\n  hint: expected rows of 1 or a multiple of 2"),
        ("v5p:32x32x32", "of 32,768 devices, and the links join 8,960\n  hint: leave out the shape"),
    ],
)
def test_shapes_that_do_not_fit(name: str, said: str) -> None:
    with pytest.raises(ShardlogError, match=said):
        machine(name, devices=8)


@pytest.mark.parametrize(
    "name", ["v5e:2x4", "v5e:4x4x1", "v5e:16x16", "v5e:8", "v6e:16x16", "v5p:16x20x28", "v4:2x2x2"]
)
def test_shapes_that_fit(name: str) -> None:
    assert machine(name, devices=8).torus is not None
