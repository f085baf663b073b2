"""What is refused by the bytes alone, before a decoder sees the file."""

import pytest
from PIL import Image

from jem_core.image_format import ImageError, inspect
from tests.jem_core.mutate_images import encode, jpeg_segment, write_jpeg

JPEG = encode(Image.linear_gradient("L").convert("RGB"), "JPEG")


def test_an_ordinary_jpeg_passes() -> None:
    header = inspect(JPEG)
    assert (header.format, header.width, header.height) == ("JPEG", 256, 256)


@pytest.mark.parametrize("frame", [0xC3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF])
def test_a_jpeg_of_a_rare_coding_never_reaches_the_decoder(frame: int) -> None:
    # Wide enough that a reduced size is asked for: a lossless one made Pillow 12 write beyond its memory.
    for width in (64, 8192):
        with pytest.raises(ImageError, match="coded in a rare way"):
            inspect(write_jpeg(width, 16, frame))


@pytest.mark.parametrize("marker", [0x01, 0xD0, 0xD7, 0xD8, 0xDC, 0xDE, 0xDF, 0xF0, 0xFD])
def test_a_jpeg_segment_that_readers_disagree_on_is_refused(marker: int) -> None:
    # Some readers take these for marks without a length, and would find a second frame in what others step over.
    hidden = write_jpeg(9999, 9999)[2:21]
    with pytest.raises(ImageError, match="cut short or damaged"):
        inspect(JPEG[:2] + jpeg_segment(marker, hidden) + JPEG[2:])


@pytest.mark.parametrize(("at", "value"), [(0, 12), (5, 2), (5, 4), (5, 0)])
def test_a_jpeg_frame_must_fit_its_own_length(at: int, value: int) -> None:
    jpeg = bytearray(JPEG)
    jpeg[jpeg.index(b"\xff\xc0") + 4 + at] = value  # bits a sample, number of components
    with pytest.raises(ImageError, match="cut short or damaged"):
        inspect(bytes(jpeg))
