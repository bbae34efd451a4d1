"use strict";
// The run: its tensors, its ops, and the log of changes, from which everything that was true when is read.

const FLOW = "data flow"; // between a call or a loop and its body

/** The data in the page: base64 of deflated JSON. */
async function readData(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length); // filled in a loop: Uint8Array.from takes a second for 6 MB
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** Lists of numbers by key, one after the other: `of(key)` are those whose key is `key`, in order. */
class Lists {
  constructor(keys, count) {
    this.starts = new Int32Array(count + 1);
    for (const key of keys) this.starts[key + 1] += 1;
    for (let i = 0; i < count; i++) this.starts[i + 1] += this.starts[i];
    const next = this.starts.slice();
    this.items = new Int32Array(keys.length);
    for (let i = 0; i < keys.length; i++) this.items[next[keys[i]]++] = i;
  }

  of(key) {
    return this.items.subarray(this.starts[key], this.starts[key + 1]);
  }
}

/** How many of the numbers of a sorted list are less than `n`. */
function countBelow(sorted, n) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < n) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Tensors, ops, changes and stages are numbers. What was so at a time is asked with the number of a change, `before`:
 * all changes with smaller numbers had been made. A sharding is `{mesh, dims, closed, fixed}` or null; `dims` has
 * parts `{text, size, atoms, axis}` by dimension.
 */
class Run {
  constructor(data) {
    Object.assign(this, {
      module: data.module,
      version: data.version,
      strategy: data.strategy,
      meshes: data.meshes,
      stages: data.stages,
      unknown: data.unknown,
      means: data.means,
      arguments: data.arguments && ` ${data.arguments}`, // of commands about the same program
      unpartitioned: data.unpartitioned,
      cost: data.cost,
      plan: data.plan,
      uncosted: data.uncosted,
      groups: data.groups,
      log: data.log,
      strings: data.strings,
      tensors: data.tensors,
      ops: data.ops,
      shown: data.shown,
      program: data.program,
    });
    this.readConflicts(data);
    this.shortenPlaces(data);
    this.readAxes(data);
    this.readShardings(data);
    this.readOps(data);
    this.annotations = new Map(
      data.annotations.map(([cell, tensor, text, where, by]) => [cell, { cell, tensor, text, where, by }]),
    );
    const { log } = this;
    this.end = log.op.length;
    this.ends = this.stages.map((_, stage) => countBelow(log.stage, stage + 1));
    const cells = log.op.map((op, i) => this.tensors.cell[this.slots(op)[log.kinds[log.kind[i]].slot]]);
    this.cells = 1 + this.tensors.cell.reduce((most, cell) => Math.max(most, cell), 0);
    this.changes = new Lists(cells, this.cells);
    this.firstContent = new Int32Array(this.cells);
    this.tensors.cell.forEach((cell, t) => {
      this.firstContent[cell] = this.tensors.first[t];
    });
    this.pathEnds = null; // how often each end of a path occurs, once someone asks
    this.moved = new Float64Array(this.tensors.name.length);
    for (const { tensor, bytes } of this.conflicts) if (tensor >= 0) this.moved[tensor] += bytes;
  }

  /** `folds` are the conflicts of which the same is said. A tensor or an op that is not on the page is -1. */
  readConflicts(data) {
    this.conflicts = data.conflicts.map((row) => ({ ...row, name: row.tensor, tensor: row.number }));
    let at = 0;
    this.folds = data.alike.map((count) => this.conflicts.slice(at, (at += count)));
  }

  readAxes(data) {
    this.axes = [];
    this.meshes.forEach((mesh, number) => {
      for (const [name, size] of mesh.axes) this.axes.push({ mesh: number, name, size });
    });
    this.atoms = data.atoms.map(([mesh, name, text]) => ({
      text,
      axis: this.axes.findIndex((axis) => axis.mesh === mesh && axis.name === name),
    }));
  }

  readShardings(data) {
    const part = ([text, size, atoms]) => ({ text, size, atoms, axis: this.atoms[atoms[0]].axis });
    this.contents = data.contents.map((content) => {
      if (content === null) return null;
      const [mesh, dims, closed, fixed] = content;
      return {
        mesh,
        dims: Object.fromEntries(Object.entries(dims).map(([d, parts]) => [d, parts.map(part)])),
        closed,
        fixed,
      };
    });
    this.contentShards = this.contents.map((sharding) =>
      sharding === null
        ? 1
        : Object.values(sharding.dims)
            .flat()
            .reduce((product, { size }) => product * size, 1),
    );
    this.contentAxes = this.contents.map((sharding) => [
      ...new Set(
        Object.values(sharding?.dims ?? {})
          .flat()
          .map(({ axis }) => axis),
      ),
    ]);
    this.manual = data.manual.map((names) => names.map((name) => this.axes.findIndex((axis) => axis.name === name)));
    this.texts = new Map();
    this.shapes = this.strings.map((text) => {
      const match = /^tensor<((?:\d+x)*)/.exec(text);
      return match ? match[1].split("x").slice(0, -1).map(Number) : [];
    });
  }

  readOps(data) {
    const { roles, slots } = data.ops;
    this.roles = data.roles;
    this.slotStarts = new Int32Array(roles.length + 1);
    roles.forEach((role, op) => {
      this.slotStarts[op + 1] = this.slotStarts[op] + this.roles[role].length;
    });
    this.slotTensors = Int32Array.from(slots);
    const gives = this.roles.map((names) => names.map((name) => /^(result|target|function result)/.test(name)));
    this.given = Uint8Array.from(roles.flatMap((role) => gives[role])); // 1 for slots that an op gives
    this.producer = new Int32Array(data.tensors.name.length).fill(-1);
    const [used, users] = [[], []];
    for (let op = 0; op < data.program; op++) {
      const flows = this.strings[data.ops.name[op]] === FLOW;
      for (let i = this.slotStarts[op]; i < this.slotStarts[op + 1]; i++) {
        if (!this.given[i]) {
          used.push(slots[i]);
          users.push(op);
        } else if (flows || this.producer[slots[i]] < 0) {
          this.producer[slots[i]] = op; // rather the data flow out of a call or a loop than the call
        }
      }
    }
    this.userLists = new Lists(used, data.tensors.name.length);
    this.userOps = users;
  }

  /** Leaves out of all places the folder that they have in common. */
  shortenPlaces(data) {
    const folder = (text) => /^(\/[^():]*\/)[^/:]+:\d+(?: |$)/.exec(text)?.[1];
    const used = new Set([...this.tensors.where, ...this.ops.where]);
    const folders = [...used].map((number) => folder(this.strings[number])).filter(Boolean);
    if (folders.length === 0) return;
    let common = folders.reduce((a, b) => a.slice(0, [...a].findIndex((character, i) => character !== b[i]) >>> 0));
    common = common.slice(0, common.lastIndexOf("/") + 1);
    if (common === "/") return;
    const short = (text) => text.replaceAll(common, "");
    for (const number of used) this.strings[number] = short(this.strings[number]);
    for (const conflict of this.conflicts) conflict.where = short(conflict.where);
    for (const annotation of data.annotations) annotation[3] = short(annotation[3]);
    if (data.cost) this.shortenCosts(data.cost, short);
  }

  shortenCosts({ collectives, held, places, redundant }, short) {
    for (const found of [...collectives, ...held]) found.where = short(found.where);
    for (const found of collectives) found.causes = found.causes.map(short);
    for (const found of places) found.name = short(found.name);
    for (const found of redundant) found[1] = short(found[1]);
  }

  /** What a tensor that must move is called. */
  conflictTitle({ tensor, name }) {
    return tensor >= 0 ? this.title(tensor) : name;
  }

  /** Whether a tensor must move for one of the ops from `first` to `end`, or where it is made, as partial sums must. */
  moves(first, end, tensor) {
    const on = (at) => (first <= at && at < end) || (at >= 0 && at === this.producer[tensor]);
    return this.moved[tensor] > 0 && this.conflicts.some((found) => found.tensor === tensor && on(found.at));
  }

  // ---- Tensors and ops ----------------------------------------------------------------------------------------

  name(tensor) {
    return this.tensors.name[tensor];
  }

  type(tensor) {
    return this.strings[this.tensors.type[tensor]];
  }

  where(tensor) {
    return this.strings[this.tensors.where[tensor]];
  }

  bytes(tensor) {
    return this.tensors.bytes[tensor];
  }

  shape(tensor) {
    return this.shapes[this.tensors.type[tensor]];
  }

  /** The path that JAX gives an argument or a result; "" where there is none. */
  jaxPath(tensor) {
    const where = this.where(tensor);
    const atBoundary = this.producer[tensor] < 0 || this.name(tensor).startsWith("result#");
    return atBoundary && !/:\d+(?: |$)/.test(where) ? where : "";
  }

  /** What a tensor is called: JAX's path where it has one. */
  title(tensor) {
    return this.jaxPath(tensor) || this.name(tensor);
  }

  /** How many of the last keys of a tensor's path tell it from the others of its argument, at least two. */
  telling(tensor) {
    const ends = (path) => keysOf(path).map((_, i, keys) => `${rootOf(path)}…${keys.slice(-i - 1).join("")}`);
    if (!this.pathEnds) {
      this.pathEnds = new Map();
      for (let t = 0; t < this.shown; t++)
        for (const end of ends(this.jaxPath(t))) this.pathEnds.set(end, (this.pathEnds.get(end) ?? 0) + 1);
    }
    const path = tensor < 0 ? "" : this.jaxPath(tensor);
    return Math.max(2, 1 + ends(path).findIndex((end) => this.pathEnds.get(end) === 1));
  }

  tensor(name) {
    return this.tensors.name.indexOf(name);
  }

  opName(op) {
    return this.strings[this.ops.name[op]];
  }

  opWhere(op) {
    return this.strings[this.ops.where[op]];
  }

  slots(op) {
    return this.slotTensors.subarray(this.slotStarts[op], this.slotStarts[op + 1]);
  }

  role(op, slot) {
    return this.roles[this.ops.roles[op]][slot];
  }

  operands(op) {
    return [...this.slots(op)].filter((_, slot) => !this.given[this.slotStarts[op] + slot]);
  }

  results(op) {
    return [...this.slots(op)].filter((_, slot) => this.given[this.slotStarts[op] + slot]);
  }

  /** Calls `visit(tensor, op)` for what ops give. */
  eachResult(first, end, visit) {
    for (let op = first; op < end; op++) {
      for (let i = this.slotStarts[op]; i < this.slotStarts[op + 1]; i++)
        if (this.given[i]) visit(this.slotTensors[i], op);
    }
  }

  /** The ops that use a tensor, each once. */
  users(tensor) {
    return [...new Set(Array.from(this.userLists.of(tensor), (i) => this.userOps[i]))];
  }

  /** Whether an op stands for its body, which is there too. */
  isCall(op) {
    let results = 0;
    for (let i = this.slotStarts[op]; i < this.slotStarts[op + 1]; i++) {
      if (this.given[i]) {
        results += 1;
        if (this.producer[this.slotTensors[i]] === op) return false;
      }
    }
    return results > 0;
  }

  annotation(tensor) {
    return this.annotations.get(this.tensors.cell[tensor]);
  }

  /** The innermost group of the program that an op is in, as a list of groups from the outermost. */
  path(op) {
    const found = [];
    let groups = this.groups;
    for (;;) {
      const inside = groups.find(([, , first, end]) => first <= op && op < end);
      if (!inside) return found;
      found.push(inside);
      groups = inside[4];
    }
  }

  // ---- Time ---------------------------------------------------------------------------------------------------

  /** The change at which stage number `n` begins; stage 0 begins after the annotations. */
  before(n) {
    return n === 0 ? 0 : this.ends[n - 1];
  }

  contentAt(cell, before) {
    const changes = this.changes.of(cell);
    const n = countBelow(changes, before);
    return n === 0 ? this.firstContent[cell] : this.log.kinds[this.log.kind[changes[n - 1]]].content;
  }

  content(tensor, before) {
    return this.contentAt(this.tensors.cell[tensor], before);
  }

  sharding(tensor, before) {
    return this.contents[this.content(tensor, before)];
  }

  /** The axes of which a tensor is a part already, inside of a shard_map. */
  manualAxes(tensor) {
    return this.manual[this.tensors.manual[tensor]];
  }

  /** The axes that shard a tensor; inside of a shard_map its manual ones too. */
  axesOf(tensor, before) {
    return [...this.contentAxes[this.content(tensor, before)], ...this.manualAxes(tensor)];
  }

  /** How many shards of a tensor there are. */
  shards(tensor, before) {
    const size = this.manualAxes(tensor).reduce((product, axis) => product * this.axes[axis].size, 1);
    return size * this.contentShards[this.content(tensor, before)];
  }

  /** The bytes of a tensor that a device holds. */
  local(tensor, before) {
    return Math.ceil(this.bytes(tensor) / this.shards(tensor, before));
  }

  /** The parts of a dimension's axes. */
  parts(tensor, dim, before) {
    return this.sharding(tensor, before)?.dims[dim] ?? [];
  }

  /** "[{data}, {}]", and "" for a tensor without a sharding; manual axes stand at the end. */
  text(tensor, before) {
    const manual = this.manualAxes(tensor).map((axis) => this.axes[axis].name);
    return [this.contentText(tensor, before), ...(manual.length > 0 ? [`manual ${manual.join(", ")}`] : [])]
      .filter(Boolean)
      .join(", ");
  }

  contentText(tensor, before) {
    const [content, rank] = [this.content(tensor, before), this.shape(tensor).length];
    const key = content * 64 + rank;
    if (!this.texts.has(key)) this.texts.set(key, this.shardingText(this.contents[content], rank));
    return this.texts.get(key);
  }

  shardingText(sharding, rank) {
    if (sharding === null) return "";
    const dims = Array.from(
      { length: rank },
      (_, d) => `{${(sharding.dims[d] ?? []).map(({ text }) => text).join(", ")}}`,
    );
    const fixed = sharding.fixed.map(([axis, why]) => `, ${why} ${axis}`);
    return `[${dims.join(", ")}]${fixed.join("")}`;
  }
}
