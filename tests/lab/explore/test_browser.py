"""The explorer's page in a real browser: what it shows is what Python computes."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest
from scipy import special

from tests.browser import browser_or_skip, console_errors, requested, set_viewport
from unicr.lab.explore import Explorer
from unicr.noise import parse
from unicr.radius import certified_radius, round_down

START = {"family": "laplace", "sigma": "1", "norm": "1", "dim": "784", "pa": "0.9"}


@pytest.fixture(scope="module")
def page() -> Iterator[tuple[Any, Explorer]]:
    with browser_or_skip() as driver, Explorer(0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield driver, server
        driver.get("about:blank")
        server.shutdown()
        thread.join()


def wait(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("the page did not get there within a minute")


def text(driver: Any, identifier: str) -> str:
    return driver.execute_script(
        "return document.getElementById(arguments[0]).textContent", identifier
    )


def visit(page: tuple[Any, Explorer], **words: str) -> Any:
    driver, server = page
    driver.get("about:blank")
    console_errors(driver)
    requested(driver)
    driver.get(f"{server.url}#{urlencode({**START, **words})}")
    wait(lambda: text(driver, "noise-text") != "")
    return driver


def shows(driver: Any, identifier: str, expected: str) -> None:
    try:
        wait(lambda: expected in text(driver, identifier))
    except AssertionError:
        assert expected in text(driver, identifier)
        raise


def reads(driver: Any, identifier: str, expected: float) -> None:
    """Wait for a number, equal within the accuracy of a composition."""

    def near() -> bool:
        found = text(driver, identifier)
        return found[:1].isdigit() and float(found) == pytest.approx(expected, rel=1e-4)

    wait(near)


def give(driver: Any, identifier: str, value: object, event: str = "input") -> None:
    """Set a control as a hand would: the value, then its event."""
    driver.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event(arguments[2], {bubbles: true}));",
        identifier,
        str(value),
        event,
    )


def drawn(driver: Any, svg: str) -> int:
    return len(driver.find_elements("css selector", f"#{svg} .line:not(.thin)"))


def test_it_opens_quietly_and_asks_nobody_else(page: tuple[Any, Explorer]) -> None:
    driver = visit(page)
    expected = certified_radius(parse("laplace(sigma=1)"), 1, 784, p_a=0.9)
    shows(driver, "proved", round_down(expected.proved))
    shows(driver, "searched", round_down(expected.searched))
    shows(driver, "guarantee", "exact")
    shows(driver, "theorem", "(b) one-hot, log-concave")
    shows(driver, "noise-text", "laplace(sigma=1)")
    shows(driver, "command", "unicr radius --noise 'laplace(sigma=1)' --norm 1 --dim 784 --pa 0.9")
    wait(lambda: drawn(driver, "curve") == 1 and drawn(driver, "density") == 1)
    assert console_errors(driver) == []
    hosts = {urlsplit(url).netloc for url in requested(driver) if url.startswith("http")}
    entries = driver.execute_script(
        "return performance.getEntriesByType('resource').map((e) => e.name)"
    )
    assert len(entries) >= 5
    assert hosts == {f"127.0.0.1:{page[1].server_port}"}
    assert {urlsplit(url).netloc for url in entries} == hosts


MARKS = """
const texts = [...document.querySelectorAll('#curve text[text-anchor=' + arguments[0] + ']')];
return texts.map((e) => [e.textContent, e.getAttribute(arguments[1])]);
"""


def marks(driver: Any, anchor: str, axis: str) -> dict[float, float]:
    """Where the numbers of an axis stand, in pixels."""
    pairs = driver.execute_script(MARKS, anchor, axis)
    numbers = [(word, float(at)) for word, at in pairs if re.fullmatch(r"[\d.]+", word)]
    return {float(word): at for word, at in numbers}


def test_the_drawn_curve_is_the_closed_form(page: tuple[Any, Explorer]) -> None:
    """Every corner of the line, read by the numbers at both axes, has the radius at its p_A."""
    driver = visit(page)
    wait(lambda: drawn(driver, "curve") == 1)
    line = driver.find_element("css selector", "#curve .line:not(.thin)").get_attribute("d")
    corners = np.array(
        [[float(v) for v in pair.split()] for pair in re.split("[ML]", line) if pair]
    )
    across, up = marks(driver, "middle", "x"), marks(driver, "end", "y")
    p, at = np.array(sorted(across)), np.array([across[v] for v in sorted(across)])
    per_logit, start = np.polyfit(special.logit(p), at, 1)
    assert np.max(np.abs(start + per_logit * special.logit(p) - at)) < 0.01
    radii, height = np.array(sorted(up)), np.array([up[v] - 4 for v in sorted(up)])
    per_radius, ground = np.polyfit(radii, height, 1)
    p_a = special.expit((corners[:, 0] - start) / per_logit)
    drawn_radius = (corners[:, 1] - ground) / per_radius
    law = parse("laplace(sigma=1)")
    inside = (p_a > 0.51) & (p_a < 0.9999)
    true = np.array([certified_radius(law, 1, 784, p_a=float(v)).proved for v in p_a[inside]])
    pixel = 0.02 / abs(per_radius)
    assert inside.sum() > 20
    assert np.all(drawn_radius[inside] <= true * (1 + 2e-3) + pixel)
    # near one half a curve is read from below, by a part of its first steps
    assert np.all((drawn_radius[inside] >= true * 0.98 - pixel)[p_a[inside] > 0.6])


def test_sliders_move_the_bracket_to_what_python_computes(page: tuple[Any, Explorer]) -> None:
    driver = visit(page)
    give(driver, "pa-slider", 700)
    p_a = float(driver.execute_script("return document.getElementById('pa-exact').value"))
    assert 0.99 < p_a < 0.9999
    expected = certified_radius(parse("laplace(sigma=1)"), 1, 784, p_a=p_a)
    shows(driver, "proved", round_down(expected.proved))
    give(driver, "size-slider", 300)
    sigma = float(driver.execute_script("return document.getElementById('size-exact').value"))
    expected = certified_radius(parse(f"laplace(sigma={sigma})"), 1, 784, p_a=p_a)
    shows(driver, "proved", round_down(expected.proved))
    give(driver, "dim-exact", 100)
    driver.find_element("css selector", "[name=norm][value=inf]").click()
    expected = certified_radius(parse(f"laplace(sigma={sigma})"), "inf", 100, p_a=p_a)
    reads(driver, "proved", expected.proved)
    assert f"p_A = {p_a:g}" in text(driver, "where")


def test_a_family_brings_its_own_parameters(page: tuple[Any, Explorer]) -> None:
    driver = visit(page, dim="1")
    give(driver, "family", "gennorm", "change")
    give(driver, "beta-exact", 4)
    expected = certified_radius(parse("gennorm(beta=4, sigma=1)"), 1, 1, p_a=0.9)
    shows(driver, "proved", round_down(expected.proved))
    assert "beta=4" in driver.current_url
    give(driver, "family", "cauchy", "change")
    shows(driver, "noise-text", "cauchy(scale=1)")
    assert driver.find_elements("id", "beta-exact") == []


def test_a_typed_density_has_a_radius_and_a_bad_one_a_reason(page: tuple[Any, Explorer]) -> None:
    driver = visit(page, norm="1", dim="9")
    give(driver, "family", "typed", "change")
    give(driver, "expression", "3 * exp(-abs(x))")
    expected = certified_radius(parse("laplace(sigma=1)"), 1, 9, p_a=0.9)
    reads(driver, "proved", expected.proved)
    shows(driver, "theorem", "floating point with a charge")
    shows(driver, "facts", "decided exactly from its table")
    shows(driver, "file-text", "parse_expression('3 * exp(-abs(x))')")
    assert console_errors(driver) == []
    give(driver, "expression", "__import__('os')")
    shows(driver, "error", "unknown name '__import__'")
    assert text(driver, "proved") == "–"
    assert drawn(driver, "curve") == 0
    give(driver, "expression", "exp(x**2)")
    shows(driver, "error", "cannot be used as a density")
    give(driver, "expression", "exp(-abs(x))")
    reads(driver, "proved", expected.proved)
    assert not driver.find_element("id", "error").is_displayed()


def test_a_pinned_curve_stays_and_the_link_brings_it_back(page: tuple[Any, Explorer]) -> None:
    driver = visit(page)
    wait(lambda: drawn(driver, "curve") == 1)
    driver.find_element("id", "pin").click()
    give(driver, "family", "gaussian", "change")
    shows(driver, "noise-text", "gaussian(sigma=1)")
    wait(lambda: drawn(driver, "curve") == 2)
    shows(driver, "pins", "laplace(σ=1) · ℓ1 · d = 784")
    link = text(driver, "link")
    driver.get("about:blank")
    driver.get(link)
    shows(driver, "noise-text", "gaussian(sigma=1)")
    wait(lambda: drawn(driver, "curve") == 2 and drawn(driver, "density") == 2)
    driver.find_element("css selector", "#pins button:last-child").click()
    assert drawn(driver, "curve") == 1
    assert "pin=" not in driver.current_url


def test_a_link_with_a_pin_that_cannot_be_computed_loses_it(page: tuple[Any, Explorer]) -> None:
    driver = visit(page, pin="family=gaussian&sigma=-1&norm=2&dim=5")
    wait(lambda: "pin=" not in driver.current_url)
    assert any("sigma=-1" in url for url in requested(driver))
    assert text(driver, "pins") == ""
    assert drawn(driver, "curve") == 1
    assert not driver.find_element("id", "error").is_displayed()


def test_the_command_can_be_copied(page: tuple[Any, Explorer]) -> None:
    driver = visit(page)
    origin = page[1].url.rstrip("/")
    driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"origin": origin, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    shows(driver, "command", "--pa 0.9")
    driver.find_element("css selector", "[data-copy=command]").click()
    shows(driver, "copied", "Copied: command")
    copied = driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[arguments.length - 1])"
    )
    assert copied == "unicr radius --noise 'laplace(sigma=1)' --norm 1 --dim 784 --pa 0.9"


def test_a_click_on_the_curve_sets_p_a(page: tuple[Any, Explorer]) -> None:
    from selenium.webdriver import ActionChains

    driver = visit(page)
    wait(lambda: drawn(driver, "curve") == 1)
    svg = driver.find_element("id", "curve")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    ActionChains(driver).move_to_element_with_offset(svg, 100, 0).click().perform()
    wait(lambda: "At p_A = 0.9," not in text(driver, "where"))
    p_a = float(driver.execute_script("return document.getElementById('pa-exact').value"))
    assert 0.99 < p_a < 0.999
    expected = certified_radius(parse("laplace(sigma=1)"), 1, 784, p_a=p_a)
    shows(driver, "proved", round_down(expected.proved))


def test_densities_of_any_width_stay_in_their_frame(page: tuple[Any, Explorer]) -> None:
    """A narrow density beside a pinned wide one: the frame spans both."""
    wide = "family=laplace&sigma=4&norm=1&dim=784"
    driver = visit(page, pin=wide, family="gaussian", sigma="0.5", norm="2", dim="784")
    wait(lambda: drawn(driver, "density") >= 2)
    spans = driver.execute_script(
        """
        const svg = document.getElementById("density"), frame = svg.viewBox.baseVal;
        return [...svg.querySelectorAll(".data .line")].map((line) => {
          const box = line.getBBox();
          return [box.x - frame.x, frame.x + frame.width - box.x - box.width, box.width];
        });
        """
    )
    assert all(left >= 0 and right >= 0 for left, right, _ in spans)
    widths = sorted(width for _, _, width in spans)
    assert 0 < widths[0] < 0.5 * widths[-1]


def test_axes_have_names(page: tuple[Any, Explorer]) -> None:
    driver = visit(page)
    # one reading: the page may draw again between two
    names = driver.execute_script(
        "return [...document.querySelectorAll('svg .y-name')].map((name) => name.textContent)"
    )
    assert names == ["ℓ1 radius", "density"]


def test_every_control_has_a_name_and_results_are_announced(page: tuple[Any, Explorer]) -> None:
    driver = visit(page, family="gennorm", beta="1.5")
    shows(driver, "noise-text", "gennorm")
    nameless = driver.execute_script(
        "return [...document.querySelectorAll('input, select, textarea, button')].filter("
        "(e) => !e.labels?.length && !e.ariaLabel && !e.textContent.trim()).map((e) => e.id)"
    )
    assert nameless == []
    assert driver.find_element("id", "result").get_attribute("aria-live") == "polite"
    assert driver.find_element("id", "error").get_attribute("role") == "alert"


@pytest.mark.parametrize("family", ["l1_exp", "linf_exp", "linf_pareto"])
def test_joint_families_of_every_norm_are_drawn(page: tuple[Any, Explorer], family: str) -> None:
    """The page asks the server which laws are joint, and sends the dimension with them."""
    driver = visit(page)
    give(driver, "family", family, "change")
    shows(driver, "noise-text", f"{family}(")
    assert console_errors(driver) == []


@pytest.mark.parametrize("width", [390, 320])
def test_no_number_crosses_its_card_on_a_phone(page: tuple[Any, Explorer], width: int) -> None:
    driver = visit(page, sigma="0.001", pa="0.51")  # 1.42854e-05
    try:
        set_viewport(driver, width, 844)
        shows(driver, "searched", "e-05")
        inside = """
            const card = document.getElementById('result').getBoundingClientRect();
            return ['proved', 'searched'].map(
                (one) => card.right - document.getElementById(one).getBoundingClientRect().right)
        """
        assert min(driver.execute_script(inside)) >= 8
    finally:
        set_viewport(driver, 1280, 900)
