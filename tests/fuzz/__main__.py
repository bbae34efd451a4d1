"""``python -m shardlog.tests.fuzz``: gives shardlog hostile input and says what goes wrong.

The exit status is 1 where anything does. The same seed gives the same cases.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .fuzz import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="shardlog.tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=2, help="workers; default: %(default)s")
    parser.add_argument("--case", type=int, metavar="N", help="this case alone")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="default: %(default)s")
    options = parser.parse_args()
    first, last = (0, None) if options.case is None else (options.case, options.case)
    done, found = fuzz(
        seed=options.seed,
        minutes=options.minutes,
        keep=options.keep,
        jobs=options.jobs if last is None else 1,
        first=first,
        last=last,
        tell=lambda text: print(text, flush=True),
    )
    print(f"{done:,} cases, {len(found)} findings" + (f", kept in {options.keep}" if found else ""))
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
