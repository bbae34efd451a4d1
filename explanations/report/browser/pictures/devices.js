"use strict";
// The devices of a tensor: which part each holds, and what a reshard sends from one to another.

const MOST_TILES = 256; // parts that are drawn
const MOST_PANELS = 16; // grids side by side, where more than two dimensions are sharded
const MOST_INVOLVED = 8; // devices that are drawn of those that send to one
const LABELS = 48; // the width of what stands before a row
const MOST_SAID = 8; // parts that the text of a picture names

/** A part of an axis as the page names it: `x`, or `x:(1)2` for two devices of each with one before them. */
function axisPart(text, sizes) {
  const part = /^(.*):\((\d+)\)(\d+)$/.exec(text);
  return part ? { name: part[1], before: Number(part[2]), size: Number(part[3]) } : { name: text, before: 1, size: sizes.get(text) ?? 1 };
}

const axisTexts = (text) => (text ? text.split(/,\s*/) : []);

/** The place along each axis that has a number, the last axis first. */
function placesOf(number, axes) {
  const at = new Map();
  let rest = number;
  for (const [name, size] of axes.slice().reverse()) {
    at.set(name, rest % size);
    rest = Math.floor(rest / size);
  }
  return at;
}

/** The devices of a mesh in its order: `{device, at}`, `at` is their place along each axis. */
function devicesOf(mesh) {
  const count = mesh.axes.reduce((product, [, size]) => product * size, 1);
  return Array.from({ length: count }, (_, number) => ({ device: mesh.devices[number] ?? number, at: placesOf(number, mesh.axes) }));
}

/** How a tensor lies on a mesh: `counts` are the parts of each dimension, `partOf` those that a device holds. */
function layoutOf(mesh, dims) {
  const sizes = new Map(mesh.axes);
  const parts = dims.map((texts) => texts.map((text) => axisPart(text, sizes)));
  const place = (at, { name, before, size }) => Math.floor(at.get(name) / ((sizes.get(name) ?? 1) / (before * size))) % size;
  return {
    counts: parts.map((some) => some.reduce((product, { size }) => product * size, 1)),
    partOf: ({ at }) => parts.map((some) => some.reduce((number, part) => number * part.size + place(at, part), 0)),
  };
}

/** Numbers as `shardlog visualize` writes them: "0-3,8". */
function rangesText(numbers) {
  const runs = [];
  for (const n of numbers.slice().sort((a, b) => a - b)) {
    if (runs.at(-1)?.at(-1) === n - 1) runs.at(-1).push(n);
    else runs.push([n]);
  }
  return runs.map((run) => (run.length > 2 ? `${run[0]}-${run.at(-1)}` : run.join(","))).join(",");
}

/** The axes along which each device has a tensor of its own, inside of a shard_map. */
const manualTexts = (run, tensor) => run.manualAxes(tensor).map((axis) => run.axes[axis].name);

/** The places along manual axes that have a number: "x=1, y=0". */
function manualText(mesh, names, number) {
  const sizes = new Map(mesh.axes);
  const at = placesOf(number, names.map((name) => [name, sizes.get(name)]));
  return names.map((name) => `${name}=${at.get(name)}`).join(", ");
}

const partColour = (number, count) => `hsl(${(205 + Math.round((360 * number) / count)) % 360} 65% 55% / .45)`;

/** A picture with its text: `said` is what it shows, in words. */
function figure(title, said, ...content) {
  return element("figure", { class: "picture" }, element("figcaption", {}, element("b", {}, title), " ", said), ...content);
}

const svgText = (x, y, text, given = {}) => {
  const made = drawn("text", { x, y, ...given });
  made.textContent = text;
  return made;
};

const withTitle = (made, text) => {
  const title = drawn("title");
  title.textContent = text;
  made.append(title);
  return made;
};

/** The parts of a tensor as they lie in it, each with the devices that hold it; null where nothing is known. */
function devicePicture(run, tensor, before) {
  const sharding = run.sharding(tensor, before);
  const shape = run.shape(tensor);
  const manual = manualTexts(run, tensor);
  if ((!sharding && manual.length === 0) || shape.length === 0) return null;
  const mesh = run.meshes[sharding?.mesh ?? run.axes[run.manualAxes(tensor)[0]].mesh];
  const dims = [...shape.map((_, d) => run.parts(tensor, d, before).map(({ text }) => text)), ...(manual.length > 0 ? [manual] : [])];
  const layout = layoutOf(mesh, dims);
  const tiles = new Map();
  for (const device of devicesOf(mesh)) {
    const part = layout.partOf(device);
    const key = part.join();
    if (!tiles.has(key)) tiles.set(key, { part, devices: [] });
    tiles.get(key).devices.push(device.device);
  }
  const split = layout.counts.flatMap((count, d) => (count > 1 ? [d] : []));
  const all = [...tiles.values()];
  if (split.length === 0) return figure("Devices", `Each of the ${manyText(all[0].devices.length, "device")} holds all of it.`);
  const extent = (part, d) => {
    const step = Math.ceil(shape[d] / layout.counts[d]);
    return `${Math.min(part * step, shape[d])}:${Math.min((part + 1) * step, shape[d])}`;
  };
  const where = (part) => (manual.length > 0 ? manualText(mesh, manual, part[shape.length]) : "");
  const partText = ({ part, devices }) =>
    `[${shape.map((_, d) => extent(part[d], d)).join(", ")}]${manual.length > 0 ? ` where ${where(part)}` : ""} on ${devices.length === 1 ? "device" : "devices"} ${rangesText(devices)}`;
  const said = `${manyText(all.length, "part")}: ${all.slice(0, MOST_SAID).map(partText).join("; ")}${all.length > MOST_SAID ? " …" : ""}`;
  if (all.length > MOST_TILES)
    return figure("Devices", `${manyText(all.length, "part")}, too many for a picture: ${all.slice(0, 2).map(partText).join("; ")} …`);
  // Rows and columns are the last two dimensions that are sharded, of a tensor with fewer dimensions its own.
  const inside = split.filter((d) => d < shape.length);
  const columns = shape.length <= 2 ? shape.length - 1 : (inside.at(-1) ?? -1);
  const rows = shape.length === 2 ? 0 : shape.length < 2 ? -1 : (inside.at(-2) ?? -1);
  const outer = split.filter((d) => d !== rows && d !== columns);
  const panels = outer.reduce((product, d) => product * layout.counts[d], 1);
  if (panels > MOST_PANELS) return figure("Devices", said);
  const count = (d) => (d < 0 ? 1 : layout.counts[d]);
  const across = Math.min(panels, 2);
  const width = (320 - 14 * (across - 1)) / across;
  const tile = { width: width / count(columns), height: Math.max(16, Math.min(34, 150 / count(rows))) };
  const [high, head] = [tile.height * count(rows), outer.length > 0 ? 16 : 0];
  const drawing = drawn("svg", {
    viewBox: `0 0 320 ${Math.ceil(panels / across) * (high + head + 8)}`,
    role: "img",
    "aria-label": said,
    class: "devices",
  });
  all.forEach((one, number) => {
    const panel = outer.reduce((index, d) => index * layout.counts[d] + one.part[d], 0);
    const x = (panel % across) * (width + 14) + tile.width * (one.part[columns] ?? 0);
    const y = Math.floor(panel / across) * (high + head + 8) + head + tile.height * (rows < 0 ? 0 : one.part[rows]);
    const box = { x, y, width: tile.width, height: tile.height };
    const made = drawn("g");
    made.append(withTitle(drawn("rect", { ...box, fill: partColour(number, all.length), class: "tile" }), partText(one)));
    const text = rangesText(one.devices);
    if (text.length * 7 < tile.width) made.append(svgText(x + tile.width / 2, y + tile.height / 2, text, { class: "middle-text" }));
    if (head > 0 && (columns < 0 || one.part[columns] === 0) && (rows < 0 || one.part[rows] === 0))
      made.append(svgText(x, y - 4, outer.map((d) => (d < shape.length ? `dim ${d} ${extent(one.part[d], d)}` : where(one.part))).join(", ")));
    drawing.append(made);
  });
  const way = (name, d) => (d < 0 || count(d) === 1 ? [] : [`${name}: dim ${d} on ${dims[d].join(", ")}`]);
  const apart = manual.length > 0 ? [`manual on ${manual.join(", ")}`] : [];
  const legend = [`${manyText(all.length, "part")} on ${manyText(devicesOf(mesh).length, "device")}`, ...way("down", rows), ...way("across", columns), ...apart];
  return figure("Devices", `${legend.join("; ")}.`, drawing);
}

/** What the devices send each other so that a tensor gets from one sharding to another. */
function movePicture(run, conflict) {
  const { tensor, has, needs, partial } = conflict;
  const sharding = tensor < 0 ? null : run.sharding(tensor, run.end);
  const mesh = run.meshes[sharding?.mesh ?? 0];
  if (!mesh || has.length === 0 || has.length !== needs.length) return null;
  const manual = tensor < 0 ? [] : manualTexts(run, tensor);
  const [from, to] = [has, needs].map((texts) => layoutOf(mesh, [...texts.map(axisTexts), manual]));
  const devices = devicesOf(mesh);
  const held = new Map(devices.map((device) => [device, from.partOf(device)]));
  const wanted = new Map(devices.map((device) => [device, to.partOf(device)]));
  const summed = axisTexts(partial).map((text) => axisPart(text, new Map(mesh.axes)).name);
  const span = (layout, part, d) => [part[d] / layout.counts[d], (part[d] + 1) / layout.counts[d]];
  const overlap = (one, other) =>
    from.counts.every((_, d) => {
      const [a, b] = [span(from, held.get(one), d), span(to, wanted.get(other), d)];
      return Math.min(a[1], b[1]) - Math.max(a[0], b[0]) > 1e-9;
    });
  /** The devices that send to one: for each part that it lacks the nearest that holds it, of a partial sum all. */
  const senders = (one) => {
    const near = new Map();
    for (const other of devices) {
      if (other === one || !overlap(other, one)) continue;
      const sums = summed.map((name) => other.at.get(name)).join();
      const own = summed.map((name) => one.at.get(name)).join();
      const key = `${held.get(other).join()} ${sums}`;
      if (key === `${held.get(one).join()} ${own}`) continue;
      const away = [...other.at].filter(([name, at]) => one.at.get(name) !== at).length;
      if (!near.has(key) || away < near.get(key)[0]) near.set(key, [away, other]);
    }
    return [...near.values()].map(([, other]) => other);
  };
  const differing = has.flatMap((text, d) => (text !== needs[d] ? [d] : []));
  const split = has.flatMap((_, d) => (from.counts[d] > 1 || to.counts[d] > 1 ? [d] : []));
  const drawnDims = [...new Set([...differing, ...split])].slice(0, 2).sort((a, b) => a - b);
  const [rows, columns] = drawnDims.length === 2 ? drawnDims : [-1, drawnDims[0] ?? -1];
  const whole = [0, 1];
  const region = (layout, part) => [columns < 0 ? whole : span(layout, part, columns), rows < 0 ? whole : span(layout, part, rows)];
  const area = element("div");
  const caption = element("span", {});
  const show = (number) => {
    const one = devices[number];
    const sending = senders(one);
    const involved = [one, ...sending].sort((a, b) => a.device - b.device).slice(0, MOST_INVOLVED);
    if (!involved.includes(one)) involved[0] = one;
    const more = sending.length + 1 - involved.length;
    const text =
      sending.length === 0
        ? `Device ${one.device} keeps what it has of it.`
        : `Device ${one.device} receives from ${rangesText(sending.map(({ device }) => device))}${summed.length > 0 ? ", and adds up" : ""}.`;
    caption.textContent = text;
    const step = (320 - LABELS) / Math.max(involved.length, 4);
    const size = Math.min(step - 8, 46);
    const drawing = drawn("svg", { viewBox: `0 0 320 ${2 * size + 56}`, role: "img", "aria-label": text, class: "moves-picture" });
    const bottom = size + 52;
    const left = (i) => LABELS + i * step + (step - size) / 2;
    const box = (i, y, [[x0, x1], [y0, y1]], given) =>
      drawn("rect", { x: left(i) + x0 * size, y: y + y0 * size, width: (x1 - x0) * size, height: (y1 - y0) * size, ...given });
    const parts = [...new Set(involved.flatMap((device) => [device, ...senders(device)]).map((device) => held.get(device).join()))];
    const colour = (device) => partColour(parts.indexOf(held.get(device).join()), parts.length + 1);
    const both = (one_, other) => one_.map(([low, high], i) => [Math.max(low, other[i][0]), Math.min(high, other[i][1])]);
    drawing.append(svgText(0, 18 + size / 2, "before"), svgText(0, bottom + size / 2, "after"));
    involved.forEach((device, i) => {
      const own = region(from, held.get(device));
      const later = region(to, wanted.get(device));
      drawing.append(
        box(i, 18, [whole, whole], { class: "tile" }),
        box(i, 18, own, { fill: colour(device), class: `tile${summed.length > 0 ? " partial" : ""}` }),
        svgText(left(i) + size / 2, 11, device.device, { class: "middle-text" }),
        box(i, bottom, [whole, whole], { class: "tile" }),
        ...[device, ...(summed.length > 0 ? [] : senders(device))]
          .filter((other) => overlap(other, device))
          .map((other) => box(i, bottom, both(region(from, held.get(other)), later), { fill: colour(other), class: "piece" })),
        box(i, bottom, later, { class: `tile${device === one ? " chosen" : ""}` }),
      );
      if (device !== one && !sending.includes(device)) return;
      const at = involved.indexOf(one);
      const [x0, x1] = [left(i) + size / 2, left(at) + size / 2];
      drawing.append(
        drawn("path", {
          d: `M${x0} ${18 + size}C${x0} ${size + 36} ${x1} ${size + 34} ${x1} ${bottom - 2}`,
          class: device === one ? "kept" : "flow",
          "marker-end": "url(#arrow)",
        }),
      );
    });
    if (more > 0) drawing.append(svgText(318, 11, `+ ${more}`, { "text-anchor": "end" }));
    const marker = drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" });
    marker.append(drawn("path", { d: "M0 0L8 4L0 8z", class: "arrow" }));
    drawing.prepend(marker);
    area.replaceChildren(drawing);
  };
  const choice = element(
    "select",
    { "aria-label": "Device", change: () => show(Number(choice.value)) },
    ...devices.slice(0, MOST_TILES).map(({ device }, i) => element("option", { value: i }, `device ${device}`)),
  );
  show(0);
  return figure("What moves", caption, element("span", { class: "right" }, choice), area);
}
