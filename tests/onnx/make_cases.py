"""Writes the operator cases of the installed `onnx` Python package, which may be newer than the packaged test
data, as folders that `superstep onnx test` runs.

  make_cases.py FOLDER
"""
import os
import sys

from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases


def to_proto(value, info):
    if isinstance(value, TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(value, info.name)


def write(folder, case):
    graph = case.model.graph
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())
    for number, data in enumerate(case.data_sets):
        data_folder = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data_folder, exist_ok=True)
        for kind, values, infos in zip(("input", "output"), data, (graph.input, graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                with open(os.path.join(data_folder, f"{kind}_{i}.pb"), "wb") as file:
                    file.write(to_proto(value, info).SerializeToString())


def main():
    written, failed = 0, []
    for case in collect_testcases(None):
        try:
            write(os.path.join(sys.argv[1], case.name), case)
            written += 1
        except Exception as error:  # a case that this package itself cannot write is no case for us
            failed.append(f"{case.name}: {error}")
    print(f"{written} cases written")
    for line in failed:
        print("not written:", line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
