"""The page's own files, and what a shared link shows of the page."""

import re

import gradio as gr
import pytest
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from app import static

ROUTES = {"middleware": [Middleware(static.Preview)], "routes": static.routes()}


@pytest.fixture(scope="module")
def mounted() -> TestClient:
    """A page under a path of its own, as one mounts it in a larger app."""
    with gr.Blocks(title=static.TITLE) as demo:
        gr.HTML("hello")
    app = gr.mount_gradio_app(FastAPI(), demo, path="/studio", app_kwargs=ROUTES, head=static.head())
    return TestClient(app)


def test_modules_are_served_with_their_type_and_kept_for_good(mounted):
    answer = mounted.get(f"/studio/{static.address('studio.js')}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    old = mounted.get("/studio/gj/000000000000/studio.js")
    assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.parametrize(
    "name", ["style.css", "studio.html", "../app.py", "models/avatars/config.json", "%2e%2e/app.py", "paper.json"]
)
def test_nothing_else_is_served(mounted, name):
    assert mounted.get(f"/studio/gj/{static.version()}/{name}").status_code == 404


def test_every_import_of_a_script_is_a_file_that_is_served():
    for name, path in static.files().items():
        if name.endswith(".js"):
            for wanted in re.findall(r"from '\./([\w.]+)'", path.read_text()):
                assert wanted in static.files(), f"{name} imports {wanted}"


def test_a_shared_link_speaks_of_this_page(mounted):
    page = mounted.get("/studio/").text
    tags = dict(re.findall(r'<meta (?:property|name)="((?:og|twitter):[^"]*)" content="([^"]*)"', page))
    assert tags["og:title"] == tags["twitter:title"] == static.TITLE
    assert tags["og:description"] == static.DESCRIPTION
    assert tags["og:image"] == f"http://testserver/studio/{static.address(static.PREVIEW)}"
    assert mounted.get(tags["og:image"]).headers["content-type"] == "image/jpeg"
    assert len(re.findall('"og:title"', page)) == 1, "Gradio's own words are gone"
    assert "gradio-app/gradio/main" not in page


def test_a_strange_host_is_not_repeated(mounted):
    page = mounted.get("/studio/", headers={"host": 'evil"><script>'}).text
    assert "evil" not in re.search(r'"og:image" content="[^"]*"', page)[0]
