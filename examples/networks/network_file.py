"""Writes a network as an ONNX file, layer by layer: weights drawn at random, the batch left open. Needs numpy and onnx."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 18, 9


class Network:
    """Nodes and weights in the order of building; a layer gives the name of what it makes."""

    def __init__(self, name, seed):
        self.name, self.random = name, np.random.default_rng(seed)
        self.nodes, self.initial, self.inputs, self.outputs = [], [], [], []
        self.parameters = 0  # numbers that a trained file would bring
        self.trained, self.kept = [], []  # weights, and what training leaves as it is

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape]))
        return name

    def output(self, name, value, shape):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape]))

    def constant(self, name, values):
        self.kept.append(name)
        self.initial.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, name, values, trained=True):
        self.parameters += values.size
        if trained:
            self.trained.append(name)
        self.initial.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def drawn(self, name, shape, fan_in, gain=1):
        """Of a variance that keeps the size of what passes through (He et al., ICCV 2015), times `gain`."""
        return self.weight(name, gain * self.random.normal(size=shape) * np.sqrt(2.0 / fan_in))

    def node(self, operator, inputs, name, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def batch_norm(self, x, name, channels):
        """With statistics as of a trained network: scale, bias, mean and variance."""
        uniform = self.random.uniform
        parts = [("scale", uniform(0.8, 1.2, channels)), ("bias", uniform(-0.1, 0.1, channels)),
                 ("mean", uniform(-0.1, 0.1, channels)), ("variance", uniform(0.8, 1.2, channels))]
        weights = [self.weight(f"{name}.{part}", values, part in ("scale", "bias")) for part, values in parts]
        return self.node("BatchNormalization", [x] + weights, name)

    def layer_norm(self, x, name, width):
        return self.node("LayerNormalization", [x, self.weight(f"{name}.scale", self.random.uniform(0.8, 1.2, width)),
                                                self.weight(f"{name}.bias", self.random.uniform(-0.1, 0.1, width))],
                         name, axis=-1, epsilon=1e-5)

    def linear(self, x, name, inputs, outputs, bias=True):
        """Of the last axis."""
        product = self.node("MatMul", [x, self.drawn(f"{name}.weight", (inputs, outputs), inputs)], f"{name}.product" if bias else name)
        if not bias:
            return product
        return self.node("Add", [product, self.weight(f"{name}.bias", self.random.uniform(-0.1, 0.1, outputs))], name)

    def swish(self, x, name):
        return self.node("Mul", [x, self.node("Sigmoid", [x], f"{name}.sigmoid")], name)

    def save(self, path):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initial)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        # Names, a line each, that say which numbers are weights.
        helper.set_model_props(made, {"superstep.trained": "\n".join(self.trained), "superstep.kept": "\n".join(self.kept)})
        onnx.checker.check_model(made)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(made, path)
        print(f"{path}: {self.parameters:,} parameters, {len(self.nodes)} nodes")
