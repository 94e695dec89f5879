"""For an engineer: certify an ONNX model, score the run, and have it verified.

    python examples/certify_onnx.py --out onnx-run

Writes digits.npz and model.onnx (a small torch network, layer by layer), then does what these
commands do:

    unicr certify --model model.onnx --data digits.npz --noise 'gaussian(sigma=0.5)' \
        --norm 2 inf --n 10000 --out run
    unicr score run
    unicr verify run --replay 3

Needs `unicr[onnx]` and the package `onnx`, which writes the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from unicr import noise
from unicr.classifier import MLP, ModuleClassifier, load_classifier
from unicr.data import load_dataset
from unicr.lab.report.tables import score_table
from unicr.runs import Job, Run, certify_run, load_scores, replay, verify
from unicr.smoothing import Plan, read_norms


def write_onnx(modules: Iterable[torch.nn.Module], shape: tuple[int, ...], path: Path) -> None:
    """Linear layers with ReLU between them as an ONNX file that takes batches of any size."""
    nodes = [helper.make_node("Flatten", ["images"], ["h0"], axis=1)]
    weights = []
    layers = [layer for layer in modules if isinstance(layer, torch.nn.Linear)]
    for i, layer in enumerate(layers):
        for name, values in (("w", layer.weight), ("b", layer.bias)):
            array = values.detach().numpy()
            weights.append(numpy_helper.from_array(array, f"{name}{i}"))
        last = i == len(layers) - 1
        linear = "scores" if last else f"z{i}"
        nodes.append(helper.make_node("Gemm", [f"h{i}", f"w{i}", f"b{i}"], [linear], transB=1))
        if not last:
            nodes.append(helper.make_node("Relu", [linear], [f"h{i + 1}"]))
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", *shape])
    scores = helper.make_tensor_value_info(
        "scores", TensorProto.FLOAT, ["batch", layers[-1].out_features]
    )
    graph = helper.make_graph(nodes, "mlp", [images], [scores], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("onnx-run"))
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--samples", type=int, default=10_000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    digits = load_dataset("builtin:mnist")
    pairs = [digits[i] for i in range(options.inputs)]
    data_file, model_file = options.out / "digits.npz", options.out / "model.onnx"
    np.savez(
        data_file,
        images=np.stack([x.numpy() for x, _ in pairs]),
        labels=np.array([label for _, label in pairs]),
    )
    torch_model = load_classifier("builtin:mnist-mlp-0.5")
    assert isinstance(torch_model, ModuleClassifier)
    assert isinstance(torch_model.module, MLP)
    write_onnx(torch_model.module.linear, digits.shape, model_file)

    model, data = load_classifier(str(model_file)), load_dataset(str(data_file))
    batch = torch.stack([x for x, _ in pairs])
    same = int((model.predict(batch) == torch_model.predict(batch)).sum())
    print(f"{model_file}: {same} of {len(pairs)} labels as in torch, SHA-256 {model.digest[:12]}…")

    job = Job(
        classifier=model,
        data=data,
        noise=noise.gaussian(sigma=0.5),
        norms=read_norms([2, "inf"]),
        plan=Plan(n=options.samples),
        data_spec=str(data_file),
        seed=0,
    )
    folder = options.out / "run"
    certify_run(job, folder)
    print(score_table(load_scores([folder], None), [0.0, 0.25, 0.5], "markdown"))

    with Run(folder) as store:
        problems = list(verify(store))
        again = [text for _, text in replay(store, model, data, 3) if text is not None]
    print(f"{len(problems)} certificates do not follow from their counts")
    print(f"{len(again)} of 3 inputs got other votes when sampled again")
    return 1 if problems or again else 0


if __name__ == "__main__":
    raise SystemExit(main())
