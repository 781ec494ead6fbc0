"""Implement the commands of ``python -m skdp``, one per file."""

from skdp._commands._card import card
from skdp._commands._describe import describe
from skdp._commands._evaluate import evaluate
from skdp._commands._fit import fit
from skdp._commands._ledger import ledger
from skdp._commands._plan import plan
from skdp._commands._predict import predict
from skdp._commands._schema import schema

__all__ = ["card", "describe", "evaluate", "fit", "ledger", "plan", "predict", "schema"]
