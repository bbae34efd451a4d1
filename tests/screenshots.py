"""Screenshots of the report for the documentation: ``python -m shardlog.tests.screenshots`` writes them to
``docs/pictures``. They show a train step, in a wide window and on a phone, without animation."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import shardlog
from selenium import webdriver

from .support import models, tools

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WIDTHS = {"wide": (1440, 900, 1), "phone": (390, 844, 2)}  # pixels, and how many of the screen each is
SHOTS = {  # what is done in the page before
    "conflicts": """
        app.show("conflicts");
        app.showConflict(app.run.conflicts.find((one) => one.collective === "all-gather" && one.has[0]));
    """,
    "step": 'app.show("cost"); scrollTo("Timeline")',
    "memory": 'app.show("cost"); scrollTo("Memory")',
    "program": 'app.show("program")',
}
_SCROLL = """
const scrollTo = (name) => {
  const find = (one) => one.textContent.startsWith(name);
  [...document.querySelectorAll(".picture figcaption")].find(find).scrollIntoView();
};
"""
_QUALITY = 60


def names() -> list[str]:
    """The files, of every view and width."""
    return [f"{shot}-{width}.webp" for shot in SHOTS for width in WIDTHS]


def main() -> None:
    """Writes the screenshots."""
    program = models.lower("transformer", depth=4, scan=False, train=True)
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("train_step.mlir").write_text(program.as_text(debug_info=True), encoding="utf-8")
        shardlog.run("train_step.mlir").report("report.html")
        browser = _browser()
        try:
            for width, (x, y, scale) in WIDTHS.items():
                size = {"width": x, "height": y, "deviceScaleFactor": scale, "mobile": x < 500}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                for shot, script in SHOTS.items():
                    (FOLDER / f"{shot}-{width}.webp").write_bytes(_taken(browser, script))
        finally:
            browser.quit()


def _browser() -> webdriver.Chrome:
    try:
        browser: webdriver.Chrome = tools.chromium("hide-scrollbars", "force-prefers-reduced-motion")
    except LookupError as error:
        raise SystemExit(f"screenshots: {error}") from None
    return browser


def _taken(browser: webdriver.Chrome, script: str) -> bytes:
    browser.get("about:blank")
    browser.get(Path("report.html").absolute().as_uri())
    while browser.execute_script("return document.documentElement.dataset.ready") != "true":
        time.sleep(0.05)
    browser.execute_script(_SCROLL + script)
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    kind = {"format": "webp", "quality": _QUALITY}
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", kind)["data"])


if __name__ == "__main__":
    main()
