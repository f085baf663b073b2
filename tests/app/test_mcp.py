"""The two endpoints as MCP tools, through the protocol's own client over real HTTP."""

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


def test_two_tools_and_no_event_of_the_page(address):
    tools, _ = ask(address)
    assert {tool.name for tool in tools} == {"synthesize", "predict"}
    assert all(len(tool.description) > 40 for tool in tools)


def test_synthesize_gives_images(address):
    _, answer = ask(address, "synthesize", wanted=[], n=2, steps=2)
    assert not answer.isError
    assert answer.content[0].text.count("data:image/png;base64,") == 2


def test_predict_gives_a_row_an_attribute(address, tiny_bundle):
    picture = base64.b64encode(png(tile(tiny_bundle.buffer.images[:1].float() / 255))).decode()
    _, answer = ask(address, "predict", image=picture)
    assert not answer.isError
    assert all(name in answer.content[0].text for name in tiny_bundle.names)


def test_a_bad_call_gets_the_sentence(address):
    _, answer = ask(address, "synthesize", wanted=["Moustach"])
    assert answer.isError
    assert "Moustach" in answer.content[0].text


def test_a_path_is_not_opened(address):
    _, answer = ask(address, "predict", image="/etc/hostname")
    assert answer.isError
    assert "not base64" in answer.content[0].text
