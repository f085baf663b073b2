"""The decoder's process: it gives pictures or sentences, and its end is nobody else's."""

import base64
import io
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app import decoder_worker
from app.decoder import Decoder, shared
from jem_core.images import ImageError, read_image
from tests.app.small_app import Site, running
from tests.jem_core.mutate_images import encode, good_files, uploads, write_webp

PICTURE = encode(Image.linear_gradient("L").convert("RGB"), "PNG")


@pytest.fixture(scope="module")
def decoder() -> Iterator[Decoder]:
    made = Decoder()
    yield made
    made.close()


def test_the_same_pixels_as_in_this_process(decoder: Decoder) -> None:
    for kind, data in good_files(np.random.default_rng(0)).items():
        assert decoder.decode(data).tobytes() == read_image(data, working_side=1024).tobytes(), kind


def test_at_most_1024_pixels_per_side(decoder: Decoder) -> None:
    assert decoder.decode(encode(Image.new("RGB", (3000, 1500)), "JPEG")).size == (1024, 512)


def picture_or_sentence(decoder: Decoder, data: bytes) -> Image.Image | str:
    try:
        return decoder.decode(data)
    except ImageError as error:
        return str(error)


def test_mutated_uploads_give_a_picture_or_a_sentence_and_one_process_takes_them_all(decoder: Decoder) -> None:
    decoder.decode(PICTURE)
    process = decoder.process
    results = [picture_or_sentence(decoder, upload.data) for upload in uploads(count=110, seed=3)]
    sentences = [result for result in results if isinstance(result, str)]
    assert 50 < len(sentences) < 110
    assert all(sentence.endswith(".") and "\n" not in sentence for sentence in sentences)
    assert decoder.process is process
    assert process.poll() is None


def test_a_small_file_of_an_enormous_picture_is_refused_at_once(decoder: Decoder) -> None:
    bomb = write_webp(8000, 8000)
    assert len(bomb) < 50
    with pytest.raises(ImageError, match="at most 16 megapixels of a WebP"):
        decoder.decode(bomb)


def test_more_memory_than_it_may_have_is_a_sentence() -> None:
    small = Decoder(megabytes=260)
    try:
        with pytest.raises(ImageError, match="more memory than it may have"):
            small.decode(encode(Image.new("RGBA", (4900, 4900)), "PNG", compress_level=1))
        assert small.decode(PICTURE).size == (256, 256)
    finally:
        small.close()


def test_a_decoder_that_crashes_takes_one_picture_with_it(decoder: Decoder) -> None:
    decoder.decode(PICTURE)
    before = decoder.process.pid
    os.kill(before, signal.SIGSTOP)  # it stands still with a picture in its hands, and then it is gone
    threading.Timer(0.3, os.kill, (before, signal.SIGKILL)).start()
    with pytest.raises(ImageError, match="cannot be decoded: it is damaged"):
        decoder.decode(PICTURE)
    assert decoder.decode(PICTURE).size == (256, 256)
    assert decoder.process.pid != before
    decoder.process.kill()  # between two pictures nobody notices
    decoder.process.wait()
    assert decoder.decode(PICTURE).size == (256, 256)


def test_a_decoder_that_hangs_takes_one_picture_with_it() -> None:
    short = Decoder(seconds=0.5)
    try:
        short.seconds = 10
        short.decode(PICTURE)
        short.seconds = 0.5
        os.kill(short.process.pid, signal.SIGSTOP)
        with pytest.raises(ImageError, match=r"longer than 0\.5 seconds"):
            short.decode(PICTURE)
        short.seconds = 10
        assert short.decode(PICTURE).size == (256, 256)
    finally:
        short.close()


@pytest.mark.parametrize("end", ["crash", "hang"])
def test_a_server_whose_decoder_ends_loses_one_request(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over real HTTP: quick events and a run go on meanwhile, and the next picture is decoded."""
    picture = base64.b64encode(PICTURE).decode()

    def shown(site: Site, session: str) -> dict:
        assert site.join("show", [picture], session).status_code == 200
        return site.answers(session)[-2]["output"]["data"][0]

    with running() as site, ThreadPoolExecutor(2) as threads:
        assert shown(site, "before")["width"] == 256
        monkeypatch.setattr(shared(), "seconds", 3.0)
        pid = shared().process.pid
        os.kill(pid, signal.SIGSTOP)
        unlucky = threads.submit(shown, site, "unlucky")
        assert site.join("frames", [50], "watcher").status_code == 200
        run = threads.submit(site.answers, "watcher")
        for _ in range(10):
            began = time.monotonic()
            body = {"data": ["x"], "fn_index": site.fn("quick"), "session_hash": "bystander"}
            assert site.http.post("/gradio_api/run/predict", json=body).status_code == 200
            assert time.monotonic() - began < 1
        if end == "crash":
            os.kill(pid, signal.SIGKILL)
        assert ("damaged" if end == "crash" else "longer than 3 seconds") in unlucky.result(30)["refused"]
        assert [one["msg"] for one in run.result(30)].count("process_generating") == 50
        monkeypatch.setattr(shared(), "seconds", 10.0)
        assert shown(site, "after")["width"] == 256


def test_many_at_once_each_get_their_own(decoder: Decoder) -> None:
    pictures = [encode(Image.new("RGB", (9 + n, 7), (n, 0, 0)), "PNG") for n in range(12)]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(decoder.decode, pictures))
    assert [image.size for image in found] == [(9 + n, 7) for n in range(12)]
    assert [image.getpixel((0, 0))[0] for image in found] == list(range(12))


def test_it_has_neither_secrets_nor_torch(decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    decoder.close()
    decoder.decode(PICTURE)
    place = Path(f"/proc/{decoder.process.pid}")
    assert b"hf_secret" not in (place / "environ").read_bytes()
    assert "libtorch" not in (place / "maps").read_text()
    limits = (place / "limits").read_text()
    assert f"{768 << 20}" in next(line for line in limits.splitlines() if line.startswith("Max address space"))
    assert next(line for line in limits.splitlines() if line.startswith("Max file size")).split()[3] == "0"


def test_it_ends_with_the_server(decoder: Decoder) -> None:
    decoder.decode(PICTURE)
    process = decoder.process
    decoder._wire.close()  # what the system does when the server's process ends
    deadline = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.returncode == 0
    decoder.close()


def test_what_it_says_is_not_believed(decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that somebody has taken over may say anything: no size beyond the limit, no endless sentence."""
    for head in ((b"P", 5000, 5000, 75_000_000), (b"P", 4, 4, 10), (b"S", 0, 0, 2**40)):
        decoder.decode(PICTURE)
        said = io.BytesIO(decoder_worker.ANSWER.pack(*head))
        monkeypatch.setattr(decoder, "_read", lambda count, deadline, said=said: said.read(count))
        with pytest.raises(ImageError, match="cannot be decoded"):
            decoder.decode(PICTURE)
        monkeypatch.undo()
