"use strict";
// The summary: what is sharded, what moves, the mesh, the annotations, the run.

const TOP = 5;
const REACHES = 10;

class Summary {
  constructor(app) {
    this.app = app;
    this.view = byId("view-summary");
  }

  render() {
    const { app } = this;
    const { run } = app;
    this.view.replaceChildren(
      element("h2", { class: "hidden" }, "Summary"),
      this.cards(),
      element(
        "div",
        { class: "columns" },
        element(
          "section",
          { "aria-label": "Mesh" },
          element("h3", {}, run.meshes.length === 1 ? "Mesh" : "Meshes"),
          ...this.meshes(),
        ),
        element("section", { "aria-label": "Conflicts" }, element("h3", {}, "Most expensive conflicts"), this.top()),
      ),
      ...(run.plan ? [this.plan()] : []),
      element("section", { "aria-label": "Annotations" }, element("h3", {}, "Annotations by reach"), this.reach()),
      element("section", { "aria-label": "Run" }, element("h3", {}, "The run, by stage"), this.stages()),
      ...(run.unknown.length > 0
        ? [element("section", { "aria-label": "Unknown ops" }, element("h3", {}, "Ops without a rule"), this.unknown())]
        : []),
    );
  }

  cards() {
    const { app } = this;
    const { run, before } = app;
    let [all, local, sharded, shardedBytes, held, heldLocal] = [0, 0, 0, 0, 0, 0];
    for (let t = 0; t < run.shown; t++) {
      const [bytes, own] = [run.bytes(t), run.local(t, before)];
      all += bytes;
      local += own;
      if (run.shards(t, before) > 1) {
        sharded += 1;
        shardedBytes += bytes;
      }
      if (run.producer[t] < 0) {
        held += bytes;
        heldLocal += own;
      }
    }
    const moved = run.conflicts.reduce((sum, { bytes }) => sum + bytes, 0);
    const unknown = run.unknown.reduce((sum, { count }) => sum + count, 0);
    const card = (title, value, note, open = null) =>
      element(
        open ? "button" : "div",
        { class: "card", ...(open ? { type: "button", click: open } : {}) },
        element("span", { class: "title" }, title),
        element("span", { class: "value" }, value),
        element("span", { class: "note" }, note),
      );
    return element(
      "div",
      { class: "cards" },
      card("Ops", countText(run.program), `${countText(run.shown)} tensors`, () => app.show("program")),
      card(
        "Sharded",
        percentText(sharded / (run.shown || 1)),
        `of the tensors, ${percentText(shardedBytes / (all || 1))} of the bytes`,
        () => app.showTensors("sharded"),
      ),
      card("Arguments", bytesText(heldLocal), `on each device, ${bytesText(held)} in all`, () =>
        app.showTensors("arguments"),
      ),
      card("All tensors", bytesText(local), `on each device, ${bytesText(all)} in all`, () => app.showTensors("all")),
      card(
        "Conflicts",
        run.unpartitioned ? "unknown" : countText(run.conflicts.length),
        run.conflicts.length > 0 ? `${bytesText(moved)} move to each device` : nothingMoves(run),
        () => app.show("conflicts"),
      ),
      ...(run.cost
        ? [
            card(
              "Time",
              timeText(run.cost.seconds),
              `on ${run.cost.topology}, ${percentText(run.cost.limited.links / (run.cost.seconds || 1))} of it on links`,
              () => app.show("cost"),
            ),
          ]
        : []),
      card(
        "Ops without a rule",
        countText(unknown),
        unknown > 0 ? `${manyText(run.unknown.length, "kind")}: no sharding passes` : "all are known",
      ),
    );
  }

  /** The automatic choice of the shardings: a picture, the plans that were compared, and what comes next. */
  plan() {
    const { head, tried, specs, picture } = this.app.run.plan;
    const rows = (names, lines) =>
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))),
        element(
          "tbody",
          {},
          ...lines.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell)))),
        ),
      );
    return element(
      "section",
      { "aria-label": "Plan" },
      element("h3", {}, "Plan"),
      ...head.map((line) => element("p", {}, line)),
      element("img", { alt: "Time against memory of the plans", src: `data:image/svg+xml;base64,${picture}` }),
      rows(["plan", "mesh", "time", "peak"], tried),
      rows(["argument or result", "sharding", "next best"], specs),
    );
  }

  meshes() {
    const { run, before } = this.app;
    const bytes = new Float64Array(run.axes.length);
    let all = 0;
    for (let t = 0; t < run.shown; t++) {
      all += run.bytes(t);
      for (const axis of run.axesOf(t, before)) bytes[axis] += run.bytes(t);
    }
    const row = (axis, i) => {
      const share = bytes[i] / (all || 1);
      const link = button("", () => this.app.search(`axis:${axis.name}`), { class: "link", title: "Show its tensors" });
      link.append(swatch(i), axis.name);
      const fill = element("span", { class: `fill axis-${i % 14}`, style: `width: ${100 * share}%` });
      const size = element("td", { class: "number" }, countText(axis.size));
      const text = element("td", { class: "number" }, percentText(share));
      return element(
        "tr",
        {},
        element("th", { scope: "row" }, link),
        size,
        element("td", { class: "bar" }, fill),
        text,
      );
    };
    return run.meshes.map((mesh, number) => {
      const devices = mesh.axes.reduce((product, [, size]) => product * size, 1);
      const rows = run.axes.flatMap((axis, i) => (axis.mesh === number ? [row(axis, i)] : []));
      return element(
        "table",
        { class: "mesh" },
        element(
          "caption",
          {},
          code(`@${mesh.name}`),
          ` ${mesh.axes.map(([, size]) => size).join(" × ") || 1} = ${manyText(devices, "device")}`,
        ),
        element(
          "thead",
          {},
          element("tr", {}, ...["axis", "size", "", "of bytes"].map((title, i) =>
            element("th", { scope: "col", class: i % 2 ? "number" : null }, title),
          )),
        ),
        element("tbody", {}, ...rows),
      );
    });
  }

  top() {
    const { app } = this;
    const { run } = app;
    if (run.conflicts.length === 0) return element("p", { class: "note" }, ...prose(run.unpartitioned || nothingMoves(run)));
    return element(
      "ol",
      { class: "top" },
      ...run.folds
        .slice(0, TOP)
        .map((same) => ({ ...same[0], times: same.length }))
        .map((conflict) =>
          element(
            "li",
            {},
            element(
              "button",
              { type: "button", class: "link", click: () => app.showConflict(conflict) },
              `${bytesText(conflict.bytes * conflict.times)}, ${conflict.times > 1 ? `${conflict.times} × ` : ""}${conflict.collective} of `,
              code(run.conflictTitle(conflict)),
            ),
            ` for ${shortOp(conflict.op)}`,
            conflict.where ? element("span", { class: "note" }, ` at ${conflict.where}`) : "",
          ),
        ),
    );
  }

  reach() {
    const { app } = this;
    const { run } = app;
    const found = (this.reached ??= reachOf(run));
    if (found.length === 0) return element("p", { class: "note" }, "Nothing is annotated.");
    const rows = found
      .slice(0, REACHES)
      .map(({ annotation, tensors, bytes }) =>
        element(
          "tr",
          {},
          element("td", {}, tensorLink(app, annotation.tensor)),
          element("td", {}, code(annotation.text)),
          element("td", {}, placeOf(run, annotation)),
          element("td", { class: "number" }, countText(tensors)),
          element("td", { class: "number" }, bytesText(bytes)),
        ),
      );
    const more = found.length - rows.length;
    return element(
      "div",
      {},
      table(["annotated", "sharding", "at", "tensors", "bytes"], 3, rows),
      ...(more > 0
        ? [
            element(
              "p",
              { class: "note" },
              button(`all ${countText(found.length)} annotations`, () => app.showTensors("annotated"), {
                class: "link",
              }),
            ),
          ]
        : []),
    );
  }

  stages() {
    const { run, stage } = this.app;
    const rows = run.stages.map(({ priority, level, strategy, turns, distinct, changes }, i) =>
      element(
        "tr",
        { "aria-current": i + 1 === stage ? "true" : null },
        element(
          "td",
          {},
          button(String(i + 1), () => this.app.setStage(i + 1), {
            class: "link",
            title: "Show what was known after it",
          }),
        ),
        element("td", { class: "number" }, String(priority)),
        element("td", { class: "number" }, level === null ? "–" : String(level)),
        element("td", {}, strategy),
        ...[turns, distinct, changes].map((n) => element("td", { class: "number" }, countText(n))),
      ),
    );
    return table(
      ["stage", "user priority", "op priority", "strategy", "turns", "distinct turns", "changes"],
      [1, 2, 4, 5, 6],
      rows,
    );
  }

  unknown() {
    const row = ({ name, count, location, reason }) =>
      element(
        "tr",
        {},
        element("td", {}, code(name)),
        element("td", { class: "number" }, countText(count)),
        element("td", {}, location),
        element("td", {}, ...prose(reason)),
      );
    return table(["op", "times", "first at", "why"], [1], this.app.run.unknown.map(row));
  }
}

/** Where an annotation was given; of an argument, its name in the module. */
function placeOf(run, annotation) {
  if (isSpec(annotation)) return specText(annotation);
  const { tensor, where } = annotation;
  return where === run.title(tensor) ? run.name(tensor) : where;
}

/**
 * A plain table; `numbers` are the columns of numbers, or the first of them. In narrow windows the rows of one with many
 * columns are cards, whose cells say their titles.
 */
function table(titles, numbers, rows) {
  const cards = titles.length > 3 && !titles.includes("");
  if (cards) {
    for (const row of rows) [...row.children].forEach((cell, i) => cell.setAttribute("data-title", titles[i]));
  }
  const isNumber = (i) => (Array.isArray(numbers) ? numbers.includes(i) : i >= numbers);
  return element(
    "table",
    { class: cards ? "many" : null },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        ...titles.map((title, i) => element("th", { scope: "col", class: isNumber(i) ? "number" : null }, title)),
      ),
    ),
    element("tbody", {}, ...rows),
  );
}
