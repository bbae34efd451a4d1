"use strict";
// Where axes come from: the log of changes, read backwards.

function hasAtom(run, content, dim, atom) {
  return (run.contents[content]?.dims[dim] ?? []).some(({ atoms }) => atoms.includes(atom));
}

/** The change that put an atom there, as it is before a change; -1: it was there at first. */
function gained(run, cell, dim, atom, before) {
  const { log } = run;
  const changes = run.changes.of(cell);
  for (let i = countBelow(changes, before) - 1; i >= 0; i--) {
    const old = i === 0 ? run.firstContent[cell] : log.kinds[log.kind[changes[i - 1]]].content;
    if (!hasAtom(run, old, dim, atom)) return changes[i];
  }
  return -1;
}

/** How a dimension got an atom: `steps`, latest first, and the cell of the annotation that it comes from. */
function wayOf(run, tensor, dim, atom, before) {
  const steps = [];
  let cell = run.tensors.cell[tensor];
  for (;;) {
    const change = gained(run, cell, dim, atom, before);
    if (change < 0) return { steps, origin: cell };
    const step = stepOf(run, change, dim, atom);
    steps.push(step);
    if (step.from === null) return { steps, origin: cell };
    ({ tensor, dim } = step.from);
    cell = run.tensors.cell[tensor];
    before = step.start;
  }
}

/** A change, as far as it gave an atom to a dimension. Sites are `{tensor, dim}`. */
function stepOf(run, change, dim, atom) {
  const { log } = run;
  const [op, kind, start] = [log.op[change], log.kinds[log.kind[change]], log.start[change]];
  const slots = run.slots(op);
  const [, , number] = kind.gains.find(([d, x]) => d === dim && x === atom);
  const [slot, fromDim, factor, sentence, rule, rests, lost] = log.steps[number];
  const named = (text) => text.replace(/\{(\d+)\}/g, (_, i) => run.name(slots[i]));
  return {
    change,
    op,
    start,
    atom,
    factor,
    rule,
    stage: log.stage[change],
    site: { tensor: slots[kind.slot], dim },
    from: slot < 0 ? null : { tensor: slots[slot], dim: fromDim },
    fromRole: slot < 0 ? "" : run.role(op, slot),
    toRole: run.role(op, kind.slot),
    sentence: named(sentence),
    rests: rests.map(([u, d, x]) => ({ tensor: slots[u], dim: d, atom: x })),
    lost: lost.map(([t, d, u, e, x, text, f, reason, why, place]) => ({
      site: { tensor: slots[t], dim: d },
      from: { tensor: slots[u], dim: e },
      text,
      axis: run.atoms[x].axis,
      factor: f,
      reason,
      sentence: named(why),
      rule: place,
    })),
  };
}

/** The axes of a dimension by the way that their atoms went: `[{text, axis, atoms, way}]`. */
function waysOf(run, tensor, dim, before) {
  return run.parts(tensor, dim, before).flatMap((part) => {
    const found = new Map();
    for (const atom of part.atoms) {
      const way = wayOf(run, tensor, dim, atom, before);
      const key = [way.origin, ...way.steps.map(({ change }) => change)].join();
      if (!found.has(key)) found.set(key, { axis: part.axis, atoms: [], way });
      found.get(key).atoms.push(atom);
    }
    const text = (atoms) => (found.size === 1 ? part.text : atoms.map((atom) => run.atoms[atom].text).join(", "));
    return [...found.values()].map((one) => ({ ...one, text: text(one.atoms) }));
  });
}

/** What gave a cell its sharding, or the tensor that has it where nothing did. */
function originOf(run, cell) {
  const found = run.annotations.get(cell);
  if (found && found.tensor >= 0) return found;
  return { text: "", where: "", ...found, tensor: run.tensors.cell.indexOf(cell) };
}

/** How many tensors, and bytes, have axes from each annotation: `{annotation, tensors, bytes}`, the most first. */
function reachOf(run) {
  const { log } = run;
  const origins = new Map(); // change and place of an atom -> the cell of its annotation
  const key = (change, dim, atom) => (change * 64 + dim) * run.atoms.length + atom;
  const origin = (cell, dim, atom, before) => {
    const change = gained(run, cell, dim, atom, before);
    return change < 0 ? cell : origins.get(key(change, dim, atom));
  };
  for (let change = 0; change < run.end; change++) {
    const kind = log.kinds[log.kind[change]];
    const slots = run.slots(log.op[change]);
    for (const [dim, atom, step] of kind.gains) {
      const [slot, fromDim] = log.steps[step];
      const own = run.tensors.cell[slots[slot < 0 ? kind.slot : slot]];
      origins.set(key(change, dim, atom), slot < 0 ? own : origin(own, fromDim, atom, log.start[change]));
    }
  }
  const found = new Map();
  for (let tensor = 0; tensor < run.shown; tensor++) {
    const cells = new Set();
    for (const [dim, parts] of Object.entries(run.sharding(tensor, run.end)?.dims ?? {})) {
      for (const { atoms } of parts)
        for (const atom of atoms) cells.add(origin(run.tensors.cell[tensor], Number(dim), atom, run.end));
    }
    for (const cell of cells) {
      const annotation = run.annotations.get(cell);
      if (!annotation || annotation.tensor < 0) continue;
      if (!found.has(cell)) found.set(cell, { annotation, tensors: 0, bytes: 0 });
      found.get(cell).tensors += 1;
      found.get(cell).bytes += run.bytes(tensor);
    }
  }
  return [...found.values()].sort((a, b) => b.tensors - a.tensors || b.bytes - a.bytes);
}
