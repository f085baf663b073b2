"""Training configs: every wrong key and value is named, and schedules are what they say."""

import json
from pathlib import Path

import pytest

from jem_core.config import CHOICES, TrainConfig, make_config, read_config
from tests.conftest import TINY_DENOISING, TINY_NET


def test_a_file_with_overrides(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("learning_rate: 1e-4\niterations: 30\nobjective: jem\nchain_flip: true\ndecay_at: [10, 20]\n")
    config = read_config(path, {"batch-size": "16", "learning_rate": "2e-3", "ema": "0.9"})
    assert (config.learning_rate, config.batch_size, config.objective, config.ema) == (2e-3, 16, "jem", 0.9)
    assert (config.chain_flip, config.decay_at, config.iterations) == (True, (10, 20), 30)
    assert config.width == TrainConfig().width
    path.write_text("# only a comment\n")
    assert read_config(path) == TrainConfig()


def test_a_config_survives_its_own_dictionary() -> None:
    config = make_config({"objective": "supervised", "decay_at": [5], "grad_clamp": 2, "compile": "true"})
    assert isinstance(config.grad_clamp, float)
    assert make_config(config.to_dict()) == config
    levels = make_config(TINY_DENOISING)
    assert levels.widths == (4, 8)
    assert make_config(json.loads(json.dumps(levels.to_dict()))) == levels  # as a checkpoint keeps it


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rat": 1e-3}, "no config key 'learning_rat'; did you mean learning_rate"),
        ({"langevin-step": 3}, "no config key 'langevin-step'; did you mean langevin_steps"),
        ({"zzzz": 3}, "no config key 'zzzz'; did you mean"),
        ({3: 3}, "no config key 3"),
        ({"iterations": 1.5}, r"iterations is 1\.5; expected a whole number"),
        ({"iterations": "many"}, "iterations is 'many'; expected a whole number"),
        ({"iterations": True}, "iterations is True; expected a whole number"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'; expected a number"),
        ({"learning_rate": "[1"}, r"learning_rate is '\[1'; expected a number"),
        ({"learning_rate": True}, "learning_rate is True; expected a number"),
        ({"learning_rate": None}, "learning_rate is None; expected a number"),
        ({"chain_flip": "maybe"}, "chain_flip is 'maybe'; expected true or false"),
        ({"chain_flip": 1}, "chain_flip is 1; expected true or false"),
        ({"objective": 3}, "objective is 3; expected a word"),
        ({"decay_at": 100}, "decay_at is 100; expected a list of whole numbers"),
        ({"decay_at": [1.5]}, r"decay_at is \[1\.5\]; expected a list of whole numbers"),
        ({"learning_rate": 0.0}, r"learning_rate is 0\.0; expected a number above 0"),
        ({"learning_rate": "nan"}, "learning_rate is nan; expected a finite number"),
        ({"learning_rate": float("inf")}, "learning_rate is inf; expected a finite number"),
        ({"data_noise": -0.1}, r"data_noise is -0\.1; expected a finite number of at least 0"),
        ({"seed": -1}, "seed is -1"),
        ({"fresh_fraction": 1.5}, r"fresh_fraction is 1\.5; expected a number between 0 and 1"),
        ({"ema": 2.0}, r"ema is 2\.0; expected a number between 0 and 1"),
        ({"batch_size": 0}, "batch_size is 0; expected at least 1"),
        ({"guard_window": 0}, "guard_window is 0; expected at least 1"),
        ({"evaluate_every": 0}, "evaluate_every is 0; expected at least 1"),
        ({"keep_checkpoints": 0}, "keep_checkpoints is 0; expected at least 1"),
        ({"objective": "gan"}, "no objective 'gan'; choose one of supervised, jem, gibbs-jem, denoising"),
        ({"objective": "denoising"}, "objective denoising cannot train network paper; choose residual"),
        ({"network": "residual"}, "objective gibbs-jem cannot train network residual; choose paper"),
        ({"noise_spread": -1.0}, r"noise_spread is -1\.0; expected a finite number of at least 0"),
        ({"noise_mean": "nan"}, "noise_mean is nan; expected a finite number"),
        ({"free_share": 0.7, "full_share": 0.6}, r"free_share and full_share are 1\.3 together; expected at most 1"),
        ({"widths": [4, 8.5]}, r"widths is \[4, 8\.5\]; expected a list of whole numbers"),
        (TINY_DENOISING | {"supervised_iterations": 3}, "supervised_iterations is 3; expected 0"),
        (TINY_DENOISING | {"max_conditions": 0}, "max_conditions is 0; denoising expects at least 1"),
        *(({name: "x"}, f"{name} is 'x'; choose one of {', '.join(words)}") for name, words in CHOICES.items()),
    ],
)
def test_what_is_wrong_is_named(values: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_config(values)


@pytest.mark.parametrize(("text", "message"), [("- a\n- b\n", "holds list"), ("a: [", "is not readable YAML")])
def test_a_file_that_is_no_config(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_config(tmp_path / "bad.yaml")


def test_schedules() -> None:
    constant = make_config({"schedule": "constant", "learning_rate": 1.0, "warmup_iterations": 4, "iterations": 100})
    assert [constant.rate_at(i) for i in (0, 1, 3, 4, 99)] == [0.25, 0.5, 1.0, 1.0, 1.0]
    steps = make_config({"schedule": "steps", "learning_rate": 1.0, "warmup_iterations": 0, "decay_at": [10, 20]})
    assert [steps.rate_at(i) for i in (0, 9, 10, 20)] == pytest.approx([1.0, 1.0, 0.3, 0.09])
    cosine = make_config({"learning_rate": 1.0, "warmup_iterations": 0, "iterations": 100, "final_rate": 0.1})
    assert [cosine.rate_at(i) for i in (0, 50, 100, 200)] == pytest.approx([1.0, 0.55, 0.1, 0.1])
    hold = {"schedule": "hold", "learning_rate": 1.0, "warmup_iterations": 10, "final_phase": 0.2, "final_rate": 0.1}
    short, long = (make_config(hold | {"iterations": count}) for count in (100, 1000))
    assert [short.rate_at(i) for i in (0, 10, 79, 90, 98, 99)] == pytest.approx([0.1, 1.0, 1.0, 0.5, 0.1, 0.1])
    assert [long.rate_at(i) for i in (0, 10, 79, 799, 900)] == pytest.approx([0.1, 1.0, 1.0, 1.0, 0.5])


def test_levels_may_lie_anywhere_and_shapes_come_as_lists() -> None:
    config = make_config(TINY_DENOISING | {"noise_mean": "-1.2", "precision": "fastest"})
    assert config.noise_mean == -1.2
    facts = config.network_facts(("a", "b"), 32)
    assert facts == {"network": "residual", "names": ["a", "b"], "image_size": 32, **TINY_NET} | {
        "widths": (4, 8),
        "blocks": (1, 1),
    }
    assert make_config({}).network_facts(("a",), 64) == {
        "network": "paper",
        "names": ["a"],
        "image_size": 64,
        "fold": 1,
        "width": 32,
    }


def test_more_langevin_steps_at_the_end() -> None:
    config = make_config({"iterations": 100, "langevin_steps": 5, "final_langevin_steps": 20, "final_phase": 0.1})
    assert [config.steps_at(i) for i in (0, 89, 90, 99)] == [5, 5, 20, 20]
    assert make_config({"langevin_steps": 5}).steps_at(5999) == 5
