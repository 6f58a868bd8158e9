"""Trains the network of `worlds/digits.py` on glyphs of this machine's fonts: python -m bench.train_digits.

Every font that `fc-list ':lang=en'` names is drawn in many sizes, weights and distortions. A tenth of the
families is kept aside and reported. No font is copied: only `worlds/digits.npz` (weights) is written.
"""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from worlds import digits
from worlds.digits import NO_DIGIT, SIDE, Floats

UNFIT = ("Symbol", "D050000L", "Unifont", "Emoji", "Mono CJK", "unifur", "Isabella")
HIDDEN = (224, 64)
PER_FONT = 385
FONTS_PER_FAMILY = 8
EPOCHS = 24
Labels = npt.NDArray[np.int64]
Layers = list[tuple[Floats, Floats]]


def fonts() -> list[tuple[str, str]]:
    """(family, file) of every font that has Latin digits."""
    listed = subprocess.run(
        ["fc-list", ":lang=en", "family", "file"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    pairs = [(line.split(": ", 1)[1].split(",")[0], line.split(": ", 1)[0]) for line in listed]
    return sorted({pair for pair in pairs if not any(word in pair[0] for word in UNFIT)})


def draw(text: str, file: str, rng: np.random.Generator) -> Floats:
    """The ink of a text, distorted as prints, screens and hands do: (h, w) in 0 … 1."""
    size = int(rng.choice([9, 10, 11, 12, 13, 14, 16, 18, 20, 24, 28, 34, 48, 64]))
    font = ImageFont.truetype(file, size)
    canvas = Image.new("L", (size * 3, size * 2), 0)
    stroke = int(rng.random() < 0.2) * max(1, size // 24)
    place = (size * 0.6 + rng.random(), size * 0.3 + rng.random())
    ImageDraw.Draw(canvas).text(place, text, fill=255, font=font, stroke_width=stroke)
    if rng.random() < 0.5:
        shear, turn = rng.normal(0, 0.08), rng.normal(0, 0.05)
        x, y = size * 1.5, float(size)
        canvas = canvas.transform(
            canvas.size,
            Image.Transform.AFFINE,
            (1, shear + turn, -(shear + turn) * y, -turn, 1, turn * x),
            Image.Resampling.BILINEAR,
        )
    if rng.random() < 0.4:
        canvas = canvas.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.2, 0.05 * size + 0.2))))
    if rng.random() < 0.3:
        packed = io.BytesIO()
        canvas.save(packed, "JPEG", quality=int(rng.integers(50, 90)))
        canvas = Image.open(packed)
    alpha = np.asarray(canvas, np.float32) / 255
    alpha = np.clip(alpha + rng.normal(0, 0.04, alpha.shape) * (rng.random() < 0.4), 0, 1).astype(np.float32)
    rows, cols = np.flatnonzero((alpha > 0.35).any(axis=1)), np.flatnonzero((alpha > 0.35).any(axis=0))
    if rows.size == 0:
        return np.zeros((2, 2), np.float32)
    return alpha[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]


def not_a_digit(file: str, rng: np.random.Generator) -> Floats:
    """Two digits at once, a part of one, or one with a slice of its neighbour."""
    pair = draw(f"{rng.integers(1, 10)}{rng.integers(0, 10)}", file, rng)
    width = pair.shape[1]
    if rng.random() < 0.55:
        return pair
    cut = max(1, int(width * rng.uniform(0.62, 0.85)))
    return pair[:, :cut] if rng.random() < 0.5 else pair[:, -cut:]


def samples(files: list[str], per_font: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.uint8], Labels]:
    """Inputs (n, SIDE * SIDE) in 0 … 255 and labels (n,)."""
    inputs: list[npt.NDArray[np.uint8]] = []
    labels: list[int] = []
    for file in files:
        for index in range(per_font):
            label = index % 11
            alpha = not_a_digit(file, rng) if label == NO_DIGIT else draw(str(label), file, rng)
            inputs.append((digits.normalise(alpha) * 255).astype(np.uint8))
            labels.append(label)
    return np.stack(inputs), np.array(labels)


def train(inputs: npt.NDArray[np.uint8], labels: Labels, rng: np.random.Generator) -> Layers:
    """Adam on cross-entropy with label smoothing; the inputs are jittered and dropped at random."""
    sizes = (SIDE * SIDE, *HIDDEN, 11)
    layers = [
        [rng.normal(0, (2 / a) ** 0.5, (a, b)).astype(np.float32), np.zeros(b, np.float32)]
        for a, b in itertools.pairwise(sizes)
    ]
    moments = [[np.zeros_like(p), np.zeros_like(p)] for layer in layers for p in layer]
    step = 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(inputs))
        rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS)) + 1e-5
        for first in range(0, len(order), 256):
            batch = order[first : first + 256]
            x: Floats = (inputs[batch] / 255).astype(np.float32)
            x = np.roll(x.reshape(-1, SIDE, SIDE), rng.integers(-1, 2, 2), axis=(1, 2)).reshape(len(batch), -1)
            x *= rng.random(x.shape) > 0.08
            gradients = _gradients(layers, x.astype(np.float32), labels[batch])
            step += 1
            for parameter, gradient, moment in zip(
                [p for layer in layers for p in layer], gradients, moments, strict=True
            ):
                moment[0] += 0.1 * (gradient - moment[0])
                moment[1] += 0.001 * (gradient**2 - moment[1])
                correction = (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
                parameter -= (rate * correction * moment[0] / (np.sqrt(moment[1]) + 1e-8)).astype(np.float32)
                parameter *= 1 - 1e-5
    return [(weights, bias) for weights, bias in layers]


def _gradients(layers: list[list[Floats]], x: Floats, labels: Labels) -> list[Floats]:
    activations = [x]
    for number, (weights, bias) in enumerate(layers):
        z = activations[-1] @ weights + bias
        activations.append(z if number + 1 == len(layers) else np.maximum(z, 0))
    logits = activations.pop()
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    wanted = np.full_like(probabilities, 0.04 / 11)
    wanted[np.arange(len(labels)), labels] += 0.96
    delta = (probabilities - wanted) / len(labels)
    found: list[Floats] = []
    for (weights, _), activation in zip(reversed(layers), reversed(activations), strict=True):
        found = [activation.T @ delta, delta.sum(axis=0), *found]
        delta = (delta @ weights.T) * (activation > 0)
    return found


def main() -> None:
    """Train, report on unseen families, write the weights."""
    rng = np.random.default_rng(0)
    listed = fonts()
    per_family: dict[str, list[str]] = {}
    for family, file in listed:
        per_family.setdefault(family, []).append(file)
    aside = {family for family in per_family if zlib.crc32(family.encode()) % 10 == 0}
    chosen = [
        file for family, files in per_family.items() if family not in aside for file in files[:FONTS_PER_FAMILY]
    ]
    unseen = [file for family in sorted(aside) for file in per_family[family][:4]]
    everything = "--all" in sys.argv
    inputs, labels = samples(chosen + (unseen if everything else []), PER_FONT, rng)
    layers = train(inputs, labels, rng)
    test_inputs, test_labels = samples(unseen, 110, np.random.default_rng(1))
    found = digits.log_probabilities((test_inputs / 255).astype(np.float32), layers).argmax(axis=1)
    real = test_labels < NO_DIGIT
    print(f"{len(chosen)} fonts, {len(inputs)} glyphs; families kept aside: {sorted(aside)}")
    print(
        f"digits right on those: {(found == test_labels)[real].mean():.4f}, "
        f"of all: {(found == test_labels).mean():.4f}"
    )
    target = Path(digits.__file__).with_name("digits.npz")
    stored = {f"w{n}": w.astype(np.float16) for n, (w, _) in enumerate(layers)}
    stored |= {f"b{n}": b.astype(np.float16) for n, (_, b) in enumerate(layers)}
    np.savez_compressed(target, allow_pickle=False, **stored)
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
