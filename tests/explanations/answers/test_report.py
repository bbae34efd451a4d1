"""The report in a real browser, as people use it: by mouse, by keyboard alone, in the dark, on paper."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import shardlog
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from shardlog.cli import main
from shardlog.explanations.questions.why import Explainer
from shardlog.explanations.report import report
from shardlog.program.folding import MEMBER, REPEAT, fold, scope
from shardlog.program.mlir.origins import origin
from shardlog.runs.records.obstacles import Obstacles
from shardlog.tests.support import models

from ...support import tools
from ...support.drawing import by_day

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("batch['x']"),
    %w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("params['w']"),
    %v: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>} loc("params['v']"))
    -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("model.py":7:9)
  %1 = stablehlo.tanh %0 : tensor<8x32xf32> loc("<script>bad=1</script>.py":8:9)
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
     : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32> loc("model.py":9:10)
  return %2 : tensor<8x16xf32>
}
"""
LAYERS = 2_000, 10_000  # of three ops each, with a constant


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    logs = {"browser": "ALL", "performance": "ALL"}
    driver: webdriver.Chrome = tools.chromium("window-size=1400,900", loggingPrefs=logs)
    yield driver
    driver.quit()


class Page:
    """A report that is open in a browser."""

    def __init__(self, browser: webdriver.Chrome, file: Path) -> None:
        self.browser = browser
        browser.get("about:blank")
        browser.get_log("browser")  # type: ignore[no-untyped-call]
        browser.get_log("performance")  # type: ignore[no-untyped-call]
        browser.get(file.as_uri())
        self.until(lambda: self.run("return document.documentElement.dataset.ready") == "true")

    def until(self, holds: Callable[[], Any]) -> None:
        WebDriverWait(self.browser, 20).until(lambda _: holds())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def one(self, selector: str) -> WebElement:
        self.until(lambda: self.all(selector))
        return self.all(selector)[0]

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector: str, text: str = "") -> None:
        def clicks() -> bool:
            try:
                next(e for e in self.all(selector) if text in e.text and e.is_displayed()).click()
            except StaleElementReferenceException:  # a table draws its rows anew when its size changes
                return False
            return True

        self.one(selector)
        self.until(clicks)

    def text(self, selector: str) -> str:
        self.one(selector)
        return self.texts(selector)[0]

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements, at one time."""
        texts = list[str]()

        def read() -> bool:
            try:
                texts[:] = [element.text for element in self.all(selector)]
            except StaleElementReferenceException:
                return False
            return True

        self.until(read)
        return texts

    def press(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def tab_to(self, selector: str) -> None:
        """Presses the tab key until an element has the focus."""
        for _ in range(60):
            self.press(Keys.TAB)
            if self.run(f"return document.activeElement.matches({json.dumps(selector)})"):
                return
        raise AssertionError(f"the tab key does not come to {selector}")

    @property
    def errors(self) -> list[str]:
        """The errors in the browser's console."""
        return [entry["message"] for entry in self.browser.get_log("browser")]  # type: ignore[no-untyped-call]

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        log = self.browser.get_log("performance")  # type: ignore[no-untyped-call]
        events = [json.loads(entry["message"])["message"] for entry in log]
        sent = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith(("about:", "data:"))]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "mlp.mlir").write_text(MODULE)
    assert main(["report", str(folder / "mlp.mlir"), "-o", str(folder / "report.html")]) == 0
    return folder / "report.html"


@pytest.fixture
def page(browser: webdriver.Chrome, small: Path) -> Page:
    return Page(browser, small)


@pytest.fixture(scope="module", params=by_day([8], [8, 24]))
def layers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def train_step(tmp_path_factory: pytest.TempPathFactory, layers: int) -> Path:
    text = models.text("transformer", depth=layers, scan=False, train=True)
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(report(shardlog.run(text).programs))
    return file


# ---- Paths of users ---------------------------------------------------------------------------------------


def test_from_the_summary_to_the_annotation_that_caused_a_conflict(page: Page) -> None:
    assert "512 B move to each device" in page.text("#view-summary")
    page.click(".card", "Conflicts")
    page.one("#view-conflicts .space .row")
    first, second = page.run("""
        return [...document.querySelectorAll("#view-conflicts .space .row")]
          .map((row) => [...row.children].map((e) => e.textContent.replace(" \u00d7 1", "")));
    """)
    assert first[:5] == ["384 B", "all-reduce", "%2", "[{}, {data}]", "model"]
    assert second[:5] == ["128 B", "all-gather", "%1", "[{data}, {model}]", ""]
    page.click("#view-conflicts .row", "all-reduce")
    assert "[{}, {data}] partial over model → [{}, {data}]" in page.text("#details .conflict")
    page.click("#view-conflicts .row", "all-gather")
    page.until(lambda: page.text("#details h2") == "%1")
    conflict = page.text("#details .conflict")
    assert "all-gather, 128 B to each device as operand 0 of dot_general at model.py:9" in conflict
    assert "[{data}, {model}] → [{}, {model}]" in conflict
    assert "Annotations that meet" in conflict
    page.click("#details .conflict .link", "params['v']")
    assert page.text("#details h2") == "params['v']"
    assert 'Annotated by the user\n<@mesh, [{}, {"data"}]>' in page.text("#details .annotation")
    assert "value\n%arg2" in page.text("#details .facts")


def test_where_the_time_goes(page: Page) -> None:
    page.click(".card", "Time")
    cards = page.text("#view-cost .cards")
    assert "on TPU v5e, one after the other" in cards
    assert "512 B\nby each device" in cards
    assert "data sheet 64 %, estimated 36 %" in cards
    row = page.text("#view-cost section[aria-label=Collectives] tbody tr").split()
    assert row[:4] == ["1", "all-reduce", "dot_general", "model.py:9"]
    assert page.all("#view-cost .card .limits .limit-links")


def test_places_are_read_in_narrow_windows(browser: webdriver.Chrome, tmp_path: Path) -> None:
    folders = iter(("/home/someone/projects/training/models", "/opt/lib/python3.11/site-packages"))
    text = re.sub(r"model\.py", lambda _: f"{next(folders)}/model.py", MODULE)
    (tmp_path / "report.html").write_text(report(shardlog.run(text).programs))
    size = browser.get_window_size()
    browser.set_window_size(520, 900)
    try:
        page = Page(browser, tmp_path / "report.html")
        page.run("location.hash = 'view=cost'")
        page.one("#view-cost section[aria-label=Collectives] td.place")
        narrowest = (
            "Math.min(...[...document.querySelectorAll('#view-cost td.place')].map((e) => e.offsetWidth))"
        )
        assert page.run(f"return {narrowest}") > 100
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser.set_window_size(size["width"], size["height"])


STACKED = MODULE.replace(
    'loc("model.py":9:10)',
    'loc("jit(step)/transpose(jvp(UNet))/ResBlock_0/SelfAttention_0/out/dot_general"(callsite('
    '"a"("/venv/lib/python3.11/site-packages/flax/linen/normalization.py":792:1) at "b"("model.py":9:10))))',
)


@pytest.mark.parametrize("width", [1440, 390])
def test_lines_and_name_stacks_fit(browser: webdriver.Chrome, tmp_path: Path, width: int) -> None:
    """Every view names the program, no text runs out of its place, shortened places keep the user's line."""
    result = shardlog.run(STACKED)
    (tmp_path / "report.html").write_text(report(result.programs))
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)  # windows are at least 500 wide
    try:
        page = Page(browser, tmp_path / "report.html")
        for view in ("Summary", "Tensors", "Program", "Conflicts", "Cost"):
            page.click("#tabs button", view)
            assert "program: least bytes (--keep-shardings: as decided" in page.text("#means")
            assert page.run("return document.documentElement.scrollWidth") <= width, view
        page.click("#tabs button", "Program")
        page.one(".node")
        assert page.run(
            "return [...document.querySelectorAll('.node > :not(.badge)')]"
            ".every((e) => e.getBoundingClientRect().bottom"
            " <= e.parentElement.getBoundingClientRect().bottom)"
        )
        page.one("#search").send_keys("ResBlock_0/SelfAttention")
        first = page.one("#view-tensors .row .middle .first")
        assert first.text == "model.py:9"
        assert page.run("return arguments[0].scrollWidth <= arguments[0].clientWidth", first)
        page.run("document.querySelector('#view-tensors .space .row').click()")
        place = page.one("#details .step .place")
        assert place.text.endswith("in transpose(jvp(UNet))/ResBlock_0/SelfAttention_0/out")
        assert page.run("return arguments[0].getBoundingClientRect().right", place) <= width
        assert 0 <= page.run("return document.getElementById('details').getBoundingClientRect().top") < 450
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.fixture
def phone(browser: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def box(page: Page, selector: str) -> dict[str, float]:
    """Where an element stands in the window."""
    box = page.run("return arguments[0].getBoundingClientRect().toJSON()", page.one(selector))
    return dict(box)


def test_a_tapped_conflict_opens_beside_it_on_a_phone(phone: webdriver.Chrome, small: Path) -> None:
    page = Page(phone, small)
    assert box(page, "#main")["top"] < 100  # of 844: the header is small
    page.click("#tabs button", "Conflicts")
    page.click("#view-conflicts .row", "all-gather")
    page.until(lambda: "all-gather, 128 B" in page.text("#details .conflict"))
    sheet, row = box(page, "#details"), box(page, "#view-conflicts .row[aria-selected=true]")
    assert (sheet["left"], sheet["right"], sheet["bottom"]) == (0, 390, 844)
    page.until(lambda: box(page, "#view-conflicts .row[aria-selected=true]")["bottom"] <= sheet["top"])
    assert row["left"] >= 0
    assert row["right"] <= 390
    # Nothing is cut: every cell that is shown is there as a whole.
    cut = "[...document.querySelectorAll('#view-conflicts .space .row > *')].filter((e) => e.offsetWidth && e.scrollWidth > e.clientWidth).map((e) => e.textContent)"  # noqa: E501
    assert page.run(f"return {cut}") == []
    page.click("#details .close")
    assert not page.one("#details").is_displayed()
    for view in ("tensors", "conflicts"):  # whose columns sort, the last ones too
        page.run(f"app.show('{view}')")
        heads = f"[...document.querySelectorAll('#view-{view} .head button')]"
        assert page.run(f"return Math.min(...{heads}.map((e) => e.offsetWidth))") > 0
        assert page.run(f"return Math.max(...{heads}.map((e) => e.getBoundingClientRect().right))") <= 390


def test_many_kinds_of_collectives_and_long_names_of_layers_fit_on_a_phone(
    phone: webdriver.Chrome, tmp_path: Path
) -> None:
    layers, long = range(3), "a_long_name" * 20
    square = "tensor<4096x4096xbf16>"
    axes = ['{}, {"data"}', '{}, {"model"}', '{}, {"data"}']
    text = f"""sdy.mesh @mesh = <["data"=8, "fsdp"=8, "model"=8]>
func.func @main(%h0: {square} {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}},
    {", ".join(f"%w{i}: {square} {{sdy.sharding = #sdy.sharding<@mesh, [{axes[i]}]>}}" for i in layers)}
) -> {square} {{
"""
    for i in layers:
        text += f"""%h{i + 1} = stablehlo.dot_general %h{i}, %w{i}, contracting_dims = [1] x [0]
      : ({square}, {square}) -> {square} loc("jit(f)/{long if i == 1 else i}/dot"("m.py":{i + 1}:1))\n"""
    result = shardlog.run(f"{text}  return %h3 : {square}\n}}")
    assert len({item.op for item in result.cost().collectives()}) == 3
    (tmp_path / "report.html").write_text(report(result.programs))
    page = Page(phone, tmp_path / "report.html")
    page.click("#tabs button", "Cost")
    page.one(".matrix tr")
    over = page.run("""
        const found = [];
        for (const row of document.querySelectorAll(".matrix tbody tr")) {
          const boxes = [...row.querySelectorAll("th, .cell")].map((cell) => cell.getBoundingClientRect());
          for (const one of boxes) for (const other of boxes)
            if (one !== other && one.left < other.right && other.left < one.right
                && one.top < other.bottom && other.top < one.bottom) found.push(row.textContent);
        }
        return found;
    """)
    assert over == []
    wide = "[...document.querySelectorAll('.legend li, [aria-label=\"Where the time goes\"] th')]"
    assert page.run(f"return Math.max(...{wide}.map((e) => e.getBoundingClientRect().right))") <= 390


def test_what_differs_of_a_conflict_is_marked(page: Page) -> None:
    page.run("app.show('conflicts')")
    page.one("#view-conflicts .space .row")
    marked = "[...document.querySelectorAll('#view-conflicts .space .row')].map((row) => [...row.querySelectorAll('mark')].map((e) => e.textContent))"  # noqa: E501
    assert page.run(f"return {marked}") == [["summed"], ["{data}", "{}"]]
    # Of long shardings what does not differ gives way, and never what differs.
    said = page.run("""
        const conflict = { has: ["a_long_axis,b", "", "c", ""], needs: ["a_long_axis,b", "", "", "d"] };
        const cut = (part) => part.scrollWidth > part.clientWidth;
        return ["has", "needs"].map((side) => {
          const made = element("span", { class: "marked code" }, ...markedDims(conflict[side], conflict));
          const cell = element("div", { style: "width: 9em" }, made);
          document.body.append(cell);
          const marks = [...made.querySelectorAll("mark")];
          const said = [made.textContent, [...made.children].some(cut), marks.some(cut)];
          cell.remove();
          return said;
        });
    """)
    assert said == [
        ["[{a_long_axis,b}, {}, {c}, {}]", True, False],
        ["[{a_long_axis,b}, {}, {}, {d}]", True, False],
    ]


@pytest.mark.parametrize("width", [1440, 390])
def test_names_are_never_shortened_alike(browser: webdriver.Chrome, tmp_path: Path, width: int) -> None:
    """Of a path as many keys stay as tell it from the others."""
    which = ("query", "value", "out")
    arguments = ", ".join(
        f"%{n}: tensor<4xf32> loc(\"state['attention']['{n}']['kernel'].value\")" for n in which
    )
    mlir, file = tmp_path / "m.mlir", tmp_path / "report.html"
    mlir.write_text(f"""
      sdy.mesh @mesh = <["data"=2]>
      func.func @main({arguments}) -> tensor<4xf32> {{
        %0 = stablehlo.add %query, %value : tensor<4xf32>
        return %0 : tensor<4xf32>
      }}""")
    shardlog.run(mlir).report(file)
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page = Page(browser, file)
        page.click("#tabs button", "Tensors")
        page.until(lambda: len(page.all("#view-tensors .of-name .end")) >= len(which))
        ends = page.run("""
          return [...document.querySelectorAll("#view-tensors .of-name .end")]
            .map((e) => [e.textContent, e.scrollWidth > e.clientWidth]);
        """)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert ends[: len(which)] == [[f"['{name}']['kernel'].value", False] for name in which]


def test_steps_are_folded_by_layer(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Of a long derivation the layers are there first, then steps without names of the module, then all."""
    lines = [
        f"%{i} = stablehlo.tanh %{i - 1 if i else 'x'} : tensor<8xf32> "
        f'loc("jit(f)/layer_{i // 4}/tanh"("m.py":{i + 1}:1))'
        for i in range(12)
    ]
    module = """
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<8xf32> {
  BODY
  return %11 : tensor<8xf32>
}
""".replace("BODY", "\n  ".join(lines))
    (tmp_path / "report.html").write_text(report(shardlog.run(module).programs))
    page = Page(browser, tmp_path / "report.html")
    page.run("app.select(app.run.tensor('%11'))")
    layers = [e.replace("\n", " ") for e in page.texts("#details .layer-steps > summary")]
    assert layers == [f"layer_{i} 4 steps: tanh" for i in (2, 1, 0)]
    page.click("#details .layer-steps summary")
    page.until(lambda: len(page.all("#details .layer-steps[open] .step > summary")) == 4)
    steps = page.all("#details .layer-steps[open] .step > summary")
    assert steps[0].text.replace("\n", " ") == "dim 0 gets data from dim 0 by tanh m.py:12 in layer_2"
    steps[0].click()
    assert "%11, from %10" in page.text("#details .step dl")


def test_the_program_opens_on_the_model(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Not on what stands before it, and inside of what is nearly all of it."""
    body, last = list[str](), "x"

    def add(stack: str) -> None:
        nonlocal last
        name = f"v{len(body)}"
        op = ("tanh", "negate", "sine")[len(body) % 3]
        body.append(f'%{name} = stablehlo.{op} %{last} : tensor<8xf32> loc("jit(f)/{stack}/op"("m.py":1:1))')
        last = name

    for stack, ops in (("outer/_threefry_split", 5), ("outer/net", 40), ("outer/loss", 4)):
        for i in range(ops):
            add(f"{stack}/part_{i % 7}" if ops > 10 else stack)
    module = """
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<8xf32> {
  BODY
  return LAST : tensor<8xf32>
}
""".replace("BODY", "\n  ".join(body)).replace("LAST", f"%{last}")
    (tmp_path / "report.html").write_text(report(shardlog.run(module).programs))
    page = Page(browser, tmp_path / "report.html")
    page.click("#tabs button", "Program")
    assert "_threefry_split" not in page.text("#view-program .node[tabindex='0']")
    assert page.text("#view-program .crumbs b") in ("outer", "net")


def test_what_is_empty_is_left_out(browser: webdriver.Chrome, tmp_path: Path) -> None:
    module = """
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
"""
    (tmp_path / "report.html").write_text(report(shardlog.run(module).programs))
    page = Page(browser, tmp_path / "report.html")
    for view in ("Conflicts", "Cost"):
        page.click("#tabs button", view)
        empty = "[...document.querySelectorAll('table, .table')].filter((e) => e.checkVisibility() && !e.querySelector('tbody tr, .space .row'))"  # noqa: E501
        assert page.run(f"return {empty}.length") == 0, view
    assert page.run("return prose('see `--shape`').map((e) => e.textContent ?? e)") == ["see ", "--shape", ""]


def test_a_derivation_opens_step_by_step(page: Page) -> None:
    page.click("#tabs button", "Tensors")
    page.click("#view-tensors .row", "model.py:9")
    why = page.one("#details .derivation")
    assert "dim 1 data 1 step from params['v']" in why.text.replace("\n", " ")
    page.click("#details .step summary")
    step = page.text("#details .step dl")
    assert 'Slot 1 (%arg2) has "data" as axis 0 of factor j' in step
    assert "rules/propagation/turn/compatible.dl:" in step
    # The other axis that was in the running, and why it lost.
    assert "data of %1 dim 0 along factor i, for %2 dim 0: taken" in step.replace("\n", " ")


def test_what_it_says_is_what_why_says(page: Page, capsys: pytest.CaptureFixture[str], small: Path) -> None:
    assert main(["why", str(small.parent / "mlp.mlir"), "%1", "--axis", "model", "--json"]) == 0
    (explanation,) = json.loads(capsys.readouterr().out)
    page.run("app.select(app.run.tensor('%1'))")
    page.run("document.querySelectorAll('#details details').forEach((one) => { one.open = true; })")
    page.until(lambda: len(page.all("#details .step > dl")) == len(page.all("#details .step")) == 4)
    shown = page.text("#details")
    for step in explanation["steps"]:
        assert step["sentence"] in shown
        assert step["rule"] in shown


PRIORITIES = """
sdy.mesh @mesh = <["a"=2, "b"=8]>
func.func @main(%x: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p1, {"b":(2)4, ?}p0]>},
                %y: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(1)2, ?}, {?}]>})
    -> tensor<16x32xf32> {
  %0 = stablehlo.add %x, %y : tensor<16x32xf32>
  %1 = stablehlo.tanh %0 : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
}
"""
WAYS = """
const { run } = app, found = [], name = (site) => [run.name(site.tensor), site.dim];
for (let t = 0; t < run.shown; t++) {
  run.shape(t).forEach((_, dim) => {
    for (const { atoms, way } of waysOf(run, t, dim, run.end)) {
      const source = (step) => (step.from === null ? ["", 0] : name(step.from));
      const steps = way.steps.map((step) => [step.change, ...name(step.site), ...source(step)]);
      found.push([run.name(t), dim, atoms, run.name(originOf(run, way.origin).tensor), steps]);
    }
  });
}
return found;
"""


ASKED = [("priorities", 1), ("recommender", 1), ("recommender", 2)]


@pytest.mark.parametrize(("program", "depth"), by_day(ASKED[:2], ASKED))
def test_every_derivation_is_that_of_why(
    browser: webdriver.Chrome, tmp_path: Path, program: str, depth: int
) -> None:
    model = partial(models.text, "recommender", depth=depth, train=depth > 1)
    result = shardlog.run(PRIORITIES if program == "priorities" else model())
    file = tmp_path / "report.html"
    file.write_text(report(result.programs))
    explainer, expected = Explainer(result.record), []
    for name in dict.fromkeys(value.name for value in explainer.values.all()):
        for e in explainer.why(name):
            steps = []
            for s in e.steps:
                source = [s.source.value, s.source.dim] if s.kind == "propagation" else ["", 0]
                steps.append([s.change, s.site.value, s.site.dim, *source])
            expected.append([name, e.site.dim, list(e.atoms), e.origin.value, steps])
    assert expected
    assert sorted(Page(browser, file).run(WAYS)) == sorted(expected)


def test_search(page: Page) -> None:
    page.one("#search").send_keys("axis:model tensor<8x32")
    page.until(lambda: "2 of" in page.text("#view-tensors .tools"))
    assert [row.split("\n")[0] for row in page.texts("#view-tensors .space .row")] == ["%0", "%1"]
    page.one("#search").clear()
    page.one("#search").send_keys("params")
    page.until(lambda: "2 of" in page.text("#view-tensors .tools"))


def test_sorting(page: Page) -> None:
    page.click("#tabs button", "Tensors")
    page.click("#view-tensors .head button", "Moved")
    rows = page.all("#view-tensors .space .row")
    assert [row.text.split("\n")[0] for row in rows[:2]] == ["%2", "%1"]
    assert page.one("#view-tensors [aria-sort=descending]").text.startswith("Moved")
    page.click("#view-tensors .head button", "Size")
    page.click("#view-tensors .head button", "Size")
    assert page.text("#view-tensors [aria-sort=ascending]").startswith("Size")
    names = [row.split("\n")[0] for row in page.texts("#view-tensors .space .row")]
    assert names == ["batch['x']", "%2", "result#0", "%0", "%1", "params['w']", "params['v']"]


def test_what_is_not_found_is_said(page: Page) -> None:
    page.one("#search").send_keys("nowhere")
    page.until(lambda: "0 of 7" in page.text("#view-tensors .tools"))
    assert page.text("#view-tensors .nothing") == "Nothing found for “nowhere”. Show all tensors"
    page.click("#view-tensors .nothing button")
    page.until(lambda: "7 of 7" in page.text("#view-tensors .tools"))
    assert not page.one("#view-tensors .nothing").is_displayed()


PATHS = ["/home/someone/" + "long/" * 30 + f"model_{i}/attention.py" for i in range(2)]


def chain(ops: int) -> str:
    """An argument that so many ops pass on, each on a line of a file with a long path."""
    values = ["%x", *(f"%{i}" for i in range(ops))]
    lines = [
        f'  {values[i + 1]} = stablehlo.tanh {values[i]} : tensor<8xf32> loc("{PATHS[i % 2]}":{i + 1}:3)'
        for i in range(ops)
    ]
    return f"""
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}]>}}
    loc("params['{"deep']['" * 12}scale']")) -> tensor<8xf32> {{
{chr(10).join(lines)}
  return %{ops - 1} : tensor<8xf32>
}}
"""


def test_long_paths_are_shortened_in_the_middle(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """The end, which tells them apart, is in sight, however little room there is."""
    (tmp_path / "report.html").write_text(report(shardlog.run(chain(3)).programs))
    page = Page(browser, tmp_path / "report.html")
    page.run("app.show('tensors'); app.select(app.run.tensor('%1'))")
    ends = page.all("#view-tensors .space .middle .end")
    texts = [end.get_attribute("textContent") or "" for end in ends]
    for wanted in ("attention.py:1", "attention.py:2", "['scale']"):
        assert any(text.endswith(wanted) for text in texts)
    for end in ends:
        cell = page.run(
            "return arguments[0].closest('[role=gridcell]').getBoundingClientRect().toJSON()", end
        )
        own = page.run("return arguments[0].getBoundingClientRect().toJSON()", end)
        assert cell["left"] <= own["left"] and own["right"] <= cell["right"] + 1


@pytest.mark.parametrize(("steps", "more"), [(12, ""), (13, ""), (14, "2 more steps")])
def test_steps_have_their_lines_and_a_single_one_is_not_hidden(
    browser: webdriver.Chrome, tmp_path: Path, steps: int, more: str
) -> None:
    (tmp_path / "report.html").write_text(report(shardlog.run(chain(steps)).programs))
    page = Page(browser, tmp_path / "report.html")
    page.run(f"app.select(app.run.tensor('%{steps - 1}'))")
    lines = page.texts("#details .step .place")
    shown = 12 if more else steps
    assert lines == [f"attention.py:{steps - i}" for i in range(shown)]
    assert page.texts("#details .more button") == [more] * bool(more)


def test_stages(page: Page) -> None:
    """Nothing but the annotations at first; the matrix products pass their axes on in the third stage."""
    page.run("app.select(app.run.tensor('%0'))")
    slider = page.one("#stage")
    slider.send_keys(Keys.HOME)
    assert page.text("#stage-text") == "the annotations alone"
    assert "No dimension is sharded yet" in page.text("#details")
    slider.send_keys(Keys.RIGHT, Keys.RIGHT)
    assert "No dimension is sharded yet" in page.text("#details")
    slider.send_keys(Keys.RIGHT)
    assert page.text("#stage-text").startswith("stage 3 of 5: priority 0, level 2, aggressive")
    assert "[{data}, {model}]" in page.text("#details .facts")


def test_program(page: Page) -> None:
    page.click("#tabs button", "Program")
    labels = [node.get_attribute("aria-label") for node in page.all("#view-program .node[aria-label]")]
    assert labels[1] == "tanh: %1, [{data}, {model}]"
    assert labels[2] == "dot_general: %2, [{}, {data}]; 2 of its tensors must move"
    assert len(page.all("#view-program path.moves")) == 2  # into it, and out of it
    page.click("#view-program .node", "tanh")
    assert page.text("#details h2") == "%1"
    assert len(page.all("#view-program .node.way")) == 2  # the ops that its axes came by


def test_by_keyboard_alone(page: Page) -> None:
    page.press("/")
    page.press("8x32", Keys.ENTER, Keys.ARROW_DOWN, Keys.ENTER)
    assert page.text("#details h2") == "%1"
    page.tab_to("#details .step summary")
    page.press(Keys.ENTER)
    assert "because" in page.text("#details .step dl")
    page.press(Keys.ESCAPE)
    assert not page.one("#details").is_displayed()
    assert page.run("return document.activeElement.getAttribute('aria-label')") == "Tensors"
    page.press("3")
    page.tab_to("#view-program .node")
    page.press(Keys.ARROW_DOWN)
    assert page.run("return document.activeElement.ariaLabel").startswith("tanh")
    page.press(Keys.ENTER)
    assert page.text("#details h2") == "%1"
    page.press(Keys.ESCAPE, "4")
    page.tab_to(".table[aria-label=Conflicts]")
    page.press(Keys.ENTER)
    assert "partial over model" in page.text("#details")
    page.press("?")
    assert page.one("#help-dialog").is_displayed()
    help_, close = box(page, "#help-dialog"), box(page, "#help-dialog .close")
    assert help_["right"] - 30 < close["right"] <= help_["right"]
    assert help_["top"] <= close["top"] < help_["top"] + 30


def test_everything_has_a_name_and_a_place_in_the_tab_order(page: Page) -> None:
    page.run("app.showConflict(app.run.conflicts[0])")
    for view in "12345":
        page.press(view)
        unnamed = page.run("""
            const all = "button, input, select, summary, [role=grid], [role=slider], a";
            const seen = [...document.querySelectorAll(all)]
              .filter((one) => one.checkVisibility());
            return seen.filter((one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length))
              .map((one) => one.outerHTML);
        """)
        assert unnamed == []
    assert (
        page.run(
            'return document.querySelectorAll(\'[tabindex]:not([tabindex="0"], [tabindex="-1"])\').length'
        )
        == 0
    )


def test_the_address_keeps_what_is_shown(page: Page) -> None:
    page.run("app.setStage(3); app.show('tensors'); app.select(app.run.tensor('%0'))")
    address = page.browser.current_url
    page.browser.get("about:blank")
    page.browser.get(address)
    page.until(lambda: page.run("return document.documentElement.dataset.ready") == "true")
    assert page.text("#details h2") == "%0"
    assert page.text("#stage-text").startswith("stage 3 of 5")
    page.click("#tabs button", "Summary")
    page.browser.back()
    page.until(lambda: page.one("#view-tensors").is_displayed())


# ---- Alone, in the dark, on paper -------------------------------------------------------------------------


def test_alone(page: Page) -> None:
    """Nothing is asked for but the page, and what a module says is shown as it is."""
    page.run("app.showConflict(app.run.conflicts[0]); app.show('program'); app.show('tensors')")
    assert "<script>bad=1</script>.py:8" in page.run(
        "return document.getElementById('view-tensors').textContent"
    )
    assert [url.partition("#")[0] for url in page.requests] == [page.browser.current_url.partition("#")[0]]
    assert page.errors == []


# Texts whose contrast to what is under them is less than the 4.5 of the Web Content Accessibility Guidelines.
CONTRAST = """
const linear = (n) => (n <= .04045 ? n / 12.92 : ((n + .055) / 1.055) ** 2.4);
const luminance = (color) => {
  const whole = color.startsWith("color(srgb") ? 1 : 255; // mixed colours
  const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((n) => linear(n / whole));
  return .2126 * r + .7152 * g + .0722 * b;
};
const ground = (one) => {
  for (; one; one = one.parentElement) {
    const color = getComputedStyle(one).backgroundColor;
    if (!/, 0\\)$/.test(color)) return color;
  }
};
const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
const found = [];
for (const one of document.querySelectorAll("body *")) {
  if (!one.checkVisibility() || !hasText(one) || one.matches(":disabled, .hidden, .skip, svg *")) continue;
  const values = [getComputedStyle(one).color, ground(one)].map(luminance).sort((a, b) => b - a);
  const ratio = (values[0] + .05) / (values[1] + .05);
  if (ratio < 4.5) found.push(`${one.outerHTML.slice(0, 80)} ${ratio.toFixed(2)}`);
}
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page: Page, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    grounds = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (grounds == "rgb(255, 255, 255)") == (scheme == "light")
    for view in ("summary", "tensors", "program", "conflicts", "cost"):
        page.run(f"app.showConflict(app.run.conflicts[0]); app.show('{view}')")
        page.run("document.querySelectorAll('#details details').forEach((one) => { one.open = true; })")
        assert page.run(CONTRAST) == []


def test_on_paper(page: Page) -> None:
    page.run("app.showConflict(app.run.conflicts[0])")
    page.run("window.print = () => {}; dispatchEvent(new Event('beforeprint'))")
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = page.text("body")
    for part in (
        "Sharded",
        "Most expensive conflicts".upper(),
        "params['w']",
        "tanh",
        "all-reduce, 384 B to each device",
        "because",
    ):
        assert part in shown
    assert not page.one("#search").is_displayed()
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


# ---- Large programs ---------------------------------------------------------------------------------------


def test_the_report_of_many_layers_is_small(train_step: Path, layers: int) -> None:
    assert train_step.stat().st_size < 600_000 + 180_000 * layers


def test_repeated_layers_fold(browser: webdriver.Chrome, train_step: Path, layers: int) -> None:
    page = Page(browser, train_step)
    page.click("#tabs button", "Program")
    assert len(page.all("#view-program .node")) < 60
    # Somewhere in the program the layers are one group.
    page.run(f"const least = {layers - 2};" """
        const app = window.app, find = (groups, trail) => {
          for (const group of groups) {
            if (group[1] === 1 && group[4].length >= least) return [...trail, group];
            const inside = find(group[4], [...trail, group]);
            if (inside) return inside;
          }
        };
        app.views.program.go(find(app.run.groups, []).slice(0, -1));
    """)  # fmt: skip
    page.click("#view-program .node.repeat")
    assert int(page.text("#view-program .members").split()[-2]) >= layers - 2
    page.press(".")
    assert page.text("#view-program .members").split()[1:3] == ["2", "of"]
    page.press(Keys.BACKSPACE)
    assert len(page.all("#view-program .node.repeat")) >= 1
    # What every layer moves is one row.
    page.click("#tabs button", "Conflicts")
    rows = [row.split("\n")[:3] for row in page.texts("#view-conflicts .space .row")]
    assert len(rows) < 40 < page.run("return app.run.conflicts.length")
    assert [str(layers), "all-gather"] in [row[1:] for row in rows]
    assert page.errors == []


@pytest.mark.parametrize("layers", by_day(LAYERS[:1], LAYERS))
def test_many_ops(browser: webdriver.Chrome, tmp_path: Path, layers: int) -> None:
    lines, last = [], "%x"
    for i in range(layers):
        lines.append(f"%a{i} = stablehlo.constant dense<1.0> : tensor<8x16xf32>")
        lines.append(f"%b{i} = stablehlo.add {last}, %a{i} : tensor<8x16xf32>")
        lines.append(f"%c{i} = stablehlo.tanh %b{i} : tensor<8x16xf32>")
        lines.append(f"%d{i} = stablehlo.multiply %c{i}, %b{i} : tensor<8x16xf32>")
        last = f"%d{i}"
    body = "\n  ".join(lines)
    module = f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> tensor<8x16xf32> {{
  {body}
  return {last} : tensor<8x16xf32>
}}
"""
    file = tmp_path / "report.html"
    file.write_text(report(shardlog.run(module).programs))
    page = Page(browser, file)
    assert f"{4 * layers + 1:,}" in page.text(".cards")
    page.click("#tabs button", "Tensors")
    assert len(page.all("#view-tensors .space .row")) < 100  # only those in sight are drawn
    page.one(".table[aria-label=Tensors]").send_keys(Keys.END, Keys.ENTER)
    assert page.text("#details h2") == "result#0"
    assert f"{3 * layers + 1:,} steps from %arg0" in page.text("#details .derivation")
    page.click("#tabs button", "Program")
    assert page.text("#view-program .node.repeat").split("\n")[-1] == "4 ops each"


# ---- The parts --------------------------------------------------------------------------------------------


def test_scopes() -> None:
    def of(names: str) -> tuple[str, ...]:
        outer = '"m.loss"("model.py":9:2) at "<module>"("run.py":1:1)'
        inner = f'"m.norm"("/a/model.py":3:8 to :12) at callsite({outer})'
        return scope(origin(f'"{names}"(callsite({inner}))'))

    assert of("jit(loss)/jvp(layer_3)/attention/mul") == ("layer_3", "attention")
    assert of("jit(loss)/transpose(jvp(layer_3))/mul") == ("backward", "layer_3")
    assert of("jit(loss)/jvp()/mul") == ("loss", "norm")
    calls = '"Net.__call__.<locals>.block"("a.py":2:1) at "Net.__call__"("a.py":3:1)'
    inside = f'"Dense.__call__"("a.py":1:1) at callsite({calls})'
    assert scope(origin(f'"jit(f)/dot"(callsite({inside}))')) == ("Net", "block", "Dense")
    assert scope(origin("unknown")) == scope(origin('"/a/b/module.mlir":3:4')) == ()


def test_folding() -> None:
    """Five ops before three layers of six, of which no scope tells."""
    tokens = [90, 91, 92, 93, 94, *[1, 2, 3, 2, 4, 5] * 3, 95]
    (repeat,) = fold([()] * len(tokens), tokens)
    assert (repeat.kind, repeat.first, repeat.end) == (REPEAT, 5, 23)
    assert [(m.kind, m.first, m.end) for m in repeat.members] == [
        (MEMBER, 5, 11),
        (MEMBER, 11, 17),
        (MEMBER, 17, 23),
    ]


def test_named_layers_fold() -> None:
    scopes = [(f"layer_{i}", "attention" if j < 3 else "mlp") for i in range(9) for j in range(6)]
    (repeat,) = fold(scopes, [1, 2, 3, 4, 5, 6] * 9)
    assert repeat.label == "layer"
    assert [member.label for member in repeat.members[:2]] == ["layer_0", "layer_1"]
    assert [group.label for group in repeat.members[0].members] == ["attention", "mlp"]


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by number"])
def test_layers_of_the_forward_and_the_backward_pass(named: bool) -> None:
    """Layers that repeat are called for what they are, and for the pass that they are in."""
    layer = "layers_{}" if named else "block"
    forward: list[tuple[str, ...]] = [("net", layer.format(i)) for i in range(12) for _ in range(6)]
    backward: list[tuple[str, ...]] = [("backward", *scopes) for scopes in reversed(forward)]
    tokens = [1, 2, 3, 4, 5, 6] * 12 + [11, 12, 13, 14, 15, 16] * 12
    groups = fold(forward + backward, tokens)
    repeats = [g for group in groups for g in (group, *group.members) if g.kind == REPEAT]
    assert [g.label for g in repeats] == (
        ["layers", "layers, backward"] if named else ["block", "block, backward"]
    )
    assert [g.members[0].label for g in repeats] == (
        ["layers_0", "layers_11, backward"] if named else ["block 1", "block 1, backward"]
    )


def test_layers_are_not_called_like_the_largest_part_of_one() -> None:
    """All layers are in one scope, for they are called one after the other."""
    scopes = [("net", "layer", *(("rope",) if n % 9 < 6 else ())) for n in range(9 * 5)]
    (repeat,) = (group for group in fold(scopes, [*range(9)] * 5) if group.kind == REPEAT)
    assert (repeat.label, len(repeat.members)) == ("layer", 5)


def test_same_input_same_bytes(small: Path) -> None:
    again = small.with_name("again.html")
    assert main(["report", str(small.parent / "mlp.mlir"), "-o", str(again)]) == 0
    assert again.read_bytes() == small.read_bytes()


def test_a_saved_run(small: Path, tmp_path: Path) -> None:
    saved, file = tmp_path / "run.shardlog", tmp_path / "report.html"
    shardlog.run(small.parent / "mlp.mlir").save(saved)
    assert main(["report", str(saved), "-o", str(file)]) == 0
    assert file.read_bytes() == small.read_bytes()


def wide(operands: int) -> str:
    """An op of many operands, the first two of which are sharded."""
    sharding = ' {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"model"}]>}'
    types = ["tensor<8x16xf32>"] * operands
    arguments = [f"%a{i}: {type_}{sharding if i < 2 else ''}" for i, type_ in enumerate(types)]
    named = ", ".join(f"%a{i}" for i in range(operands))
    whole = f"tensor<{8 * operands}x16xf32>"
    return f"""
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main({", ".join(arguments)}) -> {whole} {{
  %0 = stablehlo.concatenate {named}, dim = 0 : ({", ".join(types)}) -> {whole}
  return %0 : {whole}
}}
"""


def test_a_turn_is_solved_once_for_all_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An op of many operands takes no more solving than one of few."""
    solved: list[int] = []
    asked = Obstacles._facts

    def facts(*arguments: Any) -> Any:
        solved[-1] += 1
        return asked(*arguments)

    monkeypatch.setattr(Obstacles, "_facts", facts)
    for operands in (4, 30):
        solved.append(0)
        report(shardlog.run(wide(operands)).programs)
    assert solved[0] == solved[1] > 0


def test_no_place_to_write(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = str(small.parent / "no" / "report.html")
    assert main(["report", str(small.parent / "mlp.mlir"), "-o", nowhere]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_without_jinja(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for name in ("shardlog.explanations.report", "shardlog.explanations.report.page", "shardlog.pages"):
        monkeypatch.delitem(sys.modules, name)
    assert main(["report", str(small.parent / "mlp.mlir"), "-o", "report.html"]) == 2
    assert "pip install 'shardlog[report]'" in capsys.readouterr().err
