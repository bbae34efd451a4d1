"""Golden shardings: files of expectations, what differs, and why."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest
import shardlog
from jsonschema import validate
from shardlog.checks.expect import check, update
from shardlog.checks.expectations import read_expectations
from shardlog.cli import main
from shardlog.cli.schemas import schema
from shardlog.errors import ShardlogError
from shardlog.program.mlir.places import wildcard

from ..support.drawing import by_day

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("batch['x']"),
                %u: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}
                    loc("params['layers'][0]['w']"),
                %v: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}
                    loc("params['layers'][1]['w']"))
    -> (tensor<8x32xf32> {jax.result_info = "result['y']"}) {
  %0 = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("model.py":7:9)
  %1 = stablehlo.tanh %0 : tensor<8x32xf32> loc("model.py":8:9)
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
     : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32> loc("model.py":9:10)
  return %2 : tensor<8x32xf32>
}
"""
HOLDS = """\
# The weights.
"params['layers'][*]['w']" = '[{}, {"model"}]'

"%0" = '[{"data"}, {"model"}]'
"result['y']" = '[{"data"}, {"model"}]'  # by the rows
"model.py:8" = ['[{"data"}, {"model"}]']
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shardings.toml"


def differences(file: Path, text: str) -> list[str]:
    file.write_text(text)
    return [str(difference) for difference in check(shardlog.run(MODULE), file)]


def test_nothing_differs(file: Path) -> None:
    assert differences(file, HOLDS) == []


def test_an_axis_too_many(file: Path) -> None:
    (difference,) = differences(file, "\"result['y']\" = '[{\"data\"}, {}]'")
    assert difference.splitlines()[:3] == [
        f"{file}:1: result['y'] : tensor<8x32xf32>",
        '  expected [{"data"}, {}], is [{"data"}, {"model"}]',
        '  dim 1 is sharded on "model"',
    ]
    said = " ".join(line.strip() for line in difference.splitlines()[3:])
    assert said == (
        "\"model\" comes from the annotation of %arg2 at params['layers'][1]['w'], "
        "by func.return from %2 dim 1, after 1 more turn"
    )


def test_a_missing_axis(file: Path) -> None:
    (difference,) = differences(file, """'%2' = '[{"data", "model"}, {}]'""")
    assert '  dim 0 is not sharded on "model"\n' in difference
    assert "dim 1 of the tensor has it" in difference
    assert '  dim 1 is sharded on "model"\n' in difference


def test_patterns_name_what_differs(file: Path) -> None:
    differing = differences(file, "\"params['layers'][*]['w']\" = '[{\"data\"}, {\"model\"}]'")
    assert [text.splitlines()[0] for text in differing] == [
        f"{file}:1: params['layers'][0]['w'] : tensor<16x32xf32>",
        f"{file}:1: params['layers'][1]['w'] : tensor<32x32xf32>",
    ]


def test_a_plain_name_comes_before_patterns(file: Path) -> None:
    pattern = "\"params['layers'][*]['w']\" = '[{}, {}]'\n"
    plain = "".join(f"\"params['layers'][{i}]['w']\" = '[{{}}, {{\"model\"}}]'\n" for i in (0, 1))
    assert differences(file, pattern + plain) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'%9' = '[{}]'", "there is no value %9; the nearest are: %2, %1, %0"),
        ("\"params['layer'][*]['w']\" = '[{}]'", "params['layers'][1]['w']"),
        (
            "'model.py:7' = ['[{}, {}]', '[{}, {}]']",
            "2 shardings for model.py:7, of which there are 1",
        ),
        ("'%0' = '[{}]'", "it has rank 2, not 1"),
    ],
)
def test_expectations_about_other_values(file: Path, text: str, message: str) -> None:
    (difference,) = differences(file, text)
    assert message in difference


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'%0' = ", "1: error: not TOML: Invalid value"),
        ("\n'%0' = 3", "2: error: %0 is not a sharding"),
        ("'%0' = []", "1: error: %0 is not a sharding"),
        ("params.w = '[{}]'", "1: error: params is not a sharding"),
        ("[params]\nw = '[{}]'", "1: error: params is not a sharding"),
        ("'%0' = \n'%1' = 1", "1:8: error: not TOML: Invalid value"),
        ("'%0' = '[{]'", "1: error: not a sharding"),
        (
            "'%0' = '[{\"modl\"}, {}]'",
            '1: error: unknown axis "modl" in mesh @mesh\n  hint: did you mean model?',
        ),
    ],
)
def test_bad_files(file: Path, text: str, message: str) -> None:
    with pytest.raises(ShardlogError) as error:
        differences(file, text)
    assert f"{file}:{message}" in str(error.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.toml", "No such file or directory\n  hint: shardlog expect --update writes one"),
        ("/dev/zero", "it is larger than 32 MiB\n  hint: expected a TOML file"),
        ("bytes.toml", "it is not UTF-8\n  hint: expected a TOML file"),
    ],
)
def test_files_that_cannot_be_read(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ShardlogError) as caught:
        check(shardlog.run(MODULE), Path(path))
    assert str(caught.value) == f"{path}: error: cannot read: {message}"


def test_lists_that_nest_deeply(file: Path) -> None:
    with pytest.raises(ShardlogError, match="lists nest too deeply"):
        differences(file, '"%0" = ' + "[" * 20_000 + "]" * 20_000)


def test_entries_of_several_lines(file: Path) -> None:
    text = """\
'%0' = [  # ] is no end
  '[{"data"}, {"model"}]',

]
"result['y']" = '''
[{"data"}, {"model"}]'''
"%1" = \"""
[{\\"x\u2028\\"}, {\\"y\\"}]\"""
"""
    file.write_text(text)
    entries = read_expectations(file).entries
    assert [(e.key, e.shardings, e.first, e.end) for e in entries] == [
        ("%0", ('[{"data"}, {"model"}]',), 0, 4),
        ("result['y']", ('[{"data"}, {"model"}]',), 4, 6),
        ("%1", ('[{"x\u2028"}, {"y"}]',), 6, 8),
    ]


@pytest.mark.parametrize("many", by_day([5_000], [5_000, 20_000]))
def test_a_list_of_many_lines_takes_time_that_grows_with_their_number(file: Path, many: int) -> None:
    file.write_text('"%0" = [\n' + "'[{}]',\n" * many + "]\n")
    assert [len(e.shardings) for e in read_expectations(file).entries] == [many]


def test_a_new_file_has_arguments_and_results(file: Path) -> None:
    result = shardlog.run(MODULE)
    assert update(result, file)
    assert file.read_text().splitlines()[1:] == [
        "\"batch['x']\" = '[{\"data\"}, {}]'",
        "\"params['layers'][*]['w']\" = '[{}, {\"model\"}]'",
        '"result[\'y\']" = \'[{"data"}, {"model"}]\'',
    ]
    assert check(result, file) == []
    assert not update(result, file)


def test_an_update_changes_what_does_not_hold(file: Path) -> None:
    file.write_text(
        HOLDS.replace('"%0" = \'[{"data"}', '"%0" = \'[{}') + """'%9' = '[{}, {}]'\n"*'*']" = '[{}, {}]'\n"""
    )
    result = shardlog.run(MODULE)
    assert update(result, file)
    assert file.read_text() == HOLDS
    assert check(result, file) == []


def test_a_pattern_with_exceptions(file: Path) -> None:
    file.write_text("'%*' = '[{}, {}]'\n")
    result = shardlog.run(MODULE)
    assert update(result, file)
    assert file.read_text().splitlines() == [
        """"%*" = '[{"data"}, {"model"}]'""",
        """"%arg0" = '[{"data"}, {}]'""",
        """"%arg1" = '[{}, {"model"}]'""",
        """"%arg2" = '[{}, {"model"}]'""",
    ]
    assert check(result, file) == []


def test_a_saved_run(file: Path, tmp_path: Path) -> None:
    shardlog.run(MODULE).save(tmp_path / "run.shardlog")
    file.write_text(HOLDS)
    assert main(["expect", str(tmp_path / "run.shardlog"), str(file)]) == 0
    file.write_text(HOLDS.replace("model", "data"))
    saved, live = (
        check(run, file) for run in (shardlog.open(tmp_path / "run.shardlog"), shardlog.run(MODULE))
    )
    assert [difference.as_json() for difference in saved] == [difference.as_json() for difference in live]
    assert saved


def test_several_meshes(file: Path) -> None:
    text = MODULE + 'sdy.mesh @other = <["x"=8]>'
    file.write_text("""'%0' = '<@mesh, [{"data"}, {"model"}]>'\n'%1' = '<@other, [{"x"}, {}]>'\n""")
    (difference,) = check(shardlog.run(text), file)
    assert (difference.value, difference.found) == ("%1", '<@mesh, [{"data"}, {"model"}]>')
    assert difference.causes[0].sentence == "it is on another mesh"
    file.write_text("'%0' = '[{}, {}]'")
    with pytest.raises(ShardlogError, match="the module has 2 meshes"):
        check(shardlog.run(text), file)


@pytest.mark.parametrize("text", ["", "# a comment\n"])
def test_a_file_that_expects_nothing(text: str, file: Path) -> None:
    """It may be cut, and would pass whatever the shardings are."""
    file.write_text(text)
    for act in (check, update):
        with pytest.raises(ShardlogError, match="the file expects no shardings\n  hint: remove the file"):
            act(shardlog.run(MODULE), file)


def test_no_mesh(file: Path) -> None:
    file.write_text("'%arg0' = '[{}]'")
    with pytest.raises(ShardlogError, match="the module has no mesh"):
        check(
            shardlog.run("func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"),
            file,
        )


def test_on_the_command_line(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "mlp.mlir"
    module.write_text(MODULE)
    assert main(["expect", str(module), str(file)]) == 2
    assert "hint: shardlog expect --update writes one" in capsys.readouterr().err
    assert main(["expect", str(module), str(file), "--update"]) == 0
    assert main(["expect", str(module), str(file)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["expect", str(module), str(file), "--annotate", '%arg2=[{}, {"data"}]', "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [difference["value"] for difference in document["differences"]] == [
        "params['layers'][1]['w']",
        "result['y']",
    ]
    (missing, extra) = document["differences"][0]["causes"]
    assert (missing["axis"], missing["missing"], extra["axis"]) == ("data", False, "model")
    validate(document, schema("expect"))


# ---- Patterns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_stars_match_what_they_say(seed: int) -> None:
    """Against plain search, on words of few letters, in which stars have many ways to match."""
    random = Random(seed)
    for _ in range(300):
        pattern = "".join(random.choices("ab[]*", k=random.randrange(1, 8)))
        name = "".join(random.choices("ab[]", k=random.randrange(8)))
        plain = re.compile(r"[^\[\]]*".join(map(re.escape, pattern.split("*"))))
        assert bool(wildcard(pattern).fullmatch(name)) == bool(plain.fullmatch(name)), (pattern, name)


def test_any_number_of_stars_takes_time_in_proportion() -> None:
    assert not wildcard("a*" * 120 + "b").fullmatch("a" * 10_000)
    assert wildcard("*" * 120 + "b").fullmatch("a" * 10_000 + "b")


def test_names_that_begin_otherwise_are_not_compared(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of many patterns takes no more time than there are names that can match them."""
    file.write_text(HOLDS)
    seen: list[str] = []

    class Watched:
        def fullmatch(self, name: str) -> bool:
            seen.append(name)
            return True

    monkeypatch.setattr("shardlog.checks.expectations.wildcard", lambda _: Watched())
    assert check(shardlog.run(MODULE), file) == []
    assert seen == ["params['layers'][0]['w']", "params['layers'][1]['w']"]
