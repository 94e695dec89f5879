"""The GPU's kernel without a GPU: interpreted, bit for bit; and compiled for three of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sample.test_torch import FAMILIES

pytest.importorskip("triton", reason="triton is made for Linux")

SLOW = (pytest.mark.slow, pytest.mark.important)

INTERPRETED = """
import numpy as np, torch
from tests.sample.test_torch import FAMILIES, KEY
from unicr.sample import Fill, choose_step, integer_law

for name, one in FAMILIES.items():
    for integers in (False, True):
        step = choose_step(one)
        row = np.arange(77) % 256 - 30.0 if integers else np.linspace(-1, 2, 77)
        fill = Fill(integer_law(one, step), row, key=KEY, step=step, integers=integers)
        compiled, kernel = torch.empty(400, 77), torch.empty(400, 77)
        fill.fill_tensor(compiled, 13)
        fill.fill_by_triton(kernel, 13, lanes=8192)
        assert torch.equal(compiled, kernel), (name, integers)
"""

TEN_MILLION = """
import sys
import numpy as np, torch
from tests.sample.test_torch import FAMILIES, KEY
from unicr.sample import Fill, choose_step, integer_law

one = FAMILIES[sys.argv[1]]
step, row = choose_step(one), np.linspace(-1, 2, 784)
fill = Fill(integer_law(one, step), row, key=KEY, step=step, integers=False)
compiled, kernel = torch.empty(1600, 784), torch.empty(1600, 784)
for start in range(3, 3 + 8 * 1600, 1600):
    fill.fill_tensor(compiled, start)
    fill.fill_by_triton(kernel, start, lanes=1 << 16)  # few programs: each costs much here
    assert torch.equal(compiled, kernel), start
"""

COMPILED = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from unicr.sample import _triton

whole = ("listed", "high_ends", "starts", "widths", "kinds")
numbers = ("first", "count", "dim", "outcomes", "capacity")
kinds = {"out": "*fp32", "row": "*fp64", "on_host": "*i1", "step": "fp64", "key": "*i32"}
kinds |= dict.fromkeys(whole, "*i64") | dict.fromkeys(numbers, "i64")
known = {"STEPS": 14, "LANES": 64}
backend, arch, warp, text = sys.argv[1:]
target = GPUTarget(backend, int(arch) if arch.isdigit() else arch, int(warp))
for kernel, more in (
    (_triton.list_kernel, {}),
    (_triton.draw_kernel, {"INTEGERS": False, "TWO_OFFSETS": True}),
):
    signature = {name: kinds.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, signature=signature, constexprs=known | more)
    made = triton.compile(source, target=target, options={"enable_fp_fusion": False})
    assert len(made.asm["cubin" if backend == "cuda" else "hsaco"]) > 5_000
    assert text not in made.asm["ptx" if backend == "cuda" else "amdgcn"]
"""


def run(script: str, *words: str, interpret: bool = False) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1" if interpret else "0"}
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_interpreted_kernel_draws_the_same_bits() -> None:
    run(INTERPRETED, interpret=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_ten_million_draws_of_the_interpreted_kernel_are_the_same_bits(name: str) -> None:
    run(TEN_MILLION, name, interpret=True)


@pytest.mark.parametrize(
    ("backend", "arch", "warp", "fused"),
    [
        ("cuda", "80", "32", "fma.rn.f64"),
        pytest.param("cuda", "90", "32", "fma.rn.f64", marks=SLOW),
        pytest.param("hip", "gfx942", "64", "v_fma_f64", marks=SLOW),
    ],
)
def test_the_kernel_compiles_and_rounds_twice(
    backend: str, arch: str, warp: str, fused: str
) -> None:
    run(COMPILED, backend, arch, warp, fused)
