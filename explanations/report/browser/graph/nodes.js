"use strict";
// The nodes of the program: ops, groups and what comes from outside, coloured by axis.

/** `way` are the ops of the derivation that is open, `given` is added to the attributes. */
function opNode(app, way, op, given) {
  const { run, before } = app;
  const tensor = run.results(op)[0] ?? run.operands(op)[0];
  const moved = run.conflicts.filter(({ at }) => at === op);
  const gained =
    app.stage > 0 &&
    app.stage < run.stages.length &&
    tensor !== undefined &&
    run.content(tensor, before) !== run.content(tensor, run.before(app.stage - 1));
  const name = shortOp(run.opName(op));
  const text = tensor === undefined ? "" : `${run.name(tensor)}, ${run.text(tensor, before) || "no sharding"}`;
  return element(
    "button",
    {
      type: "button",
      class: `node op${isSmall(run, op) ? " small" : ""}${gained ? " gained" : ""}${way.has(op) ? " way" : ""}${tensor === app.tensor ? " selected" : ""}`,
      "aria-label": `${name}: ${text}${moved.length > 0 ? `; ${moved.length} of its tensors must move` : ""}`,
      title: [run.opName(op), text, run.opWhere(op)].filter(Boolean).join("\n"),
      click: () => {
        if (tensor !== undefined) app.select(tensor);
      },
      ...given,
    },
    element(
      "span",
      { class: "line" },
      element("b", {}, name),
      tensor === undefined ? "" : element("span", { class: "code" }, run.name(tensor)),
    ),
    tensor === undefined ? "" : dimStrip(app, tensor),
    moved.length > 0
      ? element(
          "span",
          { class: "badge", title: "tensors must move" },
          `⇄ ${bytesText(moved.reduce((sum, { bytes }) => sum + bytes, 0))}`,
        )
      : "",
  );
}

function groupNode(app, way, group, given) {
  const { run } = app;
  const [, kind, first, end, members] = group;
  const times = kind === REPEAT ? members.length : 1;
  const ops = Math.round((end - first) / times);
  const moved = run.conflicts.filter(({ at }) => first <= at && at < end);
  const others = kind === REPEAT ? different(app, members) : 0;
  const where = times > 1 ? "" : run.opWhere(first);
  const [place] = shortPlace(where).split(" "); // the line; there is no room for a name stack
  const note = [
    `${manyText(ops, "op")}${times > 1 ? " each" : ""}`,
    ...(place ? [`from ${place}`] : []),
    ...(others > 0 ? [`${others} sharded differently`] : []),
  ].join(", ");
  const onWay = [...way].some((op) => first <= op && op < end);
  return element(
    "button",
    {
      type: "button",
      class: `node group${kind === REPEAT ? " repeat" : ""}${onWay ? " way" : ""}`,
      "aria-label": `group ${groupName(group)}${times > 1 ? `, ${times} times` : ""}, ${note}`,
      "aria-expanded": "false",
      title: where,
      ...given,
    },
    element(
      "span",
      { class: "line" },
      element("b", {}, groupName(group)),
      times > 1 ? element("span", { class: "times" }, `×${times}`) : "",
    ),
    element("span", { class: "note" }, note),
    shareBar(app, first, end),
    moved.length > 0
      ? element(
          "span",
          { class: "badge", title: "tensors must move" },
          `⇄ ${bytesText(moved.reduce((sum, { bytes }) => sum + bytes, 0))}`,
        )
      : "",
  );
}

/** How many members of a repetition are sharded otherwise than most of them. */
function different(app, members) {
  const { run, before } = app;
  const keys = members.map(([, , first, end]) => {
    let key = "";
    run.eachResult(first, end, (tensor) => {
      key += `${run.content(tensor, before)} `;
    });
    return key;
  });
  const counts = new Map();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return members.length - Math.max(...counts.values());
}

function portNode(app, { tensors }) {
  const { run } = app;
  const [tensor] = tensors;
  if (tensors.length > 1) {
    return element(
      "span",
      {
        class: "node port",
        title: tensors
          .slice(0, 20)
          .map((t) => run.title(t))
          .join(", "),
      },
      element("span", { class: "line" }, `${tensors.length} inputs`),
    );
  }
  return element(
    "button",
    {
      type: "button",
      tabindex: -1,
      class: `node port${tensor === app.tensor ? " selected" : ""}`,
      click: () => app.select(tensor),
      title: [run.name(tensor), run.where(tensor), run.text(tensor, app.before)].filter(Boolean).join("\n"),
    },
    element(
      "span",
      { class: "line" },
      middle(run.title(tensor), { class: "middle code", title: null }),
    ),
    dimStrip(app, tensor),
  );
}

const groupName = ([label, , first, end]) => label || `ops ${countText(first)}–${countText(end - 1)}`;

function firstAxis(run, tensor, before) {
  return run.axesOf(tensor, before)[0] ?? -1;
}

/** A tensor's dimensions in a row, with their sizes and axes, coloured by axis. */
function dimStrip(app, tensor) {
  const { run, before } = app;
  const shape = run.shape(tensor);
  const strip = element("span", { class: "strip" });
  if (shape.length === 0) strip.append(element("span", { class: "piece" }, "scalar"));
  shape.forEach((size, d) => {
    const parts = run.parts(tensor, d, before);
    strip.append(
      element(
        "span",
        { class: "piece" },
        element(
          "span",
          { class: "size" },
          `${size}${parts.length > 0 ? ` ${parts.map(({ text }) => text).join(",")}` : ""}`,
        ),
        element(
          "span",
          { class: "colours" },
          ...parts.map(({ axis }) => element("span", { class: `axis-${axis % 14}` })),
        ),
      ),
    );
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
    const axes = run.axesOf(tensor, before);
    all += own;
    for (const axis of axes) bytes[axis] += own / axes.length;
    if (axes.length === 0) none += own;
  });
  const piece = (share, kind) => element("span", { class: kind, style: `flex-grow: ${share}` });
  const label = run.axes.map(({ name }, i) => `${name} ${percentText(bytes[i] / (all || 1))}`).join(", ");
  return element(
    "span",
    { class: "share", title: `bytes by axis: ${label}` },
    ...[...bytes].flatMap((some, i) => (some > 0 ? [piece(some / all, `axis-${i % 14}`)] : [])),
    ...(none > 0 || all === 0 ? [piece(all === 0 ? 1 : none / all, "none")] : []),
  );
}
