"use strict";
// What the partitioned program costs on a machine: where the time goes, by layer, collective, op and source line.

const MOST = 20; // rows of a table
const LIMITS = { compute: "computing", memory: "memory", links: "links", launch: "launches" };

/** 0.0012 -> "1.2 ms". */
function timeText(seconds) {
  const [scale, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
  return `${(seconds / scale).toLocaleString("en", { maximumSignificantDigits: 3 })} ${unit}`;
}

/** 1.2e9 -> "1.2 G". */
function operationsText(n) {
  let unit = 0;
  while (n >= 1000 && unit < 5) {
    n /= 1000;
    unit += 1;
  }
  return `${n.toLocaleString("en", { maximumSignificantDigits: 3 })} ${["", "K", "M", "G", "T", "P"][unit]}`;
}

/** A bar with a part for each of what limits: `parts` are seconds by name, `all` is the seconds of a full bar. */
function limitBar(parts, all) {
  const found = Object.keys(LIMITS).filter((name) => parts[name] > 0);
  return element(
    "span",
    { class: "limits" },
    ...found.map((name) =>
      element("span", {
        class: `fill limit-${name}`,
        style: `width: ${(100 * parts[name]) / (all || 1)}%`,
        title: `${LIMITS[name]}: ${timeText(parts[name])}`,
      }),
    ),
  );
}

/** The first of some, and how many more there are. */
const firstOf = (some) => (some.length > 1 ? `${some[0]} and ${countText(some.length - 1)} more` : (some[0] ?? "–"));

/** What the colours of bars stand for. */
const limitLegend = () =>
  element(
    "ul",
    { class: "legend", "aria-label": "What limits" },
    ...Object.entries(LIMITS).map(([name, text]) =>
      element("li", {}, element("span", { class: `swatch limit-${name}` }), text),
    ),
  );

class Cost {
  constructor(app) {
    this.app = app;
    this.view = byId("view-cost");
    this.cost = app.run.cost;
  }

  render() {
    if (!this.cost) {
      this.view.replaceChildren(element("p", { class: "note" }, ...prose(this.app.run.uncosted)));
      return;
    }
    const { layers, ops, places, stacks, collectives, redundant } = this.cost;
    const section = (title, ...inside) =>
      element("section", { "aria-label": title }, element("h3", {}, title), ...inside);
    const more = (rows) =>
      rows.length > MOST ? [element("p", { class: "note" }, `and ${countText(rows.length - MOST)} more`)] : [];
    const timed = (title, rows) =>
      section(title, this.timed(title === "Ops" ? "op" : "at", rows.slice(0, MOST)), ...more(rows));
    this.view.replaceChildren(
      element("h2", { class: "hidden" }, "Cost"),
      this.cards(),
      ...(ops.length > 0 ? [limitLegend(), timelinePicture(this.app.run)] : []),
      ...(ops.length === 0 ? [] : layers.length > 0 ? [section("Where the time goes", this.layers())] : []),
      ...[memoryPicture(this.app.run), linksPicture(this.app.run), matrixPicture(this.app)].filter(Boolean),
      ...(collectives.length > 0 ? [section("Collectives", this.collectives(), ...more(collectives))] : []),
      ...(this.cost.held.length > 0 ? [section("Memory at the peak", this.held(), ...more(this.cost.held))] : []),
      element(
        "div",
        { class: "columns" },
        ...(ops.length > 0 ? [timed("Ops", ops)] : []),
        ...(places.some(({ name }) => name) ? [timed("Source lines", places)] : []),
      ),
      ...(stacks.some(({ name }) => name) ? [timed("Name stacks", stacks)] : []),
      ...(redundant.length > 0 ? [section("Computed more than once", this.redundant(), ...more(redundant))] : []),
    );
  }

  cards() {
    const { topology, seconds, limited, sure, launches, waits, flops, redundant, touched, sent, peak, memory } = this.cost;
    const again = redundant.reduce((sum, [, , amount]) => sum + amount, 0);
    const card = (title, value, note, ...rest) =>
      element(
        "div",
        { class: "card" },
        element("span", { class: "title" }, title),
        element("span", { class: "value" }, value),
        element("span", { class: "note" }, note),
        ...rest,
      );
    const parts = Object.entries(sure).sort(([, one], [, other]) => other - one);
    const late = `the host adds ${timeText(waits)}, ${percentText(waits / (waits + seconds || 1))} of a step`;
    return element(
      "div",
      { class: "cards" },
      card("Time", timeText(seconds), `on ${topology}, one after the other`, limitBar(limited, seconds)),
      ...(parts.length > 0
        ? [card("How sure", parts[0][0], parts.map(([how, part]) => `${how} ${percentText(part / seconds)}`).join(", "))]
        : []),
      ...(launches > 0
        ? [card("Kernels", countText(launches), waits > 0 ? late : "launched while others run")]
        : []),
      card("Sent", bytesText(sent), `by each device, ${percentText(limited.links / (seconds || 1))} of the time`),
      card("Operations", operationsText(flops), again > 0 ? `${percentText(again / flops)} redundant` : "none redundant"),
      card("Read and written", bytesText(touched), "of a device's memory"),
      card("Memory", bytesText(peak), `at most, ${percentText(peak / memory)} of ${bytesText(memory)}`),
    );
  }

  layers() {
    const all = this.cost.seconds;
    const longest = Math.max(...this.cost.layers.map(({ seconds }) => seconds));
    const rows = [];
    const add = (layer, depth) => {
      rows.push(
        element(
          "tr",
          {},
          element(
            "th",
            { scope: "row", style: `padding-left: ${1.2 * depth}rem` },
            layer.label,
            layer.times > 1 ? element("span", { class: "note" }, ` × ${countText(layer.times)}`) : "",
          ),
          element("td", { class: "bar" }, limitBar(layer.limited, longest)),
          element("td", { class: "number" }, timeText(layer.seconds)),
          element("td", { class: "number" }, percentText(layer.seconds / (all || 1))),
        ),
      );
      for (const part of layer.parts) add(part, depth + 1);
    };
    for (const layer of this.cost.layers) add(layer, 0);
    return table(["layer", "", "time", "of all"], 2, rows);
  }

  collectives() {
    const row = ({ numbers, op, serves, where, times, bytes, seconds, causes }) =>
      element(
        "tr",
        {},
        element("td", {}, firstOf(numbers)),
        element("td", { class: "word" }, op),
        element("td", {}, shortOp(serves)),
        element("td", { class: "place" }, where),
        element("td", { class: "number" }, countText(times)),
        element("td", { class: "number" }, bytesText(bytes)),
        element("td", { class: "number" }, timeText(seconds)),
        element("td", { class: "place", title: causes.join("\n") }, firstOf(causes)),
      );
    const rows = this.cost.collectives.slice(0, MOST).map(row);
    return table(["number", "collective", "for", "at", "times", "bytes", "time", "because of"], [4, 5, 6], rows);
  }

  held() {
    const row = ({ what, where, count, bytes }) =>
      element(
        "tr",
        {},
        element("td", {}, shortOp(what)),
        element("td", { class: "place" }, where || "–"),
        element("td", { class: "number" }, countText(count)),
        element("td", { class: "number" }, bytesText(bytes)),
        element("td", { class: "number" }, percentText(bytes / (this.cost.peak || 1))),
      );
    return table(["held", "at", "count", "memory", "of all"], 2, this.cost.held.slice(0, MOST).map(row));
  }

  timed(title, rows) {
    const longest = Math.max(...rows.map(({ seconds }) => seconds), 0);
    const row = ({ name, seconds, limited }) =>
      element(
        "tr",
        {},
        element("td", { class: "place" }, title === "op" ? shortOp(name) : name || "–"),
        element("td", { class: "bar" }, limitBar(limited, longest)),
        element("td", { class: "number" }, timeText(seconds)),
        element("td", { class: "number" }, percentText(seconds / (this.cost.seconds || 1))),
      );
    return table([title, "", "time", "of all"], 2, rows.map(row));
  }

  redundant() {
    const row = ([op, where, amount, part]) =>
      element(
        "tr",
        {},
        element("td", {}, shortOp(op)),
        element("td", { class: "place" }, where),
        element("td", { class: "number" }, operationsText(amount)),
        element("td", { class: "number" }, percentText(part)),
      );
    const rows = this.cost.redundant.slice(0, MOST).map(row);
    return table(["op", "at", "operations too many", "of its own"], 2, rows);
  }
}
