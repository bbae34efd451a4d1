"use strict";
// Derivations: how a dimension got an axis, as a list that opens step by step.

const FIRST_STEPS = 12; // of a long derivation; the others come on demand
const MOST_OPS = 5; // names of ops of a layer that are said
const FEW_STEPS = 4; // which are not folded by layer

/** The swatch and the name of an axis. */
function axisChip(app, part, given = {}) {
  return element("span", { class: "chip", ...given }, swatch(part.axis), part.text);
}

function swatch(axis) {
  return element("span", { class: `swatch axis-${axis % 14}`, "aria-hidden": "true" });
}

/** A button that opens a tensor. */
function tensorLink(app, tensor, text = app.run.title(tensor)) {
  return element("button", { type: "button", class: "link code", click: () => app.select(tensor) }, text);
}

/** Why a dimension has an axis: the annotation that it comes from, and the steps. */
function derivation(app, tensor, dim, one, open) {
  const { run } = app;
  const { steps, origin } = one.way;
  const annotation = originOf(run, origin);
  const here = isSpec(annotation) ? specText(annotation) : "annotated here";
  const from = steps.length === 0 ? here : `${manyText(steps.length, "step")} from ${run.title(annotation.tensor)}`;
  const details = element(
    "details",
    { class: "derivation", open },
    element(
      "summary",
      {},
      element("span", { class: "dim" }, `dim ${dim}`),
      " ",
      axisChip(app, one),
      " ",
      element("span", { class: "note" }, from),
    ),
  );
  fill(details, () => [stepList(app, one, steps), originLine(app, annotation)]);
  return details;
}

/** Fills an element that opens when it opens for the first time. */
function fill(details, content) {
  const once = () => {
    if (details.open && !details.filled) {
      details.filled = true;
      details.append(...content());
    }
  };
  details.addEventListener("toggle", once);
  details.fillNow = once;
  once();
}

function originLine(app, annotation) {
  return element("p", { class: "origin" }, isSpec(annotation) ? "" : "annotated ", ...givenParts(app, annotation));
}

/** Whether a sharding is a spec of a shard_map, and not the user's annotation of the tensor. */
const isSpec = (annotation) => (annotation.by ?? "user") !== "user";

const specText = ({ by, where }) => `${by} of the shard_map${where ? ` at ${where}` : ""}`;

/** A tensor with the sharding that it was given, and where. */
function givenParts(app, annotation) {
  const { tensor, text, where } = annotation;
  const given = [tensorLink(app, tensor), " ", code(text)];
  return isSpec(annotation) ? [`${specText(annotation)}: `, ...given] : [...given, where && where !== app.run.title(tensor) ? ` at ${where}` : ""];
}

function stepList(app, one, steps) {
  const parts = steps.length > FEW_STEPS ? byLayer(app.run, steps) : [];
  if (parts.length > 1) return element("div", {}, ...parts.map((part) => layerSteps(app, one, part)));
  return plainSteps(app, one, steps);
}

/** The layer that an op is in: its name stack, or else the functions that were being called; "" where nothing says it. */
function layerOf(run, op) {
  const stack = / in (.*)$/.exec(run.opWhere(op))?.[1] ?? "";
  if (stack.replace(/\w+\(/g, "").replaceAll(")", "")) return stack;
  return run.path(op).map(([label]) => label).filter(Boolean).join("/");
}

/** Steps by layer, `{layer, steps}`: those one after the other that are in one. */
function byLayer(run, steps) {
  const parts = [];
  for (const step of steps) {
    const layer = layerOf(run, step.op);
    if (parts.at(-1)?.layer === layer) parts.at(-1).steps.push(step);
    else parts.push({ layer, steps: [step] });
  }
  return parts;
}

/** The steps in a layer, which open on demand. */
function layerSteps(app, one, { layer, steps }) {
  const ops = [...new Set(steps.map(({ op }) => shortOp(app.run.opName(op))))];
  const details = element(
    "details",
    { class: "layer-steps" },
    element(
      "summary",
      {},
      layer ? middle(layer, { class: "middle layer code" }) : element("span", { class: "layer" }, "outside of layers"),
      element("span", { class: "note" }, `${manyText(steps.length, "step")}: ${ops.slice(0, MOST_OPS).join(", ")}${ops.length > MOST_OPS ? " …" : ""}`),
    ),
  );
  fill(details, () => [plainSteps(app, one, steps)]);
  return details;
}

function plainSteps(app, one, steps) {
  const list = element("ol", { class: "steps" });
  const show = (some) => list.append(...some.map((step) => element("li", {}, stepDetails(app, one, step))));
  const shown = steps.length > FIRST_STEPS + 1 ? FIRST_STEPS : steps.length; // a button takes the room of a step
  show(steps.slice(0, shown));
  if (steps.length > shown) {
    const more = button(manyText(steps.length - shown, "more step"), () => {
      more.parentElement.remove();
      const first = list.children.length;
      show(steps.slice(shown));
      list.children[first].querySelector("summary").focus();
    });
    list.append(element("li", { class: "more" }, more));
  }
  return list;
}

function stepDetails(app, one, step) {
  const { run } = app;
  const op = run.opName(step.op);
  const by =
    step.from === null
      ? [" gets ", axisChip(app, one), " back: its priority came"]
      : [" gets ", axisChip(app, one), " from ", briefSite(run, step.from), " by ", element("b", {}, shortOp(op))];
  const where = run.opWhere(step.op);
  const place = where ? element("span", { class: "place note", title: where }, shortPlace(where)) : "";
  const details = element("details", { class: "step" }, element("summary", {}, briefSite(run, step.site), ...by, " ", place));
  fill(details, () => stepBody(app, one, step));
  return details;
}

const site = (run, { tensor, dim }) => element("span", {}, code(run.name(tensor)), ` dim ${dim}`);

/** A dimension, with the path that JAX gives its tensor. Names in the module are one click further. */
const briefSite = (run, { tensor, dim }) =>
  element("span", { title: run.name(tensor) }, ...(run.jaxPath(tensor) ? [code(run.jaxPath(tensor)), " "] : []), `dim ${dim}`);

/** A place without the folder of its file. */
const shortPlace = (where) => where.replace(/^[^\s:]*\//, "");

const shortOp = (name) => name.replace(/^stablehlo\./, "");

function stepBody(app, one, step) {
  const { run } = app;
  const row = (name, ...value) => element("div", {}, element("dt", {}, name), element("dd", {}, ...value));
  const ends = [step.site, ...(step.from === null ? [] : [step.from])];
  const facts = element(
    "dl",
    {},
    row(
      "op",
      code(run.opName(step.op)),
      ...(run.opWhere(step.op) ? [` at ${run.opWhere(step.op)}`] : []),
      " ",
      step.op < run.program ? button("show in program", () => app.showOp(step.op), { class: "small" }) : "",
    ),
    row("tensors", ...ends.flatMap(({ tensor }, i) => [i ? ", from " : "", tensorLink(app, tensor, run.name(tensor))])),
    ...(step.from === null ? [] : [row("along", `factor ${step.factor}, ${step.fromRole} → ${step.toRole}`)]),
    row("when", `${stageText(run.stages[step.stage])}, change ${countText(step.change)}`),
    row("because", ...prose(step.sentence), " ", element("span", { class: "rule code" }, step.rule)),
  );
  if (step.rests.length > 0) {
    facts.append(
      row("rests on", ...step.rests.map(({ tensor, dim, atom }) => restDerivation(app, tensor, dim, atom, step.start))),
    );
  }
  facts.append(lostIn(app, step, row));
  return [facts];
}

/** What a turn needed besides, as a derivation of its own. */
function restDerivation(app, tensor, dim, atom, before) {
  const { run } = app;
  const { text, axis } = run.atoms[atom];
  const way = wayOf(run, tensor, dim, atom, before);
  const details = element(
    "details",
    { class: "derivation" },
    element("summary", {}, site(run, { tensor, dim }), " on ", axisChip(app, { text, axis })),
  );
  fill(details, () => [stepList(app, { text, axis }, way.steps), originLine(app, originOf(run, way.origin))]);
  return details;
}

/** What was in the running in the same turn, and why it lost. */
function lostIn(app, step, row) {
  if (step.lost.length === 0) return row("lost", "nothing: nothing else was in the running");
  const lines = step.lost.map((loss) =>
    element(
      "li",
      {},
      axisChip(app, loss),
      " of ",
      siteLink(app, loss.from),
      ` along factor ${loss.factor}, for `,
      siteLink(app, loss.site),
      ": ",
      element("b", { class: "reason" }, loss.reason),
      " — ",
      ...prose(loss.sentence),
      " ",
      element("span", { class: "rule code" }, loss.rule),
    ),
  );
  return row("lost", element("ul", { class: "losers" }, ...lines));
}

const siteLink = (app, { tensor, dim }) => element("span", {}, tensorLink(app, tensor), ` dim ${dim}`);

function stageText({ priority, level, strategy }) {
  return [`priority ${priority}`, ...(level === null ? [] : [`level ${level}`]), strategy].join(", ");
}
