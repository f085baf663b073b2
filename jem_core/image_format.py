"""What an image file says of itself, read from its bytes before any decoder sees them.

`inspect` walks the segments or chunks of a JPEG, PNG or WebP file to its stated end and returns the picture's size, its
orientation and a copy that holds only the parts that make pixels. Metadata, later frames and whatever else travels in
the file never reach the decoder.
"""

import re
import struct
from dataclasses import dataclass

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
EXIF_PREFIX = b"Exif\x00\x00"
ORIENTATION_TAG = 0x0112

# What makes the pixels of an ordinary JPEG beside its scans: a frame (baseline, extended or progressive), the Huffman
# and quantization tables and the restart interval. Every other frame is refused. Cameras write none, and in a lossless
# one the decoder ignores the reduced size it was asked for and writes beyond the lines that Pillow 12 made room for.
JPEG_FRAMES = (0xC0, 0xC1, 0xC2)
JPEG_TABLES = (0xC4, 0xDB, 0xDD)
JPEG_SCAN = 0xDA
# A progressive JPEG has about ten scans. Each costs a pass over the whole picture, so thousands of empty ones would
# keep a core busy for minutes.
MAX_JPEG_SCANS = 32
# Segments or chunks in a file, and pictures or films appended to it: far above what cameras write, low enough that
# millions of empty ones cost nothing.
MAX_PARTS = 100_000
MAX_EXTRAS = 8

# Named in the error, so that somebody with a picture from a phone knows what to convert.
OTHER_FORMATS = (
    (rb"GIF8", "a GIF"),
    (rb"BM", "a BMP"),
    (rb"II\*\x00|MM\x00\*", "a TIFF"),
    (rb"....ftyp(avif|avis)", "an AVIF"),
    (rb"....ftyp(hei|hev|mif|msf)", "a HEIC"),
    (rb"....ftyp", "a video"),
    (rb"%PDF-", "a PDF"),
    (rb"PK\x03\x04", "a ZIP"),
    (rb"(?i)(\xef\xbb\xbf)?\s*(<\?xml|<!--|<!doctype svg).*?<svg|(\xef\xbb\xbf)?\s*<svg", "an SVG"),
    (rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype|html|script)", "an HTML"),
)


class ImageError(ValueError):
    """A picture that is refused; the message is one sentence for the person who sent it."""


@dataclass(frozen=True)
class Header:
    """What is known of a picture before it is decoded."""

    format: str  # "JPEG", "PNG" or "WebP"
    width: int  # as stored: before the orientation is applied
    height: int
    orientation: int  # EXIF's 1 to 8; 1 is upright
    data: bytes  # the same picture without metadata, later frames and trailing bytes


def inspect(data: bytes) -> Header:
    """Read the header, check that the file is whole and holds nothing but the picture, and drop its metadata."""
    if data.startswith(b"\xff\xd8\xff"):
        header, end = _inspect_jpeg(data)
        end = _skip_phone_extras(data, end)
    elif data.startswith(PNG_SIGNATURE):
        header, end = _inspect_png(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        header, end = _inspect_webp(data)
    else:
        raise ImageError(f"The file is {_what_else(data)}; a JPEG, PNG or WebP picture is needed.")
    if header.width < 1 or header.height < 1:
        raise _cut_short(header.format)
    # Archive readers look for a ZIP's index at the end of a file, PDF readers for their mark in the first kilobyte.
    if data[end:].strip(b"\x00") or b"PK\x05\x06" in data[-65_557:] or b"%PDF-" in data[:1024]:
        raise ImageError(f"The {header.format} file contains something besides the picture; save the picture again.")
    return header


def _what_else(data: bytes) -> str:
    if not data:
        return "empty"
    kinds = (kind for mark, kind in OTHER_FORMATS if re.match(mark, data[:1024], re.DOTALL))
    return next((f"{kind} file" for kind in kinds), "of an unknown kind")


def _cut_short(kind: str) -> ImageError:
    return ImageError(f"The {kind} file is cut short or damaged; send it again from its source.")


def _inspect_jpeg(data: bytes, start: int = 0) -> tuple[Header, int]:
    """Walk the segments from SOI to EOI (ITU-T T.81, annex B)."""
    parts, size, orientation, scans, at = [b"\xff\xd8"], None, 1, 0, start + 2
    for _ in range(MAX_PARTS):
        marker = int.from_bytes(data[at + 1 : at + 2])
        if data[at : at + 1] != b"\xff" or marker == 0:
            raise _cut_short("JPEG")
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if marker == 0xD9:
            break
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4])
        body = data[at + 4 : end]
        if end > len(data) or end < at + 4:
            raise _cut_short("JPEG")
        if marker == JPEG_SCAN:
            scans += 1
            if scans > MAX_JPEG_SCANS:
                raise ImageError(f"The JPEG picture comes in more than {MAX_JPEG_SCANS} scans; it is not read.")
            end = _end_of_scan(data, end)
        elif marker in range(0xC0, 0xD0) and marker not in JPEG_TABLES:
            size = _jpeg_size(marker, body, size)
        elif marker == 0xE1 and body.startswith(EXIF_PREFIX):
            orientation = read_orientation(body)
        if _makes_pixels(marker, body):
            parts.append(data[at:end])
        at = end
    if size is None or not scans or data[at : at + 2] != b"\xff\xd9":
        raise _cut_short("JPEG")
    return Header("JPEG", *size, orientation, b"".join([*parts, b"\xff\xd9"])), at + 2


def _end_of_scan(data: bytes, at: int) -> int:
    """In a scan 0xFF is followed by a stuffed zero or a restart mark; anything else ends it."""
    found = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]").search(data, at)
    if found is None:
        raise _cut_short("JPEG")
    return found.start()


def _jpeg_size(marker: int, body: bytes, known: tuple[int, int] | None) -> tuple[int, int]:
    """Width and height as the frame states them: one frame a picture, of 8 bits and one, three or four components."""
    if marker not in JPEG_FRAMES:
        raise ImageError(
            "The JPEG picture is coded in a rare way, lossless perhaps; save it again as an ordinary JPEG."
        )
    if known is not None or len(body) < 6 or body[0] != 8 or body[5] not in (1, 3, 4) or len(body) != 6 + 3 * body[5]:
        raise _cut_short("JPEG")
    return int.from_bytes(body[3:5]), int.from_bytes(body[1:3])


def _makes_pixels(marker: int, body: bytes) -> bool:
    """Comments and application segments go, save the two that say how the colours are coded (JFIF, Adobe)."""
    if marker == 0xE0:
        return body.startswith(b"JFIF\x00")
    if marker == 0xEE:
        return body.startswith(b"Adobe")
    if 0xE0 <= marker <= 0xEF or marker == 0xFE:
        return False
    if marker not in (*JPEG_FRAMES, *JPEG_TABLES, JPEG_SCAN):
        raise _cut_short("JPEG")
    return True


def _skip_phone_extras(data: bytes, at: int) -> int:
    """Phones append a gain map or second view (JPEG), a short film (MP4), or Samsung's own block: all left unread."""
    for _ in range(MAX_EXTRAS):
        if data[at : at + 3] == b"\xff\xd8\xff":
            at = _inspect_jpeg(data, at)[1]
        elif data[at + 4 : at + 8] == b"ftyp":
            at = _end_of_boxes(data, at)
        elif data.endswith(b"SEFT") and data[-8 - int.from_bytes(data[-8:-4], "little") :][:4] == b"SEFH":
            return len(data)
        elif data[at : at + 1] == b"\x00":
            at = len(data) - len(data[at:].lstrip(b"\x00"))
        else:
            break
    return at


def _end_of_boxes(data: bytes, at: int) -> int:
    """The end of a run of MP4 boxes: length, four letters, contents."""
    for _ in range(MAX_PARTS):
        length = int.from_bytes(data[at : at + 4])
        if length == 1:  # the length follows in eight bytes
            length = int.from_bytes(data[at + 8 : at + 16])
        if not 8 <= length <= len(data) - at or not data[at + 4 : at + 8].isalnum():
            break
        at += length
    return at


def _inspect_png(data: bytes) -> tuple[Header, int]:
    """Walk the chunks from IHDR to IEND; the first frame of an animation is the picture outside its extra chunks."""
    parts, size, orientation, at = [PNG_SIGNATURE], None, 1, len(PNG_SIGNATURE)
    for _ in range(MAX_PARTS):
        name, end = data[at + 4 : at + 8], at + 12 + int.from_bytes(data[at : at + 4])
        body = data[at + 8 : end - 4]
        if len(name) < 4 or end > len(data) or (name == b"IHDR") != (size is None):
            raise _cut_short("PNG")
        if name == b"IHDR":
            size = (int.from_bytes(body[:4]), int.from_bytes(body[4:8]))
        if name == b"eXIf":
            orientation = read_orientation(body)
        if name in (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"):
            parts.append(data[at:end])
        elif name[:1].isupper():  # a chunk that a reader must know
            raise _cut_short("PNG")
        at = end
        if name == b"IEND" and size is not None:
            return Header("PNG", *size, orientation, b"".join(parts)), at
    raise _cut_short("PNG")


def _inspect_webp(data: bytes) -> tuple[Header, int]:
    """Walk the chunks of the RIFF container; of an animation only the first frame stays."""
    at, end = 12, 8 + int.from_bytes(data[4:8], "little")
    parts, size, orientation, frames = [], None, 1, 0
    for _ in range(MAX_PARTS):
        if at >= end:
            break
        name, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        body, stop = data[at + 8 : at + 8 + length], at + 8 + length
        if stop > min(end, len(data)) or (name == b"VP8X") > (at == 12):
            raise _cut_short("WebP")
        padding = bytes(length % 2)
        size = size or _webp_size(name, body)
        frames += name == b"ANMF"
        if name == b"EXIF":
            orientation = read_orientation(body)
        if name == b"VP8X":  # without the flags of the colour profile and the two kinds of metadata
            parts.append(data[at : at + 8] + bytes([body[0] & 0x12]) + data[at + 9 : stop] + padding)
        elif name in (b"VP8 ", b"VP8L", b"ALPH", b"ANIM") or (name == b"ANMF" and frames == 1):
            parts.append(data[at:stop] + padding)
        at = stop + len(padding)
    if size is None or at < end:
        raise _cut_short("WebP")
    kept = b"WEBP" + b"".join(parts)
    return Header("WebP", *size, orientation, b"RIFF" + len(kept).to_bytes(4, "little") + kept), end


def _webp_size(name: bytes, body: bytes) -> tuple[int, int]:
    """The first chunk says how large the canvas is, in one of three ways."""
    if name == b"VP8X" and len(body) == 10:
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    if name == b"VP8 " and body[3:6] == b"\x9d\x01\x2a" and len(body) >= 10:
        return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
    if name == b"VP8L" and body[:1] == b"\x2f" and len(body) >= 5:
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    raise _cut_short("WebP")


def read_orientation(exif: bytes) -> int:
    """EXIF's orientation, 1 to 8; damaged metadata counts as upright, since it is no reason to refuse the picture."""
    tiff = exif.removeprefix(EXIF_PREFIX)
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, start)
        for at in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(f"{order}HH", tiff, at)
            if tag == ORIENTATION_TAG:
                (value,) = struct.unpack_from(order + ("I" if kind == 4 else "H"), tiff, at + 8)
                return value if 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1
