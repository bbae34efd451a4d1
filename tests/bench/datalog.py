"""The engine beside other Datalog engines: `python -m shardlog.tests.bench.datalog`.

Five programs over inputs that are made here, the same in every run. Each engine runs each program once, in a
process and with one thread of its own; what is printed is CPU time from the facts in memory (for Soufflé's
interpreter: in files) to the number of tuples, and the most memory that the process took. Engines that are
not installed are left out; `--python` names an interpreter that has them, `--souffle` the program.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

Pairs = list[tuple[int, int]]
LIMIT = 120  # seconds of CPU time for one run

CLOSURE = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
GENERATION = """
same(x, y) :- parent(x, p), parent(y, p).
same(x, y) :- parent(x, p), same(p, q), parent(y, q).
"""
ANDERSEN = """
points(y, x) :- address(y, x).
points(y, x) :- assign(y, z), points(z, x).
points(y, w) :- load(y, x), points(x, z), points(z, w).
points(z, w) :- store(y, x), points(y, z), points(x, w).
"""
DEEP = """
reached(x) :- start(x).
reached(y) :- reached(x), edge(x, y).
"""


@dataclass(frozen=True)
class Program:
    """A program, its input, and how the relation that it computes is written in SQL."""

    rules: str
    answer: str  # the relation that is counted
    facts: Callable[[], dict[str, list[tuple[int, ...]]]]
    sql: str = ""  # a recursive query; none where a step reads the recursive relation twice
    declarations: str = (
        ""  # where not all columns are numbers, or rules are not as plain as ``arities`` reads
    )

    def arities(self) -> dict[str, int]:
        """The number of columns of every relation, from its first use."""
        arities: dict[str, int] = {}
        for atom in self.rules.replace(":-", ".").replace(").", "). ").split(")"):
            name, _, arguments = atom.strip(" .,\n").partition("(")
            if arguments:
                arities.setdefault(name, arguments.count(",") + 1)
        return arities


def _random_graph() -> dict[str, list[tuple[int, ...]]]:
    draw = random.Random(1)
    return {"edge": sorted({(draw.randrange(1000), draw.randrange(1000)) for _ in range(2000)})}


def _chain(length: int) -> list[tuple[int, ...]]:
    return [(i, i + 1) for i in range(length - 1)]


def _tree() -> dict[str, list[tuple[int, ...]]]:
    return {"parent": [(i, (i - 1) // 2) for i in range(1, 2**11 - 1)]}


def _pointers() -> dict[str, list[tuple[int, ...]]]:
    draw = random.Random(2)
    variables, objects = 8000, 500

    def pairs(count: int, left: int, right: int) -> list[tuple[int, ...]]:
        return sorted({(draw.randrange(left), draw.randrange(right)) for _ in range(count)})

    return {
        "address": pairs(4000, variables, objects),
        "assign": pairs(10_000, variables, variables),
        "load": pairs(250, variables, variables),
        "store": pairs(120, variables, variables),
    }


_CLOSURE_SQL = """
with recursive path(x, z) as (
  select * from edge union select path.x, edge.c1 from path join edge on path.z = edge.c0
) select count(*) from path"""

PROGRAMS = {
    "closure": Program(CLOSURE, "path", _random_graph, _CLOSURE_SQL),
    "chain": Program(CLOSURE, "path", lambda: {"edge": _chain(2000)}, _CLOSURE_SQL),
    "generation": Program(
        GENERATION,
        "same",
        _tree,
        """
with recursive same(x, y) as (
  select a.c0, b.c0 from parent a join parent b on a.c1 = b.c1
  union
  select a.c0, b.c0 from same join parent a on a.c1 = same.x join parent b on b.c1 = same.y
) select count(*) from same""",
    ),
    "andersen": Program(ANDERSEN, "points", _pointers),
    "deep": Program(
        DEEP,
        "reached",
        lambda: {"start": [(0,)], "edge": _chain(80_000)},
        """
with recursive reached(x) as (
  select * from start union select edge.c1 from reached join edge on reached.x = edge.c0
) select count(*) from reached""",
    ),
}

# Programs of which only proofs are timed.
EDGES = ".decl start(x: number)\n.decl edge(x: number, y: number)\n"
PROVED = {
    "functors": Program(
        "state(x, 7) :- start(x).\nstate(y, n) :- state(x, m), edge(x, y), n = (m * 31 + y) % 1000003.",
        "state",
        lambda: {"start": [(0,)], "edge": _chain(40_000)},
        declarations=EDGES + ".decl state(x: number, n: number)\n",
    ),
    "records": Program(
        "pair([x, x]) :- start(x).\npair([y, x]) :- pair([x, _]), edge(x, y).\n"
        "last(x, y) :- edge(y, x), !edge(x, _), p = [x, y], pair(p).",
        "last",
        lambda: {"start": [(0,)], "edge": _chain(40_000)},
        declarations=EDGES
        + ".type Pair = [x: number, y: number]\n.decl pair(p: Pair)\n.decl last(x: number, y: number)\n",
    ),
    "texts": Program(
        'text("t0") :- start(_).\n'
        'text(cat("t", to_string(y))) :- text(t), x = to_number(substr(t, 1, 9)), edge(x, y).\n'
        'last(x) :- edge(_, x), !edge(x, _), t = cat("t", to_string(x)), text(t).',
        "last",
        lambda: {"start": [(0,)], "edge": _chain(40_000)},
        declarations=EDGES + ".decl text(t: symbol)\n.decl last(x: number)\n",
    ),
}


# ---- Engines: each returns the seconds that it took and the number of tuples -------------------------------


def _timed(run: Callable[[], int]) -> tuple[float, int]:
    start = process_time()
    count = run()
    return process_time() - start, count


def _prepared(program: Program) -> Callable[[int], int]:
    """What runs a program on so many threads and returns the number of tuples."""
    import numpy as np
    from shardlog.engine import Limits, load

    count = f".decl size(n: number)\n.output size\nsize(n) :- n = count : {{ {_anything(program)} }}.\n"
    loaded = load(texts={"program.dl": _declarations(program) + program.rules + count})
    facts = {name: np.array(rows, np.int64) for name, rows in program.facts().items()}
    evaluate = functools.partial(loaded.evaluate, facts, backend="core")
    return lambda threads: int(evaluate(limits=Limits(threads=threads))["size"][0][0])


def _declarations(program: Program) -> str:
    return program.declarations or "".join(
        f".decl {name}({', '.join(f'c{i}: number' for i in range(arity))})\n"
        for name, arity in program.arities().items()
    )


def _shardlog(program: Program) -> tuple[float, int]:
    run = _prepared(program)
    return _timed(lambda: run(1))


def _anything(program: Program) -> str:
    arity = program.arities()[program.answer]
    return f"{program.answer}({', '.join('_' * arity)})"


def _duckdb(program: Program) -> tuple[float, int]:
    import duckdb  # type: ignore[import-not-found, unused-ignore]

    database = duckdb.connect()
    database.execute("set threads = 1")
    for name, rows in program.facts().items():
        columns = ", ".join(f"c{i} integer" for i in range(len(rows[0])))
        database.execute(f"create table {name}({columns})")
        values = ", ".join(str(row) if len(row) > 1 else f"({row[0]})" for row in rows)
        database.execute(f"insert into {name} values {values}")
    query = program.sql
    if query:
        return _timed(lambda: _number(database, query))
    return _timed(lambda: _points_in_sql(database))


def _number(database: Any, query: str) -> int:
    return int(database.execute(query).fetchone()[0])


def _points_in_sql(database: Any) -> int:
    """Andersen's analysis round by round, for no recursive query may read its result twice."""
    execute = database.execute
    execute("create table old(c0 integer, c1 integer)")
    execute("create table delta as select distinct * from address")
    while _number(database, "select count(*) from delta"):
        execute("create or replace table every as select * from old union all select * from delta")
        execute("""
create or replace table next as
  select a.c0, p.c1 from assign a join delta p on a.c1 = p.c0
  union select l.c0, q.c1 from load l join delta p on l.c1 = p.c0 join every q on p.c1 = q.c0
  union select l.c0, q.c1 from load l join old p on l.c1 = p.c0 join delta q on p.c1 = q.c0
  union select p.c1, q.c1 from store s join delta p on s.c0 = p.c0 join every q on s.c1 = q.c0
  union select p.c1, q.c1 from store s join old p on s.c0 = p.c0 join delta q on s.c1 = q.c0
  except select * from every""")
        execute("insert into old select * from delta")
        execute("create or replace table delta as select * from next")
    return _number(database, "select count(*) from old")


def _egglog(program: Program) -> tuple[float, int]:
    from egglog.bindings import EGraph  # type: ignore[import-not-found, unused-ignore]

    lines = [f"(relation {n} ({' '.join(['i64'] * arity)}))" for n, arity in program.arities().items()]
    for rule in filter(str.strip, program.rules.split(".\n")):
        head, body = (part.replace(",", " ").strip() for part in rule.split(":-"))
        atoms = [f"({atom.strip().replace('(', ' ')})" for atom in body.split(")") if atom.strip()]
        head_atom = f"({head.rstrip(')').replace('(', ' ')})"
        lines.append(f"(rule ({' '.join(atoms)}) ({head_atom}))")
    for name, rows in program.facts().items():
        lines += [f"({name} {' '.join(map(str, row))})" for row in rows]
    graph = EGraph()
    graph.run_program(*graph.parse_program("\n".join(lines)))
    run = graph.parse_program("(run-schedule (saturate (run)))")
    size = graph.parse_program(f"(print-size {program.answer})")

    def saturate() -> int:
        graph.run_program(*run)
        (output,) = graph.run_program(*size)
        return int("".join(filter(str.isdigit, str(output))))

    return _timed(saturate)


def _clingo(program: Program) -> tuple[float, int]:
    import clingo  # type: ignore[import-not-found, unused-ignore]

    rules = "".join(
        c.upper() if c in "pqwxyz" and _is_variable(program.rules, i) else c
        for i, c in enumerate(program.rules)
    )
    facts = "".join(
        f"{name}({','.join(map(str, row))}).\n" for name, rows in program.facts().items() for row in rows
    )
    control = clingo.Control()
    control.add("base", [], rules + facts)

    def ground() -> int:
        control.ground([("base", [])])
        atoms = control.symbolic_atoms
        arity = program.arities()[program.answer]
        return sum(1 for _ in atoms.by_signature(program.answer, arity))

    return _timed(ground)


def _is_variable(rules: str, at: int) -> bool:
    return not (rules[at - 1].isalpha() or rules[at + 1].isalpha())


def _nemo(program: Program) -> tuple[float, int]:
    from nmo_python import (  # type: ignore[import-not-found, unused-ignore]
        NemoEngine,
        load_string,
    )

    rules = "".join(
        f"?{c}" if c in "pqwxyz" and _is_variable(program.rules, i) else c
        for i, c in enumerate(program.rules)
    )
    facts = "".join(
        f"{name}({', '.join(map(str, row))}).\n" for name, rows in program.facts().items() for row in rows
    )
    every = ", ".join(f"?c{i}" for i in range(program.arities()[program.answer]))
    count = f"size(#count({every})) :- {program.answer}({every}).\n@output size .\n"
    engine = NemoEngine(load_string(facts + rules + count))

    def reason() -> int:
        engine.reason()
        ((size,),) = engine.result("size")
        return int(size)

    return _timed(reason)


ENGINES = {
    "shardlog": _shardlog,
    "duckdb": _duckdb,
    "egglog": _egglog,
    "clingo": _clingo,
    "nemo": _nemo,
}


def _souffle(command: str, program: Program) -> tuple[float, int, float]:
    with tempfile.TemporaryDirectory() as folder:
        text = ""
        for name, arity in program.arities().items():
            text += f".decl {name}({', '.join(f'c{i}: number' for i in range(arity))})\n"
        for name, rows in program.facts().items():
            text += f".input {name}\n"
            lines = ("\t".join(map(str, row)) + "\n" for row in rows)
            Path(folder, f"{name}.facts").write_text("".join(lines))
        path = Path(folder, "program.dl")
        path.write_text(f"{text}.printsize {program.answer}\n{program.rules}")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        call = [command, "-F", folder, "-D", folder, str(path)]
        done = subprocess.run(call, check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return seconds, int(done.stdout.split()[-1]), after.ru_maxrss / 1024


def _explained(program: Program) -> list[float]:
    """Seconds of the processor: a run, why the last tuple holds 32 rules deep, the whole proof, its text."""
    import numpy as np
    from shardlog.datalog import Program as Datalog

    made = Datalog(_declarations(program) + program.rules, backend="core")
    for name, rows in program.facts().items():
        made.add(name, np.array(rows, np.int64))
    start = process_time()
    made.run()
    times = [process_time() - start]
    columns, _ = made._inside.found(program.answer)
    goal = f"{program.answer}({', '.join(str(column[-1]) for column in columns)})"
    start = process_time()
    made.explain(goal)
    times.append(process_time() - start)
    start = process_time()
    whole = made.explain(goal, depth=None)
    times.append(process_time() - start)
    start = process_time()
    whole.text()
    return [*times, process_time() - start]


# ---- One run, and the table --------------------------------------------------------------------------------


def _one(engine: str, name: str) -> None:
    """Run one engine in this process and print what it took as JSON; the kernel ends it at the limit."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    seconds, count = ENGINES[engine](PROGRAMS[name])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, count, peak]))


def measure(engine: str, name: str, python: str, souffle: str) -> tuple[float, int, float] | str:
    """Seconds of CPU time, the number of tuples and MiB; or why there are none."""
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    if engine == "souffle":
        call = [sys.executable, __file__, "--one", f"souffle={souffle}", name]
    else:
        call = [sys.executable if engine == "shardlog" else python, __file__, "--one", engine, name]
    done = subprocess.run(call, capture_output=True, text=True, env=environment)
    if done.returncode == -signal.SIGKILL:
        return f"> {LIMIT} s"
    if done.returncode:
        return "-" if "ModuleNotFoundError" in done.stderr else "error"
    seconds, count, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, count, peak


def _scale(most: int, repetitions: int) -> None:
    """Prints what the engine takes by the clock on one thread up to `most`, in turn in one process."""
    print(f"{'':12}" + "".join(f"{threads:>12}" for threads in range(1, most + 1)))
    for name, program in PROGRAMS.items():
        run = _prepared(program)
        best = [float("inf")] * most
        for _ in range(repetitions):
            for threads in range(most):
                start = perf_counter()
                run(threads + 1)
                best[threads] = min(best[threads], perf_counter() - start)
        print(f"{name:12}" + "".join(f"{seconds:10.3f} s" for seconds in best), flush=True)


def _prove(repetitions: int) -> None:
    """Prints what proofs take beside the run that found their goal."""
    print(f"{'':12}{'run':>12}{'32 rules':>12}{'whole':>12}{'its text':>12}")
    for name, program in {**PROGRAMS, **PROVED}.items():
        runs = [_explained(program) for _ in range(repetitions)]
        best = [min(times) for times in zip(*runs, strict=True)]
        print(f"{name:12}" + "".join(f"{seconds:10.3f} s" for seconds in best), flush=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has the other engines")
    parser.add_argument("--souffle", default=shutil.which("souffle") or "", help="the program `souffle`")
    parser.add_argument("--engine", action="append", help="only this engine")
    parser.add_argument("--repetitions", type=int, default=1, help="the best of so many runs")
    parser.add_argument("--threads", type=int, help="only the engine, by the clock, on up to so many")
    parser.add_argument("--proofs", action="store_true", help="only the engine, and its proofs")
    parser.add_argument("--peers", action="store_true", help="compiled engines, as whole processes")
    parser.add_argument("--tuples", type=int, default=2_000_000, help="with --peers: about so many")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peers:
        from .peers import compare

        threads = arguments.threads or 2
        compare(arguments.tuples, threads, arguments.repetitions, arguments.souffle, arguments.engine)
        return
    if arguments.threads:
        _scale(arguments.threads, arguments.repetitions)
        return
    if arguments.proofs:
        _prove(arguments.repetitions)
        return
    if arguments.one:
        engine, name = arguments.one
        if engine.startswith("souffle="):
            print(json.dumps(_souffle(engine.removeprefix("souffle="), PROGRAMS[name])))
        else:
            _one(engine, name)
        return
    engines = arguments.engine or [*ENGINES, *(["souffle"] if arguments.souffle else [])]
    print(f"{'':12}{'tuples':>10}  " + "".join(f"{engine:>20}" for engine in engines))
    for name in PROGRAMS:
        cells, counts = [], set()
        for engine in engines:
            runs = [
                measure(engine, name, arguments.python, arguments.souffle)
                for _ in range(arguments.repetitions)
            ]
            times = [run for run in runs if not isinstance(run, str)]
            if times:
                seconds, count, peak = min(times)
                counts.add(count)
                cells.append(f"{seconds:9.3f} s {peak:5.0f} MiB")
            else:
                cells.append(str(runs[0]))
        tuples = "/".join(f"{count:,}" for count in sorted(counts))
        print(f"{name:12}{tuples:>10}  " + "".join(f"{cell:>20}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
