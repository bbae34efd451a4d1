"""``python -m shardlog.tests.fuzz``: gives shardlog hostile input and says what goes wrong.

The exit status is 1 where anything does. The same seed gives the same cases.
"""

from __future__ import annotations

from .command import carry_out, parser

if __name__ == "__main__":
    raise SystemExit(carry_out(parser("shardlog.tests.fuzz", __doc__ or "", minutes=2.0).parse_args()))
