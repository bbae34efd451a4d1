"""``python -m shardlog.tests.fuzz.front_end``: gives the front end of the engine any text for a program.

Whatever it is, it is a program or an error that says where; the layout keeps its tokens, its names are found,
and both evaluators have the same answer, also by magic sets, or run into a limit. Texts are those of a
grammar and of the tests, changed at random; or, where atheris is installed and ``--coverage`` is given,
those that reach code that none before has reached. The exit status is 1 where anything goes wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from shardlog.engine.evaluate.limits import Limits

from .cases import Case
from .command import carry_out, parser
from .grammar import program
from .mutate import mutate

_ROOT = Path(__file__).parents[2]
_LONGEST = 200_000  # bytes
_LIMITS = Limits(tuples=20_000, memory=1 << 28, seconds=2.0)
HANG = 20.0  # seconds of processor time


def programs() -> list[bytes]:
    """The programs of the tests, and the rules that come with shardlog."""
    files = [*(_ROOT / "tests/engine/programs").rglob("*.dl"), *(_ROOT / "rules").rglob("*.dl")]
    return [file.read_bytes() for file in sorted(files)]


def case(seeds: Sequence[bytes], seed: int, number: int) -> Case:
    """Case ``number`` of a seed."""
    random = Random(f"front end/{seed}/{number}")
    data = program(random).encode() if random.randrange(2) else random.choice(seeds)
    if random.randrange(4):
        data = mutate(random, data, [*seeds[:8], program(random).encode()])
    return Case(["program.dl"], {"program.dl": data[:_LONGEST]})


def run(arguments: list[str]) -> int:
    """Checks the text in a file: 0 if it is a program, 2 (and a message) if it is none."""
    message = check(Path(arguments[0]).read_bytes().decode(errors="replace"))
    if message:
        print(message, file=sys.stderr)
    return 2 if message else 0


def check(text: str) -> str:
    """Why a text is no program; "" if it is one. Raises whatever goes wrong."""
    from shardlog.authoring.editing.names import names_of
    from shardlog.authoring.formatting.layout import formatted
    from shardlog.engine import DatalogError, EngineError, LoadedProgram, load
    from shardlog.engine.evaluate.program import Backend

    names_of(text)
    with suppress(DatalogError):  # of what a preprocessor may drop, too
        formatted(text)  # which says if it changes more than white space
    try:
        loaded = load(texts={"program.dl": text})
    except DatalogError as error:
        lines = text.count("\n") + 1
        assert error.diagnostics and str(error)
        assert all(1 <= d.line <= lines and d.column >= 1 for d in error.diagnostics), error.diagnostics
        return str(error)
    asked = load(texts={"program.dl": text}, updates=True, magic=True)
    answers = []
    ways: tuple[tuple[LoadedProgram, Backend], ...] = (
        (loaded, "core"),
        (loaded, "reference"),
        (asked, "core"),
    )
    for made, backend in ways:
        try:
            answers.append(made.evaluate({}, backend=backend, limits=_LIMITS))
        except EngineError as error:
            assert str(error)
            return ""
    assert repr(answers[0]) == repr(answers[1]), "core and reference differ"
    assert repr(answers[0]) == repr(answers[2]), "magic sets make a difference"
    return ""


def with_coverage(minutes: float, keep: Path) -> None:
    """Runs texts for so long that atheris finds by the code that they reach. Does not return: the exit status
    is not 0 where something goes wrong, and the text is in ``keep``."""
    import atheris

    with atheris.instrument_imports(include=["shardlog.engine", "shardlog.authoring"]):
        import shardlog.authoring.editing.names
        import shardlog.authoring.formatting.layout
        import shardlog.engine
        import shardlog.engine.plan.compiler  # noqa: F401

    corpus = keep / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate([*programs(), *(program(Random(i)).encode() for i in range(500))]):
        if len(data) < 20_000:
            (corpus / f"seed-{number}").write_bytes(data)
    arguments = ["-max_len=20000", f"-timeout={HANG:.0f}", "-rss_limit_mb=6000", f"-artifact_prefix={keep}/"]
    arguments += [f"-max_total_time={60 * minutes:.0f}", str(corpus)]

    def one(data: bytes) -> None:
        check(data.decode(errors="replace"))

    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


def main() -> int:
    options = parser("shardlog.tests.fuzz.front_end", __doc__ or "", minutes=1.0)
    options.add_argument("--coverage", action="store_true", help="by coverage: needs atheris")
    options.add_argument("--text", type=Path, metavar="FILE", help="this text alone, as one that was kept")
    given = options.parse_args()
    if given.text:
        print(check(given.text.read_bytes().decode(errors="replace")) or "a program")
        return 0
    if given.coverage:
        with_coverage(given.minutes, given.keep)
    return carry_out(given, command=run, hang=HANG, cases=partial(case, programs(), given.seed))


if __name__ == "__main__":
    raise SystemExit(main())
