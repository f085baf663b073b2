"""The third screen in a real browser: what stands on the page stands in the files."""

import json

from playwright.sync_api import Page

from app.reports import value_at
from app.tables import PAPER


def opened(visitor) -> Page:
    page = visitor("compare")
    page.wait_for_selector("[data-table=headline] td b")
    page.evaluate("() => { for (const one of document.querySelectorAll('#gj-more details')) one.open = true; }")
    page.wait_for_selector("[data-table=prediction] td b")
    return page


def test_every_figure_on_the_page_stands_in_a_file(visitor, evaluated):
    page = opened(visitor)
    script = "(cells) => cells.map((cell) => [cell.dataset.from, cell.querySelector('b')?.textContent])"
    for average in ("micro", "macro"):
        page.select_option("[data-compare=average]", average)
        cells = page.locator("td[data-from]").evaluate_all(script)
        assert len(cells) >= 12
        for source, text in cells:
            file, path = source.split("#")
            assert average in path or path == "gate.worst_auroc"
            root = evaluated.parent / file
            assert text == f"{100 * value_at(json.loads(root.read_text()), path):.1f} %"


def test_the_papers_own_figures_are_labelled(visitor):
    page = opened(visitor)
    zappos = page.locator("[data-compare=family] option", has_text="UT Zappos50K").first.get_attribute("value")
    page.select_option("[data-compare=family]", zappos)
    page.wait_for_selector("td.gjc-paper[data-from]")
    cells = page.locator("td.gjc-paper[data-from]")
    for source, text in cells.evaluate_all("(all) => all.map((one) => [one.dataset.from, one.textContent])"):
        assert text == f"{value_at(json.loads(PAPER.read_text()), source.split('#')[1]):g} %"
    assert "own figures" in page.locator(".gjc-note").inner_text()
    assert page.locator("th.gjc-paper small").first.inner_text() == "the paper"


def test_curves_are_folded_away_until_asked_for(visitor):
    page = visitor("compare")
    page.wait_for_selector("[data-table=headline] td b")
    folded = page.locator(".gjc-folded")
    assert folded.count() == 3
    assert not any(folded.nth(i).is_visible() for i in range(3))
    page.locator(".gjc-curves > summary").click()
    page.wait_for_selector("#gj-roc .js-plotly-plot .main-svg", state="visible")


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
    page.wait_for_function("() => window.gibbsJem.counters.shownStep > 0")


def test_the_screen_begins_with_words_and_pictures(visitor):
    page = opened(visitor)
    assert page.locator(".gjc-paragraph").inner_text().startswith("Gibbs-JEM and the supervised model predict ")
    page.wait_for_selector(".gjc-picture-row img")
    assert page.locator(".gjc-picture-row img").count() == 6
    before = page.locator(".gjc-picture-row img").first.get_attribute("src")
    page.locator("[data-compare=seed]").click()
    page.wait_for_function("(before) => document.querySelector('.gjc-picture-row img').src !== before", arg=before)


def test_the_answer_fits_one_screen(visitor):
    page = visitor("compare")
    page.set_viewport_size({"width": 1440, "height": 900})
    for family in page.locator("[data-compare=family] option").evaluate_all("(all) => all.map((one) => one.value)"):
        page.select_option("[data-compare=family]", family)
        page.wait_for_function("(key) => window.gibbsJem.compareScreen.reply?.family === key", arg=family)
        for part in (".gjc-paragraph", "[data-table=headline]"):
            box = page.locator(part).bounding_box()
            assert box is None or box["y"] + box["height"] <= 900, (family, part)


def test_nothing_is_wider_than_the_page(visitor):
    page = opened(visitor)
    page.wait_for_selector(".gjc-picture-row img")
    page.wait_for_selector("#gj-roc .js-plotly-plot .main-svg")
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function("(width) => document.documentElement.scrollWidth <= width", arg=width)
        assert page.locator(".modebar:visible").count() == 0, width
