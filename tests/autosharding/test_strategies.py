"""Known strategies, as the rules have them."""

from __future__ import annotations

import pytest
from shardlog.autosharding.ends import End, Ends
from shardlog.autosharding.plan import Spec
from shardlog.autosharding.strategies import strategies

_PATHS = {"up": (64, 256), "down": (256, 64), "gain": (64,)}
_TREES = "params", "moments"
_STATE = tuple(End(f"{tree}['{name}']", str(s), s) for tree in _TREES for name, s in _PATHS.items())
_ENDS = Ends((*_STATE, End("batch", "batch", (32, 16))), _STATE, {n: n for n in range(6)})


@pytest.mark.parametrize(
    ("name", "up", "moment", "batch"),
    [
        ("data parallel", (None, None), (None, None), (("data", "model"), None)),
        ("ZeRO-1", (None, None), (None, ("data", "model")), (("data", "model"), None)),
        ("ZeRO-3", (None, ("data", "model")), (None, ("data", "model")), (("data", "model"), None)),
        ("Megatron over model", (None, "model"), (None, "model"), ("data", None)),
        ("Megatron over data", (None, "data"), (None, "data"), ("model", None)),
        ("Megatron and ZeRO-3 over model", ("data", "model"), ("data", "model"), ("data", None)),
        ("sequence over model", ("data", None), ("data", None), ("data", "model")),
    ],
)
def test_a_strategy_divides_parameters_moments_and_examples(
    name: str, up: Spec, moment: Spec, batch: Spec
) -> None:
    specs = strategies(_ENDS, (("data", 4), ("model", 2)))[name]
    assert (specs[0], specs[3], specs[6]) == (up, moment, batch)


def test_experts_are_on_the_last_axis_and_examples_on_all() -> None:
    shapes = {"embed": (512, 64), "router": (64, 8), "up": (8, 64, 256), "down": (8, 256, 64)}
    state = tuple(End(f"params['{name}']", str(s), s) for name, s in shapes.items())
    ends = Ends((*state, End("batch", "batch", (32, 64))), state, {n: n for n in range(4)})
    for axes, last in ((("data", 4), ("model", 2)), "model"), ((("data", 8),), "data"):
        names = tuple(name for name, _ in axes)
        _, router, up, down, batch = strategies(ends, axes)[f"expert parallel over {last}"].values()
        assert (router, up, down) == ((None, None), (last, None, None), (last, None, None))
        assert batch == (names if len(names) > 1 else names[0], None)


def test_a_mesh_of_one_axis_has_no_axis_for_layers() -> None:
    assert set(strategies(_ENDS, (("data", 8),))) == {"data parallel", "ZeRO-1", "ZeRO-3"}


@pytest.mark.parametrize(
    ("parameters", "moments"),
    [
        ("params", ("opt_state[0].mu", "opt_state[0].nu")),
        ("state.params", ("state.opt_state[0].mu", "state.opt_state[0].nu")),
        ("state[0]", ("state[1][0].trace",)),
    ],
)
def test_moments_are_known_wherever_an_optimizer_keeps_them(
    parameters: str, moments: tuple[str, ...]
) -> None:
    weights = [
        End(f"{root}['layers'][{n}]['up']", "up", (64, 256))
        for root in (parameters, *moments)
        for n in range(2)
    ]
    state = (*weights[:2], End("opt_state[0].count", "count", ()), *weights[2:])
    ends = Ends((*state, End("batch", "batch", (32, 16))), state, {n: n for n in range(len(state))})
    specs = strategies(ends, (("data", 8),))["ZeRO-1"]
    whole, split = (None, None), (None, "data")
    assert [*specs.values()] == [whole, whole, (), *[split] * 2 * len(moments), ("data", None)]


def test_equal_parts_of_a_model_are_no_moments() -> None:
    names = [f"params['{part}']['layers'][{n}]['up']" for part in ("encoder", "decoder") for n in range(2)]
    state = tuple(End(name, "up", (64, 256)) for name in names)
    ends = Ends((*state, End("batch", "batch", (32, 16))), state, {n: n for n in range(4)})
    assert {*list(strategies(ends, (("data", 8),))["ZeRO-1"].values())[:4]} == {(None, None)}
