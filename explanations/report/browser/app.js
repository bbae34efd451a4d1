"use strict";
// What is shown: a view, a tensor, a stage. The address of the page has it, so that it can be kept and sent.

const VIEWS = { summary: "Summary", tensors: "Tensors", program: "Program", conflicts: "Conflicts", cost: "Cost" };

class App {
  constructor(run) {
    this.run = run;
    this.view = "summary";
    this.tensor = -1;
    this.stage = run.stages.length;
    this.opener = null;
    byId("module").textContent = run.module;
    byId("means").textContent = `Moves and costs are those of the ${run.means}.`;
    document.title = `${run.module.replace(/.*\//, "")} · shardlog report`;
    this.views = {
      summary: new Summary(this),
      tensors: new Tensors(this),
      program: new Program(this),
      conflicts: new Conflicts(this),
      cost: new Cost(this),
    };
    this.details = new Details(this);
    this.tabs = Object.entries(VIEWS).map(([view, title]) =>
      button(title, () => this.show(view), {
        role: "tab",
        id: `tab-${view}`,
        "aria-controls": `view-${view}`,
      }),
    );
    byId("tabs").append(...this.tabs);
    byId("tabs").addEventListener("keydown", (event) => this.tabKey(event));
    const slider = byId("stage");
    slider.max = run.stages.length;
    slider.addEventListener("input", () => this.setStage(Number(slider.value)));
    byId("search").addEventListener("input", () => this.search(byId("search").value, false));
    byId("search").addEventListener("keydown", (event) => this.searchKey(event));
    byId("help").addEventListener("click", () => byId("help-dialog").showModal());
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => this.read());
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    byId("loading").remove();
    this.read();
    document.documentElement.dataset.ready = "true";
  }

  /** The change before which everything is shown. */
  get before() {
    return this.run.before(this.stage);
  }

  // ---- The address --------------------------------------------------------------------------------------------

  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const stage = Number(given.get("stage") ?? this.run.stages.length);
    this.view = given.get("view") in VIEWS ? given.get("view") : "summary";
    this.tensor = given.has("tensor") ? this.run.tensor(given.get("tensor")) : -1;
    this.stage = stage >= 0 && stage <= this.run.stages.length ? stage : this.run.stages.length;
    this.render();
  }

  write() {
    const given = new URLSearchParams({ view: this.view });
    if (this.tensor >= 0) given.set("tensor", this.run.name(this.tensor));
    if (this.stage < this.run.stages.length) given.set("stage", this.stage);
    const before = new URLSearchParams(location.hash.slice(1));
    const goes = given.get("view") !== before.get("view") || given.get("tensor") !== before.get("tensor");
    history[goes ? "pushState" : "replaceState"](null, "", `#${given}`);
    this.render();
  }

  // ---- What people do -----------------------------------------------------------------------------------------

  show(view) {
    this.view = view;
    this.write();
  }

  showTensors(kind) {
    this.views.tensors.kind.value = kind;
    this.show("tensors");
  }

  showOp(op) {
    this.view = "program";
    this.write();
    this.views.program.showOp(op);
  }

  showConflict({ tensor }) {
    this.view = "conflicts";
    this.select(tensor);
  }

  /** Opens the details of a tensor; -1 closes them. */
  select(tensor) {
    if (this.tensor < 0) this.opener = document.activeElement;
    this.tensor = tensor;
    this.write();
    if (tensor >= 0) {
      byId("details").scrollTop = 0; // in narrow windows it is a sheet at the bottom, under the finger
      byId("details-title").focus({ preventScroll: true });
      announce(`${this.run.name(tensor)} is open`);
    } else {
      this.back();
    }
  }

  /** To where the details were opened from. */
  back() {
    if (this.opener?.isConnected) this.opener.focus({ preventScroll: true });
    else if (this.view === "program") this.views.program.focusNode(this.views.program.active);
    else byId("main").focus({ preventScroll: true });
  }

  setStage(stage) {
    this.stage = Math.max(0, Math.min(this.run.stages.length, stage));
    this.write();
  }

  search(query, fill = true) {
    if (fill) byId("search").value = query;
    this.views.tensors.query = query;
    if (this.view === "tensors") this.views.tensors.render();
    else this.show("tensors");
  }

  // ---- Keys ---------------------------------------------------------------------------------------------------

  key(event) {
    const typing = event.target.matches("input[type=search], select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || byId("help-dialog").open) return;
    const views = Object.keys(VIEWS);
    const keys = {
      "/": () => byId("search").select(),
      "?": () => byId("help-dialog").showModal(),
      Escape: () => {
        if (this.tensor >= 0) this.select(-1);
      },
      "[": () => this.setStage(this.stage - 1),
      "]": () => this.setStage(this.stage + 1),
    };
    views.forEach((view, i) => {
      keys[i + 1] = () => {
        this.show(view);
        this.tabs[i].focus();
      };
    });
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }

  tabKey(event) {
    const at = this.tabs.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.tabs.length - 1 }[event.key];
    if (next === undefined || at < 0) return;
    event.preventDefault();
    const tab = this.tabs[(next + this.tabs.length) % this.tabs.length];
    tab.click();
    tab.focus();
  }

  searchKey(event) {
    const table = this.views.tensors.table;
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      if (this.view !== "tensors") this.search(byId("search").value, false);
      table.element.focus();
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.search("");
    }
  }

  // ---- Showing it ---------------------------------------------------------------------------------------------

  render() {
    const { run, stage } = this;
    for (const [i, view] of Object.keys(VIEWS).entries()) {
      byId(`view-${view}`).hidden = view !== this.view;
      this.tabs[i].setAttribute("aria-selected", String(view === this.view));
      this.tabs[i].tabIndex = view === this.view ? 0 : -1;
    }
    const slider = byId("stage");
    slider.value = stage;
    const changes = stage === 0 ? 0 : run.before(stage) - run.before(stage - 1);
    const text =
      stage === 0
        ? "the annotations alone"
        : `stage ${stage} of ${run.stages.length}: ${stageText(run.stages[stage - 1])} (${manyText(changes, "change")})`;
    const [brief, ...more] = text.split(/(?=: )/);
    byId("stage-text").replaceChildren(brief, element("span", { class: "more-text" }, ...more));
    slider.setAttribute("aria-valuetext", text);
    document.body.classList.toggle("earlier", stage < run.stages.length);
    this.details.render();
    this.views[this.view].render();
  }

  /** On paper there is everything: all views, and the derivation that is open. */
  print(starts) {
    if (!starts) {
      this.render();
      return;
    }
    for (const view of Object.keys(VIEWS)) {
      byId(`view-${view}`).hidden = false;
      this.views[view].render();
    }
    this.views.tensors.table.draw(true);
    this.views.conflicts.table.draw(true);
    for (const details of document.querySelectorAll("#details > details, #details > details details.step")) {
      details.open = true;
      details.fillNow?.();
    }
  }
}

readData(byId("data").textContent)
  .then((data) => {
    byId("data").remove();
    window.app = new App(new Run(data));
  })
  .catch((error) => {
    byId("main").append(
      element(
        "p",
        { role: "alert" },
        `This report cannot be read: ${error.message}. It needs a browser of 2023 or later.`,
      ),
    );
  });
