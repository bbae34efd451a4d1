"""Facts as Soufflé reads them: a folder per program of ``rules/``, a tab-separated file per relation.

See ``docs/facts.md``. In a keyed program the first column is the key: the number of the signature in ``ops``,
of the value in ``boundary``, of the item in ``turn``. Other programs have no key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exporters.schema import SCHEMA, declarations
from ..outputs import output_folder

if TYPE_CHECKING:
    from .result import Result

Lines = dict[str, list[str]]
_SEPARATORS = str.maketrans("\t\r\n", "   ")  # Soufflé has no way to write these in a symbol


def write_facts(result: Result, directory: str) -> int:
    """Writes the input of every program of ``rules/`` in a run, and the relations of its result. Also
    writes the op rules of the run, with the user's, as a program.

    Returns the number of facts. Raises ShardlogError where a file cannot be written.
    """
    shared_facts = {**result.program.shardings.meshes.facts(), **result.book.shared}
    folders = {"turn": _turns(result)} if result.stages else {}  # completion takes no turns
    for name, asked in result.book.asked.items():
        folders[name] = _asked(asked, keyed=result.book.programs()[name].plan.key is not None)
    written = 0
    with output_folder(directory) as folder:
        for name, program in result.book.programs().items():
            lines = folders.get(name, {})
            inputs = [relation.name for relation in program.plan.relations if relation.input]
            shared = {
                relation: _lines(shared_facts[relation]) for relation in inputs if relation in shared_facts
            }
            written += _write(folder / name, inputs, {**lines, **shared})
        module = {name: _lines(rows) for name, rows in result.facts.items()}
        written += _write(folder / "module", SCHEMA, module)
        (folder / "module/relations.dl").write_text(declarations(), encoding="utf-8")
        (folder / "ops/rules.dl").write_text(result.book.text(), encoding="utf-8")
    return written


def _write(folder: Path, relations: Iterable[str], lines: Mapping[str, Sequence[str]]) -> int:
    """A file for every relation, empty where there are no facts."""
    folder.mkdir()
    for relation in relations:
        text = "".join(f"{line}\n" for line in lines.get(relation, ()))
        (folder / f"{relation}.facts").write_text(text, encoding="utf-8")
    return sum(len(lines.get(relation, ())) for relation in relations)


def _lines(rows: Any, *before: Any) -> list[str]:
    """Rows as lines; ``before`` are columns before the others."""
    listed = rows.tolist() if hasattr(rows, "tolist") else rows
    return ["\t".join(str(value).translate(_SEPARATORS) for value in (*before, *row)) for row in listed]


def _asked(asked: Iterable[Mapping[str, Any]], *, keyed: bool) -> Lines:
    lines: Lines = {}
    for key, facts in enumerate(asked):
        for relation, rows in facts.items():
            lines.setdefault(relation, []).extend(_lines(rows, *([key] if keyed else [])))
    return lines


def _turns(result: Result) -> Lines:
    """One turn of every item over the module's annotations, in the last stage of the run."""
    program, stage = result.program, result.stages[-1]
    graph, answers = program.graph, program.classes.by_class
    static = {
        number: _suffixes({**k.static, "flows": k.flows[stage.level], "strategy": [(stage.strategy,)]})
        for number, k in enumerate(answers)
        if stage.level in k.flows
    }
    held = {cell: program.shardings.facts(sharding) for cell, sharding in program.initial.items()}
    state: dict[tuple[int, int], list[tuple[str, str]]] = {}
    cells = program.cells[graph.slots].tolist()
    offsets = graph.slot_offsets.tolist()
    lines: Lines = {}
    for item, number in enumerate(graph.classes.tolist()):
        if number not in static:
            continue
        for relation, suffix in static[number]:
            lines.setdefault(relation, []).append(f"{item}{suffix}")
        for slot, cell in enumerate(cells[offsets[item] : offsets[item + 1]]):
            if cell in held:
                if (slot, cell) not in state:
                    state[slot, cell] = _suffixes(held[cell], slot)
                for relation, suffix in state[slot, cell]:
                    lines.setdefault(relation, []).append(f"{item}{suffix}")
    return lines


def _suffixes(facts: Mapping[str, Any], *before: object) -> list[tuple[str, str]]:
    """Facts as pairs of the relation and the rest of the line after the key, tab included."""
    return [(relation, line) for relation, rows in facts.items() for line in _lines(rows, "", *before)]
