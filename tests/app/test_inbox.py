"""A file that a program hands in: one picture of a form, and nothing but the name of its parcel in a call."""

import pytest
from starlette.datastructures import Headers

from app.bodies import Refused
from app.events import parse
from app.inbox import only_file

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
FORM = Headers({"content-type": "multipart/form-data; boundary=xyz"})


def form(*files: bytes) -> bytes:
    head = b'Content-Disposition: form-data; name="files"; filename="me.png"\r\nContent-Type: image/png\r\n\r\n'
    return b"".join(b"--xyz\r\n" + head + data + b"\r\n" for data in files) + b"--xyz--\r\n"


def test_the_one_file_comes_out_as_it_went_in() -> None:
    assert only_file(form(PNG), FORM) == PNG
    assert only_file(form(b"RIFF1234WEBPdata"), FORM) == b"RIFF1234WEBPdata"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (form(PNG, PNG), FORM, 400),
        (form(), FORM, 400),
        (b"", FORM, 400),
        (form(PNG)[:-20], FORM, 400),
        (form(PNG), Headers({"content-type": "multipart/form-data; boundary=abc"}), 400),
        (form(PNG), Headers({"content-type": "application/json"}), 400),
        (form(b"<svg/>"), FORM, 415),
        (form(b"RIFF1234WAVEdata"), FORM, 415),
        (form(b""), FORM, 415),
    ],
)
def test_anything_else_is_refused(body: bytes, headers: Headers, status: int) -> None:
    with pytest.raises(Refused) as error:
        only_file(body, headers)
    assert error.value.status == status


def test_only_a_parcel_stands_for_a_file_in_a_call() -> None:
    file = '{"path": "%s", "meta": {"_type": "gradio.FileData"}}'
    assert parse(b'{"data": [%s, 1]}' % (file % "parcel:12").encode()) == {"data": ["parcel:12", 1]}
    assert parse(b'{"image": %s}' % (file % "parcel:12").encode()) == {"image": "parcel:12"}
    for path in ("/etc/passwd", "http://localhost/", "../parcel:12"):
        with pytest.raises(Refused, match="No file and no address"):
            parse(b'{"data": [%s]}' % (file % path).encode())
    with pytest.raises(Refused, match="No file and no address"):
        parse(b'{"data": [[%s]]}' % (file % "parcel:12").encode())
