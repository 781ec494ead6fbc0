"""Build graphs of ONNX: float64, and operators that onnxruntime has had since 2022."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdp._files._suffixes import imported
from skdp.estimators._raw_predictions import LARGEST_RAW

# Versions of the operators and of the format: those of ONNX 1.12 of June 2022. Loaded by onnxruntime 1.18 and 1.32.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
OF_EXPORT = 'pip install "skdp[export]" installs what ONNX files need'
LARGE, SCALE = 2.0**500, 2.0**-600  # absolute values from which on a row is multiplied by a small power of 2


class Graph:
    """A graph that grows by one node at a time; tensors are known by their names.

    Parameters
    ----------
    categories : mapping of str to sequence
        Spellings that the user knows, by column.
    """

    def __init__(self, categories: Mapping[str, Sequence[Any]]) -> None:
        self.onnx: Any = imported("onnx", OF_EXPORT)
        self.categories = categories
        self._nodes: list[Any] = []
        self._constants: dict[Any, Any] = {}
        self._inputs: dict[str, Any] = {}

    def __call__(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Add a node.

        Parameters
        ----------
        operator : str
            Name of the operator.
        *inputs : str, number or array
            Names of tensors, or constants.
        domain : str, default=""
            Where the operator is defined.
        **attributes : object
            Of the node.

        Returns
        -------
        str
            Name of its only output.
        """
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = f"skdp/{len(self._nodes)}"
        self._nodes.append(self.onnx.helper.make_node(operator, names, [output], domain=domain, **attributes))
        return output

    def constant(self, value: Any) -> str:
        """Return the name of a constant; equal ones are stored once."""
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        texts = array.dtype.kind in "UO"
        key = (array.dtype.str, array.shape, tuple(array.tolist()) if texts else array.tobytes())
        if key not in self._constants:
            tensor = self.onnx.numpy_helper.from_array(
                array.astype(object) if texts else array, f"skdp/constant{len(self._constants)}"
            )
            self._constants[key] = tensor
        return str(self._constants[key].name)

    def input(self, name: str, *, text: bool = False, width: int = 1) -> str:
        """Return an input of shape (n, width), which is declared once."""
        kind = self.onnx.TensorProto.STRING if text else self.onnx.TensorProto.DOUBLE
        self._inputs.setdefault(name, self.onnx.helper.make_tensor_value_info(name, kind, ["n", width]))
        return name

    def finished(self, outputs: Mapping[str, tuple[str, np.dtype[Any], Sequence[int]]], names: Sequence[str]) -> Any:
        """Return the model.

        Parameters
        ----------
        outputs : dict
            Tensor, type and further lengths of each output, by name.
        names : sequence of str
            Order of the inputs.

        Returns
        -------
        onnx.ModelProto
            Checked.
        """
        helper, found = self.onnx.helper, []
        for name, (tensor, dtype, lengths) in outputs.items():
            while name in self._inputs:
                name += "_"
            self._nodes.append(helper.make_node("Identity", [tensor], [name]))
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(object) if dtype.kind == "U" else dtype)
            found.append(helper.make_tensor_value_info(name, kind, ["n", *lengths]))
        inputs = [self._inputs[name] for name in names if name in self._inputs]
        graph = helper.make_graph(self._nodes, "skdp", inputs, found, list(self._constants.values()))
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="skdp")
        self.onnx.checker.check_model(model)
        return model

    def clip(self, x: str, low: Any, high: Any) -> str:
        """Return numbers that are clipped as by NumPy: those that are no numbers stay so."""
        return self("Min", self("Max", x, np.asarray(low, dtype=np.float64)), np.asarray(high, dtype=np.float64))

    def signed_log(self, x: str) -> str:
        """Return ``sign(x) * log(1 + abs(x))``, exact to the last bits also near 0 (Kahan)."""
        size = self("Abs", x)
        above = self("Add", size, 1.0)
        rest = self("Sub", above, 1.0)
        none = self("Equal", rest, 0.0)
        ratio = self("Div", size, self("Where", none, 1.0, rest))
        return self("Mul", self("Sign", x), self("Where", none, size, self("Mul", self("Log", above), ratio)))

    def linear(self, rows: str, coef: np.ndarray, intercept: Any) -> str:
        """Return raw predictions, of shape (n, n_outputs), which are finite for every finite row, as `raw_predictions` does."""
        largest = self("ReduceMax", self("Abs", rows), axes=[1], keepdims=1)
        large = self("Greater", largest, LARGE)
        smaller = self("Mul", rows, self("Where", large, SCALE, 1.0))
        products = self("MatMul", smaller, coef.reshape(len(coef), -1))
        raw = self(
            "Add", self("Mul", products, self("Where", large, 1 / SCALE, 1.0)), np.ravel(np.asarray(intercept, dtype=float))
        )
        return self.clip(raw, -LARGEST_RAW, LARGEST_RAW)

    def vector(self, column: str) -> str:
        """Return a tensor of shape (n, 1) as one of shape (n,)."""
        return self("Squeeze", column, np.array([1]))

    def lookup(self, texts: str, keys: Mapping[str, Any], default: Any) -> str:
        """Return what each text stands for: a number, or another text."""
        kind, values = ("int64", list(keys.values())) if isinstance(default, int) else ("string", list(keys.values()))
        found = {f"values_{kind}s": values, f"default_{kind}": default}
        return self("LabelEncoder", texts, domain="ai.onnx.ml", keys_strings=list(keys), **found)

    def entries(self, table: np.ndarray, places: str) -> str:
        """Return the rows of a table at places of shape (n, 1)."""
        return self("Gather", table, self.vector(places), axis=0)
