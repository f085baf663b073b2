"""A seeded source of hostile picture uploads: real encoders write good files, and each is then spoilt in one way."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image

SUFFIXES = (".jpg", ".png", ".webp", ".gif", ".svg", ".exe", "")


@dataclass(frozen=True)
class Upload:
    """One file as a visitor might send it; `kind` says what was done to it."""

    kind: str
    name: str
    data: bytes


def encode(image: Image.Image, kind: str, **options: object) -> bytes:
    """The file that Pillow's encoder writes."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def exif(orientation: int) -> bytes:
    """EXIF data with an orientation, a maker's name and a place."""
    data = Image.Exif()
    data[0x0112] = orientation
    data[0x010F] = "Camera"
    data.get_ifd(0x8825)[1] = "N"
    return data.tobytes()


def png_chunk(name: bytes, body: bytes) -> bytes:
    """A PNG chunk with its length and checksum."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def write_png(width: int, height: int, depth: int, colour: int, rows: bytes, *extra: bytes) -> bytes:
    """A PNG of a depth or a stated size that Pillow does not write; colour 0 grey, 2 RGB, 4 grey and alpha, 6 RGBA."""
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    body = png_chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(extra) + body + png_chunk(b"IEND", b"")


def jpeg_segment(marker: int, body: bytes) -> bytes:
    """A JPEG segment with its length."""
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def write_jpeg(width: int, height: int, frame: int = 0xC3) -> bytes:
    """A grey JPEG as Pillow does not write it, all of one shade: lossless (0xC3), with one bit for each pixel."""
    head = jpeg_segment(frame, struct.pack(">BHHB", 8, height, width, 1) + bytes([1, 0x11, 0]))
    table = jpeg_segment(0xC4, bytes([0, 1, *bytes(15), 0]))
    scan = jpeg_segment(0xDA, bytes([1, 1, 0, 1, 0, 0])) + bytes(width * height // 8 + 1)
    return b"\xff\xd8" + head + table + scan + b"\xff\xd9"


def write_webp(width: int, height: int) -> bytes:
    """A lossless WebP of one colour: a few dozen bytes, whatever its size."""
    single = bytes.fromhex("88880888888808")  # five codes of one symbol each, so that a pixel takes no bits at all
    bits = (width - 1) | (height - 1) << 14
    body = b"\x2f" + struct.pack("<I", bits) + single
    chunk = b"VP8L" + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def zip_archive() -> bytes:
    """A small whole ZIP file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("hidden.txt", "hidden")
    return buffer.getvalue()


def picture(rng: np.random.Generator) -> Image.Image:
    """A small RGB picture: smooth colour with some noise, of a random size."""
    width, height = (int(side) for side in rng.integers(8, 80, 2))
    coarse = Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize((width, height))
    noise = rng.integers(-8, 9, (height, width, 3))
    return Image.fromarray((np.asarray(coarse) + noise).clip(0, 255).astype(np.uint8))


def good_files(rng: np.random.Generator) -> dict[str, bytes]:
    """One picture in every format and odd mode that is accepted."""
    rgb = picture(rng)
    alpha = rgb.copy()
    alpha.putalpha(rgb.convert("L"))
    grey16 = Image.fromarray(np.asarray(rgb.convert("L")).astype(np.uint16) * 257)
    frames = {"save_all": True, "append_images": [rgb.transpose(Image.Transpose.ROTATE_180)], "duration": 50}
    return {
        "jpeg": encode(rgb, "JPEG", exif=exif(int(rng.integers(1, 9)))),
        "jpeg progressive": encode(rgb, "JPEG", progressive=True, comment=b"a comment"),
        "jpeg grey": encode(rgb.convert("L"), "JPEG"),
        "jpeg cmyk": encode(rgb.convert("CMYK"), "JPEG"),
        "jpeg wide": encode(rgb.resize((int(rng.integers(2049, 9000)), 24)), "JPEG"),  # decoded at a reduced size
        "png": encode(rgb, "PNG", exif=exif(int(rng.integers(1, 9)))),
        "png alpha": encode(alpha, "PNG"),
        "png grey alpha": encode(alpha.convert("LA"), "PNG"),
        "png palette": encode(rgb.quantize(16), "PNG"),
        "png palette alpha": encode(rgb.quantize(16), "PNG", transparency=3),
        "png one bit": encode(rgb.convert("1"), "PNG"),
        "png 16 bit": encode(grey16, "PNG"),
        "png animated": encode(rgb, "PNG", **frames),
        "webp": encode(rgb, "WEBP", exif=exif(int(rng.integers(1, 9)))),
        "webp lossless": encode(rgb, "WEBP", lossless=True),
        "webp alpha": encode(alpha, "WEBP"),
        "webp animated": encode(rgb, "WEBP", **frames),
    }


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut anywhere."""
    return data[: int(rng.integers(0, len(data)))]


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip one to thirty bits anywhere."""
    spoilt = bytearray(data)
    for at in rng.integers(0, len(data), int(rng.integers(1, 31))):
        spoilt[at] ^= 1 << int(rng.integers(8))
    return bytes(spoilt)


def flip_header(data: bytes, rng: np.random.Generator) -> bytes:
    """Overwrite one to four of the first 64 bytes, where sizes and kinds are stated."""
    spoilt = bytearray(data)
    for at in rng.integers(0, min(64, len(data)), int(rng.integers(1, 5))):
        spoilt[at] = int(rng.integers(256))
    return bytes(spoilt)


def cut_out(data: bytes, rng: np.random.Generator) -> bytes:
    """Remove a stretch from the middle."""
    start, stop = sorted(int(at) for at in rng.integers(0, len(data), 2))
    return data[:start] + data[stop + 1 :]


def repeat(data: bytes, rng: np.random.Generator) -> bytes:
    """Repeat a stretch a few times."""
    start, stop = sorted(int(at) for at in rng.integers(0, len(data), 2))
    return data[:stop] + data[start:stop] * int(rng.integers(1, 20)) + data[stop:]


def append(data: bytes, rng: np.random.Generator) -> bytes:
    """A second file behind the picture."""
    others = (zip_archive(), b"<html><script>alert(1)</script></html>", b"%PDF-1.7\n%%EOF", rng.bytes(99) + b"\x01")
    return data + others[int(rng.integers(len(others)))]


def prepend(data: bytes, rng: np.random.Generator) -> bytes:
    """Something in front of the picture."""
    return (b"MZ", b"<svg/>", b"\x00", b"GIF89a")[int(rng.integers(4))] + data


def bomb(data: bytes, rng: np.random.Generator) -> bytes:
    """A valid small file that says it is enormous."""
    width, height = (int(side) for side in rng.integers(30_000, 60_000, 2))
    if data[:4] == b"\x89PNG":
        return write_png(width, height, 8, 6, bytes(10_000))
    if data[:4] == b"RIFF":
        canvas = struct.pack("<I", 0x12) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        chunks = b"WEBPVP8X" + struct.pack("<I", 10) + canvas
        return b"RIFF" + struct.pack("<I", len(chunks)) + chunks
    start = next(at for at in (data.find(b"\xff\xc0"), data.find(b"\xff\xc2")) if at >= 0)
    return data[: start + 5] + struct.pack(">HH", height, width) + data[start + 9 :]


def rare_frame(data: bytes, rng: np.random.Generator) -> bytes:
    """A whole lossless JPEG, or a JPEG whose frame claims a coding that no camera uses."""
    wide = write_jpeg(int(rng.integers(1, 60_000)), int(rng.integers(1, 40)))
    start = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    if data[:2] != b"\xff\xd8" or rng.random() < 0.5:
        return wide
    rare = (0xC3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xDE)[int(rng.integers(13))]
    return data[: start + 1] + bytes([rare]) + data[start + 2 :]


def other_format(data: bytes, rng: np.random.Generator) -> bytes:
    """A format that is not accepted, written by its own encoder where there is one."""
    kind = ("GIF", "BMP", "TIFF", "ICO", "PPM", "SVG", "ZIP", "noise", "empty")[int(rng.integers(9))]
    made = {"SVG": b"<svg xmlns='http://www.w3.org/2000/svg'/>", "ZIP": zip_archive(), "noise": rng.bytes(500)}
    if kind in made or kind == "empty":
        return made.get(kind, b"")
    return encode(picture(rng), kind)


def unchanged(data: bytes, rng: np.random.Generator) -> bytes:
    """A good file, only under a wrong suffix."""
    return data


MUTATIONS: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    function.__name__: function
    for function in (
        *(truncate, flip_bits, flip_header, cut_out, repeat),
        *(append, prepend, bomb, rare_frame, other_format, unchanged),
    )
}


def uploads(count: int, seed: int) -> Iterator[Upload]:
    """`count` uploads, the same for the same seed; every mutation and every format in turn."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        originals = good_files(rng)
        original = list(originals)[int(rng.integers(len(originals)))]
        mutation = list(MUTATIONS)[number % len(MUTATIONS)]
        suffix = SUFFIXES[int(rng.integers(len(SUFFIXES)))]
        data = MUTATIONS[mutation](originals[original], rng)
        yield Upload(f"{mutation} of {original}", f"photo{number}{suffix}", data)
