#!/usr/bin/env bash
# Expected: in pyDatalog, as in Soufflé, clingo, Prolog and other Datalogs, each _ of a clause is a variable of its own: something
# is there, whatever it is. So r(X) <= t(X, _, _) takes the first column of t.
# What happens: _ is a variable with the name _, and all of a clause are one. t(X, _, _) has those rows alone whose last two columns are equal,
# p(X, _) & q(_, Y) is a join, and p(X, _) & ~q(X, _) forbids less than it says. A single _ in a clause works, so
# nothing shows until there are two.
# Versions: pyDatalog 0.22.4, beside clingo 5.8.0.
# Why it matters: rules over relations with many columns, as facts of programs are, use _ for most of them. Rules that are taken to
# pyDatalog from another Datalog have fewer results there, or more where they are negated, without a message.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "pyDatalog==0.22.4" "clingo==5.8.0"

"$folder/venv/bin/python" -I - <<'PY'
from importlib.metadata import version

import clingo
from pyDatalog import pyDatalog

FACTS = [("t", 1, 2, 3), ("t", 4, 5, 5), ("p", 1, 2), ("q", 3, 4), ("q", 2, 9), ("q", 1, 4)]


def by_pydatalog(body):
    pyDatalog.clear()
    for fact in FACTS:
        pyDatalog.assert_fact(*fact)
    pyDatalog.load(f"r(X) <= {body}")
    answer = pyDatalog.ask("r(X)")
    return sorted(x for (x,) in answer.answers) if answer else []


def by_clingo(body):
    control = clingo.Control()
    facts = "".join(f"{name}({','.join(map(str, columns))})." for name, *columns in FACTS)
    control.add("base", [], f"{facts} r(X) :- {body.replace(' & ', ', ').replace('~', 'not ')}. #show r/1.")
    control.ground([("base", [])])
    found = []
    control.solve(on_model=lambda model: found.extend(atom.arguments[0].number for atom in model.symbols(shown=True)))
    return sorted(found)


print("pyDatalog", version("pyDatalog"), "clingo", clingo.__version__)
for body, in_pydatalog, with_names, in_clingo in (
    ("t(X, _, 5)", [4], "t(X, A, 5)", [4]),
    ("t(X, _, _)", [4], "t(X, A, B)", [1, 4]),
    ("p(_, _) & q(X, 9)", [], "p(A, B) & q(X, 9)", [2]),
    ("p(1, _) & q(_, X)", [9], "p(1, A) & q(B, X)", [4, 9]),
    ("p(X, _) & ~q(X, _)", [1], "p(X, A) & ~q(X, B)", []),
):
    found, named, of_clingo = by_pydatalog(body), by_pydatalog(with_names), by_clingo(body)
    print(f"{body}: pyDatalog {found}, with names {named}, clingo {of_clingo}")
    assert found == in_pydatalog, "each _ is a variable of its own now"
    assert named == of_clingo == in_clingo
PY
