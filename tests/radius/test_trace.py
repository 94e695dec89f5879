"""How far one closed-form radius wanders through the package, counted in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys

TRACE = """
import json, sys
from pathlib import Path
import unicr
{setup}
root = Path(unicr.__file__).parent
called = set()

def imports(frame):
    # what runs because a module of unicr is imported is not part of the answer
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(root)):
            return True
        frame = frame.f_back
    return False

def note(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(str(root)) and not imports(frame):
        called.add((str(Path(code.co_filename).relative_to(root)), code.co_qualname))

sys.setprofile(note)
try:
    {asked}
finally:
    sys.setprofile(None)
print(json.dumps(sorted(called)), file=sys.stderr)
"""


def trace(setup: str, asked: str) -> tuple[set[str], set[tuple[str, str]]]:
    """The files and the functions of unicr that are entered."""
    code = TRACE.format(setup=setup, asked=asked)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    functions = {(file, name) for file, name in json.loads(done.stderr.splitlines()[-1])}
    return {file for file, _ in functions}, functions


def test_a_closed_form_goes_through_few_files() -> None:
    files, functions = trace(
        "from unicr import noise\nfrom unicr.radius import certified_radius",
        "certified_radius(noise.gaussian(sigma=1), 2, 10, p_a=0.9)",
    )
    print(len(files), "files,", len(functions), "functions:", *sorted(files))
    assert len(files) <= 14
    others = {file for file in files if file.startswith("radius/theorems/")}
    assert others == {f"radius/theorems/{name}.py" for name in ("__init__", "_base", "gaussian")}


def test_the_command_reads_its_question_once() -> None:
    arguments = [
        "radius",
        "--noise",
        "gaussian(sigma=1)",
        "--norm",
        "2",
        "--dim",
        "10",
        "--pa",
        ".9",
    ]
    files, functions = trace(
        "from unicr.cli import app", f"app({arguments!r}, result_action='return_value')"
    )
    print(len(files), "files,", len(functions), "functions:", *sorted(files))
    inside = {file for file in files if not file.startswith("cli/")}
    assert len(inside) <= 20
