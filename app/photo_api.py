"""The documented endpoint /predict: a picture in, probabilities and how far to trust them out."""

from __future__ import annotations

import gradio as gr

from app import photo, pictures
from app.runtime import current
from jem_core.predict import predict as predict_picture


def build() -> None:
    gr.api(predict, api_name="predict", concurrency_limit=2, concurrency_id="predict")


def predict(image: str, model: str | None = None, face: int = 1) -> dict:
    """Say what a picture shows, and how often such an answer was right.

    Args:
        image: the bytes of a JPEG, PNG or WebP picture in base64, or a data URI. Nothing of it is kept.
        model: the name of a model at hand; the default is the first.
        face: which face, for a model of photographs; the largest is 1.

    Returns:
        rows: for each attribute, the most surprising first, its probability, and of the held-out images with such a
        prediction how many there were, the share that had it, and the 95 % interval. gate: whether the picture is like
        the held-out images. note: what else to know, such as that no face was found.
    """
    try:
        return _answer(image, model, face)
    except ValueError as error:
        raise gr.Error(str(error), print_exception=False) from error


def _answer(image: str, model: str | None, face: int) -> dict:
    name = photo.model_name(model)
    picture = pictures.from_base64(image)
    if not isinstance(face, int) or isinstance(face, bool) or face < 1:
        raise ValueError("Face must be a whole number of at least 1.")
    view = photo.seen(picture, name, {"face": face - 1})
    prediction = predict_picture(current().catalog.bundle(name), view.stored)
    reading = prediction.reading
    return {
        "model": name,
        "rows": [photo.row_facts(row) for row in prediction.rows],
        "gate": reading._asdict() if reading else None,
        "gate_auroc": prediction.gate_auroc,
        "faces": len(picture.faces or []),
        "note": view.note,
    }
