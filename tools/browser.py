"""Playwright with a Chromium of the system, and axe-core, for scripts that check pages. Exit code 77: they are not there."""

import pathlib
import shutil
import sys

try:
    import axe_playwright_python
    from playwright.sync_api import sync_playwright
except ImportError:
    print("no module playwright or axe_playwright_python: tools/setup test makes .venv with them")
    sys.exit(77)

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
if CHROMIUM is None:
    print("no chromium")
    sys.exit(77)

AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
