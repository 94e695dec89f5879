"""The built-in networks: what they score, and that folding batch norms changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import unicr
from unicr.classifier import ResNet, load_classifier
from unicr.classifier.lenet import LeNet, Team, deep
from unicr.data import load_dataset
from unicr.errors import ModelError

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.mark.parametrize(("sigma", "least"), [("0.25", 0.975), ("0.5", 0.97), ("1.0", 0.93)])
def test_packaged_networks_vote_right_under_their_noise(sigma: str, least: float) -> None:
    """The LeNets give up a little accuracy, and get a larger average radius for it."""
    data = load_dataset("builtin:mnist")
    images, labels = zip(*(data[i] for i in range(300)), strict=True)
    radius = {}
    for arch, less in (("mlp", 0.0), ("lenet", 0.05)):
        classifier = load_classifier(f"builtin:mnist-{arch}-{sigma}")
        generator = torch.Generator().manual_seed(0)
        counts = torch.zeros(300, 10)
        for _ in range(50):
            noise = torch.randn(300, *data.shape, generator=generator)
            predicted = classifier.predict(torch.stack(images) + float(sigma) * noise)
            counts[torch.arange(300), predicted] += 1
        assert float((counts.argmax(1) == torch.tensor(labels)).float().mean()) >= least - less
        assert classifier.num_classes == 10
        share = counts[torch.arange(300), torch.tensor(labels)] / 50
        radius[arch] = float(torch.special.ndtri(share.clamp(0.5, 0.99)).mean())
    assert radius["lenet"] > radius["mlp"]


@pytest.mark.parametrize(
    "sizes", [{"kernels": (5, 3)}, {"kernels": (7, 5), "widths": (8, 12), "hidden": 20}]
)
def test_a_lenet_has_the_sizes_of_its_weights(sizes: dict[str, Any], tmp_path: Path) -> None:
    """The first LeNets had 3×3 in the second convolution: their weights keep working."""
    torch.manual_seed(0)
    made, x = LeNet(**sizes), torch.rand(8, 1, 28, 28)
    assert made.conv2.weight.shape[2:] == (sizes["kernels"][1],) * 2
    assert made.hidden.weight.shape == (sizes.get("hidden", 128), 49 * made.conv2.out_channels)
    file = tmp_path / "made.safetensors"
    save_file({k: v.contiguous() for k, v in made.state_dict().items()}, file)
    opened = load_classifier("builtin:lenet", weights=file)
    assert torch.equal(opened.predict(x), made(x).argmax(1))


def test_a_team_adds_the_scores_of_its_members(tmp_path: Path) -> None:
    torch.manual_seed(0)
    one, two = LeNet(num_classes=7), LeNet(num_classes=7, kernels=(7, 5), widths=(8, 12), hidden=20)
    x, file = torch.rand(64, 1, 28, 28), tmp_path / "team.safetensors"
    state = Team([one, two]).state_dict()
    save_file({k: v.contiguous() for k, v in state.items()}, file)
    opened = load_classifier("builtin:lenet", weights=file)
    assert opened.num_classes == 7
    assert torch.equal(opened.predict(x), (one(x) + two(x)).argmax(1))
    assert not torch.equal(opened.predict(x), one(x).argmax(1))
    missing = {k: v.contiguous() for k, v in state.items() if "1.conv1" not in k}
    for wrong in (missing, {"members.0": x}, {"members.": x}):
        save_file(wrong, file)
        with pytest.raises(ModelError, match="not belong to a lenet"):
            load_classifier("builtin:lenet", weights=file)


def test_a_deep_lenet_opens_alone_and_in_a_team(tmp_path: Path) -> None:
    """Its further convolutions begin by adding nothing, and count once they have learnt."""
    torch.manual_seed(0)
    made, usual, x = deep(), LeNet(), torch.rand(64, 1, 28, 28)
    plain = LeNet(kernels=(7, 3), widths=(32, 64))
    plain.load_state_dict({k: v for k, v in made.state_dict().items() if "extra" not in k})
    assert torch.equal(made(x), plain(x))
    for added in (*made.extra1, *made.extra2):
        for parameter in added.parameters():
            nn.init.normal_(parameter, std=0.1)
    assert not torch.allclose(made(x), plain(x), atol=0.01)
    file, alone = tmp_path / "made.safetensors", made.state_dict()
    together = Team([usual, made]).state_dict()
    for spec in ("builtin:lenet", "builtin:deep-lenet"):
        for state, scores in ((alone, made(x)), (together, usual(x) + made(x))):
            save_file({k: v.contiguous() for k, v in state.items()}, file)
            opened = load_classifier(spec, weights=file)
            assert torch.equal(opened.predict(x), scores.argmax(1))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("extra1.0.weight", torch.zeros(8, 8, 3, 3)),
        ("extra1.0.weight", torch.zeros(3)),
        ("extra1.0.bias", None),
        ("extra1.1.weight", torch.zeros(32, 32, 3, 3)),
        ("extra1.7.weight", torch.zeros(32, 32, 3, 3)),
        ("extra3.0.weight", torch.zeros(32, 32, 3, 3)),
    ],
)
def test_a_deep_lenet_whose_weights_lie(
    name: str, found: torch.Tensor | None, tmp_path: Path
) -> None:
    file = tmp_path / "lie.safetensors"
    state = {k: v.contiguous() for k, v in deep().state_dict().items() if k != name}
    save_file(state | ({} if found is None else {name: found}), file)
    with pytest.raises(ModelError, match="does not fit LeNet") as caught:
        load_classifier("builtin:lenet", weights=file)
    assert "\n" not in str(caught.value)


def test_the_package_stays_small() -> None:
    root = Path(unicr.__file__).parent
    for folder, ending, count in (
        ("data/builtin", ".npz", 1),
        ("classifier/weights", ".safetensors", 6),
    ):
        files = {file.name: file.stat().st_size for file in (root / folder).iterdir()}
        assert len([name for name in files if name.endswith(ending)]) == count
        assert sum(files.values()) < 8e6
        assert max(files.values()) <= 2 * 2**20


@pytest.mark.parametrize(("depth", "parameters"), [(20, 269_722), (56, 853_018), (110, 1_727_962)])
def test_resnets_have_the_size_of_the_paper(depth: int, parameters: int) -> None:
    """He et al. 2015, table 6: 0.27 M, 0.85 M and 1.7 M parameters."""
    network = ResNet(depth)
    assert sum(p.numel() for p in network.parameters()) == parameters
    if depth == 20:
        assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_resnet_depth_must_be_6n_plus_2() -> None:
    with pytest.raises(ModelError, match="depth=51"):
        ResNet(51)


def stirred(module: nn.Module) -> nn.Module:
    """Batch norms with statistics as after training."""
    torch.manual_seed(2)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            assert part.running_mean is not None
            assert part.running_var is not None
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    return module


@pytest.mark.skipif(
    not (SHARED / "resnet20-12fca82f.th").is_file(),
    reason="../shared/data with the CIFAR-10 weights is not on this machine",
)
def test_published_resnet20_weights_reach_their_accuracy() -> None:
    data = load_dataset(SHARED / "cifar10_test.npz")
    assert data.shape == (3, 32, 32)
    classifier = load_classifier(
        "builtin:resnet20",
        weights=SHARED / "resnet20-12fca82f.th",
        trust=SHARED / "resnet20-12fca82f.th",
        mean=MEAN,
        std=STD,
    )
    images, labels = zip(*(data[i] for i in range(500)), strict=True)
    predicted = classifier.predict(torch.stack(images))
    accuracy = float((predicted == torch.tensor(labels)).float().mean())
    # The whole test set gives 91.73 %; 500 images stray by 1.2 % (one standard deviation).
    assert 0.88 < accuracy < 0.95


class Scale(nn.Module):
    """Normalisation as the fine-tuned file stores it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("m", torch.zeros(1, 3, 1, 1))
        self.register_buffer("d", torch.ones(1, 3, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = (x - self.m) / self.d  # type: ignore[operator]
        return result


@pytest.mark.skipif(
    not (SHARED / "cifar10_resnet20_ft_noise0.25.pt").is_file(),
    reason="../shared/data with the fine-tuned weights is not on this machine",
)
def test_fine_tuned_weights_hold_under_noise() -> None:
    data = load_dataset(SHARED / "cifar10_test.npz")
    classifier = load_classifier(
        nn.Sequential(Scale(), ResNet(20)),
        weights=SHARED / "cifar10_resnet20_ft_noise0.25.pt",
        trust=SHARED / "cifar10_resnet20_ft_noise0.25.pt",
    )
    images, labels = zip(*(data[i] for i in range(500)), strict=True)
    noise = torch.randn(500, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    predicted = classifier.predict(torch.stack(images) + 0.25 * noise)
    # 72.8 % on the whole test set; 500 images stray by 2 % (one standard deviation).
    assert 0.63 < float((predicted == torch.tensor(labels)).float().mean()) < 0.82
