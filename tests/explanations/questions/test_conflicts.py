"""Conflicts: the tensors that must move at an op, by which collective, and how many bytes that is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shardlog
from shardlog.cli import main
from shardlog.explanations.answers.alike import groups
from shardlog.explanations.answers.conflicts import Conflict, _conflict, conflicts_text
from shardlog.runs.choice import ProgramChoice
from shardlog.session import Session


def conflicts(run: Session) -> list[Conflict]:
    """What moves if all values are sharded as decided."""
    return list(run.conflicts(keep_shardings=True))


def found(x: str, w: str, y: str = "[{?}, {?}]") -> list[Conflict]:
    return conflicts(
        shardlog.run(f"""
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {x}>}},
                %w: tensor<4x16xbf16> {{sdy.sharding = #sdy.sharding<@mesh, {w}>}}) -> tensor<8x16xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {y}>]>}}
     : (tensor<8x4xf32>, tensor<4x16xbf16>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}}
""")
    )


def test_agreement() -> None:
    assert found('[{"a"}, {}]', '[{}, {"b"}]') == []


def test_partial_sums_are_combined() -> None:
    """Of 8 x 16 floats in two parts, a device sends three quarters twice."""
    (conflict,) = conflicts(
        shardlog.run("""
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                %w: tensor<1024x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x1024xf32>, tensor<1024x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
""")
    )
    assert (conflict.tensor, conflict.slot, conflict.collective) == ("%0", "result", "all-reduce")
    assert (conflict.has, conflict.partial, conflict.needs) == (("a", ""), "b", ("a", ""))
    assert conflict.bytes == 4 * 16 * 4 * 2 * 3 // 4
    assert [given.value for given in conflict.given] == ["%arg0"]


def test_loops_count() -> None:
    (conflict,) = conflicts(
        shardlog.run("""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8x4xf32>
  cond {
    %end = stablehlo.constant dense<5> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.reverse %y, dims = [0] : tensor<8x4xf32>
    %3 = stablehlo.add %2, %y : tensor<8x4xf32>
    stablehlo.return %1, %3 : tensor<i32>, tensor<8x4xf32>
  }
  return %0#1 : tensor<8x4xf32>
}
""")
    )
    assert conflict.bytes == 5 * 4 * 4 * 4


@pytest.mark.parametrize(
    ("x", "w", "y", "tensor", "collective", "received"),
    [
        # Each device has 4 * 16 / 4 elements of two bytes, a quarter of which is its own afterwards.
        ('[{"a"}, {}]', '[{"b"}, {}]', '[{"a"}, {"b"}]', "%arg1", "all-to-all", 32 - 8),
        ('[{"b"}, {}]', "[{}, {}]", '[{}, {"a"}]', "%arg0", "all-gather", 96),
        ('[{}, {"a"}]', '[{"b"}, {}]', "[{}, {}]", "%arg0", "all-gather", 64),
    ],
)
def test_cost(x: str, w: str, y: str, tensor: str, collective: str, received: int) -> None:
    moves = {c.tensor: (c.collective, c.bytes) for c in found(x, w, y) if c.bytes}
    assert moves[tensor] == (collective, received)


def test_what_is_there_is_cut_without_moving() -> None:
    assert found("[{}, {}]", "[{}, {}]", '[{"a"}, {}]') == []


def test_where_influences_meet() -> None:
    (conflict,) = found('[{"a"}, {}]', '[{}, {"a"}]')
    assert (conflict.tensor, conflict.has, conflict.needs) == ("%arg0", ("a", ""), ("", ""))
    assert [given.value for given in conflict.given] == ["%arg0", "%arg1"]


def test_specs_are_behind_what_is_inside() -> None:
    (conflict,) = conflicts(
        shardlog.run("""
sdy.mesh @mesh = <["b"=6, "c"=2]>
func.func @main(%x: tensor<6xf32>) -> tensor<12xf32> {
  %0:2 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"b"}], replicated={"c"}>]
      out_shardings=[<@mesh, [{"c", "b"}]>, <@mesh, [{"c"}]>] manual_axes={"c"} (%y: tensor<6xf32>) {
    %1 = stablehlo.abs %y : tensor<6xf32>
    sdy.return %1, %1 : tensor<6xf32>, tensor<6xf32>
  } : (tensor<6xf32>) -> (tensor<12xf32>, tensor<12xf32>)
  return %0#1 : tensor<12xf32>
}
""")
    )
    assert (conflict.has, conflict.needs) == (("b",), ("",))
    assert str(conflict.origin).startswith("in_specs[0]")


LAYER = """\
  %a{i} = stablehlo.dot_general {x}, %v, contracting_dims = [1] x [0] : (T, T) -> T
  %b{i} = stablehlo.dot_general %a{i}, %{w}, contracting_dims = [1] x [0] : (T, T) -> T
"""
LAYERS = 12


def layers() -> Session:
    """Layers of two products each; every third one has another weight, which is sharded elsewhere."""
    text = "".join(
        LAYER.format(i=i, x=f"%b{i - 1}" if i else "%x", w="z" if i % 3 else "w") for i in range(LAYERS)
    )
    return shardlog.run(
        f"""
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: T {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}},
                %w: T {{sdy.sharding = #sdy.sharding<@mesh, [{{"model"}}, {{}}]>}},
                %z: T {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"model"}}]>}}, %v: T) -> T {{
{text}  return %b{LAYERS - 1} : T
}}
""".replace("(T", "(tensor<8x8xf32>").replace(" T", " tensor<8x8xf32>")
    )


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_annotations_are_read_only_for_what_is_shown(most: int) -> None:
    run, choice = layers(), ProgramChoice(keep_shardings=True)
    found = run.programs.conflicts(choice)
    texts = ["\n".join(_conflict(each, 1)) for each in found]
    every = groups(list(range(len(found))), texts.__getitem__)
    every.sort(key=lambda same: -found[same[0]].bytes * len(same))
    assert len(every) > 1
    text = conflicts_text(found, choice, most=most)
    heads = [line for line in text.splitlines() if line.startswith("  ") and line[2].isdigit()]
    assert len(heads) == min(most, len(every))
    for head, (first, *alike) in zip(heads, every, strict=False):
        assert head == _conflict(found[first], 1 + len(alike))[0]

    lazily = layers().programs.conflicts(choice)  # whose annotations nothing has asked for
    assert conflicts_text(lazily, choice, most=most) == text
    assert lazily == found
    assert [each.given for each in lazily] == [each.given for each in found]


def test_alone_the_first_entry_needs_its_own_annotations() -> None:
    found = layers().programs.conflicts(ProgramChoice(keep_shardings=True))
    conflicts_text(found, found.program, most=1)
    asked = ["met" in vars(each) for each in found]
    assert 0 < sum(asked) < len(asked)


def test_the_limit_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = layers()
    run.save("m.run")
    command = ["conflicts", "m.run", "--keep-shardings"]
    assert main([*command, "--limit", "2", "--full"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("  ") and line[2].isdigit() for line in lines) == 2
    assert lines[-1].startswith("  ... ")
    assert main([*command, "--limit", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    every = conflicts(run)
    assert document["bytes"] == sum(each.bytes for each in every)
    assert document["conflicts"] == [each.as_json() for each in every[:2]]
    assert main([*command, "--limit", "none"]) == 2
    assert "'none' is not a limit: expected a whole number" in capsys.readouterr().err
    assert main([*command, "--limits", "20"]) == 2
    assert "cannot read the limit '20'" in capsys.readouterr().err
