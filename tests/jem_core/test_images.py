"""The image loader against files that real encoders write, good and bad."""

import io
import struct
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from jem_core.images import ImageError, read_image, to_tensor
from tests.jem_core.mutate_images import (
    encode,
    exif,
    good_files,
    png_chunk,
    uploads,
    write_png,
    write_webp,
    zip_archive,
)

TOP_LEFT, TOP_RIGHT, BOTTOM_LEFT, BOTTOM_RIGHT = (200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 30)


def quarters(width: int = 48, height: int = 32) -> Image.Image:
    """Four colours, so that every turn and flip can be told from the others."""
    small = np.array([[TOP_LEFT, TOP_RIGHT], [BOTTOM_LEFT, BOTTOM_RIGHT]], dtype=np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.NEAREST)


def corners(image: Image.Image) -> list[tuple[int, ...]]:
    """The colours in the middle of the four quarters."""
    w, h = image.size
    return [image.getpixel((x, y)) for y in (h // 4, 3 * h // 4) for x in (w // 4, 3 * w // 4)]


def assert_quarters(image: Image.Image, tolerance: int = 12) -> None:
    assert image.mode == "RGB"
    expected = np.array([TOP_LEFT, TOP_RIGHT, BOTTOM_LEFT, BOTTOM_RIGHT])
    assert np.abs(np.array(corners(image)) - expected).max() <= tolerance


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("JPEG", {"quality": 95, "subsampling": 0}),
        ("JPEG", {"quality": 95, "subsampling": 0, "progressive": True}),
        ("PNG", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"quality": 95}),
    ],
)
def test_each_format(kind: str, options: dict, tmp_path: Path) -> None:
    data = encode(quarters(), kind, **options)
    image = read_image(data)
    assert image.size == (48, 32)
    assert_quarters(image)
    misnamed = tmp_path / "picture.gif"
    misnamed.write_bytes(data)
    assert read_image(misnamed).tobytes() == image.tobytes()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_exif_orientation(kind: str, orientation: int) -> None:
    # The camera stores the scene turned; the inverse of what a viewer does to show it upright.
    stored = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    scene = quarters()
    turned = scene.transpose(stored[orientation]) if orientation > 1 else scene
    image = read_image(encode(turned, kind, exif=exif(orientation), quality=95))
    assert image.size == scene.size
    assert_quarters(image)


def test_metadata_is_dropped() -> None:
    for kind in ("JPEG", "PNG", "WEBP"):
        data = encode(quarters(), kind, exif=exif(1), icc_profile=b"profile" * 40, xmp=b"<x:xmpmeta/>", dpi=(300, 300))
        image = read_image(data)
        assert image.info == {}
        assert len(image.getexif()) == 0


def test_alpha_is_laid_on_white() -> None:
    image = quarters().convert("RGBA")
    image.paste((10, 20, 30, 0), (0, 0, 24, 16))
    image.paste((0, 0, 0, 128), (24, 0, 48, 16))
    for kind in ("PNG", "WEBP"):
        found = corners(read_image(encode(image, kind, lossless=True)))
        assert found[0] == (255, 255, 255)
        assert max(abs(value - 127) for value in found[1]) <= 1
        assert found[3] == BOTTOM_RIGHT
    grey = read_image(encode(image.convert("LA"), "PNG"))
    assert corners(grey)[0] == (255, 255, 255)


def test_palette_and_one_bit() -> None:
    palette = quarters().quantize(4)
    assert_quarters(read_image(encode(palette, "PNG")))
    clear = palette.getpixel((0, 0))
    found = corners(read_image(encode(palette, "PNG", transparency=clear)))
    assert found[0] == (255, 255, 255)
    assert found[3] == BOTTOM_RIGHT
    black_and_white = Image.new("1", (8, 8), 1)
    black_and_white.putpixel((0, 0), 0)
    image = read_image(encode(black_and_white, "PNG"))
    assert (image.getpixel((0, 0)), image.getpixel((5, 5))) == ((0, 0, 0), (255, 255, 255))


def test_grey_and_cmyk() -> None:
    grey = Image.linear_gradient("L").resize((64, 64))
    for kind in ("JPEG", "PNG", "WEBP"):
        image = read_image(encode(grey, kind, quality=95))
        assert image.mode == "RGB"
        assert np.abs(np.asarray(image).astype(int) - np.asarray(grey)[..., None]).max() <= 6
    assert_quarters(read_image(encode(quarters().convert("CMYK"), "JPEG", quality=95, subsampling=0)), tolerance=16)


def test_16_bit_grey_is_scaled() -> None:
    ramp = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    image = read_image(encode(Image.fromarray(ramp), "PNG"))
    expected = ramp.astype(float) / 257
    assert np.abs(np.asarray(image) - expected[..., None]).max() <= 1
    clear = write_png(2, 1, 16, 0, struct.pack(">BHH", 0, 7, 40_000), png_chunk(b"tRNS", struct.pack(">H", 7)))
    assert np.asarray(read_image(clear))[0, :, 0].tolist() == [255, 40_000 >> 8]


@pytest.mark.parametrize(("colour", "channels"), [(2, 3), (4, 2), (6, 4)])
def test_16_bit_colour_and_alpha(colour: int, channels: int) -> None:
    pixels = np.full((4, 4, channels), 0x80FF, dtype=">u2")
    pixels[..., -1] = 0xFFFF
    rows = b"".join(b"\x00" + row.tobytes() for row in pixels)
    found = read_image(write_png(4, 4, 16, colour, rows)).getpixel((1, 1))
    assert found == ((128, 128, 255) if colour == 2 else (128, 128, 128))


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_animation_gives_its_first_frame(kind: str) -> None:
    options = {"save_all": True, "append_images": [Image.new("RGB", (48, 32))] * 3, "duration": 40, "quality": 95}
    assert_quarters(read_image(encode(quarters(), kind, **options)))


@pytest.mark.parametrize("side", [1, 8])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_tiny(kind: str, side: int) -> None:
    image = read_image(encode(Image.new("RGB", (side, side), (90, 120, 150)), kind))
    assert image.size == (side, side)
    assert to_tensor(image, 32).shape == (3, 32, 32)


@pytest.mark.parametrize(
    ("kind", "size", "options"),
    [
        ("JPEG", (8000, 6000), {}),
        ("PNG", (5600, 4200), {"compress_level": 1}),
        ("WEBP", (4600, 3450), {"quality": 95, "method": 0}),
    ],
)
def test_pictures_of_many_megapixels(kind: str, size: tuple[int, int], options: dict) -> None:
    data = encode(quarters(*size), kind, **options)
    start = time.process_time()
    image = read_image(data)
    assert time.process_time() - start < 5
    assert image.size == (2048, 1536)
    assert_quarters(image)


def test_strip_of_extreme_shape() -> None:
    assert read_image(encode(Image.new("RGB", (50_000, 3)), "PNG")).size == (2048, 1)
    with pytest.raises(ImageError, match="at most 65535 per side"):
        read_image(encode(Image.new("1", (70_000, 3)), "PNG"))


def test_limits_come_before_decoding(tmp_path: Path) -> None:
    beyond = write_png(5001, 5001, 8, 2, b"")
    with pytest.raises(ImageError, match=r"5001 by 5001 pixels \(25 megapixels\); at most 25 megapixels of a PNG"):
        read_image(beyond)
    with pytest.raises(ImageError, match=r"8000 by 8000 pixels \(64 megapixels\); at most 16 megapixels of a WebP"):
        read_image(write_webp(8000, 8000))
    jpeg = bytearray(encode(quarters(), "JPEG"))
    frame = jpeg.index(b"\xff\xc0") + 5
    jpeg[frame : frame + 4] = struct.pack(">HH", 8001, 8001)
    with pytest.raises(ImageError, match=r"at most 64 megapixels of a JPEG"):
        read_image(bytes(jpeg))
    large = tmp_path / "large.jpg"
    with large.open("wb") as file:
        file.truncate(65 * 2**20)  # a sparse file: reading it would take the whole size
    with pytest.raises(ImageError, match=r"65 MB; at most 64 MB is allowed"):
        read_image(large)
    with pytest.raises(ImageError, match=r"at most 0 MB"):
        read_image(encode(quarters(), "PNG"), max_bytes=10)


def test_a_jpeg_of_many_scans_is_refused() -> None:
    data = encode(quarters(), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    with pytest.raises(ImageError, match="more than 32 scans"):
        read_image(data[:last] + data[last:-2] * 40 + b"\xff\xd9")


def test_a_million_empty_parts_cost_little() -> None:
    jpeg = encode(quarters(), "JPEG")
    start = time.process_time()
    with pytest.raises(ImageError):
        read_image(jpeg[:2] + b"\xff\xfe\x00\x02" * 1_000_000 + jpeg[2:])
    with pytest.raises(ImageError):
        read_image(jpeg + jpeg * 20_000)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG"),
        (b"<?xml version='1.0'?>\n<!-- drawn -->\n<svg/>", "an SVG"),
        (b"<!DOCTYPE html><html></html>", "an HTML"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "a HEIC"),
        (b"\x00\x00\x00\x18ftypavif\x00\x00\x00\x00", "an AVIF"),
        (b"%PDF-1.7", "a PDF"),
        (zip_archive(), "a ZIP"),
        (encode(quarters(), "GIF"), "a GIF"),
        (encode(quarters(), "BMP"), "a BMP"),
        (encode(quarters(), "TIFF"), "a TIFF"),
        (b"some words", "of an unknown kind"),
    ],
)
def test_other_formats_are_named(data: bytes, said: str) -> None:
    with pytest.raises(ImageError, match=rf"^The file is {said}.*a JPEG, PNG or WebP picture is needed\.$"):
        read_image(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_truncated_files_are_refused(kind: str) -> None:
    data = encode(quarters(), kind)
    for keep in [*range(12, len(data) - 1, max(1, len(data) // 60)), len(data) - 1]:
        with pytest.raises(ImageError, match=r"cut short"):
            read_image(data[:keep])


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("hidden", [zip_archive(), b"<html></html>", b"%PDF-1.7", b"GIF89a", b"\x00\x00MZ"])
def test_polyglots_are_refused(kind: str, hidden: bytes) -> None:
    with pytest.raises(ImageError, match="contains something besides the picture"):
        read_image(encode(quarters(), kind) + hidden)


def test_polyglots_inside_a_comment_are_refused() -> None:
    with pytest.raises(ImageError, match="something besides"):
        read_image(encode(quarters(), "JPEG", comment=b"%PDF-1.7"))
    with pytest.raises(ImageError, match="something besides"):
        read_image(encode(quarters(), "JPEG", comment=zip_archive()))


def test_what_phones_append_is_stepped_over() -> None:
    jpeg = encode(quarters(), "JPEG", quality=95, subsampling=0)
    film = b"\x00\x00\x00\x10ftypmp42\x00\x00\x00\x00" + b"\x00\x00\x00\x0cmdatabcd"
    directory = b"SEFH" + struct.pack("<II", 101, 0)
    samsung = b"\x00\x00\x01\x0a\x0e\x00\x00\x00Image_UTC_Data" + directory + struct.pack("<I", 12) + b"SEFT"
    for extra in (jpeg, jpeg + film, film, samsung, bytes(4096)):
        assert_quarters(read_image(jpeg + extra))
    for extra in (jpeg + b"<html>", film + b"<html>", b"<html>SEFT", film + zip_archive()):
        with pytest.raises(ImageError, match="something besides"):
            read_image(jpeg + extra)


def test_damaged_exif_counts_as_upright() -> None:
    whole = exif(6)
    for spoilt in (whole[:9], whole[:10] + b"\xff\xff\xff\xff" + whole[14:], b"Exif\x00\x00nonsense"):
        assert read_image(encode(quarters(), "JPEG", exif=spoilt)).size == (48, 32)


def test_sources_that_are_not_pictures(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.png", Path("/dev/zero")):
        with pytest.raises(ImageError, match="There is no picture at"):
            read_image(path)
    with pytest.raises(ImageError, match="not as str"):
        read_image("photo.jpg")


def picture_or_sentence(path: Path) -> Image.Image | str:
    try:
        return read_image(path)
    except ImageError as error:
        return str(error)


def test_mutated_uploads_give_a_picture_or_a_sentence(tmp_path: Path) -> None:
    pictures, refusals = set(), set()
    for upload in uploads(count=240, seed=8):
        path = tmp_path / upload.name
        path.write_bytes(upload.data)
        mutation = upload.kind.split(" ")[0]
        result = picture_or_sentence(path)
        if isinstance(result, str):
            assert result.endswith(".")
            assert "\n" not in result
            refusals.add(mutation)
        else:
            assert result.mode == "RGB"
            assert np.asarray(result).dtype == np.uint8
            pictures.add(mutation)
    assert "unchanged" not in refusals
    assert not {"append", "prepend", "bomb", "rare_frame", "other_format"} & pictures
    assert {"truncate", "flip_header", "cut_out", "repeat"} <= refusals


def test_every_good_file_is_read() -> None:
    for seed in range(5):
        for kind, data in good_files(np.random.default_rng(seed)).items():
            assert read_image(data).mode == "RGB", kind


def test_to_tensor() -> None:
    wide = Image.new("RGB", (60, 20), (0, 0, 0))
    wide.paste((255, 0, 0), (20, 0, 40, 20))
    centre = to_tensor(wide, 10)
    assert centre.dtype == torch.uint8
    assert centre.shape == (3, 10, 10)
    assert centre.is_contiguous()
    assert (centre[0] == 255).all()
    padded = to_tensor(wide, 12, crop="pad")
    assert (padded[:, 0] == 255).all()
    assert (padded[:, 5, 0] == 0).all()
    stretched = to_tensor(wide, 6, crop="stretch")
    assert stretched[0, 3, [0, -1]].tolist() == [0, 0]
    checks = Image.fromarray((np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8))
    assert (to_tensor(checks, 8)[:, 1:-1, 1:-1].int() - 127).abs().max() < 12  # antialiased: a checkerboard turns grey
    with pytest.raises(ValueError, match="choose one of centre, pad, stretch"):
        to_tensor(wide, 10, crop="middle")
    with pytest.raises(ValueError, match="size is 0"):
        to_tensor(wide, 0)


def test_reading_leaves_the_file_closed_and_the_bytes_alone() -> None:
    data = encode(quarters(), "PNG")
    before = bytes(data)
    read_image(data).putpixel((0, 0), (1, 2, 3))
    assert data == before
    assert Image.open(io.BytesIO(data)).getpixel((0, 0)) == TOP_LEFT
