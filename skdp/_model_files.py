"""Save and load models. A .skops file is loaded if all its types are on a list; a .joblib file can run any code."""

import contextlib
import importlib
import io
import json
import os
import re
import secrets
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skdp import estimators
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import check_suffix, imported
from skdp._scikit_learn.pipelines import fitted_steps
from skdp._validation import shown
from skdp.preprocessing._column_kinds import KINDS
from skdp.privacy.report.versions import versions
from skdp.solvers import SOLVERS

MODELS = (".skops", ".joblib")  # suffixes of model files
# Every public estimator class.
ESTIMATORS: tuple[type, ...] = tuple(getattr(estimators, name) for name in dir(estimators))
# Every class that load_model accepts in addition to what skops trusts by itself (scikit-learn's estimators, arrays, plain
# containers).
# The list has no prefix and no function: skops calls what a file names, and modules also hold functions that run code.
# Estimators and solvers are exactly those that the package exports and registers; a subclass elsewhere is not among them.
TRUSTED = (
    *(f"{kind.__module__}.{kind.__qualname__}" for kind in (*ESTIMATORS, *SOLVERS.values())),
    "skdp.constraints.Box",
    "skdp.constraints.L1Ball",
    "skdp.constraints.L2Ball",
    "skdp.constraints.LpBall",
    "skdp.constraints.Simplex",
    "skdp.estimators._link.BentLine",
    "skdp.estimators._link.LogCalibration",
    "skdp.estimators.boosting._trees.Background",
    "skdp.estimators.boosting._trees.Trees",
    "skdp.minimax._auc_saddle.AUCSaddle",
    "skdp.minimax._group_dro_saddle.GroupDROSaddle",
    "skdp.estimators.additive._basis.AdditiveBasis",
    "skdp.estimators.additive._basis.Term",
    "skdp.model_selection._plan.SearchPlan",
    "skdp.model_selection._search.DPGridSearchCV",
    "skdp.model_selection._search.DPRandomizedSearchCV",
    "skdp.pipeline.DPPipeline",
    "skdp.preprocessing._categories.KnownCategories",
    "skdp.preprocessing._columns.SchemaColumns",
    "skdp.preprocessing._learned_schema.LearnedSchema",
    "skdp.preprocessing._learned_columns.ColumnMap",
    "skdp.preprocessing._pipeline.SchemaPipeline",
    "skdp.preprocessing._scaling.BoundedScaler",
    "skdp.preprocessing._scaling.RowNormClipper",
    *(f"{kind.__module__}.{kind.__qualname__}" for kind in KINDS.values()),
    "skdp.preprocessing._column_kinds.LearnedScale",
    "skdp.preprocessing._schema.Schema",
    "skdp.preprocessing._scaling.BoundedNumbers",
    "skdp.preprocessing._schema.TreatmentSchema",
    "skdp.privacy.budget.Budget",
    "skdp.privacy.data.bins.Bins",
    "skdp.privacy.data.bins.ColumnBins",
    "skdp.privacy.queries.standardized_gradient.Standardization",
    "skdp.privacy.queries.standardized_gradient.Whitening",
    "skdp.privacy.report.statement.PrivacyReport",
    "skdp.privacy.report.statement.PrivacySpent",
    "skdp.privacy.report.statement.ReleaseLine",
    "skdp.samplings.Blocks",
    "skdp.samplings.Full",
    "skdp.samplings.Importance",
    "skdp.samplings.Nice",
    "skdp.samplings.Uniform",
    "skdp.scorers.LinearScorer",
    "skdp.scorers.MLPScorer",
    "skdp.solvers._coefficient_noise.CoefficientNoise",
    "skdp.solvers._inference.Inference",
    "skdp.solvers._uncertainty.Uncertainty",
    "skdp.solvers.adaptive._covariance.Unlearned",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer._RemainderColsList",  # scikit-learn 1.6
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
)
# A file also names the loader that builds each part, but skops checks the names of types only. Some loaders build an object of
# another type than the name says (a partial, a method, the result of a call). No list contains these loaders.
OURS = {  # permitted loaders of some names on TRUSTED
    "numpy.dtype": ("DTypeNode",),
    "sklearn.utils._bunch.Bunch": ("DictNode", "TypeNode"),
    "skdp.privacy.report.statement.PrivacySpent": ("TupleNode", "TypeNode"),
}
FILLED = ("ObjectNode", "TypeNode")  # permitted loaders of all other names on TRUSTED
KNOWN = (  # permitted loaders of what skops trusts by itself
    *FILLED,
    *("DictNode", "JsonNode", "ListNode", "SetNode", "SliceNode", "TupleNode"),
    *("FunctionNode", "LossNode"),  # ufuncs; losses of SGDClassifier
    *("DTypeNode", "MaskedArrayNode", "NdArrayNode", "SparseMatrixNode"),
    *("RandomGeneratorNode", "RandomStateNode"),
)

FORMAT = 1  # of .skops files; a later version reads earlier formats
VERSIONS = "skdp.json"  # a file in a .skops file: its format, and the versions of the software that wrote it
# Where classes are now: files of earlier versions name them by the place where they were. Renaming a class adds its former name.
PLACES = {name.rpartition(".")[2]: name for name in TRUSTED if name.startswith("skdp.")}


# Largest size of the unpacked parts of a .skops file, in bytes, and over that of the file: a larger one could fill the memory.
# Choices: models of 31 columns have 1 MB and grow 20- to 40-fold; arrays of zeros grow a thousandfold.
MOST, GROWTH = 2**28, 100


class RefusedError(ValueError):
    """A file is refused for a reason that does not quote its content."""


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator or pipeline with its privacy report.

    A ``.skops`` file states its format and the versions that wrote it. Later versions of skdp load it, and predict the same.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skdp, or a pipeline or a search of one.
    path : path-like
        ``.skops`` (holds data only) or ``.joblib`` (a pickle, which other versions may not read). An existing file is replaced
        completely or not at all.

    Raises
    ------
    ImportError, OSError, ValueError
        If the file cannot be written, or if a ``.skops`` file would hold types that `load_model` refuses.
    """
    path = Path(path)
    check_outputs([(path, MODELS)])
    write_whole(path, model_content(model, path))


def load_model(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """Load an estimator that `save_model` wrote.

    What a file says of its privacy is not verified: whoever wrote it can have changed the report. Compare the SHA-256 of the
    report with the model card of those who fitted the model.

    Parameters
    ----------
    path : path-like
        A ``.skops`` file, whose classes must all be on a list, or a ``.joblib`` file, which can run any code.
    trust : bool, default=False
        Whether to read a ``.joblib`` file. Set it to True only if you know who wrote the file. It has no effect on ``.skops``.

    Returns
    -------
    estimator
        The fitted estimator.

    Raises
    ------
    FileNotFoundError, ImportError, ValueError
        If the file cannot be read, or is refused.
    """
    path = Path(path)
    check_loadable(path, trust)
    content = path.read_bytes()
    if path.suffix == ".joblib":
        joblib = imported("joblib")
        return _read(path, lambda: joblib.load(io.BytesIO(content)))
    skops = imported("skops.io")
    content = _read(path, lambda: _of_this_version(path, content))
    types = _read(path, lambda: skops.get_untrusted_types(data=content))
    if foreign := _foreign(types) or _read(path, lambda: _misbuilt(content)):
        raise ValueError(
            f"{path} holds the types {foreign}, which are not loaded because they could run code; expected a file by save_model."
        )
    return _read(path, lambda: _completed(skops.loads(content, trusted=types)))


def check_loadable(path: Path, trust: bool) -> None:
    """Raise an error unless the file exists, and reading it runs no code or code is allowed."""
    check_suffix("The model", path, MODELS)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model {path}.")
    if path.suffix == ".joblib" and trust is not True:
        raise ValueError(
            f"{path} can run any code while it is read; expected a .skops file, or --trust (in Python trust=True) if you know "
            "who wrote it."
        )


def model_content(model: Any, path: Path) -> bytes:
    """Return the bytes of the file that holds a model; the suffix of the path sets the format."""
    if path.suffix == ".joblib":
        buffer = io.BytesIO()
        imported("joblib").dump(model, buffer)
        return buffer.getvalue()
    skops = imported("skops.io")
    content = skops.dumps(model, compression=zipfile.ZIP_DEFLATED)
    if foreign := _foreign(skops.get_untrusted_types(data=content)) or _misbuilt(content):
        raise ValueError(
            f"{path} would hold the types {foreign}, which load_model refuses; expected types of skdp and estimators of "
            "scikit-learn only. A .joblib file can hold others."
        )
    return _with_member(_numbered(content), VERSIONS, json.dumps({"format": FORMAT, **versions()}))


def rescue(model: Any, suffix: str) -> Path | None:
    """Write a model to another place: to a path that the user enters, else to a temporary or a home directory.

    Parameters
    ----------
    model : estimator
        A fitted model, whose budget is spent.
    suffix : str
        Kind of file; ``.joblib`` is used if this format cannot hold the model.

    Returns
    -------
    Path or None
        Path of the file; None if it could not be written anywhere.
    """
    for kind in dict.fromkeys((suffix, ".joblib")):
        for path in _places(kind):
            with contextlib.suppress(Exception):
                write_whole(path, model_content(model, path))
                return path
    return None


def _places(suffix: str) -> Iterator[Path]:
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while (
            sys.stdin is not None
            and sys.stdin.isatty()
            and (answer := input("Another path for the model (Enter: any): ").strip())
        ):
            if not os.path.lexists(path := Path(answer).with_suffix(suffix)):
                yield path
    for directory in (tempfile.gettempdir(), Path.home(), Path.cwd()):
        yield Path(directory, f"skdp-model-{secrets.token_hex(8)}{suffix}")


def _with_member(content: bytes, name: str, member: str, renamed: Mapping[str, str] = {}) -> bytes:
    """Return a zip file with one more file, or with another content of it, with other names of some files, and without times."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        parts = {renamed.get(other, other): old.read(other) for other in old.namelist()}
        for other, part in (parts | {name: member.encode()}).items():
            new.writestr(zipfile.ZipInfo(other), part, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _numbered(content: bytes) -> bytes:
    """Return a file with numbers in place of addresses in memory, which tell of the process, and of records within it."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return found[1] + numbers.setdefault(found[2], str(len(numbers) + 1))

    with zipfile.ZipFile(io.BytesIO(content)) as file:
        schema = re.sub(r'("__id__": |"file": ")(\d+)', number, file.read("schema.json").decode())
        stems = {name: name.partition(".") for name in file.namelist()}
    renamed = {name: numbers[stem] + dot + kind for name, (stem, dot, kind) in stems.items() if stem in numbers}
    return _with_member(content, "schema.json", schema, renamed)


def _of_this_version(path: Path, content: bytes) -> bytes:
    """Return a file with the names that classes have now; RefusedError if it is too large, or a later version wrote it."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if sum(part.file_size for part in file.infolist()) > max(MOST, GROWTH * len(content)):
            raise RefusedError(f"{path} would grow to more than {GROWTH} times its size; expected a file by save_model.")
        written = json.loads(file.read(VERSIONS)) if VERSIONS in file.namelist() else {"format": 0}
        schema = json.loads(file.read("schema.json"))
    if written["format"] > FORMAT:
        raise RefusedError(
            f"{path} has format {written['format']}, by skdp {shown(written.get('skdp'))}; expected at most {FORMAT}, which this "
            "version reads. Install a newer skdp."
        )
    return content if not _moved(schema) else _with_member(content, "schema.json", json.dumps(schema))


def _moved(part: Any) -> bool:
    """Replace names of classes that have moved since a file was written; return whether there were any."""
    if isinstance(part, list):
        return any([_moved(inner) for inner in part])
    if not isinstance(part, dict):
        return False
    found = any([_moved(inner) for inner in part.values()])
    module, kind = str(part.get("__module__")), part.get("__class__")
    if not module.startswith("skdp.") or kind not in PLACES or PLACES[kind] == f"{module}.{kind}":
        return found
    part["__module__"], _, part["__class__"] = PLACES[kind].rpartition(".")
    return True


def _completed(model: Any) -> Any:
    """Return a model with what it lacks if skdp 0.2.0 wrote it: the schema of an additive one had another place."""
    for step in fitted_steps(model):
        if getattr(step, "schema", None) is not None and hasattr(step, "basis_") and not hasattr(step, "schema_"):
            step.schema_ = step.basis_.facts
    return model


def _foreign(types: Sequence[str]) -> list[str]:
    return [name for name in types if name not in TRUSTED or not _is_class(name)]


def _misbuilt(content: bytes) -> list[str]:
    """Return the name and the loader of each part of a file that `save_model` would build differently."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        parts: list[Any] = [json.loads(file.read("schema.json"))]
    found = set()
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            loader = part.get("__loader__")
            if isinstance(loader, str):
                name = f"{part.get('__module__')}.{part.get('__class__')}"
                if loader not in (OURS.get(name, FILLED) if name in TRUSTED else KNOWN):
                    found.add(f"{name} by {loader}")
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return sorted(found)


def _is_class(name: str) -> bool:
    """Return whether a name of the list is a class that the installed version defines in this module."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module and found.__qualname__ == attribute


def _read(path: Path, load: Any) -> Any:
    try:
        return load()
    except RefusedError:
        raise
    except Exception:  # a damaged file can raise any error, and the message may quote its content
        pass
    raise ValueError(f"{path} cannot be read as a model; expected a file that save_model, or the command fit, wrote.")
