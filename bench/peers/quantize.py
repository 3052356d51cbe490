#!/usr/bin/env python3
"""Puts an ONNX file on bytes with a peer's own tools, after training: what its int8 is timed with (README.md). Ours calibrates
itself, on the same samples.

    quantize.py --engine onnxruntime MODEL.onnx OUT.onnx    QuantizeLinear and DequantizeLinear around products, weights by channel
    quantize.py --engine openvino MODEL.onnx OUT.xml        by NNCF
    quantize.py --engine superstep MODEL.onnx OUT.npz       the samples themselves, of every input one after another

Calibrated on --samples random inputs as inputs.py makes them.
"""

import argparse
import os
import pathlib
import sys
import tempfile

import environment
import file_peer
import inputs

TRANSFORMERS = ("bert-small", "distilbert", "bert-base-128", "bert-base-384")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--engine", choices=["onnxruntime", "openvino", "superstep"], required=True)
    parser.add_argument("--name", help="the model's, where the file has another")
    parser.add_argument("--samples", type=int, default=16)
    return parser.parse_args()


def feeds(name, ports, samples):
    """Inputs of one sample each."""
    for seed in range(samples):
        yield {port: inputs.array(name, port, kind, file_peer.closed(port, extents, 1, {}), seed) for port, kind, extents in ports}


def with_onnxruntime(name, model, out, samples):
    import onnxruntime
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):
        def __init__(self, ports):
            self.left = feeds(name, ports, samples)

        def get_next(self):
            return next(self.left, None)

    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder) / "ready.onnx"
        quant_pre_process(str(model), str(ready), skip_symbolic_shape=True)
        session = onnxruntime.InferenceSession(str(ready), providers=["CPUExecutionProvider"])
        ports = [(port.name, file_peer.element(port.type), port.shape) for port in session.get_inputs()]
        # Sums of two bytes' products saturate where there are no dot products of bytes: weights of 7 bits then.
        narrow = not {"avx512_vnni", "avx_vnni"} & environment.processor_flags()
        quantization.quantize_static(str(ready), str(out), Reader(ports), quant_format=quantization.QuantFormat.QDQ,
                                     per_channel=True, reduce_range=narrow, activation_type=quantization.QuantType.QUInt8,
                                     weight_type=quantization.QuantType.QInt8)


def with_openvino(name, model, out, samples):
    import nncf
    import openvino
    read = openvino.Core().read_model(str(model))
    ports = [(port.get_any_name(), file_peer.element(port.get_element_type().get_type_name()),
              [d.get_length() if d.is_static else -1 for d in port.get_partial_shape()]) for port in read.inputs]
    kind = nncf.ModelType.TRANSFORMER if name in TRANSFORMERS else None
    quantized = nncf.quantize(read, nncf.Dataset(list(feeds(name, ports, samples))), subset_size=samples, model_type=kind)
    openvino.save_model(quantized, str(out), compress_to_fp16=False)


def for_superstep(name, model, out, samples):
    import numpy
    import onnxruntime
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    ports = [(port.name, file_peer.element(port.type), port.shape) for port in session.get_inputs()]
    drawn = list(feeds(name, ports, samples))
    with open(out, "wb") as file:
        numpy.savez(file, **{port: numpy.concatenate([feed[port] for feed in drawn]) for port, _, _ in ports})


def main():
    arguments = parse()
    make = {"onnxruntime": with_onnxruntime, "openvino": with_openvino, "superstep": for_superstep}[arguments.engine]
    fresh = arguments.out.with_name("fresh-%d." % os.getpid() + arguments.out.name)
    try:
        make(arguments.name or arguments.model.stem, arguments.model, fresh, arguments.samples)
        for suffix in (".bin", arguments.out.suffix):  # of OpenVINO the weights first: what is there is whole
            if fresh.with_suffix(suffix).exists():
                fresh.with_suffix(suffix).replace(arguments.out.with_suffix(suffix))
    finally:
        for suffix in (".bin", arguments.out.suffix):
            fresh.with_suffix(suffix).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
