"""The four endpoints as MCP tools, through the protocol's own client over real HTTP."""

import asyncio
import base64
from collections.abc import Iterator

import pytest
from load.client import aside
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, Tool

from app import shell
from app.film import png, tile
from jem_core.bundle import Bundle


@pytest.fixture(scope="module")
def address(tiny_bundle: Bundle) -> Iterator[str]:
    demo = shell.build(shell.options(["--model", str(tiny_bundle.directory)]))
    options = shell.launch_options() | {"mcp_server": True, "server_name": "127.0.0.1"}
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **options)
    yield f"{url.rstrip('/')}/gradio_api/mcp/"
    demo.close()


def ask(address: str, tool: str = "", **arguments: object) -> tuple[list[Tool], CallToolResult | None]:
    """The tools on offer, and the answer of one of them."""

    async def talk() -> tuple[list[Tool], CallToolResult | None]:
        async with streamable_http_client(address) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            return tools, await session.call_tool(tool, arguments) if tool else None

    return aside(asyncio.run, talk())


def test_four_tools_and_no_event_of_the_page(address):
    tools, _ = ask(address)
    assert {tool.name for tool in tools} == {"synthesize", "steer", "predict", "edit"}
    for tool in tools:
        assert len(tool.description) > 40
        assert all(len(facts["description"]) > 15 for facts in tool.inputSchema["properties"].values()), tool.name


def test_synthesize_gives_images(address):
    _, answer = ask(address, "synthesize", required=[], n=2, steps=2)
    assert not answer.isError
    assert answer.content[0].text.count("data:image/png;base64,") == 2


@pytest.fixture(scope="module")
def picture(tiny_bundle) -> str:
    return base64.b64encode(png(tile(tiny_bundle.buffer.images[:1].float() / 255))).decode()


def test_predict_gives_a_row_per_attribute(address, tiny_bundle, picture):
    _, answer = ask(address, "predict", image=picture, model="tiny")
    assert not answer.isError
    assert all(name in answer.content[0].text for name in tiny_bundle.names)


def test_steer_gives_a_row_per_part(address):
    _, answer = ask(address, "steer", walk="Red; -Red", n=1, steps=2)
    assert not answer.isError
    assert answer.content[0].text.count("data:image/png;base64,") == 2


def test_edit_gives_variants(address, picture):
    _, answer = ask(address, "edit", image=picture, required=["Red"], variants=2, model="tiny")
    assert not answer.isError
    assert answer.content[0].text.count("data:image/png;base64,") == 3  # before, and two after


def test_a_bad_call_gets_the_sentence(address):
    _, answer = ask(address, "synthesize", required=["Moustach"])
    assert answer.isError
    assert "Moustach" in answer.content[0].text


def test_a_path_is_not_opened(address):
    _, answer = ask(address, "predict", image="/etc/hostname")
    assert answer.isError
    assert "image: " in answer.content[0].text
