"""The command line on malformed files and arguments: one clear line, no cell of a table, no charge without a model, no code run.

All mutations are seeded, so that a failure repeats; noise is not, and nothing here depends on it.
"""

import contextlib
import copy
import gzip
import io
import json
import re
import shutil
import warnings
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdp import PrivacyLedger
from skdp.__main__ import main

MARKER = "code-was-run"
FACTS = {
    "columns": {
        "age": {"kind": "number", "bounds": [0, 1000], "fill": 500},
        "debt": {"kind": "number", "bounds": [0, 1e6], "scale": "log", "fill": 0},
        "city": {"kind": "category", "categories": ["Bern", "Basel"]},
    },
    "target": "paid",
    "classes": ["no", "yes"],
}
FIT = ["--schema", "facts.json", "--epsilon", "1", "--delta", "1e-6", "--estimator", "logistic"]
FIT += ["--solver", "gd", "--quiet", "--ledger", "book.sqlite"]
CODE = f"__import__('pathlib').Path({MARKER!r}).touch()"
WORDS = [
    "",
    " ",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "9" * 400,
    "'",
    '"',
    "\n",
    "\r",
    "\0",
    "é",
    "\ud7ff",
    "x" * 300,
    "{}",
    "[[",
    "%s",
]
VALUES = [None, True, -1, 0, 1.5, 1e308, float("inf"), "", "\0", "number", [], [[]], {}, {"kind": "number"}, 10**400, "x" * 9]
NAMES = ["numpy.testing.runstring", "numpy.f2py.crackfortran.myeval", "builtins.eval", "skdp.load_model", "os.system", "skdp.SGD"]


def cells(n, rng):
    """Cells that nothing else could spell: a message that has one of them quotes the table."""
    return [f"Qz{code:06d}" for code in rng.choice(10**6, n, replace=False)]


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Valid files of every kind, and the cells of the table."""
    folder, rng, n = tmp_path_factory.mktemp("originals"), np.random.default_rng(20261122), 40
    age, debt = rng.uniform(100, 999, n).round(7), rng.uniform(1e5, 9e5, n).round(5)
    table = pd.DataFrame({"age": age, "debt": debt, "city": cells(n, rng), "paid": np.where(age > 500, "yes", "no")})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("table.csv", "table.csv.gz"):
            table.to_csv(name, index=False)
        table.to_parquet("table.parquet")
        Path("facts.json").write_text(json.dumps(FACTS))
        PrivacyLedger("book.sqlite", epsilon=1e4, delta=0.1, adjacency="replace_one")
        for name in ("model.skops", "model.joblib"):
            assert main(["fit", "table.csv", *FIT, "--model", name]) == 0
    return folder, [*map(str, age), *map(str, debt), *table["city"]]


def spoilt(content, rng):
    """Bytes with one to three accidents."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        start, length = rng.integers(len(content) + 1), rng.integers(1, 30)
        end = min(start + length, len(content))
        match rng.integers(6):
            case 0:
                del content[start:end]
            case 1:
                content[start:end] = rng.bytes(end - start)
            case 2:
                content[start:start] = str(rng.choice(WORDS)).encode("utf-8", "replace")
            case 3:
                content[start:start] = content[start:end]
            case 4:
                del content[start:]
            case 5 if end > start:
                content[start] ^= 1 << rng.integers(8)
    return bytes(content)


def spoilt_rows(content, rng):
    """A table as text, with a field, a line or all separators replaced."""
    lines = content.decode().splitlines()
    row = rng.integers(len(lines))
    fields = lines[row].split(",")
    fields[rng.integers(len(fields))] = str(rng.choice(WORDS))
    lines[row] = ",".join(fields)
    if rng.random() < 0.2:
        del lines[rng.integers(len(lines))]
    text = "\n".join(lines) + "\n"
    return (text.replace(",", ";") if rng.random() < 0.1 else text).encode("utf-8", "replace")


def places(value, path=()):
    """Paths to everything in a JSON document."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def spoilt_document(document, rng, values):
    """A JSON document with one to three values replaced, lost or wrapped."""
    document = {"": copy.deepcopy(document)}
    for _ in range(rng.integers(1, 4)):
        *path, key = list(places(document))[1:][rng.integers(sum(1 for _ in places(document)) - 1)]
        parent = document
        for step in path:
            parent = parent[step]
        if rng.random() < 0.2 and path:
            del parent[key]
        else:
            parent[key] = [parent[key]] if rng.random() < 0.1 else values[rng.integers(len(values))]
    return document[""] if "" in document else None


def spoilt_schema(content, rng):
    if rng.random() < 0.3:
        return spoilt(content, rng)
    return json.dumps(spoilt_document(json.loads(content), rng, VALUES)).encode()


def spoilt_table(content, rng):
    return (spoilt if rng.random() < 0.5 else spoilt_rows)(content, rng)


def spoilt_gzip(content, rng):
    if rng.random() < 0.5:
        return spoilt(content, rng)
    return gzip.compress(spoilt_table(gzip.decompress(content), rng))


def spoilt_model(content, rng):
    """A .skops file, damaged as bytes or with nodes that name other things, some of which run code when they are called."""
    if rng.random() < 0.3:
        return spoilt(content, rng)
    names = [part for name in NAMES for part in name.rpartition(".")[::2]]
    loaders = ["ConstructorFromReduceNode", "FunctionNode", "MethodNode", "ObjectNode", "TupleNode", "JsonNode", "Nothing"]
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(CODE), "is_json": True}
    sequence = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": [text]}
    calls = [
        {"__class__": attribute, "__module__": module, "__loader__": "ConstructorFromReduceNode", "content": sequence}
        for module, attribute in (name.rsplit(".", 1) for name in NAMES)
    ]
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "schema.json":
                part = json.dumps(spoilt_document(json.loads(part), rng, [*names, *loaders, *4 * calls, *VALUES])).encode()
            new.writestr(name, part)
    return buffer.getvalue()


@contextlib.contextmanager
def quiet():
    """Warnings as on the command line: shown, and no errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield


def entries():
    """Number of charges, or None where the file cannot be read as a ledger."""
    with contextlib.suppress(Exception):
        return len(PrivacyLedger("book.sqlite").entries)


class Runs:
    """Runs commands in a directory with copies of the original files, and checks what must always hold."""

    def __init__(self, folder, cells, capsys):
        self.folder, self.cells, self.capsys = folder, re.compile("|".join(map(re.escape, cells))), capsys

    def __call__(self, words, name=None, spoil=None):
        for path in Path().iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in self.folder.iterdir():
            if path.name != "book.sqlite":
                shutil.copy(path, path.name)
        PrivacyLedger("book.sqlite", epsilon=1e4, delta=0.1, adjacency="replace_one")  # a copy of an older one would be refused
        if name is not None:
            if name == "book.sqlite":
                PrivacyLedger(name).add(1.0, 0.01, note="before")
            Path(name).write_bytes(spoil(Path(name).read_bytes()))
        before, charges = {path.name: path.read_bytes() for path in Path().iterdir()}, entries()
        code, shown = self.run(words)
        problem = f"{words}, {name}: {code} {shown.err}"
        assert "Traceback" not in shown.err and not self.cells.search(shown.err), problem
        assert not Path(MARKER).exists() and not list(Path().glob(".skdp-*")), problem
        failed = [line for line in shown.err.splitlines() if not line.startswith("warning: ")]
        one_line = len(failed) == 1 and failed[0].startswith("error: ")
        assert (code == 0 and not failed) or (code == 2 and (one_line or shown.err.startswith("usage: "))), problem
        made = any(path.suffix in (".skops", ".joblib") and path.name not in before for path in Path().iterdir())
        assert not made or code == 0, problem
        if charges is not None:
            assert entries() == charges + made, problem
        for path, old in before.items():
            may_change = made if path == "book.sqlite" else words[0] == "ledger"  # whose --out may be any other file
            assert may_change or Path(path).read_bytes() == old, problem
        return code

    def run(self, words):
        with quiet():
            try:
                code = main(words)
            except SystemExit as exit:
                code = exit.code
        return code, self.capsys.readouterr()


@pytest.fixture
def run(originals, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)  # no power fails here
    return Runs(*originals, capsys)


def fit(table):
    return ["fit", table, *FIT, "--model", "new.skops"]


CASES = {  # which file is spoilt how, how often, and which commands read it
    "csv": ("table.csv", spoilt_table, 120, (fit("table.csv"), ["schema", "table.csv"], ["predict", "model.skops", "table.csv"])),
    "gzip": ("table.csv.gz", spoilt_gzip, 60, (fit("table.csv.gz"), ["schema", "table.csv.gz"])),
    "parquet": ("table.parquet", spoilt, 140, (fit("table.parquet"), ["schema", "table.parquet"])),
    "schema": ("facts.json", spoilt_schema, 200, (fit("table.csv"), ["plan", *FIT[:-3], "--n-samples", "90"])),
    "skops": ("model.skops", spoilt_model, 260, (["predict", "model.skops", "table.csv", "--out", "out.csv"],)),
    "joblib": ("model.joblib", spoilt, 60, (["predict", "model.joblib", "table.csv", "--trust"],)),
    "ledger": ("book.sqlite", spoilt, 80, (["ledger", "book.sqlite"], fit("table.csv"))),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_malformed_files(kind, run):
    name, spoil, count, commands = CASES[kind]
    codes = set()
    for seed in range(count):
        rng = np.random.default_rng([seed, len(name)])
        codes.add(run(commands[seed % len(commands)], name, partial(spoil, rng=rng)))
    assert codes == {0, 2}


ESTIMATOR = ["--schema", "--epsilon", "--delta", "--adjacency", "--solver", "--estimator", "--set"]
COMMANDS = (  # valid commands, and the options that each has beside
    (fit("table.csv"), [*ESTIMATOR, "--test", "--ledger", "--sep", "--groups", "--report", "--model"]),
    (["predict", "model.skops", "table.csv"], ["--out", "--sep"]),
    (["schema", "table.csv"], ["--out", "--sep", "--target"]),
    (["ledger", "book.sqlite"], ["--epsilon", "--delta", "--adjacency", "--out", "--html", "move"]),
    (["plan", *FIT[:-3], "--n-samples", "90"], [*ESTIMATOR, "--n-samples", "--sep", "--skip", "--report"]),
)
GIVEN = [
    *WORDS,
    "table.csv",
    "facts.json",
    "book.sqlite",
    "model.skops",
    ".",
    "..",
    "/",
    "no/where.csv",
    ".html",
    ".skops",
    "1",
    "0.5",
]
GIVEN += [
    "city=Bern",
    "paid=yes",
    "alpha=1",
    "alpha=x",
    "verbose=9",
    "classes=[1]",
    "a=b=c",
    "additive",
    "linear",
    "sgd",
    "zero_out",
]
GIVEN += ["solver__n_epochs=-1", "random_state=7", "schema={}", "city", "paid", ";", ",", "out.csv", "report.html", "new.joblib"]


@pytest.mark.slow
def test_malformed_arguments(run):
    codes = set()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        command, options = COMMANDS[seed % len(COMMANDS)]
        words = list(command)
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.1:
                words[rng.integers(1, len(words))] = str(rng.choice(GIVEN))
            else:
                words += [str(rng.choice(options)), str(rng.choice(GIVEN))]
        codes.add(run(words))
    assert codes == {0, 2}
