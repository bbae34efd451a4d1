"use strict";
// Tables that draw only the rows in sight, and the table of tensors.

const ROW = 30; // the height of a row in pixels, as the style sheet has it
const CARD = 76; // that of a row in narrow windows, where its cells stand below each other
const GAP = 0.8; // between columns, in the size of letters
const NARROW = matchMedia("(max-width: 40rem)");
const PRINTED = 100; // rows that go to paper

const slug = (title) => title.toLowerCase().replaceAll(" ", "-");

/**
 * A table of numbers, sorted and filtered, of which the rows in sight are drawn. `columns` are
 * `{title, key, number, cell, value}`: `value(row)` sorts, `cell(row)` is what is shown.
 */
class Table {
  constructor(label, columns, open) {
    this.columns = columns;
    this.open = open;
    this.rows = [];
    this.active = 0;
    this.selected = -1;
    this.sortBy = null;
    this.down = false;
    this.head = element(
      "div",
      { class: "row head", role: "row", "aria-rowindex": 1 },
      ...columns.map((column) => this.header(column)),
    );
    this.space = element("div", { class: "space", role: "rowgroup" });
    this.element = element(
      "div",
      {
        class: "table",
        role: "grid",
        tabindex: 0,
        "aria-label": label,
        "aria-colcount": columns.length,
        scroll: () => this.draw(),
        keydown: (event) => this.key(event),
      },
      element("div", { role: "rowgroup", class: "sticky" }, this.head),
      this.space,
    );
    const widths = columns.map(({ width }) => width);
    const least = widths.reduce((sum, width) => sum + parseFloat(/[\d.]+(?=rem)/.exec(width)[0]), 0);
    this.element.style.setProperty("--columns", widths.join(" "));
    this.element.style.setProperty("--least", `${least + GAP * (widths.length + 1)}rem`);
    new ResizeObserver(() => {
      if (this.selected >= 0 && this.active >= 0) this.reveal(); // a sheet over the table makes it smaller
      this.draw();
    }).observe(this.element);
    NARROW.addEventListener("change", () => this.show(this.rows));
  }

  /** The height of a row. */
  get high() {
    return NARROW.matches ? CARD : ROW;
  }

  header(column) {
    const made = element(
      "div",
      { role: "columnheader", class: column.number ? "number" : null, "aria-sort": "none" },
      button(column.title, () => this.sort(column), { class: "quiet", title: `Sort by ${column.title.toLowerCase()}` }),
    );
    column.header = made;
    return made;
  }

  /** Sorts by a column; by the same again: the other way round. */
  sort(column, down = column === this.sortBy ? !this.down : Boolean(column.number)) {
    this.sortBy = column;
    this.down = down;
    for (const { header } of this.columns) header.setAttribute("aria-sort", "none");
    column.header.setAttribute("aria-sort", down ? "descending" : "ascending");
    this.show(this.rows);
    announce(`sorted by ${column.title.toLowerCase()}, ${down ? "descending" : "ascending"}`);
  }

  /** Shows rows, in the order that is asked for. */
  show(rows) {
    this.rows = rows;
    if (this.sortBy) {
      const values = new Map(rows.map((row) => [row, this.sortBy.value(row)]));
      const sign = this.down ? -1 : 1;
      const compare = this.sortBy.number ? (a, b) => a - b : (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      this.rows = rows.slice().sort((a, b) => sign * compare(values.get(a), values.get(b)) || a - b);
    }
    this.active = Math.max(0, this.rows.indexOf(this.selected));
    this.element.setAttribute("aria-rowcount", this.rows.length + 1);
    this.space.style.height = `${this.high * this.rows.length}px`;
    this.draw();
  }

  select(row) {
    this.selected = row;
    const at = this.rows.indexOf(row);
    if (at >= 0) this.active = at;
    this.draw();
  }

  /** Draws the rows in sight; all those that fit on paper when it is printed. */
  draw(all = false) {
    const room = this.element.clientHeight;
    if (room === 0 && !all) return;
    const first = all ? 0 : Math.max(0, Math.floor(this.element.scrollTop / this.high) - 6);
    const last = all
      ? Math.min(this.rows.length, PRINTED)
      : Math.min(this.rows.length, first + Math.ceil(room / this.high) + 12);
    this.space.replaceChildren(...this.rows.slice(first, last).map((row, i) => this.row(row, first + i)));
    const active = this.active >= first && this.active < last ? `${this.element.ariaLabel}-${this.active}` : "";
    if (active) this.element.setAttribute("aria-activedescendant", active);
    else this.element.removeAttribute("aria-activedescendant");
  }

  row(row, at) {
    const made = element(
      "div",
      {
        class: `row${at === this.active ? " active" : ""}`,
        role: "row",
        id: `${this.element.ariaLabel}-${at}`,
        "aria-rowindex": at + 2,
        "aria-selected": String(row === this.selected),
        click: () => {
          this.active = at;
          this.open(row);
        },
      },
      ...this.columns.map((column) =>
        element(
          "div",
          { role: "gridcell", class: `of-${slug(column.title)}${column.number ? " number" : ""}` },
          column.cell(row),
        ),
      ),
    );
    made.style.top = `${at * this.high}px`;
    return made;
  }

  /** Scrolls to the active row. */
  reveal() {
    const top = this.active * this.high;
    const view = this.element.clientHeight - this.head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + this.high > this.element.scrollTop + view) this.element.scrollTop = top + this.high - view;
  }

  key(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.high) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      event.preventDefault();
      this.active = Math.max(0, Math.min(this.rows.length - 1, this.active + moves[event.key]));
      this.reveal();
      this.draw();
    } else if (event.key === "Enter" && this.rows.length > 0) {
      event.preventDefault();
      this.open(this.rows[this.active]);
    }
  }
}

const KINDS = {
  all: "all tensors",
  sharded: "sharded",
  replicated: "not sharded",
  gained: "changed in this stage",
  moves: "must move",
  annotated: "annotated",
  arguments: "arguments and results",
};

class Tensors {
  constructor(app) {
    this.app = app;
    this.view = byId("view-tensors");
    const { run } = app;
    const from = (t) => (run.jaxPath(t) ? run.name(t) : run.where(t));
    this.table = new Table(
      "Tensors",
      [
        {
          title: "Name",
          width: "minmax(9rem, 2fr)",
          value: (t) => t,
          cell: (t) => pathText(run.title(t), run.telling(t)),
        },
        {
          title: "Type",
          width: "minmax(9rem, 1.1fr)",
          value: (t) => run.type(t),
          cell: (t) => element("span", { class: "code" }, run.type(t).replace(/^tensor<(.*)>$/, "$1")),
        },
        {
          title: "Sharding",
          width: "minmax(9rem, 1.4fr)",
          value: (t) => run.text(t, app.before),
          cell: (t) => shardingCell(app, t),
        },
        {
          title: "Size",
          width: "6rem",
          number: true,
          value: (t) => run.bytes(t),
          cell: (t) => bytesText(run.bytes(t)),
        },
        {
          title: "Per device",
          width: "6.5rem",
          number: true,
          value: (t) => run.local(t, app.before),
          cell: (t) => bytesText(run.local(t, app.before)),
        },
        {
          title: "Moved",
          width: "6rem",
          number: true,
          value: (t) => run.moved[t],
          cell: (t) => (run.moved[t] ? bytesText(run.moved[t]) : "–"),
        },
        { title: "From", width: "minmax(10rem, 2fr)", value: from, cell: (t) => placeText(from(t)) },
      ],
      (tensor) => app.select(tensor),
    );
    this.kind = element(
      "select",
      { id: "kind", change: () => this.filter() },
      ...Object.entries(KINDS).map(([value, text]) => element("option", { value }, text)),
    );
    this.count = element("span", { class: "note", role: "status" });
    this.nothing = element("p", { class: "nothing", hidden: true });
    this.view.append(
      element(
        "div",
        { class: "tools" },
        element("label", { for: "kind" }, "Show "),
        this.kind,
        this.count,
        element("span", { class: "note right" }, "Click a tensor to see why it is sharded so."),
      ),
      this.nothing,
      this.table.element,
    );
    this.query = "";
  }

  search(query) {
    this.query = query;
    this.filter();
  }

  filter() {
    const { run, before, stage } = this.app;
    const earlier = run.before(Math.max(0, stage - 1));
    const kinds = {
      all: () => true,
      sharded: (t) => run.shards(t, before) > 1,
      replicated: (t) => run.shards(t, before) === 1,
      gained: (t) => stage > 0 && run.content(t, before) !== run.content(t, earlier),
      moves: (t) => run.moved[t] > 0,
      annotated: (t) => run.annotation(t)?.by === "user" && run.annotation(t).text !== "",
      arguments: (t) => run.producer[t] < 0 || run.name(t).startsWith("result#"),
    };
    const tests = [
      kinds[this.kind.value],
      ...this.query
        .toLowerCase()
        .split(/\s+/)
        .filter(Boolean)
        .map((word) => this.word(word)),
    ];
    const found = [];
    for (let t = 0; t < run.shown; t++) if (tests.every((test) => test(t))) found.push(t);
    this.table.show(found);
    this.count.textContent = ` ${countText(found.length)} of ${countText(run.shown)}`;
    this.nothing.hidden = found.length > 0;
    const words = this.query.trim() ? ` for “${this.query.trim()}”` : "";
    const among = this.kind.value === "all" ? "" : ` among “${KINDS[this.kind.value]}”`;
    this.nothing.replaceChildren(`Nothing found${words}${among}. `, button("Show all tensors", () => this.showAll()));
  }

  showAll() {
    this.kind.value = "all";
    this.app.search("");
    byId("search").focus();
  }

  /** What a word of a search asks of a tensor. */
  word(word) {
    const { run, before } = this.app;
    if (word.startsWith("axis:")) {
      const name = word.slice(5);
      return (t) =>
        run.axesOf(t, before).some((axis) => run.axes[axis].name.toLowerCase().startsWith(name));
    }
    if (word.startsWith("op:"))
      return (t) => run.producer[t] >= 0 && run.opName(run.producer[t]).includes(word.slice(3));
    if (word.startsWith("@") && word.length > 1) {
      const ranges = this.scopes(run.groups, word.slice(1));
      return (t) => ranges.some(([first, end]) => first <= run.producer[t] && run.producer[t] < end);
    }
    const found = run.strings.map((text) => text.toLowerCase().includes(word)); // types and places
    const { name, type, where } = run.tensors;
    return (t) =>
      found[type[t]] || found[where[t]] || name[t].toLowerCase().includes(word) || run.text(t, before).includes(word);
  }

  scopes(groups, name) {
    return groups.flatMap(([label, , first, end, members]) =>
      label.toLowerCase().startsWith(name) ? [[first, end]] : this.scopes(members, name),
    );
  }

  render() {
    this.table.selected = this.app.tensor;
    this.filter();
  }
}

/** The dimensions of a tensor with their axes. */
function shardingCell(app, tensor) {
  const { run, before } = app;
  const sharding = run.sharding(tensor, before);
  const cell = element("span", { class: "dims", title: run.text(tensor, before) || "no sharding" });
  const manual = run.manualAxes(tensor).map((axis) => axisChip(app, { axis, text: run.axes[axis].name }));
  if (sharding !== null) {
    run.shape(tensor).forEach((_, d) => {
      const parts = sharding.dims[d] ?? [];
      cell.append(
        element("span", { class: "cell" }, ...(parts.length > 0 ? parts.map((part) => axisChip(app, part)) : ["·"])),
      );
    });
  }
  if (manual.length > 0) cell.append(element("span", { class: "cell" }, "manual ", ...manual));
  return cell;
}
