#!/usr/bin/env python3
"""ONNX Runtime or OpenVINO as a peer: runs an ONNX file on command (README.md).

    file_peer.py --engine onnxruntime|openvino MODEL.onnx [--batch N] [--threads N] [--precision f32|bf16|int8] [--shape NAME=N,...]

Extents that the file leaves open are the batch where they are first, else 1, or what --shape says. The model is compiled
for these shapes; inputs are random and stay in memory, results are made in place where the library allows it. int8 is a name
alone: it is said of a file that quantize.py has put on bytes.
"""
import argparse
import functools
import os
import sys

import environment
import protocol

ELEMENTS = {"float": "f32", "float32": "f32", "f32": "f32", "double": "f64", "float64": "f64", "f64": "f64", "float16": "f16",
            "f16": "f16", "int64": "i64", "i64": "i64", "int32": "i32", "i32": "i32", "int8": "i8", "i8": "i8", "uint8": "u8",
            "u8": "u8", "bool": "bool", "boolean": "bool", "int16": "i16", "i16": "i16"}
NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
         "u8": "uint8", "bool": "bool"}


def element(text):
    """Our name of a type that a library writes `tensor(float)` or `f32`."""
    text = str(text).replace("tensor(", "").replace(")", "").replace("<Type: '", "").replace("'>", "")
    if text not in ELEMENTS:
        raise RuntimeError("inputs of type %s are not known here" % text)
    return ELEMENTS[text]


def closed(name, extents, batch, shapes):
    """Extents with a number in place of what the file leaves open (not a number, or below 0)."""
    given = shapes.get(name)
    result = []
    for axis, extent in enumerate(extents):
        known = isinstance(extent, int) and extent >= 0
        if given and len(given) == len(extents) and given[axis] >= 0:
            known, extent = True, given[axis]
        elif not known and str(extent) in shapes:
            known, extent = True, shapes[str(extent)][0]
        result.append(extent if known else batch if axis == 0 else 1)
    return result


def random_array(kind, extents, seed):
    import numpy
    generator = numpy.random.default_rng(seed)
    if kind.startswith("f"):
        return generator.random(extents).astype(NUMPY[kind])
    return generator.integers(0, 2, extents).astype(NUMPY[kind])


class OnnxRuntime:
    """Through its Python interface with results bound to memory."""

    def __init__(self, path, batch, threads, precision, shapes):
        import onnxruntime
        if precision not in ("f32", "int8"):
            raise RuntimeError("precision %s: ONNX Runtime computes in what the file says" % precision)
        self.name = "ONNX Runtime " + onnxruntime.__version__ + ("" if precision == "f32" else " " + precision)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 4
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        options.add_session_config_entry("session.intra_op.allow_spinning", "0" if threads == 1 else "1")
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.values, self.kinds = {}, {}
        for i, port in enumerate(self.session.get_inputs()):
            self.kinds[port.name] = element(port.type)
            self.load(port.name, random_array(self.kinds[port.name], closed(port.name, port.shape, batch, shapes), i))
        self.outputs = [port.name for port in self.session.get_outputs()]
        for name in self.outputs:
            self.binding.bind_output(name)

    def load(self, name, array):
        import onnxruntime
        self.values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self.binding.bind_ortvalue_input(name, self.values[name])

    def inputs(self):
        return [(name, self.kinds[name], value.shape()) for name, value in self.values.items()]

    def step(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        return dict(zip(self.outputs, (value.numpy() for value in self.binding.get_outputs())))


class OpenVino:
    """With the hint for latency, results in the request's own memory."""

    def __init__(self, path, batch, threads, precision, shapes):
        import openvino
        self.name = "OpenVINO " + openvino.__version__.split("-")[0] + ("" if precision == "f32" else " " + precision)
        core = openvino.Core()
        if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise RuntimeError("precision bf16: OpenVINO has none on this processor")
        model = core.read_model(str(path))
        self.ports = []
        changed = {}
        for port in model.inputs:
            name = port.get_any_name()
            extents = [d.get_length() if d.is_static else -1 for d in port.get_partial_shape()]
            fixed = closed(name, extents, batch, shapes)
            if fixed != extents:
                changed[name] = fixed
            self.ports.append((name, element(port.get_element_type().get_type_name()), fixed))
        if changed:
            model.reshape(changed)
        self.compiled = core.compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32", "ENABLE_CPU_PINNING": False,
            "CPU_DENORMALS_OPTIMIZATION": True})
        self.request = self.compiled.create_infer_request()
        # The call beneath the package's own, which would look through the inputs and gather the results every time.
        self.run = functools.partial(super(openvino.InferRequest, self.request).infer, {}, False, False)
        self.kept = {}
        for i, (name, kind, extents) in enumerate(self.ports):
            self.load(name, random_array(kind, extents, i))

    def load(self, name, array):
        import openvino
        self.kept[name] = array
        self.request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def inputs(self):
        return self.ports

    def step(self):
        self.run()

    def results(self):
        return {str(i): self.request.get_output_tensor(i).data for i in range(len(self.compiled.outputs))}


ENGINES = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


def resident(key):
    """Bytes of this process: VmRSS now, VmHWM at most so far."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return 0


def parse_shapes(texts):
    shapes = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        shapes[name] = [int(extent) for extent in value.split(",") if extent]
    return shapes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--engine", choices=list(ENGINES), required=True)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--shape", action="append", default=[])
    arguments = parser.parse_args()
    values = environment.prepare(arguments.threads)
    protocol.claim_output()
    try:
        __import__(arguments.engine)
    except ImportError as error:
        protocol.absent(error)
    before = resident("VmRSS")
    try:
        engine = ENGINES[arguments.engine](arguments.model, arguments.batch, arguments.threads, arguments.precision,
                                           parse_shapes(arguments.shape))
        engine.step()
    except Exception as error:
        protocol.fail(error)
    description = {"contender": engine.name, "model": arguments.model, "mode": "infer", "batch": arguments.batch,
                   "threads": arguments.threads, "settings": {"precision": arguments.precision}, "environment": values,
                   "memory": resident("VmHWM") - before}
    protocol.serve(description, engine.step, engine.results, engine)


if __name__ == "__main__":
    sys.exit(main())
