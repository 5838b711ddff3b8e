"""Looks at a dashboard in Chromium: dashboard.py URL LINK. Exit code 77: no Playwright or no Chromium.

URL is that of a gateway that runs, and LINK the name of a link that has to be shown.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "tools"))

from browser import AXE, CHROMIUM, sync_playwright  # noqa: E402

URL, LINK = sys.argv[1], sys.argv[2]


def look(browser, width, scheme):
    what = f"{width} {scheme}"
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
    said = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: request.url.startswith(URL.split("#")[0]) or said.append(f"request: {request.url}"))
    page.goto(URL)
    # The second event has rates, and a line.
    page.locator("#links tbody svg polyline[points*=',']").first.wait_for(state="attached", timeout=20_000)
    assert LINK in page.locator("#links tbody").inner_text(), what
    assert page.locator("#totals dt", has_text="Split now").count() == 1, what
    assert page.locator("#connections tbody tr").count() >= 1, what
    gain = page.locator("#gain tbody")
    gain.locator("tr").first.wait_for(timeout=20_000)
    assert "100 kB to 1 MB" in gain.inner_text() and "to the WAN" in gain.inner_text(), f"{what}: {gain.inner_text()}"
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{what}: {wide} pixels wide"
    page.evaluate(AXE)
    found = page.evaluate("axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 200), v.nodes[0].failureSummary]))")
    assert found == [], f"{what}: {found}"
    assert said == [], f"{what}: {said}"
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.close()
    return paper


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    papers = {scheme: {look(chromium, width, scheme) for width in (1440, 800, 390)} for scheme in ("light", "dark")}
    assert papers["light"] != papers["dark"], papers
    chromium.close()
