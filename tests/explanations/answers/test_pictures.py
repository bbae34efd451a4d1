"""The pictures of the report: what they are drawn from, and what they show in a browser, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import shardlog
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from shardlog.explanations.answers.visualize import ranges
from shardlog.explanations.report import report
from shardlog.explanations.report.pictures import pictures
from shardlog.session import Session
from shardlog.tests import screenshots
from shardlog.tests.support import models

from .test_report import MODULE, Page, browser, small

__all__ = ["browser", "small"]  # fixtures
WIDTHS = 1440, 390


@pytest.fixture(scope="module")
def step() -> Session:
    found = shardlog.run(models.lower("transformer", depth=2, scan=False, train=True))
    assert isinstance(found, Session)
    return found


@pytest.fixture(scope="module")
def file(step: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pictures") / "report.html"
    made.write_text(report(step.programs))
    return made


@pytest.fixture(params=WIDTHS)
def page(request: pytest.FixtureRequest, browser: webdriver.Chrome, file: Path) -> Iterator[Page]:
    size = {"width": request.param, "height": 900, "deviceScaleFactor": 1, "mobile": request.param < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield Page(browser, file)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


# ---- What they are drawn from -----------------------------------------------------------------------------


@pytest.mark.parametrize("topology", ["v5e", "h100", "cpu"])
def test_the_pictures_agree_with_the_cost(step: Session, topology: str) -> None:
    cost = step.partition().cost(topology)
    drawn = pictures(cost)
    usage = drawn["usage"]
    live = [sum(bytes_) for _, bytes_ in usage["moments"]]
    assert max(live) + usage["arguments"] + usage["results"] == pytest.approx(cost.peak, abs=64)
    assert sum(cell[2] for cell in drawn["matrix"]["cells"]) == pytest.approx(cost.sent)
    assert sum(link["bytes"] for link in drawn["links"]) == pytest.approx(cost.sent)
    assert sum(link["seconds"] for link in drawn["links"]) == pytest.approx(cost.limited()["links"])
    timeline = drawn["timeline"]
    assert max(begin + length for _, begin, length, *_ in timeline["pieces"]) <= timeline["whole"] + 1
    numbers = {number for *_, some in drawn["matrix"]["cells"] for number in some}
    assert numbers <= {number for item in cost.collectives() for number in item.numbers}


def test_many_layers_are_one_without_their_numbers() -> None:
    kind = "tensor<64x64xf32>"
    given = f'{kind} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}}'
    lines, last = [], "x"
    for i in range(30):
        product = f"stablehlo.dot_general %{last}, %w, contracting_dims = [1] x [0]"
        place = f'loc("jit(f)/layer_{i}/dot"("m.py":1:1))'
        lines.append(f"%y{i} = {product} : ({kind}, {kind}) -> {kind} {place}")
        last = f"y{i}"
    module = "\n".join(
        [
            'sdy.mesh @mesh = <["x"=2]>',
            f"func.func @main(%x: {given}, %w: {given}) -> {kind} {{",
            *lines,
            f"return %{last} : {kind}",
            "}",
        ]
    )
    drawn = pictures(shardlog.run(module).partition(keep_shardings=True).cost("v5e"))
    assert drawn["timeline"]["layers"] == ["layer_*"]
    (cell,) = drawn["matrix"]["cells"]
    assert (drawn["matrix"]["kinds"], cell[3]) == (["all-gather"], 30)


def test_the_page_is_small_without_its_data(file: Path) -> None:
    text = file.read_text()
    data = text.partition('<script id="data" type="text/plain">')[2].partition("</script>")[0]
    assert len(text) - len(data) < 250_000


def test_the_documentation_shows_each_screenshot() -> None:
    shown = (screenshots.FOLDER.parent / "explanations.md").read_text()
    for name in screenshots.names():
        assert f"(pictures/{name})" in shown
        assert (screenshots.FOLDER / name).stat().st_size < 150_000
    assert {path.name for path in screenshots.FOLDER.iterdir()} == set(screenshots.names())


# ---- What they show ---------------------------------------------------------------------------------------


def test_each_picture_is_there_and_says_in_words_what_it_shows(page: Page) -> None:
    page.click("#tabs button", "Cost")
    said = page.texts("#view-cost .picture figcaption")
    assert [text.split(" ")[0] for text in said] == ["Timeline", "Memory", "Links", "Layers"]
    assert "busy: compute" in said[0]
    assert "at most" in said[1]
    assert "data (2)" in said[2]
    drawings = "[...document.querySelectorAll('#view-cost .picture svg')]"
    silent = f"{drawings}.filter((e) => !e.ariaLabel && e.getAttribute('aria-hidden') !== 'true')"
    assert page.run(f"return {silent}.length") == 0
    wide = page.run("return innerWidth")
    assert page.run("return document.documentElement.scrollWidth") <= wide
    beyond = f"{drawings}.filter((e) => e.getBoundingClientRect().right > innerWidth + 1).length"
    assert page.run(f"return {beyond}") == 0
    assert page.run("return document.querySelector('.peak-mark').offsetParent !== null")
    # No cell of a table is beyond the window; only the matrix scrolls by itself.
    cells = "[...document.querySelectorAll('td')].filter((e) => e.offsetWidth && !e.closest('.matrix'))"
    for view in ("cost", "summary"):
        page.run(f"app.show('{view}')")
        cut = f"{cells}.filter((e) => e.getBoundingClientRect().right > innerWidth)"
        assert page.run(f"return {cut}.map((e) => e.textContent)") == []
    assert page.errors == []


def test_the_timeline_is_read_by_keys(page: Page) -> None:
    page.click("#tabs button", "Cost")
    page.run("document.querySelector('[aria-label=\"Timeline of the step\"]').focus()")
    page.press(Keys.END)
    assert page.run("return document.querySelector('.read').textContent").startswith(
        page.run("return timeText(app.run.cost.seconds)")
    )
    page.press(Keys.HOME)
    assert page.run("return document.querySelector('.read').textContent").startswith("0 µs: compute")


def test_a_cell_of_the_matrix_says_why(page: Page, step: Session) -> None:
    page.click("#tabs button", "Cost")
    several = "app.run.cost.pictures.matrix.cells.findIndex((cell) => cell[5].length > 1)"
    page.run(f"document.querySelectorAll('.matrix .cell')[{several}].click()")
    first, second = page.run(f"return app.run.cost.pictures.matrix.cells[{several}][5].slice(0, 2)")
    said = page.run("return document.querySelector('.matrix-why pre').textContent")
    assert said == str(step.partition().why(first))
    assert f"--collective {second}" in page.text(".matrix-why")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def test_what_a_device_receives_is_drawn(browser: webdriver.Chrome, small: Path) -> None:
    page = Page(browser, small)
    find = "app.run.conflicts.find((one) => one.collective === arguments[0])"
    page.run(f"app.show('conflicts'); app.showConflict({find})", "all-gather")
    # [{data}, {model}] -> [{}, {model}]: device 0 = (data 0, model 0) lacks what (data 1, model 0) = 4 has.
    assert page.text("#details .conflict .picture figcaption") == "What moves Device 0 receives from 4."
    assert len(page.all("#details .moves-picture .flow")) == 1
    page.run("""
        const choice = document.querySelector("#details .conflict select");
        choice.value = 6;
        choice.dispatchEvent(new Event("change"));
    """)
    assert page.text("#details .conflict .picture figcaption") == "What moves Device 6 receives from 2."
    page.run(f"app.showConflict({find})", "all-reduce")
    assert "Device 0 receives from 1-3, and adds up." in page.text("#details .conflict .picture")
    moves = "return getComputedStyle(document.querySelector('.flow')).animationName"
    assert page.run(moves) == "flow"
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    assert page.run(moves) == "none"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


MANUAL = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"data"}, {"model"}]>]
      out_shardings=[<@mesh, [{"data", "model"}, {}]>] manual_axes={"data"} (%y: tensor<8x32xf32>) {
    %1 = stablehlo.tanh %y : tensor<8x32xf32>
    sdy.return %1 : tensor<8x32xf32>
  } : (tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
"""


def test_the_devices_inside_of_a_manual_computation_are_drawn(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text(report(shardlog.run(MANUAL).programs))
    page = Page(browser, tmp_path / "report.html")
    page.run("const one = app.run.conflicts[0]; app.show('conflicts'); app.showConflict(one)")
    shown = page.run(
        "return [...document.querySelectorAll('#details .devices title')].map((e) => e.textContent)"
    )
    across = page.run("return app.run.sharding(app.tensor, app.run.end).dims[1] !== undefined")
    parts = [[f"0:8, {8 * n}:{8 * n + 8}" if across else f"{2 * n}:{2 * n + 2}, 0:32" for n in range(4)]] * 2
    assert sorted(shown) == sorted(
        f"[{part}] where data={data} on device {4 * data + n}"
        for data, of_data in enumerate(parts)
        for n, part in enumerate(of_data)
    )
    labels = "return [...document.querySelectorAll('#details .devices text')].map((e) => e.textContent)"
    assert {"data=0", "data=1"} <= set(page.run(labels))
    moves = "#details .conflict .picture figcaption"
    assert page.text(moves) == "What moves Device 0 receives from 1-3."
    page.run("""
        const choice = document.querySelector("#details .conflict select");
        choice.value = 5;
        choice.dispatchEvent(new Event("change"));
    """)
    assert page.text(moves) == "What moves Device 5 receives from 4,6,7."
    assert page.errors == []


CUBE = """
sdy.mesh @mesh = <["a"=2, "b"=4, "c"=2]>
#given = #sdy.sharding<@mesh, [{"a"}, {"b":(2)2}, {}, {"c", "b":(1)2}]>
func.func @main(%x: tensor<4x8x6x12xf32> {sdy.sharding = #given}) -> tensor<4x8x6x12xf32> {
  return %x : tensor<4x8x6x12xf32>
}
"""


@pytest.mark.parametrize("module", [MODULE, CUBE], ids=["matrix", "four dimensions"])
def test_the_devices_of_a_tensor_are_those_of_visualize(
    browser: webdriver.Chrome,
    tmp_path: Path,
    module: str,
) -> None:
    result = shardlog.run(module)
    (tmp_path / "report.html").write_text(report(result.programs))
    page = Page(browser, tmp_path / "report.html")
    for name in ["%x"] if module == CUBE else ["%arg0", "%arg1", "%0", "%1"]:
        value = "%arg0" if name == "%x" else name
        page.run("app.select(app.run.tensor(arguments[0]))", value)
        shown = page.run(
            "return [...document.querySelectorAll('#details .devices title')].map((e) => e.textContent)"
        )
        tiles = result.visualize(value).tiles
        expected = []
        for tile in tiles:
            box = ", ".join(f"{low}:{high}" for low, high in tile.slices)
            devices = ranges(tile.devices)
            expected.append(f"[{box}] on {'device' if len(tile.devices) == 1 else 'devices'} {devices}")
        assert sorted(shown) == sorted(expected)
