#!/usr/bin/env bash
# Expected: an integer that clingo cannot hold is an error, or at least a warning, as an undefined operation (1/0, a + 1) is. Its integers have 32
# bits, so 4294967296 in a file of facts is refused.
# What happens: it is read as 0, 2147483648 as -2147483648, and 4294967297 as 1, which is the same fact as 1. Sums, products and #sum
# wrap in the same way; |-2147483648| is negative. There is no message at any level of warnings.
# Versions: clingo 5.8.0 and 5.8.3.
# Why it matters: sizes of tensors in bytes, floating-point operations and hashes are larger than 2^31. Facts that other engines
# read (Soufflé where it is built for 64 bits, DuckDB) become other facts, and different ones become equal.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 5.8.0 5.8.3; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "clingo==$version"
  "$folder/$version/bin/python" -I - <<'PY'
import clingo

said = []


def answers(program):
    control = clingo.Control(["--warn=all"], logger=lambda code, message: said.append(message))
    control.add("base", [], program + " #show r/1.")
    control.ground([("base", [])])
    found = []
    control.solve(on_model=lambda model: found.extend(atom.arguments[0].number for atom in model.symbols(shown=True)))
    return sorted(found)


print("clingo", clingo.__version__)
for program, expected in (
    ("r(4294967296).", [0]),
    ("r(2147483648).", [-2147483648]),
    ("r(1). r(4294967297).", [1]),
    ("r(65536 * 65536).", [0]),
    ("r(|-2147483647 - 1|).", [-2147483648]),
    ("bytes(2000000000; 1999999999). r(S) :- S = #sum { B : bytes(B) }.", [-294967297]),
):
    found = answers(program)
    print(f"{program}  r: {found}")
    assert found == expected, "integers are read in another way now"
assert said == [], said
assert answers("r(X) :- X = 1 / 0.") == []
print("for 1 / 0 it says:", said[0].strip().splitlines()[0])
assert "undefined" in said[0]
PY
done
