"use strict";
// What must move in the partitioned program, and the annotations that meet there.

const MOST_ALIKE = 8; // tensors that are named of those of which the same is said

class Conflicts {
  constructor(app) {
    this.app = app;
    this.view = byId("view-conflicts");
    const { run } = app;
    const of = (i) => run.folds[i][0];
    const bytes = (i) => of(i).bytes * run.folds[i].length;
    const side = (name) => ({
      value: (i) => dimsText(of(i)[name]),
      cell: (i) =>
        name === "needs" && of(i).partial && dimsText(of(i).has) === dimsText(of(i).needs)
          ? element("span", { title: dimsText(of(i).needs) }, element("mark", {}, "summed"))
          : element("span", { class: "marked code", title: dimsText(of(i)[name]) }, ...markedDims(of(i)[name], of(i))),
    });
    const partial = run.conflicts.some((conflict) => conflict.partial);
    this.table = new Table(
      "Conflicts",
      [
        { title: "Bytes", width: "5rem", number: true, value: bytes, cell: (i) => bytesText(bytes(i)) },
        ...(run.folds.some((_, i) => timesText(run, i) !== "1")
          ? [{ title: "Times", width: "4.5rem", number: true, value: (i) => timesOf(run, i), cell: (i) => timesText(run, i) }]
          : []),
        {
          title: "Collective",
          width: "8.5rem",
          value: (i) => of(i).collective,
          cell: (i) => 
            element("span", { title: of(i).collective }, of(i).collective, element("span", { class: "times-text" }, ` × ${timesText(run, i)}`)),
        },
        {
          title: "Tensor",
          width: "minmax(8rem, 1.6fr)",
          value: (i) => run.conflictTitle(of(i)),
          cell: (i) => pathText(run.conflictTitle(of(i)), run.telling(of(i).tensor)),
        },
        { title: "Has", width: "minmax(8rem, 2fr)", ...side("has") },
        ...(partial
          ? [
              {
                title: "Partial over",
                width: "minmax(6.5rem, 0.5fr)",
                value: (i) => of(i).partial,
                cell: (i) => code(of(i).partial),
              },
            ]
          : []),
        { title: "Needed", width: "minmax(8rem, 2fr)", ...side("needs") },
        { title: "For", width: "minmax(7rem, 0.7fr)", value: (i) => of(i).op, cell: (i) => shortOp(of(i).op) },
        { title: "At", width: "minmax(8.5rem, 2.4fr)", value: (i) => of(i).where, cell: (i) => placeText(of(i).where) },
      ],
      (i) => app.showConflict(of(i)),
    );
    const total = run.conflicts.reduce((sum, conflict) => sum + conflict.bytes, 0);
    const note =
      run.unpartitioned ||
      (run.conflicts.length === 0
        ? nothingMoves(run)
        : `${manyText(run.conflicts.length, "tensor")} must move, ${bytesText(total)} to each device. Click one to see the annotations that meet.`);
    this.table.element.hidden = run.conflicts.length === 0;
    this.view.append(
      element("div", { class: "tools" }, element("span", { class: "note" }, ...prose(note))),
      this.table.element,
    );
    this.rows = run.folds.map((_, i) => i);
  }

  render() {
    const { run, tensor } = this.app;
    this.table.selected =
      tensor < 0 ? -1 : run.folds.findIndex((same) => same.some((conflict) => conflict.tensor === tensor));
    this.table.show(this.rows);
  }
}

/** The axes of each dimension; scalars have none. */
const dimsText = (texts) => (texts.length === 0 ? "–" : bracketed(texts));
const bracketed = (texts) => `[${texts.map((text) => `{${text}}`).join(", ")}]`;

/** The axes of each dimension, those marked that are not the same on both sides of a conflict. */
function markedDims(texts, { has, needs }) {
  if (texts.length === 0) return ["–"];
  const parts = [];
  let plain = "["; // what stands between two marks, which gives way where there is too little room
  texts.forEach((text, d) => {
    if (d > 0) plain += ", ";
    if (has[d] === needs[d]) plain += `{${text}}`;
    else {
      parts.push(element("span", {}, plain), element("mark", { title: `dim ${d}` }, `{${text}}`));
      plain = "";
    }
  });
  return [...parts, element("span", {}, `${plain}]`)];
}

/** Why there are no conflicts. */
const nothingMoves = (run) =>
  run.unpartitioned ? "the program cannot be partitioned" : "Nothing must move between devices.";

/** How often conflicts alike are carried out, a loop of unknown length counted once. */
const timesOf = (run, i) => (run.folds[i][0].executions ?? 1) * run.folds[i].length;

const timesText = (run, i) =>
  run.folds[i][0].executions === null ? `${countText(timesOf(run, i))} a turn` : countText(timesOf(run, i));

/** A conflict in words: what moves, how, and the annotations that meet. */
function conflictText(app, conflict) {
  const { run } = app;
  const ends = [...new Set([conflict.origin, conflict.against])].filter((cell) => cell >= 0);
  const link = (cell) => element("span", { class: "annotated" }, ...givenParts(app, originOf(run, cell)));
  const alike = run.folds.find((same) => same.includes(conflict)).filter((other) => other !== conflict);
  const turns =
    conflict.executions === 1
      ? ""
      : conflict.executions === null
        ? " each turn of a loop"
        : ` in ${countText(conflict.executions)} turns`;
  return element(
    "div",
    { class: "conflict" },
    element(
      "p",
      {},
      element("b", {}, `${conflict.collective}, ${bytesText(conflict.bytes)} to each device${turns}`),
      " as ",
      conflict.slot,
      " of ",
      element("b", {}, shortOp(conflict.op)),
      conflict.where ? ` at ${conflict.where}` : "",
    ),
    element(
      "p",
      {},
      element("code", {}, ...markedDims(conflict.has, conflict)),
      ...(conflict.partial ? [" partial over ", element("mark", {}, conflict.partial)] : []),
      " → ",
      element("code", {}, ...markedDims(conflict.needs, conflict)),
    ),
    ...[movePicture(run, conflict)].filter(Boolean),
    ...(ends.length === 0
      ? []
      : [
          element(
            "p",
            { class: "meet" },
            ends.length === 1 ? "By " : "Annotations that meet: ",
            ...ends.flatMap((end, i) => [i ? " and " : "", link(end)]),
          ),
        ]),
    ...(alike.length === 0 ? [] : [element("div", { class: "note" }, "So do", alikeLinks(app, alike))]),
  );
}

/** Links to the tensors of which the same is said. */
function alikeLinks(app, alike) {
  const rest = alike.length - MOST_ALIKE;
  const links = alike
    .slice(0, MOST_ALIKE)
    .map((other) => button(app.run.conflictTitle(other), () => app.showConflict(other), { class: "link code" }));
  const lines = rest > 0 ? [...links, `and ${countText(rest)} more`] : links;
  return element("ul", { class: "alike" }, ...lines.map((line) => element("li", {}, line)));
}
