"use strict";
// The panel about one tensor: its sharding at the stage that is shown, where that comes from, and who uses it.

const MOST_USERS = 12;

class Details {
  constructor(app) {
    this.app = app;
    this.panel = byId("details");
    this.panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        app.select(-1);
      }
    });
  }

  render() {
    const { app, panel } = this;
    panel.hidden = app.tensor < 0;
    document.body.classList.toggle("with-details", app.tensor >= 0);
    if (app.tensor < 0) return;
    const { run, tensor, before } = app;
    panel.replaceChildren(
      element(
        "div",
        { class: "title" },
        element("h2", { id: "details-title", class: "code", tabindex: "-1" }, run.title(tensor)),
        button("✕", () => app.select(-1), { class: "quiet close", "aria-label": "Close the details" }),
      ),
      this.facts(tensor, before),
      ...[devicePicture(run, tensor, before)].filter(Boolean),
      ...this.annotation(tensor),
      ...this.conflicts(tensor),
      element("h3", {}, "Why"),
      ...this.why(tensor, before),
      element("h3", {}, "In the program"),
      this.neighbours(tensor),
    );
  }

  facts(tensor, before) {
    const { run } = this.app;
    const row = (name, ...value) => element("div", {}, element("dt", {}, name), element("dd", {}, ...value));
    const local = run.local(tensor, before);
    const closed = run.sharding(tensor, before)?.closed ?? [];
    const size =
      local === run.bytes(tensor)
        ? `${bytesText(local)} on every device`
        : `${bytesText(run.bytes(tensor))}, ${bytesText(local)} per device`;
    return element(
      "dl",
      { class: "facts" },
      ...(run.jaxPath(tensor) ? [row("value", code(run.name(tensor)))] : []),
      row("type", code(run.type(tensor))),
      row("sharding", code(run.text(tensor, before) || "none")),
      row("size", size),
      ...(closed.length > 0
        ? [row("closed", `${closed.length === 1 ? "dim" : "dims"} ${closed.join(", ")}: no axis may be added`)]
        : []),
      ...(run.where(tensor) && !run.jaxPath(tensor) ? [row("from", run.where(tensor))] : []),
    );
  }

  annotation(tensor) {
    const annotation = this.app.run.annotation(tensor);
    if (!annotation?.text) return [];
    const { run } = this.app;
    const other = annotation.tensor >= 0 && annotation.tensor !== tensor;
    return [
      element(
        "p",
        { class: "annotation" },
        element("b", {}, isSpec(annotation) ? specText(annotation) : "Annotated by the user"),
        ...(other ? [" with ", tensorLink(this.app, annotation.tensor)] : []),
        !isSpec(annotation) && annotation.where && annotation.where !== run.where(tensor) ? ` at ${annotation.where}` : "",
        element("br"),
        code(annotation.text),
      ),
    ];
  }

  why(tensor, before) {
    const { app } = this;
    const found = app.run
      .shape(tensor)
      .flatMap((_, dim) => waysOf(app.run, tensor, dim, before).map((one) => [dim, one]));
    if (found.length === 0) {
      const known = app.stage < app.run.stages.length ? " yet" : "";
      return [element("p", { class: "note" }, `No dimension is sharded${known}.`), this.command(tensor)];
    }
    return [...found.map(([dim, one], i) => derivation(app, tensor, dim, one, i < 2)), this.command(tensor)];
  }

  /** What to type for more. */
  command(tensor) {
    const { run } = this.app;
    const sharded = Object.keys(run.sharding(tensor, run.end)?.dims ?? {}).length > 0;
    const name = /^[\w%.#]+$/.test(run.name(tensor)) ? run.name(tensor) : `"${run.name(tensor)}"`;
    const text = sharded
      ? `shardlog why ${run.module} ${name}`
      : `shardlog why-not ${run.module} ${name} --dim 0 --axis ${run.axes[0]?.name ?? "AXIS"}`;
    return run.shape(tensor).length === 0 ? "" : element("p", { class: "command note" }, code(text));
  }

  conflicts(tensor) {
    const { app } = this;
    const found = app.run.conflicts.filter((conflict) => conflict.tensor === tensor);
    if (found.length === 0) return [];
    return [element("h3", {}, "Must move"), ...found.map((conflict) => conflictText(app, conflict))];
  }

  neighbours(tensor) {
    const { app } = this;
    const { run } = app;
    const link = (op) =>
      element(
        "li",
        {},
        button(shortOp(run.opName(op)), () => app.showOp(op), { class: "link" }),
        ...this.ends(op, tensor),
        run.opWhere(op) ? element("span", { class: "note" }, ` ${run.opWhere(op)}`) : "",
      );
    const list = (title, ops) =>
      ops.length === 0
        ? []
        : [
            element("h4", {}, title),
            element(
              "ul",
              {},
              ...ops.slice(0, MOST_USERS).map(link),
              ...(ops.length > MOST_USERS
                ? [element("li", { class: "note" }, `and ${countText(ops.length - MOST_USERS)} more`)]
                : []),
            ),
          ];
    const producer = run.producer[tensor];
    const found = [...list("Made by", producer < 0 ? [] : [producer]), ...list("Used by", run.users(tensor))];
    return element(
      "div",
      { class: "neighbours" },
      ...(found.length > 0 ? found : [element("p", { class: "note" }, "Nothing uses it.")]),
    );
  }

  /** The tensors at the other end of an op. */
  ends(op, tensor) {
    const { run } = this.app;
    const others = run.producer[tensor] === op ? run.operands(op) : run.results(op);
    return others.slice(0, 4).flatMap((other) => [" ", tensorLink(this.app, other)]);
  }
}
