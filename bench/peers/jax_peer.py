#!/usr/bin/env python3
"""JAX as a peer: a model's ONNX file as a jitted function, or its training step as one graph (README.md).

A training step is forward (normalisation by the batch's own moments, no dropout: less work than the others'), loss, gradients
and Adam; parameters and moments are given up to the call that returns the next ones.
"""

import argparse
import os
import sys

import environment
import protocol


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="the model as ONNX, without a training step")
    parser.add_argument("--model", required=True, help="its name")
    parser.add_argument("--mode", choices=["infer", "train"], default="infer")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--plugin", help="the library of a PJRT plug-in, in the place of JAX's own processor")
    return parser.parse_args()


ARGUMENTS = parse()
# XLA has as many threads as it sees processors.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-ARGUMENTS.threads:])
if ARGUMENTS.plugin:
    os.environ.update(PJRT_NAMES_AND_LIBRARY_PATHS="device:" + ARGUMENTS.plugin, JAX_PLATFORMS="device")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
ENVIRONMENT = environment.prepare(ARGUMENTS.threads)
protocol.claim_output()
try:
    import jax
    import jax.numpy as jnp
    import numpy
    import inputs
    import onnx_in_jax
except Exception as error:
    protocol.absent("JAX cannot be imported by %s: %s" % (sys.executable, error))


def mean_square(outputs, targets):
    return sum(jnp.mean((y - t) ** 2) for y, t in zip(outputs, targets))


def distance(outputs, targets):
    return sum(jnp.mean(jnp.abs(y - t)) for y, t in zip(outputs, targets))


def classes(outputs, targets):
    logits = outputs[0].reshape(-1, outputs[0].shape[-1])
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[0].reshape(-1, 1), 1).mean()


def dice(outputs, targets):
    y, t = outputs[0], targets[0]
    return 1 - (2 * (y * t).sum() + 1) / (y.sum() + t.sum() + 1)


CLASSES = {"cifar10-cnn", "resnet50", "mobilenet-v3-small", "efficientnet-b0", "bert-small", "distilbert"}
LOSSES = {"ptychonn-64": distance, "unet-64": dice, "unet-256": dice}


def loss_of(name):
    return classes if name in CLASSES else LOSSES.get(name, mean_square)


class Peer:
    def __init__(self, arguments):
        self.arguments = arguments
        self.model = onnx_in_jax.Model(arguments.file)
        self.kept = {}
        for name, kind, extents in self.model.inputs:
            self.load(name, inputs.array(arguments.model, name, kind, [arguments.batch if e < 0 else e for e in extents]))
        self.weights = {name: jnp.asarray(array) for name, array in self.model.weights.items()}
        (self.begin_training if arguments.mode == "train" else self.begin_inference)()

    def inputs(self):
        return [(name, kind, self.kept[name].shape) for name, kind, _ in self.model.inputs]

    def load(self, name, array):
        self.kept[name] = jnp.asarray(array)

    def narrowed(self, arrays):
        if self.arguments.precision == "f32":
            return arrays
        return {name: a.astype(jnp.bfloat16) if a.dtype == jnp.float32 else a for name, a in arrays.items()}

    def begin_inference(self):
        weights = self.narrowed(self.weights)  # constants of the compiled function
        function = jax.jit(lambda given: [y.astype(jnp.float32) for y in self.model(weights, self.narrowed(given))])

        def step():
            self.last = function(self.kept)
            jax.block_until_ready(self.last)

        self.step = step

    def begin_training(self):
        outputs = jax.eval_shape(lambda w, x: self.model(w, x, True), self.weights, self.kept)
        generator = numpy.random.default_rng(2)
        if self.arguments.model in CLASSES:
            targets = [jnp.asarray(generator.integers(0, 10, outputs[0].shape[:-1]))]
        else:
            targets = [jnp.asarray(generator.random(y.shape, dtype="float32")) for y in outputs]
        measure = loss_of(self.arguments.model)

        def loss(weights, given):
            results = self.model(self.narrowed(weights), self.narrowed(given), True)
            return measure([y.astype(jnp.float32) for y in results], targets)

        def train(state, given):
            weights, first, second, count = state
            value, gradients = jax.value_and_grad(loss)(weights, given)
            count += 1
            mix = lambda old, new, share: {name: share * old[name] + (1 - share) * new[name] for name in old}
            first = mix(first, gradients, 0.9)
            second = mix(second, {name: g * g for name, g in gradients.items()}, 0.999)
            rate = 1e-3 * jnp.sqrt(1 - 0.999 ** count) / (1 - 0.9 ** count)
            weights = {name: w - rate * first[name] / (jnp.sqrt(second[name]) + 1e-8) for name, w in weights.items()}
            return (weights, first, second, count), value

        function = jax.jit(train, donate_argnums=0)
        zeros = lambda: {name: jnp.zeros_like(w) for name, w in self.weights.items()}
        self.state = (self.weights, zeros(), zeros(), jnp.float32(0))

        def step():
            self.state, self.last = function(self.state, self.kept)
            jax.block_until_ready(self.state)

        self.step = step

    def results(self):
        return {str(i): numpy.asarray(y) for i, y in enumerate(self.last)}


def main():
    try:
        peer = Peer(ARGUMENTS)
        peer.step()
    except Exception as error:
        protocol.fail("%s: %s" % (type(error).__name__, error))
    name = "JAX " + jax.__version__
    infer = ARGUMENTS.mode == "infer"
    protocol.serve({"contender": name if ARGUMENTS.precision == "f32" else name + " " + ARGUMENTS.precision, "model": ARGUMENTS.model,
                    "mode": ARGUMENTS.mode, "batch": ARGUMENTS.batch, "threads": ARGUMENTS.threads, "settings": {"graph": "jit"},
                    "environment": ENVIRONMENT}, peer.step, peer.results if infer else None, peer if infer else None)


if __name__ == "__main__":
    main()
