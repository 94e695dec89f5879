"""A real browser for tests: headless Chromium under selenium, or a skip saying what is missing.

Nothing is downloaded: the browser and its driver are those found on the path.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
)


@contextmanager
def browser_or_skip(
    *, width: int = 1280, height: int = 900, dark: bool = False, flags: tuple[str, ...] = ()
) -> Iterator[Any]:
    """A selenium driver of a fresh headless Chromium; the test is skipped where there is none."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    chromedriver = shutil.which(DRIVER)
    if chromedriver is None:
        pytest.skip(f"no {DRIVER} on the path")

    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        for flag in flags:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(chromedriver))
        try:
            driver.get("about:blank")
            set_viewport(driver, width, height)
            set_scheme(driver, dark=dark)
            yield driver
        finally:
            driver.quit()


def set_viewport(driver: Any, width: int, height: int) -> None:
    """Make the page exactly this large, smaller than a window may be too (a phone)."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def set_scheme(driver: Any, *, dark: bool) -> None:
    """What `prefers-color-scheme` answers."""
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def console_errors(driver: Any) -> list[str]:
    """What the console has complained about since the last call: errors and warnings."""
    entries = driver.get_log("browser")
    return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]


def requested(driver: Any) -> list[str]:
    """The addresses that the page has asked for since the last call."""
    events = [json.loads(e["message"])["message"] for e in driver.get_log("performance")]
    sent = (e["params"] for e in events if e["method"] == "Network.requestWillBeSent")
    return [params["request"]["url"] for params in sent]
