"""The network over noise levels: one formula, EDM's scaling, a view at each level, and what is refused."""

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from jem_core.condition import FREE
from jem_core.model import log_prob_from_logits
from jem_core.networks import NETWORKS, build_network
from jem_core.networks.paper import PaperModel
from jem_core.networks.residual import SPREAD, ResidualModel
from jem_core.random import generator
from tests.conftest import TINY_NET

LEVELS = (0.02, 0.5, 5.0)


def small_model(k: int = 3, spread: float = 0.1, **changes: object) -> ResidualModel:
    """Half of the weights begin at zero, where every formula agrees: all of them get a push."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(k)
        model = ResidualModel([f"a{i}" for i in range(k)], **({"image_size": 32} | TINY_NET | changes))
        for weight in model.parameters():
            weight.data += spread * torch.randn(weight.shape)
    return model


def noisy(n: int = 2, sigma: float = 0.5, size: int = 32) -> Tensor:
    random, shape = generator(1), (n, 3, size, size)
    return torch.rand(shape, generator=random) * 2 - 1 + sigma * torch.randn(shape, generator=random)


def near(ours: Tensor, theirs: Tensor, share: float = 1e-5) -> bool:
    """Equal up to single precision of the largest element."""
    return bool(((ours - theirs).abs() <= share * (1e-3 + theirs.abs().max())).all())


@pytest.mark.parametrize("sigma", LEVELS)
@pytest.mark.parametrize("k", [1, 4, 7])
def test_log_prob_and_its_gradients_equal_enumeration(k: int, sigma: float) -> None:
    """Over all 2^K labels that agree with the condition, with nothing, something and everything observed."""
    model = small_model(k).double()
    for condition in (torch.full((k,), FREE), torch.tensor([1, FREE, 0] * k)[:k], torch.arange(k) % 2):
        x = noisy(sigma=sigma).double().requires_grad_()
        logits = model.at(sigma).logits(x)
        y = condition.expand(2, -1)
        ours = log_prob_from_logits(logits, y, y != FREE)
        terms = [
            sum(logits[:, i, v] for i, v in enumerate(values))
            for values in product((0, 1), repeat=k)
            if all(c in (FREE, v) for c, v in zip(condition.tolist(), values, strict=True))
        ]
        theirs = torch.stack(terms).logsumexp(dim=0)
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
        targets = (x, *model.parameters())
        for a, b in zip(
            torch.autograd.grad(ours.sum(), targets, retain_graph=True),
            torch.autograd.grad(theirs.sum(), targets, retain_graph=True),
            strict=True,
        ):
            torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("sigma", LEVELS)
def test_a_shared_part_and_a_difference_per_attribute(sigma: float) -> None:
    """The labels summed out leave the shared part, and the softmax of two logits is the sigmoid of the difference."""
    model, x = small_model(5), noisy(3, sigma)
    base, differences = model.energies(x, torch.full((3,), sigma))
    logits = model.at(sigma).logits(x)
    assert logits.shape == (3, 5, 2)
    assert near(log_prob_from_logits(logits), base)
    torch.testing.assert_close(logits.softmax(dim=-1)[..., 1], differences.sigmoid(), atol=1e-4, rtol=0)
    assert differences.std() > 0.01


@pytest.mark.parametrize("sigma", LEVELS)
def test_the_denoised_image_has_edms_scaling(sigma: float) -> None:
    """D = c_skip x + c_out grad g(c_in x), with c_skip, c_out and c_in as in EDM (Karras et al. 2022, table 1)."""
    model = small_model()
    x, level = noisy(2, sigma).requires_grad_(), torch.full((2,), sigma)
    (grad,) = torch.autograd.grad(model.energies(x, level)[0].sum(), x)
    denoised = x + sigma**2 * grad
    total = (sigma**2 + SPREAD**2) ** 0.5
    u = (x / total).detach().requires_grad_()
    (slope,) = torch.autograd.grad(model.net(u, level)[0].sum(), u)
    expected = SPREAD**2 / total**2 * x + sigma * SPREAD / total * slope
    torch.testing.assert_close(denoised, expected, atol=1e-4, rtol=1e-4)
    assert slope.abs().max() > 1e-3


def test_an_untrained_network_is_a_gaussian_of_the_datas_spread() -> None:
    """g begins at zero: chains of a fresh network move towards the middle and nowhere else."""
    model = ResidualModel("ab", **{"image_size": 32} | TINY_NET)
    x, sigma = noisy(), torch.tensor([0.3, 4.0])
    base, _ = model.energies(x, sigma)
    torch.testing.assert_close(base, -x.square().sum(dim=(1, 2, 3)) / (2 * (sigma**2 + SPREAD**2)))


def test_every_image_may_have_a_level_of_its_own() -> None:
    model, x = small_model(), noisy(3)
    together = model.at(torch.tensor(LEVELS)).logits(x)
    for i, sigma in enumerate(LEVELS):
        assert near(together[i], model.at(sigma).logits(x[i : i + 1])[0])
    assert not near(together[0], model.at(LEVELS[1]).logits(x[:1])[0])


def test_an_energy_depends_on_its_own_image_alone() -> None:
    model, x = small_model(4), noisy(5)
    alone = torch.cat([model.at(0.5).logits(row) for row in x.split(1)])
    assert near(model.at(0.5).logits(x), alone)
    kinds = {type(layer).__name__ for layer in model.modules()}
    assert not [kind for kind in kinds if "Norm" in kind or "Dropout" in kind]


def test_every_pixel_counts() -> None:
    model, x = small_model(), noisy(1).requires_grad_()
    g, _ = model.net(x, torch.tensor([0.5]))
    (grad,) = torch.autograd.grad(g.sum(), x)
    assert (grad != 0).float().mean() > 0.99


def test_the_level_changes_what_the_network_sees() -> None:
    """Not only the scale of its input: the same u at two levels gives two energies and two answers."""
    model, u = small_model(), noisy(1)
    (g, d), (other_g, other_d) = (model.net(u, torch.tensor([sigma])) for sigma in (0.1, 1.0))
    assert (g - other_g).abs().item() > 1e-2
    assert (d - other_d).abs().max() > 1e-3


def test_mixed_precision_ends_at_the_energies() -> None:
    """bfloat16 has three digits: sums over thousands of local energies must not be taken in it."""
    model, x = small_model(spread=0.05), noisy()
    exact = model.energies(x, torch.full((2,), 0.5))
    with torch.autocast("cpu", torch.bfloat16):
        rough = model.energies(x, torch.full((2,), 0.5))
        logits = model.at(0.5).logits(x)
    assert logits.dtype == torch.float32
    for a, b in zip(exact, rough, strict=True):
        assert b.dtype == torch.float32
        assert not torch.equal(a, b)
        torch.testing.assert_close(a, b, atol=0.05, rtol=0.02)


@pytest.mark.parametrize(
    ("size", "changes"),
    [
        (32, {"fold": 1, "attention": 0}),
        (32, {"fold": 4, "attention": 4}),
        (64, {"fold": 2, "attention": 16, "ascent": 0}),
        (64, {"widths": [4, 4, 4, 4], "blocks": [0, 1, 2, 0], "attention": 8, "ascent": 2}),
        (128, {"fold": 4, "attention": 16}),
    ],
)
def test_every_size_works_on_a_batch_of_one_and_builds_itself_again(size: int, changes: dict) -> None:
    model = small_model(2, image_size=size, **changes)
    x = torch.full((1, 3, size, size), 0.5)
    assert model.predict(x).shape == (1, 2)
    assert model.log_prob(x).shape == (1,)
    facts = model.config()
    assert facts == {"network": "residual", "names": ["a0", "a1"], "image_size": size} | TINY_NET | changes
    again = build_network(facts)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.predict(x), model.predict(x))


def test_pictures_are_looked_at_from_the_lowest_level() -> None:
    model = small_model()
    images = torch.rand(2, 3, 32, 32, generator=generator(0))
    logits = model.at(model.lowest).logits(images * 2 - 1)
    assert torch.equal(model.logits(model.encode(images)), logits)
    assert torch.equal(model.predict(images), logits.softmax(dim=-1)[..., 1])
    assert torch.equal(model.log_prob(images), log_prob_from_logits(logits))


def test_images_and_the_chains_own_scale() -> None:
    model, images = small_model(), torch.rand(2, 3, 32, 32, generator=generator(0))
    x = model.encode(images)
    assert x.min() < -0.9
    assert x.max() > 0.9
    torch.testing.assert_close(model.decode(x), images)
    wild = model.decode(x + 3 * torch.randn(x.shape, generator=generator(1)))
    assert (wild.min(), wild.max()) == (0, 1)  # noise beyond the range of pictures is cut off
    paper = PaperModel("a", 32, 1)
    assert paper.encode(images) is images
    assert paper.decode(images) is images


def test_weights_lie_channels_last() -> None:
    model = small_model()
    assert model.net.halve[0].weight.is_contiguous(memory_format=torch.channels_last)


def test_attention_is_where_it_was_asked_for() -> None:
    model = small_model()
    assert [stage.attention is not None for stage in model.net.stages] == [False, True]  # 16 and 8 pixels
    assert not any(stage.attention for stage in small_model(attention=0).net.stages)
    # With one convolution's reach alone, a corner would not hear of the opposite one.
    h = torch.randn(1, 8, 8, 8, generator=generator(0)).requires_grad_()
    seen = model.net.stages[1].attention(h, torch.randn(1, 128, generator=generator(1)))
    (grad,) = torch.autograd.grad(seen[0, :, 0, 0].sum(), h)
    assert (grad.abs().sum(dim=1) > 0).all()


def test_on_the_way_up_a_corner_knows_the_opposite_one() -> None:
    """The finest local energies: each place's own, without the way up, and one that depends on the whole with it."""
    for ascent, heard in ((0, False), (1, True)):
        model = small_model(attention=0, ascent=ascent)
        last = (model.net.ascents[0].stage if ascent else model.net.stages[0]).local
        features = []
        last.register_forward_hook(lambda _, __, out, seen=features: seen.append(out))
        x = noisy(1).requires_grad_()
        model.at(0.5).logits(x)
        (grad,) = torch.autograd.grad(features[0][0, :, 0, 0].sum(), x)
        assert bool(grad[0, :, -9:, -9:].any()) == heard


def bad_calls() -> dict:
    model, x = small_model(), noisy()
    images = torch.rand(2, 3, 32, 32, generator=generator(0))

    def net(**changes: object) -> ResidualModel:
        return ResidualModel("ab", **({"image_size": 32} | TINY_NET | changes))

    return {
        "level 0": (lambda: model.at(0), "level is 0; expected a finite number above 0"),
        "a negative level": (lambda: model.at(-0.5), r"level is -0\.5"),
        "an infinite level": (lambda: model.at(float("inf")), "level is inf"),
        "a level 0 of one image": (lambda: model.at(torch.tensor([1.0, 0.0])), "One of the noise levels is 0"),
        "an infinite one": (lambda: model.at(torch.tensor([float("inf")])), "One of the noise levels is inf"),
        "no number": (lambda: model.at(float("nan")), "level is nan"),
        "a word": (lambda: model.at("high"), "level is 'high'"),
        "a level of the paper's": (lambda: PaperModel("a", 32, 1).at(0.5), r"level is 0\.5; this model knows no noise"),
        "another size": (lambda: model.at(1.0).logits(x[..., :16]), r"\(2, 3, 32, 16\); expected \(N, 3, 32, 32\)"),
        "double": (lambda: model.at(1.0).logits(x.double()), "float64.*float32"),
        "not pictures": (lambda: model.predict(x), r"range from -.*expected finite values in \[0, 1\]"),
        "a label is 2": (lambda: model.log_prob(images, torch.full((2, 3), 2)), "y holds the value 2"),
        "no widths": (lambda: net(widths=[], blocks=[]), r"widths are \[\]"),
        "fewer blocks": (lambda: net(blocks=[1]), r"blocks \[1\]; expected as many of one as of the other"),
        "too many halvings": (lambda: net(widths=[4] * 5, blocks=[1] * 5, attention=0), "halving 16 pixels leaves"),
        "a width of 0": (lambda: net(widths=[0, 8]), r"\[0, 8\].*expected positive counts"),
        "blocks below 0": (lambda: net(blocks=[1, -1]), r"\[1, -1\] and 1 on the way up; expected positive counts"),
        "no way up": (lambda: net(ascent=-1), r"-1 on the way up; expected positive counts"),
        "attention nowhere": (lambda: net(attention=5), r"attention is at 5 pixels; choose 0 or one of \[16, 8\]"),
        "heads of half a channel": (lambda: net(widths=[4, 6]), "attention is at 8 pixels"),
        "no such network": (lambda: build_network({"network": "unet"}), "no network 'unet'; choose paper or residual"),
    }


@pytest.mark.parametrize("case", bad_calls())
def test_bad_input_is_refused_by_value(case: str) -> None:
    call, message = bad_calls()[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_description_without_a_network_is_the_papers() -> None:
    """As model directories of the first format have it."""
    model = build_network({"names": ["a"], "image_size": 32, "width": 2, "fold": 1})
    assert type(model) is PaperModel
    assert set(NETWORKS) == {"paper", "residual"}
    assert not model.levels
    assert ResidualModel.levels


def test_logsigmoid_keeps_large_differences_finite() -> None:
    model = small_model(1)
    model.net.differences.bias.data.fill_(500.0)
    logits = model.at(0.5).logits(noisy(1))
    assert logits.isfinite().all()
    assert F.softmax(logits, dim=-1)[0, 0, 1] == 1
