"""The third screen in a real browser: what stands on the page stands in the files."""

import json

import pytest
from playwright.sync_api import Page

from app.reports import look
from app.tables import PAPER


def opened(visitor) -> Page:
    page = visitor("compare")
    page.wait_for_selector("[data-table=prediction] td b")
    return page


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_every_figure_on_the_page_stands_in_a_file(visitor, evaluated, average):
    page = opened(visitor)
    page.select_option("[data-compare=average]", average)
    script = "(cells) => cells.map((cell) => [cell.dataset.from, cell.querySelector('b').textContent])"
    cells = page.locator("td[data-from]").evaluate_all(script)
    assert len(cells) >= 12
    for source, text in cells:
        file, path = source.split("#")
        assert average in path
        root = evaluated.parent / file
        assert text == f"{100 * look(json.loads(root.read_text()), path):.1f} %"


def test_the_papers_own_figures_are_labelled(visitor):
    page = opened(visitor)
    page.select_option("[data-compare=family]", "paper-utzappos")
    page.wait_for_selector("td.gjc-paper[data-from]")
    cells = page.locator("td.gjc-paper[data-from]")
    for source, text in cells.evaluate_all("(all) => all.map((one) => [one.dataset.from, one.textContent])"):
        assert text == f"{look(json.loads(PAPER.read_text()), source.split('#')[1]):g} %"
    assert "own figures" in page.locator(".gjc-note").inner_text()
    assert page.locator("th.gjc-paper small").first.inner_text() == "the paper"


def test_curves_for_any_attribute(visitor):
    page = opened(visitor)
    page.wait_for_selector("#gj-roc .js-plotly-plot .main-svg")
    page.select_option("[data-compare=attribute]", "Striped")
    page.wait_for_function("() => document.querySelector('#gj-roc .gtitle')?.textContent.includes('Striped')")
    assert page.locator(".gjc-plots .js-plotly-plot").count() == 4  # two reliability plots, ROC, PR


def test_a_pair_opens_the_first_screen(visitor):
    page = opened(visitor)
    page.locator("[data-pair='Red,Striped']").click()
    page.wait_for_function("() => window.gibbsJem.store.settings.with.join() === 'Red,Striped'")
    assert page.locator("#gj-studio .gj-canvas").is_visible()
    page.wait_for_function("() => window.gibbsJem.counters.shownStep > 0 && window.gibbsJem.store.playing")


def test_how_it_works_is_drawn(visitor):
    page = opened(visitor)
    page.wait_for_function("() => document.querySelectorAll('.gjc-six article').length === 6")
    assert page.locator(".gjc-six img").count() >= 14
