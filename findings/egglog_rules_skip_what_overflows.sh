#!/usr/bin/env bash
# Expected: in egglog an i64 that overflows, or a division by zero, ends the program with an error, as it does where a term is evaluated;
# f64 follows IEEE 754, so 1.0 / 0.0 is infinite, as 1e308 * 10.0 is.
# What happens: it depends on the side of the rule. In what a rule does, (+ x 1) of the largest number is an error. In what a rule
# asks for, it is no match: the row is left out, without a word. So is (/ 1.0 0.0), and (/ 0.0 0.0). And 0.0 and -0.0 are one value: the
# second fact is not added.
# Versions: egglog 13.2.0 from PyPI.
# Why it matters: moving an expression from the head of a rule to its body is a change that keeps the meaning in other Datalogs. Here
# it turns an error into rows that are missing: costs, sizes and counts that overflow are no costs, and the smallest of the others wins.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "egglog==13.2.0"

"$folder/venv/bin/python" -I - <<'PY'
from importlib.metadata import version

from egglog.bindings import EggSmolError, EGraph

print("egglog", version("egglog"))


def size(program):
    graph = EGraph()
    try:
        outputs = graph.run_program(*graph.parse_program(f"{program} (print-size b)"))
    except EggSmolError as error:
        return str(error)
    return int(str(outputs[-1]))


INTEGERS = "(relation a (i64)) (relation b (i64)) (a 1) (a 9223372036854775807)"
FLOATS = "(relation a (f64)) (relation b (f64)) (a 1.0) (a 0.0)"
in_head = size(f"{INTEGERS} (rule ((a x)) ((b (+ x 1)))) (run 2)")
in_body = size(f"{INTEGERS} (rule ((a x) (= y (+ x 1))) ((b y))) (run 2)")
print("two numbers, one more than each, in the head:", in_head)
print("two numbers, one more than each, in the body: rows", in_body)
assert isinstance(in_head, str) and "failed" in in_head, in_head
assert in_body == 1, in_body

divided = size(f"{FLOATS} (rule ((a x) (= y (/ 1.0 x))) ((b y))) (run 2)")
print("1.0 and 0.0, one by each of them, in the body: rows", divided)
assert divided == 1, divided
infinite = size("(relation b (f64)) (b (* 1e308 10.0)) (b (* -1e308 10.0))")
print("products that are infinite: rows", infinite)
assert infinite == 2, infinite
zeros = size("(relation b (f64)) (b 0.0) (b -0.0)")
print("0.0 and -0.0: rows", zeros)
assert zeros == 1, zeros
PY
