"""Caches skip layers, change the clip a little, begin every render anew, and know each expert's steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from bench.gpu_model import TINY
from generators.knob_cache import calibrate, experts_steps, transformers
from generators.knobs import Knobs, apply
from orchestrator.errors import BackendMisconfigured, JobCancelled
from tests.generators.knob_clips import STEPS, Rig, bare, counting, difference, plain, rig

PASSES = 2  # with the prompt and without
EVEN = (1.0,) * STEPS
CACHES: dict[str, dict[str, Any]] = {
    "first_block": {"cache_threshold": 0.5},
    "magcache": {"cache_ratios": EVEN, "cache_ratios_low": EVEN, "cache_retention": 0.1},
    "taylorseer": {"cache_warmup": 1, "cache_interval": 3},
}


def cached(name: str) -> Rig:
    return rig(cache=name, **CACHES[name])


@pytest.mark.parametrize("name", CACHES)
def test_a_cache_skips_layers_of_both_experts_and_the_clip_differs_but_little(name: str) -> None:
    made = cached(name)
    clip = made.render()
    every = (STEPS // 2) * PASSES * TINY.layers
    assert f"cache {name} on transformer and transformer_2" in made.said
    assert 0 < made.ran["transformer"] < every
    assert 0 < made.ran["transformer_2"] < every
    assert 0 < difference(clip) < 0.03


def test_a_threshold_of_next_to_nothing_skips_nothing() -> None:
    made = rig(cache="first_block", cache_threshold=1e-6)
    assert np.array_equal(made.render(), plain())
    assert made.ran["transformer"] == (STEPS // 2) * PASSES * TINY.layers


def test_taylorseer_can_predict_each_attention_instead_and_is_closer() -> None:
    lite, full = cached("taylorseer"), rig(cache="taylorseer", cache_lite=False, **CACHES["taylorseer"])
    assert 0 < difference(full.render()) < difference(lite.render())
    assert full.ran["transformer"] > lite.ran["transformer"]


@pytest.mark.parametrize("name", CACHES)
def test_a_render_after_a_cancelled_one_is_like_the_first(name: str) -> None:
    made = cached(name)
    first = made.render()

    def cancel(*_: Any) -> dict[str, Any]:
        raise JobCancelled("the render was cancelled")

    with pytest.raises(JobCancelled):
        made.render(callback=cancel)
    assert np.array_equal(made.render(), first)


def test_steps_fall_to_the_experts_as_the_boundary_says() -> None:
    made = rig()
    seen = Counter[str]()
    for name, transformer in transformers(made.pipeline).items():
        transformer.register_forward_hook(counting(seen, name))
    for steps in (2, 5):
        seen.clear()
        made.render(steps=steps)
        split = experts_steps(made.pipeline, steps)
        assert sum(split.values()) == steps
        assert {name: number * PASSES for name, number in split.items()} == seen


def test_a_pipeline_of_one_transformer_does_every_step_with_it() -> None:
    pipeline, _ = bare()
    pipeline.register_modules(transformer_2=None)
    pipeline.register_to_config(boundary_ratio=None)
    assert experts_steps(pipeline, 7) == {"transformer": 7}


def test_magcache_follows_the_steps_of_each_render() -> None:
    made = cached("magcache")
    made.render(steps=6)
    split = experts_steps(made.pipeline, 6)
    assert {
        name: each._cache_config.num_inference_steps for name, each in transformers(made.pipeline).items()
    } == split
    assert len(made.pipeline.transformer._cache_config.mag_ratios) == split["transformer"]


def test_magcache_of_two_experts_needs_the_ratios_of_both() -> None:
    with pytest.raises(BackendMisconfigured, match=r"cache magcache: .* two transformers.* cache_ratios_low"):
        rig(cache="magcache", cache_ratios=EVEN)


def test_calibration_measures_one_ratio_per_step_and_leaves_no_cache_behind() -> None:
    made = rig()
    ratios = calibrate(made.pipeline, lambda callback: made.render(steps=6, callback=callback))
    split = experts_steps(made.pipeline, 6)
    assert {name: len(given) for name, given in ratios.items()} == split
    assert all(given[0] == 1.0 and all(0.2 < ratio < 5 for ratio in given) for given in ratios.values())
    assert ratios["transformer"] != (1.0,) * split["transformer"]
    assert not made.pipeline.transformer.is_cache_enabled
    Knobs(cache="magcache", cache_ratios=ratios["transformer"], cache_ratios_low=ratios["transformer_2"])
    assert np.array_equal(made.render(), plain())


def test_blocks_that_the_cache_does_not_find_are_refused_by_name() -> None:
    pipeline, _ = bare()
    layers = pipeline.transformer.blocks
    del pipeline.transformer.blocks
    pipeline.transformer.layers_of_another_name = layers
    for name, options in CACHES.items():
        with pytest.raises(BackendMisconfigured, match=f"cache {name} .* transformer, a WanTransformer3DModel"):
            apply(pipeline, Knobs.model_validate({"dtype": "float32", "cache": name, **options}))
