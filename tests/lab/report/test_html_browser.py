"""The report in a real browser: no errors, nothing loaded, sorting, filters, keys, phone, dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser import browser_or_skip, console_errors, requested, set_scheme, set_viewport
from tests.lab.report.runs import make_run, save_pictures
from unicr.lab.attack import AttackStore, Outcome
from unicr.lab.attack._verdict import verdict
from unicr.lab.report.html import write_report
from unicr.runs import Row, Run

COUNT = 40
HOSTILE = """<img src=x onerror="window.boom=1">"""
LAYOUT_SHIFT = """
const done = arguments[0]; let sum = 0;
new PerformanceObserver((list) => { for (const e of list.getEntries()) sum += e.value; })
  .observe({ type: "layout-shift", buffered: true });
setTimeout(() => done(sum), 300);
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on three runs: two on the same forty pictures, one on twelve others."""
    folder = tmp_path_factory.mktemp("browser")
    data = save_pictures(folder / "pictures.npz", COUNT)
    runs = [
        make_run(folder / HOSTILE, data),
        make_run(folder / "again", data, seed=4),
        make_run(folder / "other", save_pictures(folder / "other.npz", seed=1), norms=("2",)),
    ]
    write_report(runs, folder / "report.html")
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser_or_skip() as driver:
        yield driver


@pytest.fixture
def page(chromium: Any, place: Path) -> Iterator[Any]:
    """The freshly loaded report; whatever a test does, the console stays quiet."""
    set_viewport(chromium, 1280, 900)
    set_scheme(chromium, dark=False)
    console_errors(chromium)
    chromium.get((place / "report.html").as_uri())
    yield chromium
    assert console_errors(chromium) == []


def rows_of(folder: Path) -> list[Row]:
    with Run(folder) as store:
        return list(store.rows())


def shown(page: Any) -> list[int]:
    """The numbers of the inputs in the table, from top to bottom."""
    return [int(r.get_attribute("data-idx")) for r in find_all(page, "#table tr[data-idx]")]


def find(page: Any, selector: str) -> Any:
    return page.find_element("css selector", selector)


def find_all(page: Any, selector: str) -> list[Any]:
    found: list[Any] = page.find_elements("css selector", selector)
    return found


def press(page: Any, selector: str, key: str | None = None) -> None:
    """Click an element, or give it the focus and press a key."""
    element = find(page, selector)
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    if key is None:
        element.click()
    else:
        page.execute_script("arguments[0].focus()", element)
        element.send_keys(key)


def choose(page: Any, selector: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(find(page, selector)).select_by_value(value)


def test_everything_is_drawn_and_nothing_is_loaded(chromium: Any, place: Path) -> None:
    requested(chromium)
    chromium.get((place / "report.html").as_uri())
    assert console_errors(chromium) == []
    assert {url.partition(":")[0] for url in requested(chromium)} == {"file", "data"}
    lines = find_all(chromium, "#accuracy-plot .scatterlayer .trace")
    assert len(lines) == 3
    assert len(find_all(chromium, "#p-plot .trace.bars")) == 2
    labels = [p.get_attribute("aria-label") for p in find_all(chromium, ".plot")]
    assert len(labels) == 4
    assert all("again: gaussian(sigma=0.5)" in label for label in labels)
    assert chromium.execute_async_script(LAYOUT_SHIFT) < 0.01
    picture = find(chromium, "#table td[data-column=noisy] img")
    assert chromium.execute_script("return arguments[0].naturalWidth", picture) == 8
    levels = [e.tag_name for e in find_all(chromium, "h1, h2, h3")]
    assert levels[0] == "h1"
    assert all(int(b[1]) <= int(a[1]) + 1 for a, b in pairwise(levels))


def test_a_request_to_the_outside_is_refused(page: Any) -> None:
    script = """
    const done = arguments[0];
    document.addEventListener("securitypolicyviolation", (e) => done(e.violatedDirective));
    const s = document.createElement("script"); s.textContent = "window.ran = 1";
    document.body.append(s);
    """
    assert page.execute_async_script(script).startswith("script-src")
    assert page.execute_script("return window.ran") is None
    assert len(console_errors(page)) == 1


def test_a_hostile_name_is_text(page: Any) -> None:
    assert HOSTILE in find(page, "#runs").text
    assert HOSTILE in page.title
    assert find_all(page, "img[src=x]") == []
    choose(page, "#filter-status", "failed")
    press(page, "#table .open")
    assert "</script><script>boom()</script>" in find(page, "#table .more").text
    assert page.execute_script("return window.boom") is None


def test_sorting_by_click_and_by_key(page: Any, place: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    rows = rows_of(place / HOSTILE)
    certified = [row for row in rows if row.certificate is not None]
    failed = [row.idx for row in rows if row.certificate is None]
    assert shown(page) == list(range(25))
    choose(page, "#pager select", "50")
    press(page, "[data-sort=radius]")
    rising = [r.idx for r in sorted(certified, key=lambda r: (r.radius("2"), r.idx))]
    assert shown(page) == rising + failed
    press(page, "[data-sort=radius]", Keys.ENTER)
    falling = [r.idx for r in sorted(certified, key=lambda r: (-r.radius("2"), r.idx))]
    assert shown(page) == falling + failed
    assert find(page, "th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert page.switch_to.active_element.get_attribute("data-sort") == "radius"
    press(page, "[data-sort=label]", Keys.SPACE)
    assert shown(page) == [r.idx for r in sorted(rows, key=lambda r: (r.label, r.idx))]


def test_filters(page: Any, place: Path) -> None:
    rows = rows_of(place / HOSTILE)
    choose(page, "#pager select", "50")
    choose(page, "#filter-status", "failed")
    assert shown(page) == [r.idx for r in rows if r.status == "failed"] == [COUNT - 1]
    assert find(page, "#found").text == f"1 of {COUNT} inputs."
    choose(page, "#filter-status", "abstained")
    assert shown(page) == [r.idx for r in rows if r.status == "abstained"]
    assert shown(page)
    choose(page, "#filter-status", "")
    choose(page, "#filter-label", "1")
    assert shown(page) == [r.idx for r in rows if r.label == 1]
    choose(page, "#filter-correct", "correct")
    assert shown(page) == [r.idx for r in rows if r.label == 1 and r.correct]
    choose(page, "#filter-correct", "wrong")
    assert shown(page) == [r.idx for r in rows if r.label == 1 and r.predict == 0]
    press(page, "#reset")
    find(page, "#filter-text").send_keys("modelerror")
    assert shown(page) == [COUNT - 1]
    find(page, "#filter-text").send_keys("x")
    assert "No input matches" in find(page, "#table").text
    press(page, "#reset")
    choose(page, "#filter-run", "")
    assert find(page, "#found").text == f"{2 * COUNT} inputs."


def test_pages_and_details_by_keyboard(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    press(page, "#after", Keys.ENTER)
    assert shown(page) == list(range(25, COUNT))
    assert page.switch_to.active_element.get_attribute("id") == "before"
    press(page, "#table .open", Keys.ENTER)
    assert find(page, "#table .open").get_attribute("aria-expanded") == "true"
    assert "Input hash" in find(page, "#table .more").text
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert find_all(page, "#table .more") == []


def test_another_norm_changes_curves_and_radii(page: Any, place: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    press(page, "#norms [aria-checked=true]", Keys.ARROW_RIGHT)
    assert find(page, "#norms [aria-checked=true]").get_attribute("aria-label") == "norm infinity"
    assert "ℓ∞" in find(page, "#accuracy-plot").get_attribute("aria-label")
    stored = rows_of(place / HOSTILE)[0].radius("inf")
    text = float(find(page, "#table td[data-column=radius]").text)
    assert stored * (1 - 1e-3) <= text <= stored


def test_the_legend_hides_a_run(page: Any) -> None:
    press(page, "#accuracy-legend button")
    assert len(find_all(page, "#accuracy-plot .scatterlayer .trace")) == 2
    assert find(page, "#curves-legend button").get_attribute("aria-pressed") == "false"
    press(page, "#accuracy-legend button")
    assert len(find_all(page, "#accuracy-plot .scatterlayer .trace")) == 3


def test_runs_on_other_inputs_have_a_view_of_their_own(page: Any) -> None:
    assert "not all on the same inputs" in find(page, "#notes").text
    press(page, "#groups button:last-child")
    assert find(page, "#found").text == "12 inputs."
    assert len(find_all(page, "#norms button")) == 1
    assert HOSTILE not in find(page, "#runs").text
    assert len(find_all(page, "#accuracy-plot .scatterlayer .trace")) == 2


def test_hovering_shows_a_number_that_was_certified(page: Any, place: Path) -> None:
    from selenium.webdriver import ActionChains

    plot = find(page, "#accuracy-plot .nsewdrag")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    ActionChains(page).move_to_element(plot).perform()
    script = """
    const plot = document.getElementById("accuracy-plot");
    Plotly.Fx.hover(plot, [{ curveNumber: 1, pointNumber: 3 }]);
    return plot.querySelector(".hoverlayer").textContent;
    """
    text = page.execute_script(script)
    radii = [r.radius("2") for r in rows_of(place / HOSTILE) if r.correct]
    share = sum(r >= sorted(set(radii))[2] for r in radii) / COUNT
    assert f"{100 * share:.1f} % certified" in text
    assert HOSTILE in text
    assert page.execute_script("return window.boom") is None


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_never_scrolls_sideways(page: Any, width: int) -> None:
    set_viewport(page, width, 844)
    press(page, "#table .open")
    size = "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert max(page.execute_script(size)) <= width
    # a figure that has not been drawn anew for the narrow screen yet must not widen the page
    late = "document.querySelectorAll('.plot > *').forEach((e) => (e.style.width = '1137px'));"
    assert max(page.execute_script(late + size)) <= width
    # nor does a table hide its results at the side: each cell stands under its heading
    every = "[...document.querySelectorAll('.scroll')]"
    cut = page.execute_script(f"return {every}.map(e => e.scrollWidth - e.clientWidth)")
    assert [one for one in cut if one > 0] == []
    shown = "td[data-column=radius]"
    assert find(page, shown).get_attribute("data-head") == "Radius ℓ2"
    assert find(page, shown).is_displayed()


def test_no_table_is_cut_on_a_laptop_and_p_a_ends_at_one(page: Any) -> None:
    every = "[...document.querySelectorAll('.scroll')]"
    words = "[e.ariaLabel, e.scrollWidth - e.clientWidth]"
    found = page.execute_script(f"return {every}.map(e => {words})")
    assert [one for one in found if one[1] > 0] == []
    for plot in ("curves-plot", "p-plot"):
        ends = page.execute_script(f"return document.getElementById('{plot}').layout.xaxis.range")
        assert ends[1] <= 1 + 1e-12


def test_attacks_are_shown_in_their_norm(chromium: Any, place: Path) -> None:
    folder = place / "attacked"
    shutil.copytree(place / "again", folder)
    with Run(folder) as run, AttackStore(folder) as store:
        first = next(row for row in run.rows() if row.predict >= 0)
        for factor, counts in ((1.0, (5, 95)), (3.0, (95, 5))):
            votes = counts if first.predict else counts[::-1]
            same = ("planted", "2", factor, first.idx, first.predict, 1.0, 1.0, votes)
            store.add([Outcome(*same, verdict(votes, first.predict, 0.001))])
    write_report([folder], place / "attacked.html")
    chromium.get((place / "attacked.html").as_uri())
    cells = [cell.text for cell in find_all(chromium, "#attacks-table tbody td")]
    assert cells[:2] == ["planted", "1"]
    assert [cell.rpartition(", ")[2] for cell in cells[2:]] == ["0", "1"]
    press(chromium, "#norms button")
    assert not find(chromium, "#attacks").is_displayed()
    assert console_errors(chromium) == []


def test_light_and_dark(page: Any) -> None:
    def brightness() -> float:
        colour = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        return float(np.mean(page.execute_script(colour)))

    def ink() -> str:
        style = find(page, "#accuracy-plot .xtick text").get_attribute("style")
        return str(style)

    bright, before = brightness(), ink()
    assert bright > 200
    press(page, "#theme")
    assert brightness() < 60
    assert ink() != before
    press(page, "#theme")
    assert brightness() == bright
    set_scheme(page, dark=True)
    page.refresh()
    assert brightness() < 60
    assert find(page, "#theme").text == "Light"
