#!/usr/bin/env bash
# Expected: a recursive predicate of Logica is computed to its fixpoint, as in every Datalog, or there is a message. @Recursive(Path, 100)
# allows 100 rounds. The engine (SQLite, DuckDB) and the command (run, run_in_terminal) make no difference to the result.
# What happens: rounds are limited, without a word. On a chain of 40 edges the longest path has 9 edges with SQLite, where the default
# is 8 rounds, and with DuckDB 33 by run_in_terminal (32 rounds) and 5 by run. From 21 rounds on, or with DuckDB at any number, `logica FILE
# run` computes four rounds whatever @Recursive says: asking for 100 gives 5, where asking for 20 gave 21. All exit with 0.
# Versions: logica 1.3.1415926535897 with DuckDB 2.0.1 and Python's SQLite.
# Why it matters: transitive closures are what graphs of programs are queried for. Tests on small graphs pass; beyond the limit
# pairs are missing, and where a rule negates the closure there are too many.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "logica==1.3.1415926535897" "duckdb==2.0.1" "pandas>=2,<3" "numpy>=2,<3"
cd "$folder"

"$folder/venv/bin/python" -I - "$folder/venv/bin/logica" <<'PY'
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

PROGRAM = """
@Engine("{engine}");
{rounds}
Edge(x, x + 1) :- x in Range(40);
Path(a, b) distinct :- Edge(a, b);
Path(a, c) distinct :- Path(a, b), Edge(b, c);
Longest() Max= b - a :- Path(a, b);
"""
SEEN = {  # the longest path that is found, of 40
    ("sqlite", None): (9, 9),
    ("sqlite", 20): (21, 21),
    ("sqlite", 30): (5, 31),
    ("sqlite", 100): (5, 40),
    ("duckdb", None): (5, 33),
    ("duckdb", 20): (5, 21),
    ("duckdb", 100): (5, 40),
}
print("logica", version("logica"), "duckdb", version("duckdb"))
for (engine, rounds), seen in SEEN.items():
    text = PROGRAM.format(engine=engine, rounds="" if rounds is None else f"@Recursive(Path, {rounds});")
    Path("chain.l").write_text(text, encoding="utf-8")
    found = []
    for command in ("run", "run_in_terminal"):
        done = subprocess.run([sys.argv[1], "chain.l", command, "Longest"], capture_output=True, text=True, check=True)
        found.append(int(re.findall(r"^\| *(\d+) *\|$", done.stdout, re.MULTILINE)[-1]))
    print(f"{engine}, rounds: {rounds or 'as by default'}: run {found[0]}, run_in_terminal {found[1]}")
    assert tuple(found) == seen, "recursion ends elsewhere now"
PY
