"""A new kind of model, and a new form of data, is one file: nothing else is touched."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from unicr.classifier import adapters, load_classifier
from unicr.classifier._load import ADAPTERS
from unicr.data import load_dataset, readers
from unicr.data._reader import READERS
from unicr.errors import DataError, MissingExtraError, ModelError

ADAPTER = """
from unicr.classifier._load import Adapter, with_ending
from unicr.classifier.adapters.function import CallableClassifier
from unicr.files import file_digest
from unicr.extras import require

def load(asked):
    level = float(asked.path.read_text())
    if level > 9:
        require("toy_runtime", "toy")
    return CallableClassifier(
        lambda batch: (batch.flatten(1)[:, 0] > level).long(),
        name=asked.name, digest=file_digest(asked.path), num_classes=2,
    )

ADAPTER = Adapter(".toy (a level)", with_ending(".toy"), load)
"""
READER = """
import numpy as np
from unicr.data._dataset import from_arrays
from unicr.data._reader import Reader, with_ending

def read(asked):
    numbers = [float(word) for word in asked.path.read_text().split()]
    return from_arrays(np.array(numbers)[:, None], name="toy", source=str(asked.path))

READER = Reader(".num (numbers)", with_ending(".num"), read)
"""


@pytest.fixture
def dropped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more file in the folder of adapters and one in that of readers, and that is all."""
    for package, name, text in ((adapters, "toymodel", ADAPTER), (readers, "toydata", READER)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    for catalogue in (ADAPTERS, READERS):
        catalogue.reload()
    importlib.invalidate_caches()
    yield
    monkeypatch.undo()
    for catalogue in (ADAPTERS, READERS):
        catalogue.reload()


@pytest.mark.usefixtures("dropped_in")
def test_one_file_adds_an_adapter_and_one_a_reader(tmp_path: Path) -> None:
    model, data = tmp_path / "model.toy", tmp_path / "data.num"
    model.write_text("0.5")
    data.write_text("0.2 0.7 0.4 0.9")
    classifier, dataset = load_classifier(model), load_dataset(data)
    batch = torch.stack([dataset[i][0] for i in range(len(dataset))])
    assert classifier.predict(batch).tolist() == [0, 1, 0, 1]
    assert len(classifier.digest) == 64
    model.write_text("no number")
    with pytest.raises(ModelError, match=r"model\.toy cannot be loaded: ValueError"):
        load_classifier(model)
    data.write_text("one two")
    with pytest.raises(DataError, match=r"data\.num cannot be read: ValueError"):
        load_dataset(data)
    model.write_text("10")
    with pytest.raises(MissingExtraError, match=r"unicr\[toy\]"):
        load_classifier(model)
    with pytest.raises(ModelError, match=r"known forms: .*\.toy"):
        load_classifier(tmp_path / "nothing.toy")
    with pytest.raises(DataError, match=r"known forms: .*\.num \(numbers\)"):
        load_dataset(tmp_path / "nothing.num")


def test_without_the_file_there_is_no_such_kind(tmp_path: Path) -> None:
    (tmp_path / "model.toy").write_text("0.5")
    with pytest.raises(ModelError, match=r"\.toy ending is not known"):
        load_classifier(tmp_path / "model.toy")
