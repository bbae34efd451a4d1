"""Loading and writing facts from Python: `python -m shardlog.tests.bench.loading [PAIRS]`.

Distinct pairs of numbers are read from a file into a relation, and written to another file in order: lines,
Parquet and NumPy's arrays. DuckDB does the same with a table and its own reader, if Python has it. Each is a
process of its own, with one thread. The last columns are relative to DuckDB.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from .peers import CASES
from .processes import Taken, bytecode, taken

_READ = "import sys\nfrom shardlog.datalog import Program\n"
_PROGRAM = 'program = Program(".decl edge(x: number, y: number)")\n'
SHARDLOG = {
    "lines": _READ
    + "program = Program('''.decl edge(x: number, y: number)\n"
    + '.input edge(filename="edge.lines")\n.output edge(filename="written")\'\'\')\n'
    + "program.read_inputs(sys.argv[1])\nprogram.run()\nprogram.write_outputs(sys.argv[1])\n",
    "parquet": _READ
    + "import pyarrow as pa, pyarrow.parquet as pq\npa.set_cpu_count(1)\n"
    + _PROGRAM
    + 'program.add("edge", pq.read_table(sys.argv[1] + "/edge.parquet", use_threads=False))\nprogram.run()\n'
    + 'pq.write_table(program.table("edge"), sys.argv[1] + "/written")\n',
    "numpy": _READ
    + "import numpy as np\n"
    + _PROGRAM
    + 'program.add("edge", np.load(sys.argv[1] + "/edge.npy"))\nprogram.run()\n'
    + 'np.save(sys.argv[1] + "/written.npy", program.relation("edge"))\n',
}
_CONNECT = 'import sys, duckdb\ndatabase = duckdb.connect()\ndatabase.execute("set threads = 1")\n'
_TABLE = 'database.execute(f"create table edge as select distinct * from {source}")\n'
_COPY = "database.execute(f\"copy (select * from edge order by all) to '{sys.argv[1]}/written' ({form})\")\n"
DUCKDB = {
    "lines": _CONNECT
    + "source = f\"read_csv('{sys.argv[1]}/edge.lines', delim='\\t', header=false)\"\n"
    + "form = \"format csv, delimiter '\\t', header false\"\n"
    + _TABLE
    + _COPY,
    "parquet": _CONNECT
    + "source, form = f\"'{sys.argv[1]}/edge.parquet'\", 'format parquet'\n"
    + _TABLE
    + _COPY,
    "numpy": _CONNECT
    + 'import numpy as np\npairs = np.load(sys.argv[1] + "/edge.npy")\n'
    + 'given, source = {"x": pairs[:, 0].copy(), "y": pairs[:, 1].copy()}, "given"\n'
    + _TABLE
    + 'np.save(sys.argv[1] + "/written.npy", database.sql("select * from edge order by all").fetchnumpy())\n',
}


def write(pairs: np.ndarray[tuple[int, ...], np.dtype[np.int64]], folder: Path) -> None:
    """Writes pairs to a file of each form."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with (folder / "edge.lines").open("w") as file:
        for start in range(0, len(pairs), 1 << 16):
            file.writelines(f"{x}\t{y}\n" for x, y in pairs[start : start + (1 << 16)].tolist())
    pq.write_table(pa.table({"x": pairs[:, 0], "y": pairs[:, 1]}), folder / "edge.parquet")
    np.save(folder / "edge.npy", pairs)


def measured(form: str, folder: Path, duckdb: bool) -> tuple[Taken, Taken | None]:
    """What loading and writing take in shardlog, and in DuckDB if it is there."""
    ours = _best(SHARDLOG[form], folder)
    return ours, _best(DUCKDB[form], folder) if duckdb else None


def _best(code: str, folder: Path) -> Taken:
    """The quicker one of two runs."""
    runs = [taken([sys.executable, "-c", code, str(folder)]) for _ in range(2)]
    return min(runs, key=lambda run: run.clock)


def main() -> None:
    """Prints a row for each form of files."""
    count, duckdb = int(sys.argv[1]) if sys.argv[1:] else 10_000_000, find_spec("duckdb") is not None
    print("| files | pairs | s, clock | MiB | DuckDB: s | MiB | time | memory |\n" + "|---" * 8 + "|")
    with tempfile.TemporaryDirectory() as name, bytecode():
        folder = Path(name)
        pairs = CASES["files"].facts(count)["edge"]
        write(pairs, folder)
        for form in SHARDLOG:
            ours, theirs = measured(form, folder, duckdb)
            figures = f"| {form} | {len(pairs):,} | {ours.clock:.2f} | {ours.mebibytes:.0f} |"
            if theirs is None:
                print(f"{figures} | | | |", flush=True)
                continue
            ratios = f"{ours.clock / theirs.clock:.2f} | {ours.mebibytes / theirs.mebibytes:.2f}"
            print(f"{figures} {theirs.clock:.2f} | {theirs.mebibytes:.0f} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
