"""Where requests come from, and what is believed of what they say."""

from collections.abc import Iterator

import pytest

from app.addresses import address_of, believable
from tests.app.small_app import Site, running

HOSTILE = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example"}


def scope(peer: str = "203.0.113.9", **headers: str) -> dict:
    named = [(name.lower().replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"client": (peer, 1234), "headers": named}


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("8.8.8.8", "8.8.8.8"),
        ("1.2.3.4, 8.8.8.8", "8.8.8.8"),  # the first is what the caller made up
        ("8.8.8.8, 10.1.2.3", "8.8.8.8"),  # the last is a proxy in the data centre
        ("1.2.3.4, 8.8.8.8, 10.1.2.3, 172.16.0.9", "8.8.8.8"),
        ("10.0.0.5", "10.0.0.5"),
        ("nonsense", "203.0.113.9"),
        ("", "203.0.113.9"),
        ("2606:4700:1:2:3:4:5:6", "2606:4700:1:2::/64"),
        ("::ffff:8.8.4.4", "8.8.4.4"),
    ],
)
def test_behind_a_proxy_the_caller_is_whom_it_names_last(stated: str, found: str) -> None:
    assert address_of(scope(X_Forwarded_For=stated), behind_proxy=True) == found
    assert address_of(scope(X_Forwarded_For=stated), behind_proxy=False) == "203.0.113.9"


def test_a_household_has_one_name() -> None:
    addresses = {address_of(scope(f"2001:db8:1:2::{number:x}"), False) for number in range(5)}
    assert addresses == {"2001:db8:1:2::/64"}
    assert address_of({"client": None, "headers": []}, False) == ""


def test_only_a_proxy_may_speak_of_the_protocol_and_nobody_of_the_host() -> None:
    said = scope(
        X_Forwarded_Proto="https", X_Forwarded_Host="evil.example", Forwarded="for=1", Host="here", X_Real_Ip="1"
    )
    assert believable(said, behind_proxy=False) == [(b"host", b"here")]
    assert believable(said, behind_proxy=True) == [(b"x-forwarded-proto", b"https"), (b"host", b"here")]
    assert believable(scope(X_Forwarded_Proto="javascript"), behind_proxy=True) == []


@pytest.mark.parametrize("host", ["a:b", "[", "a b", "x:999999", "x/../y", "x@y", "x?y", "\x7f", "x" * 300])
def test_a_host_without_sense_is_an_empty_one(site: Site, host: str) -> None:
    assert believable(scope(Host=host), behind_proxy=False) == [(b"host", b"")]
    body = {"data": ["x"], "fn_index": site.fn("quick"), "session_hash": "odd"}
    for said in ({"Host": host}, {"X-Gradio-Server": f"http://{host}"}):
        for path in ("/", "/config", "/gradio_api/info"):
            assert site.http.get(path, headers=said).status_code == 200
        assert site.http.post("/gradio_api/run/predict", json=body, headers=said).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:7860", "[::1]:64999", "a-b.hf.space"])
def test_a_host_with_sense_is_believed(host: str) -> None:
    assert believable(scope(Host=host), behind_proxy=False) == [(b"host", host.encode())]


def test_the_description_of_endpoints_is_not_that_of_the_first_caller(site: Site) -> None:
    assert "http://first.example" in site.http.get("/gradio_api/info", headers={"Host": "first.example"}).text
    assert "first.example" not in site.http.get("/gradio_api/info").text


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running(sessions_per_address=3) as made:
        yield made


def test_the_page_does_not_repeat_a_forged_host(site: Site) -> None:
    for path in ("/", "/config", "/gradio_api/info"):
        answer = site.http.get(path, headers=HOSTILE)
        assert answer.status_code == 200
        assert "evil.example" not in answer.text
        assert "https://127.0.0.1" not in answer.text
    answer = site.http.post(
        "/gradio_api/queue/join",
        json={"data": [1], "fn_index": site.fn("frames"), "session_hash": "forger"},
        headers=HOSTILE | {"X-Forwarded-For": "8.8.8.8"},
    )
    assert answer.status_code == 200
    assert site.answers("forger")[-2]["success"]  # it used to fail over the name of the host
    assert site.visitors.visits["forger"].address == "127.0.0.1"
