"use strict";
// The program as a graph, a group at a time: its ops, and the groups in it as single nodes.

const MOSTLY = 0.8; // of the ops, for a group to be what the program is about
const READABLE = 0.7; // how small the program is at first
const ABOVE = 120; // pixels above the group that the program opens on
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
      element(
        "div",
        { class: "tools" },
        this.crumbs,
        this.members,
        element(
          "span",
          { class: "right zoom" },
          button("−", () => this.zoomBy(-1), { "aria-label": "Smaller" }),
          button("Fit", () => this.fit()),
          button("+", () => this.zoomBy(1), { "aria-label": "Larger" }),
        ),
      ),
      this.legend,
      this.window,
    );
    this.active = 0;
    this.opened = false;
  }

  // ---- Where we are -------------------------------------------------------------------------------------------

  get group() {
    return this.trail[this.trail.length - 1] ?? this.root;
  }

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

  graph() {
    const { group } = this;
    if (!this.graphs.has(group)) this.graphs.set(group, graphOf(this.app.run, group));
    return this.graphs.get(group);
  }

  /** The first time: goes into the groups that are nearly all of the program, and to the largest group there. */
  open() {
    this.opened = true;
    const size = ([, , first, end]) => end - first;
    const largest = (group) => group[4].reduce((most, one) => (most && size(most) >= size(one) ? most : one), null);
    for (;;) {
      const inside = largest(this.group);
      if (!inside || inside[1] === REPEAT || size(inside) < MOSTLY * size(this.group)) break;
      this.trail.push(inside);
    }
    this.render();
    if (this.window.clientWidth < this.size.width) this.fit(READABLE);
    const model = largest(this.group);
    if (!model) return;
    this.active = this.graph().children.findIndex(({ group }) => group === model);
    this.boxes.forEach((box, i) => {
      box.tabIndex = i === this.active ? 0 : -1;
    });
    const { offsetTop, offsetLeft, offsetWidth } = this.boxes[this.active];
    const zoom = ZOOMS[this.zoom];
    this.window.scrollTo((offsetLeft + offsetWidth / 2) * zoom - this.window.clientWidth / 2, Math.max(0, offsetTop * zoom - ABOVE));
  }

  render(focus = null) {
    if (!this.opened) {
      this.open();
      if (focus === null) return;
    }
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
      Object.assign(node.style, {
        left: `${placed.x[i] + 20}px`,
        top: `${placed.y[i] + 20}px`,
        width: `${sizes[i].width}px`,
        height: `${sizes[i].height}px`,
      });
      return node;
    };
    this.boxes = children.map((child, i) => put(this.node(child), i + ports.length));
    this.nodes.replaceChildren(...ports.map((port, i) => put(portNode(this.app, port), i)), ...this.boxes);
    const at = focus === null ? -1 : children.findIndex(({ first, end }) => first <= focus && focus < end);
    if (at >= 0) {
      this.active = at;
      this.boxes[at].classList.add("found");
    }
    this.active = Math.min(this.active, this.boxes.length - 1);
    this.boxes.forEach((box, i) => {
      box.tabIndex = i === this.active ? 0 : -1;
    });
    this.applyZoom();
    if (at >= 0) this.boxes[at].scrollIntoView({ block: "center", inline: "center" });
  }

  node({ first, group }) {
    const focus = () => this.activate(first);
    if (!group) return opNode(this.app, this.way, first, { focus });
    return groupNode(this.app, this.way, group, { focus, click: () => this.enter(group) });
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
    return drawn("path", {
      d: curve(shifted),
      class: `edge${axis >= 0 ? ` axis-${axis % 14}` : ""}${moves ? " moves" : ""}`,
    });
  }

  renderCrumbs() {
    const parts = [
      ["program", []],
      ...this.trail.map((group, i) => [groupName(group), this.trail.slice(0, i + 1)]),
    ].filter(([, trail]) => trail[trail.length - 1]?.[1] !== REPEAT);
    this.crumbs.replaceChildren(
      ...parts.flatMap(([name, trail], i) => [
        ...(i ? [element("span", { "aria-hidden": "true" }, "›")] : []),
        i === parts.length - 1
          ? element("b", { "aria-current": "true" }, name)
          : button(name, () => this.go(trail), { class: "link" }),
      ]),
    );
    const at = this.trail.findLastIndex(([, kind]) => kind === MEMBER);
    this.members.hidden = at < 0;
    if (at >= 0) {
      const members = this.trail[at - 1][4];
      const now = members.indexOf(this.trail[at]);
      this.members.replaceChildren(
        button("‹", () => this.step(-1), { "aria-label": "Previous", disabled: now === 0 }),
        ` ${now + 1} of ${members.length} `,
        button("›", () => this.step(1), { "aria-label": "Next", disabled: now === members.length - 1 }),
      );
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
      ...(this.app.stage < run.stages.length
        ? [element("li", {}, element("span", { class: "dot", "aria-hidden": "true" }), "changed in this stage")]
        : []),
      ...(this.app.tensor >= 0
        ? [
            element(
              "li",
              {},
              element("span", { class: "swatch way", "aria-hidden": "true" }),
              `derivation of ${run.title(this.app.tensor)}`,
            ),
          ]
        : []),
    );
  }

  // ---- Moving about -------------------------------------------------------------------------------------------

  zoomBy(by) {
    this.zoom = Math.max(0, Math.min(ZOOMS.length - 1, this.zoom + by));
    this.applyZoom();
  }

  fit(least = 0) {
    const scale = Math.max(least, Math.min(this.window.clientWidth / this.size.width, 1));
    this.zoom = Math.max(
      0,
      ZOOMS.findLastIndex((zoom) => zoom <= scale),
    );
    this.applyZoom();
  }

  applyZoom() {
    const zoom = ZOOMS[this.zoom];
    this.canvas.style.transform = `scale(${zoom})`;
    this.sheet.style.width = `${this.size.width * zoom}px`;
    this.sheet.style.height = `${this.size.height * zoom}px`;
  }

  activate(op) {
    const at = this.graph().children.findIndex(({ first, end }) => first <= op && op < end);
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
    const keys = {
      Backspace: () => this.leave(),
      ",": () => this.step(-1),
      ".": () => this.step(1),
      "+": () => this.zoomBy(1),
      "-": () => this.zoomBy(-1),
    };
    const sides = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };
    if (event.key in keys) keys[event.key]();
    else if (event.key in sides) this.move(...sides[event.key]);
    else return;
    event.preventDefault();
  }

  /** To the nearest node on one side. */
  move(x, y) {
    const centre = ({ offsetLeft, offsetTop, offsetWidth, offsetHeight }) => [
      offsetLeft + offsetWidth / 2,
      offsetTop + offsetHeight / 2,
    ];
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
