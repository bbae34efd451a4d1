"use strict";
// A step of the program: when what is computed and sent, the memory, the links, and which layer sends what.

const MARKS = 5; // times that are written below the timeline
const MOST_NODES = 6; // devices of an axis that are drawn

/** Colours of layers; a name always stands beside them. The last of many is of all others. */
const layerColour = (number, names) => (names[number] === "others" ? "var(--none)" : `hsl(${(number * 47 + 205) % 360} 55% 55%)`);

const layerLegend = (names) =>
  element(
    "ul",
    { class: "legend", "aria-label": "Layers" },
    ...names.map((name, i) =>
      element("li", {}, element("span", { class: "swatch", style: `background: ${layerColour(i, names)}`, "aria-hidden": "true" }), name),
    ),
  );

/** A drawing that is as wide as there is room, in which `wide` units are the step. */
function strip(wide, high, pixels, label) {
  return drawn("svg", {
    viewBox: `0 0 ${wide} ${high}`,
    preserveAspectRatio: "none",
    style: `height: ${pixels}px`,
    class: "strip-picture",
    ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }),
  });
}

/** Reads a picture at a place: by the pointer, or with the arrow keys. `say(share)` is what is there, in words. */
function reader(picture, label, say) {
  const cursor = element("span", { class: "cursor", hidden: true });
  const output = element("output", { class: "note read" }, "Point at it, or use the arrow keys.");
  let share = 0;
  const show = (at) => {
    share = Math.max(0, Math.min(1, at));
    cursor.hidden = false;
    cursor.style.left = `${100 * share}%`;
    output.textContent = say(share);
  };
  const area = element(
    "div",
    {
      class: "readable",
      tabindex: 0,
      role: "slider",
      "aria-label": label,
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": 0,
      pointermove: ({ clientX }) => {
        const { left, width } = area.getBoundingClientRect();
        show((clientX - left) / (width || 1));
      },
      keydown: (event) => {
        const by = { ArrowLeft: -0.01, ArrowRight: 0.01, Home: -1, End: 1 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        show(share + by);
        area.setAttribute("aria-valuenow", Math.round(100 * share));
        area.setAttribute("aria-valuetext", output.textContent);
      },
    },
    picture,
    cursor,
  );
  return [area, output];
}

/** What is computed and sent when. */
function timelinePicture(run) {
  const { seconds, pictures } = run.cost;
  const { tracks, layers, pieces, whole } = pictures.timeline;
  const busy = tracks.map((_, track) => pieces.reduce((sum, [at, , length]) => sum + (at === track ? length : 0), 0) / whole);
  const said = tracks.map((name, i) => `${name} ${percentText(busy[i])}`).join(", ");
  const rect = ([, begin, length], given, text) =>
    withTitle(drawn("rect", { x: begin, y: 0, width: Math.max(length, whole / 1500), height: 10, ...given }), text);
  const time = (part) => timeText((part / whole) * seconds);
  const bands = [];
  for (const [, begin, length, layer] of pieces.slice().sort((a, b) => a[1] - b[1])) {
    const end = Math.max(begin + length, bands.at(-1)?.[1] ?? 0);
    if (bands.at(-1)?.[2] === layer) bands.at(-1)[1] = end;
    else bands.push([bands.at(-1)?.[1] ?? begin, end, layer]);
  }
  const band = strip(whole, 10, 12);
  band.append(...bands.map(([begin, end, layer]) => rect([0, begin, end - begin], { style: `fill: ${layerColour(layer, layers)}` }, layers[layer])));
  const line = (name, drawing) => element("div", { class: "track" }, element("span", { class: "note" }, name), drawing);
  const lines = tracks.map((name, track) => {
    const drawing = strip(whole, 10, 18);
    drawing.append(
      ...pieces
        .filter(([at]) => at === track)
        .map((piece) => {
          const [, , length, layer, limit, op, ops] = piece;
          const text = `${shortOp(op)}${ops > 1 ? ` and others, ${countText(ops)} ops` : ""}: ${time(length)}, ${LIMITS[limit]}, ${layers[layer]}`;
          return rect(piece, { class: `limit-${limit} piece-of-step` }, text);
        }),
    );
    return line(`${name}, ${percentText(busy[track])}`, drawing);
  });
  const there = (share) => {
    const at = share * whole;
    const found = pieces.filter(([, begin, length]) => begin <= at && at <= begin + length);
    const parts = found.map(([track, , , layer, , op]) => `${tracks[track]}: ${shortOp(op)} (${layers[layer]})`);
    return `${time(at)}: ${parts.join("; ") || "nothing"}`;
  };
  const marks = Array.from({ length: MARKS }, (_, i) => element("span", {}, time((whole * i) / (MARKS - 1))));
  const tracks_ = element("div", { class: "tracks" }, line("layers", band), ...lines);
  return figure(
    "Timeline",
    `${timeText(seconds)} on ${run.cost.topology}, busy: ${said}.`,
    ...reader(tracks_, "Timeline of the step", there),
    element("div", { class: "marks note", "aria-hidden": "true" }, ...marks),
    layerLegend(layers),
    element("p", { class: "note" }, "For Perfetto: ", code(`shardlog cost ${run.module}${run.arguments} --trace step.json`)),
  );
}

/** What is live over the step, by layer, and where most of it is. */
function memoryPicture(run) {
  const { usage } = run.cost.pictures;
  const { layers, moments, times } = usage;
  const always = usage.arguments + usage.results;
  const total = moments.map(([, live]) => always + live.reduce((sum, bytes) => sum + bytes, 0));
  const most = Math.max(...total);
  const peak = total.indexOf(most);
  const wide = Math.max(moments.length, 1);
  const drawing = strip(wide, most || 1, 170, `Memory over the step, ${bytesText(most)} at most`);
  const area = (low, high) => {
    const top = high.map((bytes, i) => `L${i} ${most - bytes}L${i + 1} ${most - bytes}`).join("");
    const down = low.map((bytes, i) => `L${i + 1} ${most - bytes}L${i} ${most - bytes}`).reverse().join("");
    return `M0 ${most - high[0]}${top}${down}Z`;
  };
  let below = moments.map(() => 0);
  const add = (bytes, style, name) => {
    const above = below.map((low, i) => low + bytes(i));
    drawing.append(withTitle(drawn("path", { d: area(below, above), style }), name));
    below = above;
  };
  if (moments.length > 0) add(() => always, "fill: var(--edge)", "arguments and results");
  layers.forEach((name, n) => add((i) => moments[i][1][n], `fill: ${layerColour(n, layers)}`, name));
  const at = (i) => {
    const [time, live] = moments[i];
    const parts = live.map((bytes, n) => [bytes, layers[n]]).filter(([bytes]) => bytes > 0);
    parts.sort(([one], [other]) => other - one);
    const said = parts.slice(0, 3).map(([bytes, name]) => `${name} ${bytesText(bytes)}`);
    return `op ${countText(time >> 1)} of ${countText(times >> 1)}: arguments and results ${bytesText(always)}${said.length > 0 ? `, ${said.join(", ")}` : ""}`;
  };
  if (moments.length === 0) return null;
  const mark = element("span", { class: "peak-mark", style: `left: ${(100 * (peak + 0.5)) / wide}%` }, element("span", {}, "peak"));
  if (peak > wide / 2) mark.classList.add("leftwards");
  const picture = element("div", { class: "memory-picture" }, drawing, mark);
  return figure(
    "Memory over the step",
    `at most ${bytesText(most)}, at ${at(peak)}.`,
    ...reader(picture, "Memory over the step", (share) => {
      const i = Math.min(wide - 1, Math.floor(share * wide));
      return `${bytesText(total[i])} at ${at(i)}`;
    }),
    element(
      "ul",
      { class: "legend", "aria-label": "Layers" },
      element("li", {}, element("span", { class: "swatch", style: "background: var(--edge)", "aria-hidden": "true" }), "arguments and results"),
      ...layerLegend(layers).children,
    ),
  );
}

/** The mesh with its links: how full each is, which is the part of the step for which it sends. */
function linksPicture(run) {
  const { links } = run.cost.pictures;
  if (links.length === 0) return null;
  const busy = new Map();
  for (const { axes, busy: share } of links) {
    for (const text of axes) {
      const name = text.replace(/:\(\d+\)\d+$/, "");
      busy.set(name, (busy.get(name) ?? 0) + share);
    }
  }
  const mesh = run.meshes.reduce((most, one) => (one.axes.filter(([name]) => busy.has(name)).length > most.axes.filter(([name]) => busy.has(name)).length ? one : most));
  const axes = mesh.axes.filter(([, size]) => size > 1);
  const said = axes.map(([name, size]) => `${name} (${size}) ${percentText(busy.get(name) ?? 0)}`).join(", ");
  const grids = [];
  for (let i = 0; i < axes.length; i += 2) grids.push(gridOf(axes[i + 1] ?? null, axes[i], busy));
  const longest = Math.max(...links.map((link) => link.busy));
  const rows = links.map(({ axes: names, busy: share, bytes, times }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, names.join(", ")),
      element("td", { class: "bar" }, element("span", { class: "fill limit-links", style: `width: ${(100 * share) / (longest || 1)}%` })),
      element("td", { class: "number" }, percentText(share)),
      element("td", { class: "number" }, bytesText(bytes)),
      element("td", { class: "number" }, countText(times)),
    ),
  );
  return figure(
    "Links",
    `busy, as a part of the step, by axis: ${said}.`,
    element("div", { class: "grids" }, ...grids),
    table(["links of", "", "busy", "sent", "collectives"], 2, rows),
  );
}

/** The devices of two axes, or of one, as a grid; lines between neighbours are as thick as the links are busy. */
function gridOf(down, across, busy) {
  const shown = (axis) => (axis ? Math.min(axis[1], MOST_NODES) : 1);
  const [rows, columns, gap] = [shown(down), shown(across), 42];
  const [wide, high] = [gap * (columns - 1) + 40, gap * (rows - 1) + 30];
  const drawing = drawn("svg", { viewBox: `0 0 ${wide} ${high}`, class: "grid", role: "img", width: wide, height: high });
  const label = (axis) => (axis ? `${axis[0]} ${axis[1]}: ${percentText(busy.get(axis[0]) ?? 0)}` : "");
  drawing.setAttribute("aria-label", [across, down].filter(Boolean).map(label).join(", "));
  const place = (row, column) => [20 + gap * column, 16 + gap * row];
  const line = (from, to, axis) => {
    const share = Math.min(busy.get(axis[0]) ?? 0, 1);
    drawing.append(withTitle(drawn("path", { d: `M${from}L${to}`, class: "link-line", style: `stroke-width: ${1.5 + 11 * share}; opacity: ${0.35 + 0.65 * Math.min(1, 3 * share)}` }), label(axis)));
  };
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (column + 1 < columns) line(place(row, column), place(row, column + 1), across);
      if (row + 1 < rows) line(place(row, column), place(row + 1, column), down);
    }
  }
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [cx, cy] = place(row, column);
      drawing.append(drawn("circle", { cx, cy, r: 7, class: "device" }));
    }
  }
  const parts = [`→ ${label(across)}`, ...(down ? [`↓ ${label(down)}`] : [])];
  return element("div", {}, drawing, ...parts.map((text) => element("div", { class: "note" }, text)));
}

/** Which layer sends how much by which collective; a cell says why. */
function matrixPicture(app) {
  const { run } = app;
  const { layers, kinds, cells } = run.cost.pictures.matrix;
  if (cells.length === 0) return null;
  const most = Math.max(...cells.map(([, , bytes]) => bytes));
  const why = element("div", { class: "matrix-why", role: "status" });
  const open = ([layer, kind, bytes, times, seconds, numbers]) => {
    const rows = numbers.slice(1).map((number) => {
      const found = run.cost.collectives.find((one) => one.numbers.includes(number));
      const about = found ? ` for ${shortOp(found.serves)}${found.where ? ` at ${found.where}` : ""}${found.causes.length > 0 ? `, because of ${firstOf(found.causes)}` : ""}` : "";
      return element("li", {}, code(`shardlog why ${run.module}${run.arguments} --collective ${number}`), about);
    });
    why.replaceChildren(
      element("p", {}, element("b", {}, `${kinds[kind]} of ${layers[layer]}`), `: ${bytesText(bytes)} in ${countText(times)}, ${timeText(seconds)}. `, button("show in conflicts", () => app.show("conflicts"), { class: "link" })),
      ...(run.cost.answers[numbers[0]] ? [element("pre", { tabindex: 0, "aria-label": "Why" }, run.cost.answers[numbers[0]])] : []),
      ...(numbers.length > 1 ? [element("p", {}, "Ask about the others:")] : []),
      element("ul", {}, ...rows),
    );
  };
  const cellOf = (layer, kind) => cells.find((cell) => cell[0] === layer && cell[1] === kind);
  const total = (layer) => cells.reduce((sum, [at, , bytes]) => sum + (at === layer ? bytes : 0), 0);
  const order = layers.map((_, layer) => layer).filter((layer) => total(layer) > 0 || cells.some(([at]) => at === layer));
  const rows = order.map((layer) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, middle(layers[layer])),
      ...kinds.map((name, kind) => {
        const cell = cellOf(layer, kind);
        if (!cell) return element("td", { class: "number note" }, "–");
        const share = Math.round(8 + 38 * Math.sqrt(cell[2] / (most || 1)));
        return element(
          "td",
          { class: "number", style: `background: color-mix(in srgb, var(--axis-1) ${share}%, var(--ground))` },
          button(bytesText(cell[2]), () => open(cell), { class: "cell", "aria-label": `${layers[layer]}, ${name}: ${bytesText(cell[2])}, why` }),
        );
      }),
    ),
  );
  const heaviest = cells.reduce((one, other) => (other[2] > one[2] ? other : one));
  return figure(
    "Layers and collectives",
    `the bytes that a device sends; most is ${kinds[heaviest[1]]} of ${layers[heaviest[0]]}, ${bytesText(heaviest[2])}. A cell says why.`,
    element("div", { class: "matrix" }, table(["layer", ...kinds], 1, rows)),
    why,
  );
}
