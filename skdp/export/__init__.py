"""Export fitted models to forms that other programs read: ONNX, and plain objects of scikit-learn."""

from typing import TYPE_CHECKING

from skdp._first_use import on_first_use

if TYPE_CHECKING:
    from skdp.export._functions import to_onnx as to_onnx
    from skdp.export._functions import to_sklearn as to_sklearn
else:
    __getattr__, __dir__, __all__ = on_first_use(__name__)
