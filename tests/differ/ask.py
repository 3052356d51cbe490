"""What computes a graph: our targets, in a program that answers requests (differ.cpp), and ONNX Runtime."""
import struct
import subprocess

import numpy as np
import onnxruntime

from draw import NAMES, TYPES

TARGETS = ("reference", "cpu", "gc200")


class Refused(Exception):
    def __init__(self, code, what):
        super().__init__(what)
        self.code, self.what = code, what


class Ours:
    """Results by target: a list of arrays, or Refused. A program that dies is an answer, too."""

    def __init__(self, program, targets=TARGETS):
        self.program, self.targets, self.process = program, targets, None

    def start(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, model, inputs):
        if self.process is None:
            self.start()
        request = [text(model), text(",".join(self.targets).encode()), struct.pack("<I", len(inputs))]
        for name, array in inputs.items():
            request += [text(name.encode()), tensor(array)]
        try:
            self.process.stdin.write(b"".join(request))
            self.process.stdin.flush()
            return {target: self.read_answer() for target in self.targets}
        except (EOFError, BrokenPipeError):
            status = self.process.wait()
            self.process = None
            return {target: Refused("crash", f"the program ended with {status}") for target in self.targets}

    def read(self, count):
        data = self.process.stdout.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def number(self, form):
        return struct.unpack("<" + form, self.read(struct.calcsize("<" + form)))[0]

    def read_text(self):
        return self.read(self.number("I")).decode(errors="replace")

    def read_answer(self):
        if not self.number("B"):
            return Refused(self.read_text(), self.read_text())
        results = {}
        for _ in range(self.number("I")):
            name, kind = self.read_text(), self.read_text()
            shape = [self.number("q") for _ in range(self.number("I"))]
            numpy = np.dtype(TYPES[kind][0])
            count = int(np.prod(shape, dtype=np.int64))
            results[name] = np.frombuffer(self.read(count * numpy.itemsize), numpy).reshape(shape)
        return results

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def text(data):
    return struct.pack("<I", len(data)) + data


def tensor(array):
    extents = b"".join(struct.pack("<q", extent) for extent in array.shape)
    return text(NAMES[array.dtype].encode()) + struct.pack("<I", array.ndim) + extents + np.ascontiguousarray(array).tobytes()


class OnnxRuntime:
    def __init__(self):
        onnxruntime.set_default_logger_severity(4)
        self.options = onnxruntime.SessionOptions()
        self.options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.options.intra_op_num_threads = self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 4

    def ask(self, model, inputs):
        try:
            session = onnxruntime.InferenceSession(model, self.options, providers=["CPUExecutionProvider"])
        except Exception as error:
            return Refused("load", str(error))
        try:
            names = [output.name for output in session.get_outputs()]
            return dict(zip(names, session.run(names, inputs)))
        except Exception as error:
            return Refused("run", str(error))
