"""Faults of a page that axe-core finds, whose rules are those of Lighthouse's accessibility audit."""

from __future__ import annotations

from importlib.resources import files

from tests.extras.service.browser import Browser

_AXE = files("axe_core_python").joinpath("axe.min.js")

_RUN = """
return axe.run(arguments[0], {resultTypes: ["violations"]}).then((found) => found.violations.flatMap((rule) =>
  rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 120)}: ${node.any.map((each) => each.message).join("; ")}`)
));
"""


def faults(browser: Browser, within: str = "html") -> list[str]:
    """A line for each element of the page in the window that breaks a rule: of names, roles, contrast, headings …"""
    browser.run(_AXE.read_text(encoding="utf-8"))
    found: list[str] = browser.run(_RUN, within)
    return found
