"""Trains the digit classifier with NumPy and writes its model and held-out images.

`python -m models.digits.train` from the repository's root; needs scikit-learn for the images.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view

from models._net import Net

FOLDER = Path(__file__).parent
SEED = 1998
HELD_OUT = 200
EPOCHS = 40
BATCH = 64
EPSILON = 1e-5
CHANNELS = ((1, 16), (16, 32))


def conv(x, w):
    """3x3 convolution with a border of zeros; also the patches that its gradient needs."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = sliding_window_view(padded, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)
    patches = patches.reshape(*patches.shape[:3], -1)
    return np.moveaxis(patches @ w.reshape(len(w), -1).T, 3, 1), patches


def conv_gradient(dy, w, patches):
    """Gradients of the input and of the filters."""
    rows = np.moveaxis(dy, 1, 3).reshape(-1, len(w))
    dw = (rows.T @ patches.reshape(len(rows), -1)).reshape(w.shape)
    return conv(dy, w[:, :, ::-1, ::-1].swapaxes(0, 1))[0], dw


def per_channel(vector):
    return vector[:, None, None]


def initial_parameters(random):
    parameters = {}
    for layer, (channels, out) in enumerate(CHANNELS):
        std = np.sqrt(2 / (9 * channels))
        parameters[f"conv{layer}"] = random.normal(0, std, (out, channels, 3, 3))
        parameters[f"scale{layer}"] = np.ones(out)
        parameters[f"shift{layer}"] = np.zeros(out)
    features = CHANNELS[-1][1] * 4 * 4
    parameters["dense"] = random.normal(0, np.sqrt(1 / features), (10, features))
    parameters["bias"] = np.zeros(10)
    return parameters


def forward(p, x, running):
    """Class probabilities and what the backward pass needs; updates the running statistics."""
    kept = []
    for layer in range(len(CHANNELS)):
        y, patches = conv(x, p[f"conv{layer}"])
        mean, variance = y.mean(axis=(0, 2, 3)), y.var(axis=(0, 2, 3))
        for name, value in ("mean", mean), ("variance", variance):
            old = running.get(f"{name}{layer}", value)
            running[f"{name}{layer}"] = 0.9 * old + 0.1 * value
        deviation = np.sqrt(variance + EPSILON)
        normal = (y - per_channel(mean)) / per_channel(deviation)
        y = normal * per_channel(p[f"scale{layer}"]) + per_channel(p[f"shift{layer}"])
        x = np.maximum(y, 0)
        kept.append((patches, normal, deviation, x))
    pooled, winners = pool(x)
    logits = pooled.reshape(len(x), -1) @ p["dense"].T + p["bias"]
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True), kept, pooled, winners


def pool(x):
    """2x2 maxima, and which of the four it was."""
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    windows = windows.reshape(n, c, h // 2, w // 2, 4)
    winners = windows.argmax(axis=4)[..., None]
    return np.take_along_axis(windows, winners, axis=4)[..., 0], winners


def backward(p, labels, probabilities, kept, pooled, winners):
    """Gradients of the mean cross entropy."""
    gradients = {}
    d = (probabilities - np.eye(10)[labels]) / len(labels)
    gradients["bias"] = d.sum(axis=0)
    gradients["dense"] = d.T @ pooled.reshape(len(labels), -1)
    d = (d @ p["dense"]).reshape(pooled.shape)
    windows = np.zeros((*pooled.shape, 4))
    np.put_along_axis(windows, winners, d[..., None], axis=4)
    n, c, h, w = pooled.shape
    d = windows.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)
    for layer in reversed(range(len(CHANNELS))):
        patches, normal, deviation, x = kept[layer]
        d = d * (x > 0)
        gradients[f"scale{layer}"] = (d * normal).sum(axis=(0, 2, 3))
        gradients[f"shift{layer}"] = d.sum(axis=(0, 2, 3))
        count = d.size // d.shape[1]
        common = gradients[f"shift{layer}"] / count
        along = gradients[f"scale{layer}"] / count
        d = d - per_channel(common) - normal * per_channel(along)
        d = d * per_channel(p[f"scale{layer}"] / deviation)
        d, gradients[f"conv{layer}"] = conv_gradient(d, p[f"conv{layer}"], patches)
    return gradients


def train(images, labels, random):
    """Adam with a falling rate on images moved by up to one pixel."""
    p, running = initial_parameters(random), {}
    first = {name: np.zeros_like(value) for name, value in p.items()}
    second = {name: np.zeros_like(value) for name, value in p.items()}
    steps = EPOCHS * (len(images) // BATCH)
    for step in range(1, steps + 1):
        picked = random.choice(len(images), BATCH, replace=False)
        moved = np.pad(images[picked], ((0, 0), (1, 1), (1, 1)))
        top, left = random.integers(0, 3, 2)
        x = moved[:, None, top : top + 8, left : left + 8] / 16
        gradients = backward(p, labels[picked], *forward(p, x, running))
        rate = 0.004 * (1 - step / steps)
        for name, gradient in gradients.items():
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.999 * second[name] + 0.001 * gradient**2
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
            p[name] = p[name] - rate * mean / (np.sqrt(square) + 1e-8)
    return p, running


def write(p, running):
    """image [batch, 1, 8, 8], pixels 0 to 16 -> probabilities [batch, 10]."""
    net = Net("digits", 17)
    x = net.Mul(net.input("image", ["batch", 1, 8, 8]), 1 / 16)
    for layer in range(len(CHANNELS)):
        with net.scope(f"layer{layer}"):
            weight = net.weight("weight", p[f"conv{layer}"])
            x = net.Conv(x, weight, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            vectors = [net.weight(name, p[f"{name}{layer}"]) for name in ("scale", "shift")]
            for name in "mean", "variance":
                vectors.append(net.buffer(name, running[f"{name}{layer}"]))
            x = net.Relu(net.BatchNormalization(x, *vectors, epsilon=EPSILON))
    x = net.Flatten(net.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    weight, bias = net.weight("dense.weight", p["dense"]), net.weight("dense.bias", p["bias"])
    net.Softmax(net.Gemm(x, weight, bias, transB=1), axis=-1, out="probabilities")
    net.output("probabilities", ["batch", 10])
    onnx.save(net.model, FOLDER / "digits.onnx")


def main():
    # Only training needs scikit-learn; whoever runs the model does not.
    from sklearn.datasets import load_digits

    digits = load_digits()
    random = np.random.default_rng(SEED)
    order = random.permutation(len(digits.images))
    images, labels = digits.images[order], digits.target[order]
    write(*train(images[HELD_OUT:], labels[HELD_OUT:], random))
    images, labels = images[:HELD_OUT].astype(np.uint8), labels[:HELD_OUT].astype(np.uint8)
    np.savez_compressed(FOLDER / "held_out.npz", images=images, labels=labels)
    three = images[np.flatnonzero(labels == 3)[:1], None]
    np.save(FOLDER / "three.npy", three.astype(np.float32))


if __name__ == "__main__":
    main()
