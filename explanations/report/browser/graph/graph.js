"use strict";
// A group of the program as a graph: its ops, the groups in it, and what comes from outside.

const [SCOPE, REPEAT, MEMBER, PART] = [0, 1, 2, 3]; // kinds of groups
const OP_SIZE = { width: 216, height: 62 };
const GROUP_SIZE = { width: 216, height: 70 };
const SMALL_SIZE = { width: 180, height: 44 };
const PORT_SIZE = { width: 150, height: 44, port: true };
const MOST_PORTS = 2; // tensors from outside that a node shows one by one

/** The members of the group: `{first, end, group}`, where ops stand alone. */
function childrenOf(run, [, , first, end, groups]) {
  const found = [];
  const alone = (from, to) => {
    for (let op = from; op < to; op++) if (!run.isCall(op)) found.push({ first: op, end: op + 1, group: null });
  };
  let at = first;
  for (const group of groups) {
    alone(at, group[2]);
    found.push({ first: group[2], end: group[3], group });
    at = group[3];
  }
  alone(at, end);
  return found;
}

/**
 * `children` and `ports` (`{tensors, to}`: what a child takes from outside) are the nodes, ports first; `sizes` and
 * `placed` say where they are; `lines` are `{from, to, tensors}`, with whether each tensor must move.
 */
function graphOf(run, group) {
  const children = childrenOf(run, group);
  const [, , first, end] = group;
  const starts = children.map((child) => child.first);
  const childOf = (op) => countBelow(starts, op + 1) - 1;
  const joined = new Map();
  const outside = children.map(() => new Set());
  for (let op = first; op < end; op++) {
    if (run.isCall(op)) continue;
    const to = childOf(op);
    for (let i = run.slotStarts[op]; i < run.slotStarts[op + 1]; i++) {
      if (run.given[i]) continue;
      const tensor = run.slotTensors[i];
      const producer = run.producer[tensor];
      const from = producer < first || producer >= end ? -1 : childOf(producer);
      if (from < 0) outside[to].add(tensor);
      else if (from < to) {
        const key = from * children.length + to;
        if (!joined.has(key)) joined.set(key, new Map());
        const tensors = joined.get(key);
        if (!tensors.get(tensor)) tensors.set(tensor, run.moves(op, op + 1, tensor));
      }
    }
  }
  const ports = outside.flatMap((tensors, to) => {
    const list = [...tensors];
    const lists = list.length > MOST_PORTS ? [list] : list.map((tensor) => [tensor]);
    return lists.map((some) => ({ tensors: some, to }));
  });
  // Ports come first, so that edges go from smaller to larger numbers.
  const sizes = [...ports.map(() => PORT_SIZE), ...children.map((child) => sizeOf(run, child))];
  const lines = [
    ...ports.map(({ to, tensors }, i) => ({
      from: i,
      to: to + ports.length,
      tensors: new Map(tensors.map((tensor) => [tensor, run.moves(children[to].first, children[to].end, tensor)])),
    })),
    ...[...joined].map(([key, tensors]) => ({
      from: Math.floor(key / children.length) + ports.length,
      to: (key % children.length) + ports.length,
      tensors,
    })),
  ];
  return {
    children,
    ports,
    sizes,
    lines,
    placed: layered(
      sizes,
      lines.map(({ from, to }) => [from, to]),
    ),
  };
}

function sizeOf(run, { first, group }) {
  if (group) return GROUP_SIZE;
  return isSmall(run, first) ? SMALL_SIZE : OP_SIZE;
}

/** Whether an op is a constant, or data flow. */
function isSmall(run, op) {
  return run.opName(op) === FLOW || run.operands(op).length === 0;
}
