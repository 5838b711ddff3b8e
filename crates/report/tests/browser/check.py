"""Checks a page in Chromium: check.py GROUP PAGE DIRECTORY. Exit code 77: no Playwright or no Chromium."""

import base64
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "tools"))

from browser import AXE, CHROMIUM, sync_playwright  # noqa: E402

GROUP, PAGE, OUT = sys.argv[1], pathlib.Path(sys.argv[2]).resolve().as_uri(), pathlib.Path(sys.argv[3])
HERE = pathlib.Path(__file__).parent
WIDTHS = (1440, 390)
SCHEMES = ("light", "dark")
# Mean difference of small pictures, of 255. Other fonts make about 2.
TOLERANCE = 6.0


def opened(browser, width=1440, scheme="light", **options):
    """The page, whose console must stay silent."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
    page = context.new_page()
    page.said = []
    page.on("console", lambda message: page.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: page.said.append(f"error: {error}"))
    page.on("request", lambda request: request.url != PAGE and page.said.append(f"request: {request.url}"))
    page.goto(PAGE)
    return page


def silent(page):
    assert page.said == [], page.said


def until(page, is_so, what):
    """Waits until something is so: a busy machine draws late."""
    for _ in range(200):
        if is_so():
            return
        page.wait_for_timeout(50)
    raise AssertionError(what)


def view(page, figure):
    """The visible part of a figure's axis."""
    page.wait_for_timeout(60)
    node = page.locator(f"#figure-{figure}")
    return float(node.get_attribute("data-from")), float(node.get_attribute("data-to"))


def explore(browser):
    page = opened(browser)
    canvas = page.locator("#figure-bandwidth canvas")
    canvas.scroll_into_view_if_needed()
    until(page, lambda: canvas.get_attribute("data-points") is not None, "the figure is drawn")
    whole = view(page, "bandwidth")
    assert whole == (0, 70), whole
    box = canvas.bounding_box()

    # Values under the pointer: time, and each series.
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    until(page, page.locator("#figure-bandwidth .tip").is_visible, "values under the pointer")
    tip = page.locator("#figure-bandwidth .tip").inner_text()
    assert " s" in tip and "rate: " in tip and "policed rate" in tip, tip

    # Dragging zooms, and the linked axes go along.
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 100, steps=4)
    page.mouse.up()
    part = view(page, "bandwidth")
    assert 10 < part[0] < 30 and 25 < part[1] < 45 and part[1] - part[0] < 20, part
    assert view(page, "window") == part
    # Shift and dragging pans; the length stays.
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 100, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    moved = view(page, "bandwidth")
    assert moved[0] > part[0] and abs((moved[1] - moved[0]) - (part[1] - part[0])) < 1e-6, (part, moved)
    # A double click shows everything again, of each figure its own.
    canvas.dblclick()
    assert view(page, "bandwidth") == whole
    assert abs(view(page, "time-sequence")[0] - 1.42) < 1e-6

    # Without the link, one figure moves alone.
    page.get_by_label("Link time axes").uncheck()
    canvas.focus()
    page.keyboard.press("+")
    assert view(page, "bandwidth") != whole and view(page, "bandwidth-cure") == (0, 21)
    page.keyboard.press("0")
    page.get_by_label("Link time axes").check()

    # Keys: zoom, pan, whole.
    canvas.focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    near = view(page, "bandwidth")
    assert near[1] - near[0] < 30, near
    page.keyboard.press("ArrowRight")
    right = view(page, "bandwidth")
    assert right[0] > near[0], (near, right)
    page.keyboard.press("-")
    assert view(page, "bandwidth")[1] - view(page, "bandwidth")[0] > near[1] - near[0]
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator("#figure-bandwidth .tip").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#figure-bandwidth .tip").is_hidden()
    page.keyboard.press("0")
    assert view(page, "bandwidth") == whole
    # The wheel zooms with Ctrl, and scrolls without.
    page.evaluate("document.activeElement.blur()")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, 60)
    until(page, lambda: page.evaluate("scrollY") > before, "the page scrolls")
    assert view(page, "bandwidth") == whole
    canvas.focus()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.wheel(0, -60)
    until(page, lambda: view(page, "bandwidth") != whole, "the wheel zooms")
    page.keyboard.press("0")

    # Series on and off.
    button = page.locator("#figure-bandwidth .legend button", has_text="rate").first
    until(page, lambda: int(canvas.get_attribute("data-points") or 0) > 1000, "the figure is drawn")
    points = canvas.get_attribute("data-points")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    until(page, lambda: canvas.get_attribute("data-points") == "0", "the series goes")
    button.click()
    until(page, lambda: canvas.get_attribute("data-points") == points, "the series comes back")

    # Other axes than time: named cases with the range over seeds, points with labels, logarithms.
    curves = page.locator("#figure-curves canvas")
    curves.scroll_into_view_if_needed()
    until(page, lambda: curves.get_attribute("data-ticks") == "0|1e-8|1e-7|1e-6", curves.get_attribute("data-ticks"))
    box = curves.bounding_box()
    page.mouse.move(box["x"] + 58 + (box["width"] - 72) * 3 / 8, box["y"] + 60)
    tip = page.locator("#figure-curves .tip")
    until(page, tip.is_visible, "values at a case")
    said = tip.inner_text()
    assert "1e-8" in said and "star: 8.8 (8.4 to 9.1)" in said, said
    dots = page.locator("#figure-scatter canvas")
    dots.scroll_into_view_if_needed()
    until(page, lambda: dots.get_attribute("data-ticks") is not None, "the figure is drawn")
    box = dots.bounding_box()
    page.mouse.move(box["x"] + 58 + (box["width"] - 72) / 1.1, box["y"] + 30)
    until(page, lambda: "bbr" in page.locator("#figure-scatter .tip").inner_text(), "the label of a point")
    bars = page.locator("#figure-histogram canvas")
    bars.scroll_into_view_if_needed()
    bars.focus()
    page.keyboard.press("+")
    assert float(view(page, "histogram")[0]) > 0
    page.keyboard.press("0")

    # Events.
    page.get_by_role("button", name="Longest stall").click()
    stall = view(page, "bandwidth")
    assert stall[0] < 15 and 24 < stall[1] < 30, stall
    assert "a stop of 9" in page.locator(".status").inner_text()
    page.get_by_role("button", name="First loss").click()
    loss = view(page, "time-sequence")
    assert 1.40 < loss[0] < 1.46 < loss[1] < 1.6, loss
    page.get_by_role("button", name="Next event").click()
    after = view(page, "time-sequence")
    assert after != loss, (loss, after)
    page.get_by_role("button", name="Previous event").click()
    assert view(page, "time-sequence") == loss
    page.locator("a[data-at]").first.click()
    assert view(page, "time-sequence") != after
    assert page.locator("#figure-time-sequence").is_visible()

    page.get_by_role("button", name="Whole").click()
    silent(page)
    phone = opened(browser, 390, has_touch=True)
    small = phone.locator("#figure-bandwidth canvas")
    small.scroll_into_view_if_needed()
    until(phone, lambda: small.get_attribute("data-points") is not None, "the figure is drawn")
    small.tap()
    until(phone, phone.locator("#figure-bandwidth .tip").is_visible, "a tap shows values")
    silent(phone)


def static(browser):
    page = opened(browser, java_script_enabled=False)
    assert page.locator("#figure-bandwidth .wide svg").is_visible()
    assert page.locator("canvas").count() == 0
    silent(page)
    page = opened(browser)
    assert page.locator("#figure-bandwidth .static").is_hidden()
    page.emulate_media(media="print")
    assert page.locator("#figure-bandwidth .wide svg").is_visible()
    assert page.locator("#figure-bandwidth .explore").is_hidden() and page.locator(".tools").is_hidden()
    silent(page)
    # The policy: no script but the page's own.
    page.evaluate("() => { const s = document.createElement('script'); s.textContent = 'window.evil = 1'; document.body.append(s) }")
    assert page.evaluate("window.evil") is None
    assert any("Content Security Policy" in line for line in page.said), page.said


def access(browser):
    for width in WIDTHS:
        for scheme in SCHEMES:
            page = opened(browser, width, scheme)
            page.wait_for_timeout(200)
            scrolls = page.evaluate("document.documentElement.scrollWidth")
            assert scrolls <= width, f"{width} {scheme}: {scrolls} pixels wide"
            silent(page)
            page.evaluate(AXE)
            found = page.evaluate("axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 200), v.nodes[0].failureSummary]))")
            assert found == [], f"{width} {scheme}: {found}"


def page_of_a_command(browser):
    """Any page: silent, no wider than the screen, accessible; and the first loss can be found if there is one."""
    access(browser)
    page = opened(browser)
    assert page.locator("figure.live").count() > 0
    loss = page.get_by_role("button", name="First loss")
    if loss.count() > 0:
        loss.click()
        page.wait_for_timeout(100)
        assert "Event" in page.locator(".status").inner_text()
    for link in page.locator("a[data-at]").all():
        link.click()
        page.wait_for_timeout(50)
    silent(page)


SMALL = """async ([was, is]) => {
  const pixels = async (data) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + data;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [96, 360];
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, 96, 360);
    return context.getImageData(0, 0, 96, 360).data;
  };
  const [a, b] = [await pixels(was), await pixels(is)];
  return a.reduce((sum, value, i) => sum + Math.abs(value - b[i]), 0) / a.length;
}"""

SHRINK = """async ([data, width]) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + data;
  await image.decode();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [width, Math.round(image.height * width / image.width)];
  const context = canvas.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL('image/png').split(',')[1];
}"""


def pictures(browser):
    judge = browser.new_page()
    wrong = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            page = opened(browser, width, scheme)
            height = page.evaluate("document.body.scrollHeight")
            page.set_viewport_size({"width": width, "height": min(height, 8000)})
            drawn = "[...document.querySelectorAll('figure.live canvas')].every((c) => c.dataset.points)"
            until(page, lambda: page.evaluate(drawn), "all figures are drawn")
            page.wait_for_timeout(200)
            shot = base64.b64encode(page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": 4500})).decode()
            stored = HERE / f"pictures/gallery-{width}-{scheme}.png"
            if os.environ.get("FARPACE_BLESS"):
                stored.parent.mkdir(exist_ok=True)
                stored.write_bytes(base64.b64decode(judge.evaluate(SHRINK, [shot, width // 5])))
                continue
            was = base64.b64encode(stored.read_bytes()).decode()
            difference = judge.evaluate(SMALL, [was, shot])
            print(f"{stored.name}: {difference:.2f}")
            if difference > TOLERANCE:
                now = OUT.parent / f"farpace-{stored.name}"
                now.write_bytes(base64.b64decode(shot))
                wrong.append(f"{stored.name} differs by {difference:.1f} of 255; it is {now} now")
            silent(page)
    assert wrong == [], wrong


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    {"explore": explore, "static": static, "access": access, "pictures": pictures, "page": page_of_a_command}[GROUP](chromium)
    chromium.close()
