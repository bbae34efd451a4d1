"use strict";
// What must move, and the annotations that meet there.

class Conflicts {
  constructor(app) {
    this.app = app;
    this.view = byId("view-conflicts");
    const { run } = app;
    const of = (i) => run.conflicts[i];
    const dims = (texts) => `[${texts.map((text) => `{${text}}`).join(", ")}]`;
    this.table = new Table(
      "Conflicts",
      [
        { title: "Bytes", width: "6rem", number: true, value: (i) => of(i).bytes, cell: (i) => bytesText(of(i).bytes) },
        { title: "Collective", width: "9.5rem", value: (i) => of(i).collective, cell: (i) => of(i).collective },
        {
          title: "Tensor",
          width: "minmax(6rem, 1fr)",
          value: (i) => run.title(of(i).tensor),
          cell: (i) => middle(run.title(of(i).tensor), { class: "middle code" }),
        },
        {
          title: "Has",
          width: "minmax(8rem, 1.5fr)",
          value: (i) => dims(of(i).has),
          cell: (i) => element("span", { class: "code" }, dims(of(i).has)),
        },
        {
          title: "Needed",
          width: "minmax(8rem, 1.5fr)",
          value: (i) => dims(of(i).needs),
          cell: (i) => element("span", { class: "code" }, dims(of(i).needs)),
        },
        { title: "For", width: "minmax(8rem, 1fr)", value: (i) => of(i).op, cell: (i) => shortOp(of(i).op) },
        { title: "At", width: "minmax(8rem, 1.4fr)", value: (i) => of(i).where, cell: (i) => middle(of(i).where) },
      ],
      (i) => app.showConflict(i),
    );
    const total = run.conflicts.reduce((sum, { bytes }) => sum + bytes, 0);
    const note =
      run.conflicts.length === 0
        ? "Operands and results agree everywhere: nothing must move."
        : `${manyText(run.conflicts.length, "tensor")} must move at the end of the run, ${bytesText(total)} to each device. Click one to see the annotations that meet.`;
    this.view.append(element("div", { class: "tools" }, element("span", { class: "note" }, note)), this.table.element);
    this.rows = run.conflicts.map((_, i) => i);
  }

  render() {
    this.table.selected = this.app.run.conflicts.findIndex(({ tensor }) => tensor === this.app.tensor);
    this.table.show(this.rows);
  }
}

/** A conflict in words: what moves, how, and the annotations that meet. */
function conflictText(app, conflict) {
  const dims = (texts) => `[${texts.map((text) => `{${text}}`).join(", ")}]`;
  const ends = [...new Set([conflict.origin, conflict.against])].filter((cell) => cell >= 0);
  const link = (cell) => element("span", { class: "annotated" }, ...givenParts(app, originOf(app.run, cell)));
  return element(
    "div",
    { class: "conflict" },
    element(
      "p",
      {},
      element("b", {}, `${conflict.collective}, ${bytesText(conflict.bytes)} to each device`),
      " as ",
      conflict.slot,
      " of ",
      element("b", {}, shortOp(conflict.op)),
      conflict.where ? ` at ${conflict.where}` : "",
    ),
    element(
      "p",
      {},
      code(dims(conflict.has)),
      conflict.partial ? ` partial over ${conflict.partial}` : "",
      " → ",
      code(dims(conflict.needs)),
    ),
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
  );
}
