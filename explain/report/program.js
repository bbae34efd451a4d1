"use strict";
// The program as a graph, a group at a time: its ops, and the groups in it as single nodes.

const [SCOPE, REPEAT, MEMBER, PART] = [0, 1, 2, 3]; // kinds of groups
const OP_SIZE = { width: 216, height: 62 };
const GROUP_SIZE = { width: 216, height: 70 };
const SMALL_SIZE = { width: 180, height: 44 };
const PORT_SIZE = { width: 150, height: 44, port: true };
const PORT_NAME = 19; // characters
const MOST_PORTS = 2; // tensors from outside that a node shows one by one
const ZOOMS = [0.25, 0.4, 0.55, 0.7, 0.85, 1, 1.2, 1.5];

class Program {
  constructor(app) {
    this.app = app;
    this.view = byId("view-program");
    this.root = ["program", PART, 0, app.run.program, app.run.groups];
    this.trail = []; // the groups that we are in, the outermost first
    this.graphs = new Map(); // by group: what does not depend on the stage
    this.zoom = 5;
    this.crumbs = element("nav", { class: "crumbs", "aria-label": "Groups" });
    this.members = element("span", { class: "members" });
    this.legend = element("ul", { class: "legend", "aria-label": "Axes" });
    this.drawing = drawn("svg", { "aria-hidden": "true" });
    this.nodes = element("div", { class: "nodes", role: "group", "aria-label": "Ops and groups of ops" });
    this.canvas = element("div", { class: "canvas" }, this.drawing, this.nodes);
    this.sheet = element("div", { class: "sheet" }, this.canvas);
    this.window = element("div", { class: "window", keydown: (event) => this.key(event) }, this.sheet);
    this.view.append(
      element("div", { class: "tools" }, this.crumbs, this.members,
        element("span", { class: "right zoom" }, button("−", () => this.zoomBy(-1), { "aria-label": "Smaller" }),
          button("Fit", () => this.fit()), button("+", () => this.zoomBy(1), { "aria-label": "Larger" }))),
      this.legend, this.window);
    this.active = 0;
  }

  // ---- Where we are -------------------------------------------------------------------------------------------

  get group() { return this.trail[this.trail.length - 1] ?? this.root; }

  /** Goes to a group, given with those around it; of one that repeats, to its first member. */
  go(trail, focus = null) {
    this.trail = trail.slice();
    while (this.group[1] === REPEAT) this.trail.push(this.group[4][0]);
    this.active = 0;
    this.render(focus);
    if (focus === null) this.window.scrollTo(0, 0);
  }

  enter(group) {
    this.go([...this.trail, group]);
    this.focusNode(0);
    announce(`in ${groupName(this.group)}`);
  }

  leave() {
    if (this.trail.length === 0) return;
    const left = this.trail[this.trail.length - 1];
    let trail = this.trail.slice(0, -1);
    if (left[1] === MEMBER) trail = trail.slice(0, -1);
    this.go(trail, left[2]);
    this.focusNode(this.active);
  }

  /** The same group in the next layer, or the one before. */
  step(by) {
    const at = this.trail.findLastIndex(([, kind]) => kind === MEMBER);
    if (at < 0) return;
    const members = this.trail[at - 1][4];
    const now = members.indexOf(this.trail[at]);
    const next = Math.max(0, Math.min(members.length - 1, now + by));
    let inside = members[next];
    const trail = [...this.trail.slice(0, at), inside];
    for (let i = at + 1; i < this.trail.length; i++) {
      const number = this.trail[i - 1][4].indexOf(this.trail[i]);
      inside = inside[4][number];
      if (!inside) break;
      trail.push(inside);
    }
    const active = this.active;
    this.go(trail);
    this.focusNode(active);
    announce(groupName(members[next]));
  }

  showOp(op) {
    this.go(this.app.run.path(op), op);
    this.focusNode(this.active);
  }

  // ---- The graph of a group -----------------------------------------------------------------------------------

  /** The members of the group: `{first, end, group}`, where ops stand alone. */
  children() {
    const [, , first, end, groups] = this.group;
    const found = [];
    const alone = (from, to) => {
      for (let op = from; op < to; op++) if (!this.app.run.isCall(op)) found.push({ first: op, end: op + 1, group: null });
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

  graph() {
    const { group } = this;
    if (!this.graphs.has(group)) this.graphs.set(group, this.newGraph());
    return this.graphs.get(group);
  }

  newGraph() {
    const { run } = this.app;
    const children = this.children();
    const [, , first, end] = this.group;
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
          if (!tensors.get(tensor)) tensors.set(tensor, run.moves(op, tensor));
        }
      }
    }
    const ports = outside.flatMap((tensors, to) => {
      const list = [...tensors];
      const lists = list.length > MOST_PORTS ? [list] : list.map((tensor) => [tensor]);
      return lists.map((some) => ({ tensors: some, to }));
    });
    // Ports come first, so that edges go from smaller to larger numbers.
    const sizes = [...ports.map(() => PORT_SIZE), ...children.map((child) => this.sizeOf(child))];
    const lines = [
      ...ports.map(({ to, tensors }, i) => ({ from: i, to: to + ports.length, tensors: new Map(tensors.map((tensor) => [tensor, this.movesInto(children[to], tensor)])) })),
      ...[...joined].map(([key, tensors]) => ({ from: Math.floor(key / children.length) + ports.length, to: key % children.length + ports.length, tensors })),
    ];
    return { children, ports, sizes, lines, placed: layered(sizes, lines.map(({ from, to }) => [from, to])) };
  }

  render(focus = null) {
    this.renderCrumbs();
    this.renderLegend();
    const { children, ports, sizes, lines, placed } = this.graph();
    this.way = this.wayOps();
    this.size = { width: placed.width + 40, height: placed.height + 40 };
    this.canvas.style.width = `${this.size.width}px`;
    this.canvas.style.height = `${this.size.height}px`;
    this.drawing.setAttribute("width", this.size.width);
    this.drawing.setAttribute("height", this.size.height);
    this.drawing.replaceChildren(...lines.map((line, i) => this.edge(line, placed.paths[i])));
    const put = (node, i) => {
      Object.assign(node.style, { left: `${placed.x[i] + 20}px`, top: `${placed.y[i] + 20}px`, width: `${sizes[i].width}px`, height: `${sizes[i].height}px` });
      return node;
    };
    this.boxes = children.map((child, i) => put(child.group ? this.groupNode(child.group) : this.opNode(child.first), i + ports.length));
    this.nodes.replaceChildren(...ports.map((port, i) => put(this.portNode(port), i)), ...this.boxes);
    const at = focus === null ? -1 : children.findIndex(({ first, end }) => first <= focus && focus < end);
    if (at >= 0) {
      this.active = at;
      this.boxes[at].classList.add("found");
    }
    this.active = Math.min(this.active, this.boxes.length - 1);
    this.boxes.forEach((box, i) => { box.tabIndex = i === this.active ? 0 : -1; });
    this.applyZoom();
    if (at >= 0) this.boxes[at].scrollIntoView({ block: "center", inline: "center" });
  }

  sizeOf({ first, group }) {
    if (group) return GROUP_SIZE;
    return this.isSmall(first) ? SMALL_SIZE : OP_SIZE;
  }

  /** Whether an op is a constant, or data flow. */
  isSmall(op) {
    const { run } = this.app;
    return run.opName(op) === FLOW || run.operands(op).length === 0;
  }

  /** Whether a tensor must move for an op of a child. */
  movesInto({ first, end }, tensor) {
    const { run } = this.app;
    return run.conflicts.some(({ tensor: moved, at }) => moved === tensor && first <= at && at < end);
  }

  /** The ops by which the selected tensor got its axes. */
  wayOps() {
    const { run, tensor, before } = this.app;
    if (tensor < 0) return new Set();
    const ways = run.shape(tensor).flatMap((_, dim) => waysOf(run, tensor, dim, before));
    return new Set(ways.flatMap(({ way }) => way.steps.map(({ op }) => op)));
  }

  edge({ tensors }, path) {
    const { run, before } = this.app;
    const moves = [...tensors.values()].some(Boolean);
    const axes = [...tensors.keys()].map((tensor) => firstAxis(run, tensor, before));
    const axis = axes.find((found) => found >= 0) ?? -1;
    const shifted = path.map(([x, y]) => [x + 20, y + 20]);
    return drawn("path", { d: curve(shifted), class: `edge${axis >= 0 ? ` axis-${axis % 14}` : ""}${moves ? " moves" : ""}` });
  }

  opNode(op) {
    const { app } = this;
    const { run, before } = app;
    const tensor = run.results(op)[0] ?? run.operands(op)[0];
    const moved = run.conflicts.filter(({ at }) => at === op);
    const gained = app.stage > 0 && app.stage < run.stages.length && tensor !== undefined && run.content(tensor, before) !== run.content(tensor, run.before(app.stage - 1));
    const name = shortOp(run.opName(op));
    const text = tensor === undefined ? "" : `${run.name(tensor)}, ${run.text(tensor, before) || "no sharding"}`;
    return element("button", {
      type: "button", class: `node op${this.isSmall(op) ? " small" : ""}${gained ? " gained" : ""}${this.way.has(op) ? " way" : ""}${tensor === app.tensor ? " selected" : ""}`,
      "aria-label": `${name}: ${text}${moved.length > 0 ? `; ${moved.length} of its operands must move` : ""}`,
      title: [run.opName(op), text, run.opWhere(op)].filter(Boolean).join("\n"),
      click: () => { if (tensor !== undefined) app.select(tensor); }, focus: () => this.activate(op),
    },
    element("span", { class: "line" }, element("b", {}, name), tensor === undefined ? "" : element("span", { class: "code" }, run.name(tensor))),
    tensor === undefined ? "" : dimStrip(app, tensor),
    moved.length > 0 ? element("span", { class: "badge", title: "operands must move" }, `⇄ ${bytesText(moved.reduce((sum, { bytes }) => sum + bytes, 0))}`) : "");
  }

  groupNode(group) {
    const { app } = this;
    const { run } = app;
    const [, kind, first, end, members] = group;
    const times = kind === REPEAT ? members.length : 1;
    const ops = Math.round((end - first) / times);
    const moved = run.conflicts.filter(({ at }) => first <= at && at < end);
    const different = kind === REPEAT ? this.different(members) : 0;
    const place = times > 1 ? "" : run.opWhere(first).replace(/.*\//, "");
    const note = [`${manyText(ops, "op")}${times > 1 ? " each" : ""}`, ...(place ? [`from ${place}`] : []), ...(different > 0 ? [`${different} sharded differently`] : [])].join(", ");
    const onWay = [...this.way].some((op) => first <= op && op < end);
    return element("button", {
      type: "button", class: `node group${kind === REPEAT ? " repeat" : ""}${onWay ? " way" : ""}`,
      "aria-label": `group ${groupName(group)}${times > 1 ? `, ${times} times` : ""}, ${note}`, "aria-expanded": "false",
      click: () => this.enter(group), focus: () => this.activate(first),
    },
    element("span", { class: "line" }, element("b", {}, groupName(group)), times > 1 ? element("span", { class: "times" }, `×${times}`) : ""),
    element("span", { class: "note" }, note),
    shareBar(app, first, end),
    moved.length > 0 ? element("span", { class: "badge", title: "tensors must move" }, `⇄ ${bytesText(moved.reduce((sum, { bytes }) => sum + bytes, 0))}`) : "");
  }

  /** How many members of a repetition are sharded otherwise than most of them. */
  different(members) {
    const { run, before } = this.app;
    const keys = members.map(([, , first, end]) => {
      let key = "";
      run.eachResult(first, end, (tensor) => { key += `${run.content(tensor, before)} `; });
      return key;
    });
    const counts = new Map();
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    return members.length - Math.max(...counts.values());
  }

  portNode({ tensors }) {
    const { app } = this;
    const { run } = app;
    const [tensor] = tensors;
    const name = (run.producer[tensor] < 0 && run.where(tensor)) || run.name(tensor); // of an argument, its path
    if (tensors.length > 1) {
      return element("span", { class: "node port", title: tensors.slice(0, 20).map((t) => run.name(t)).join(", ") },
        element("span", { class: "line" }, `${tensors.length} inputs`));
    }
    return element("button", { type: "button", tabindex: -1, class: `node port${tensor === app.tensor ? " selected" : ""}`, click: () => app.select(tensor),
      title: [run.name(tensor), run.where(tensor), run.text(tensor, app.before)].filter(Boolean).join("\n") },
    element("span", { class: "line" }, element("span", { class: "code" }, name.length > PORT_NAME ? `…${name.slice(1 - PORT_NAME)}` : name)),
    dimStrip(app, tensor));
  }

  renderCrumbs() {
    const parts = [["program", []], ...this.trail.map((group, i) => [groupName(group), this.trail.slice(0, i + 1)])]
      .filter(([, trail]) => trail[trail.length - 1]?.[1] !== REPEAT);
    this.crumbs.replaceChildren(...parts.flatMap(([name, trail], i) => [
      ...(i ? [element("span", { "aria-hidden": "true" }, "›")] : []),
      i === parts.length - 1 ? element("b", { "aria-current": "true" }, name) : button(name, () => this.go(trail), { class: "link" }),
    ]));
    const at = this.trail.findLastIndex(([, kind]) => kind === MEMBER);
    this.members.hidden = at < 0;
    if (at >= 0) {
      const members = this.trail[at - 1][4];
      const now = members.indexOf(this.trail[at]);
      this.members.replaceChildren(button("‹", () => this.step(-1), { "aria-label": "Previous", disabled: now === 0 }),
        ` ${now + 1} of ${members.length} `, button("›", () => this.step(1), { "aria-label": "Next", disabled: now === members.length - 1 }));
    }
    const [, , first, end] = this.group;
    this.crumbs.append(element("span", { class: "note" }, manyText(end - first, "op")));
  }

  renderLegend() {
    const { run } = this.app;
    this.legend.replaceChildren(
      ...run.axes.map(({ name, size }, i) => element("li", {}, swatch(i), `${name} ${size}`)),
      element("li", {}, element("span", { class: "swatch none", "aria-hidden": "true" }), "not sharded"),
      element("li", {}, element("span", { class: "dash", "aria-hidden": "true" }), "must move"),
      ...(this.app.stage < run.stages.length ? [element("li", {}, element("span", { class: "dot", "aria-hidden": "true" }), "changed in this stage")] : []),
      ...(this.app.tensor >= 0 ? [element("li", {}, element("span", { class: "swatch way", "aria-hidden": "true" }), `derivation of ${run.name(this.app.tensor)}`)] : []));
  }

  // ---- Moving about -------------------------------------------------------------------------------------------

  zoomBy(by) {
    this.zoom = Math.max(0, Math.min(ZOOMS.length - 1, this.zoom + by));
    this.applyZoom();
  }

  fit() {
    const scale = Math.min(this.window.clientWidth / this.size.width, 1);
    this.zoom = Math.max(0, ZOOMS.findLastIndex((zoom) => zoom <= scale));
    this.applyZoom();
  }

  applyZoom() {
    const zoom = ZOOMS[this.zoom];
    this.canvas.style.transform = `scale(${zoom})`;
    this.sheet.style.width = `${this.size.width * zoom}px`;
    this.sheet.style.height = `${this.size.height * zoom}px`;
  }

  activate(op) {
    const at = this.children().findIndex(({ first, end }) => first <= op && op < end);
    if (at < 0 || at === this.active) return;
    this.boxes[this.active].tabIndex = -1;
    this.active = at;
    this.boxes[at].tabIndex = 0;
  }

  focusNode(i) {
    this.boxes[Math.max(0, Math.min(this.boxes.length - 1, i))]?.focus();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { Backspace: () => this.leave(), ",": () => this.step(-1), ".": () => this.step(1), "+": () => this.zoomBy(1), "-": () => this.zoomBy(-1) };
    const sides = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };
    if (event.key in keys) keys[event.key]();
    else if (event.key in sides) this.move(...sides[event.key]);
    else return;
    event.preventDefault();
  }

  /** To the nearest node on one side. */
  move(x, y) {
    const centre = ({ offsetLeft, offsetTop, offsetWidth, offsetHeight }) => [offsetLeft + offsetWidth / 2, offsetTop + offsetHeight / 2];
    const [x0, y0] = centre(this.boxes[this.active]);
    let [best, least] = [-1, Infinity];
    this.boxes.forEach((box, i) => {
      const [dx, dy] = [centre(box)[0] - x0, centre(box)[1] - y0];
      const [along, across] = x ? [dx * x, Math.abs(dy)] : [dy * y, Math.abs(dx)];
      const distance = x ? along + 50 * across : 4 * along + across;
      if (along > 1 && distance < least) [best, least] = [i, distance];
    });
    if (best >= 0) this.focusNode(best);
  }
}

const groupName = ([label, kind, first, end]) => label || (kind === PART ? `ops ${countText(first)}–${countText(end - 1)}` : "group");

function firstAxis(run, tensor, before) {
  const dims = run.sharding(tensor, before)?.dims ?? {};
  for (const parts of Object.values(dims)) if (parts.length > 0) return parts[0].axis;
  return -1;
}

/** A tensor's dimensions in a row, with their sizes and axes, coloured by axis. */
function dimStrip(app, tensor) {
  const { run, before } = app;
  const shape = run.shape(tensor);
  const strip = element("span", { class: "strip" });
  if (shape.length === 0) strip.append(element("span", { class: "piece" }, "scalar"));
  shape.forEach((size, d) => {
    const parts = run.parts(tensor, d, before);
    strip.append(element("span", { class: "piece" }, element("span", { class: "size" }, `${size}${parts.length > 0 ? ` ${parts.map(({ text }) => text).join(",")}` : ""}`),
      element("span", { class: "colours" }, ...parts.map(({ axis }) => element("span", { class: `axis-${axis % 14}` })))));
  });
  return strip;
}

/** The share of the bytes of a group's tensors that each axis shards. */
function shareBar(app, first, end) {
  const { run, before } = app;
  const bytes = new Float64Array(run.axes.length);
  let [all, none] = [0, 0];
  run.eachResult(first, end, (tensor) => {
    const own = run.bytes(tensor);
    const axes = run.axesOf[run.content(tensor, before)];
    all += own;
    for (const axis of axes) bytes[axis] += own / axes.length;
    if (axes.length === 0) none += own;
  });
  const piece = (share, kind) => element("span", { class: kind, style: `flex-grow: ${share}` });
  const label = run.axes.map(({ name }, i) => `${name} ${percentText(bytes[i] / (all || 1))}`).join(", ");
  return element("span", { class: "share", title: `bytes by axis: ${label}` },
    ...[...bytes].flatMap((some, i) => (some > 0 ? [piece(some / all, `axis-${i % 14}`)] : [])),
    ...(none > 0 || all === 0 ? [piece(all === 0 ? 1 : none / all, "none")] : []));
}
