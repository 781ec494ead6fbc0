"""Write the model card of a saved model."""

from pathlib import Path

from skdp._commands._fitted import read_model
from skdp._files._outputs import check_outputs, write_whole
from skdp._model_card import model_card


def card(model: Path, *, scores: Path | None, purpose: str | None, out: Path | None, trust: bool) -> None:
    """Write, or print, the model card of a saved model.

    Parameters
    ----------
    model : Path
        A saved model.
    scores : Path or None
        Scores that the command ``evaluate`` wrote as JSON.
    purpose : str or None
        What the model is for.
    out : Path or None
        Where to write the card, as Markdown or HTML; None prints Markdown.
    trust : bool
        Whether to read a model file that can run code.
    """
    check_outputs([(out, (".md", ".html"))], [model, scores])
    text = model_card(
        read_model(model, trust), evaluation=scores, purpose=purpose, format="md" if out is None else out.suffix.removeprefix(".")
    )
    if out is None:
        print(text, end="")
    else:
        write_whole(out, text.encode())
        print(f"Written: {out}")
