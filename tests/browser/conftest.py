"""A real browser: Chromium as the system has it, by the extra ``browser``.

``AXE_CORE`` names the file of axe-core; screenshots stay in the folder that
``REPORT_SCREENSHOTS`` names.
"""

import os
import shutil
from pathlib import Path

import pytest


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser():
    driver = pytest.importorskip(
        "playwright.sync_api", reason='no Playwright: pip install "propopt[browser]"'
    )
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this system")
    with driver.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield found
        found.close()


@pytest.fixture
def seen_by_axe():
    """Keep a picture of a page, and say what axe-core finds wrong with it."""

    def look(page, name):
        if keep := os.environ.get("REPORT_SCREENSHOTS"):
            Path(keep).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=f"{keep}/{name}.png", full_page=True)
        axe = os.environ.get("AXE_CORE")
        if not axe or not Path(axe).is_file():
            pytest.skip("AXE_CORE names no file of axe-core: npm install axe-core")
        page.evaluate(Path(axe).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document)")["violations"]
        return [(x["id"], x["nodes"][0]["html"][:200]) for x in found]

    return look
