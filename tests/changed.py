"""Print the test files of what changed since the branch left main, for `make check`.

- A test file that changed is run.
- ``skdp/a/_b.py`` is tested by ``tests/a/test_b.py``. Without such a file, by at most five test files that name the module or one
  of its public names, those of ``tests/a`` first.
- A module or a page with doctests is run itself.
"""

import ast
import re
import subprocess
import sys
from configparser import ConfigParser
from functools import cache
from pathlib import Path

__all__ = ["changed", "files_for"]

ROOT = Path(__file__).resolve().parents[1]
MOST = 5  # test files of a module without one of its own; those of a central module would be the whole suite


def git(*words):
    """Lines that git prints, none where it fails."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")[:-1]


def changed():
    """Paths of files that differ from where the branch left main, or are new; on main itself, from the last commit."""
    main = next((name for name in ("origin/main", "main") if git("rev-parse", "--verify", "--quiet", name)), "HEAD")
    (base,) = git("merge-base", "HEAD", main) or ["HEAD"]
    return [*git("diff", "--name-only", "--diff-filter=d", base), *git("ls-files", "--others", "--exclude-standard")]


def public_names(text):
    """Names of the functions and classes that a module has for others."""
    kinds = ast.FunctionDef | ast.ClassDef
    return [node.name for node in ast.parse(text).body if isinstance(node, kinds) and not node.name.startswith("_")]


def files_for(path, root=ROOT):
    """Paths of the files that test a file, by the rules above."""
    path = Path(path)
    if path.parts[0] == "tests" and path.match("test_*.py"):
        return [path]
    if path.suffix == ".md":
        config = ConfigParser()
        config.read(root / "setup.cfg")
        pages = config["tool:pytest"]["testpaths"].split()
        return [path] if str(path).startswith(tuple(pages)) and ">>>" in (root / path).read_text() else []
    if path.parts[0] != "skdp" or path.suffix != ".py":
        return []
    folder = Path("tests", *path.parts[1:-1])
    own, text = folder / f"test_{path.stem.lstrip('_')}.py", (root / path).read_text()
    found = [own] if (root / own).exists() else mentions(root, folder, path, public_names(text))[:MOST]
    return found + [path] * (">>>" in text)


def mentions(root, folder, path, names):
    """Test files that name a module or what it exports; those of a folder come first."""
    words = (".".join(path.with_suffix("").parts), *names)
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b")
    texts = {file.relative_to(root): text_of(file) for file in sorted((root / "tests").rglob("test_*.py"))}
    files = [file for file, text in texts.items() if any(word in text for word in words) and pattern.search(text)]
    return sorted(files, key=lambda file: file.parent != folder)


@cache
def text_of(file):
    """What a test file holds."""
    return file.read_text()


if __name__ == "__main__":
    found = {path: files_for(path) for path in changed()}
    for path, files in found.items():
        if path.startswith("skdp/") and path.endswith(".py") and not files:
            print(f"no test file names {path}: `make test` runs it", file=sys.stderr)
    print(*sorted({str(file) for files in found.values() for file in files}), sep="\n")
