"""An ONNX file whose results have lengths that the data give, written field by field (onnx.proto): no package is asked for."""


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def field(number: int, value) -> bytes:
    """A number, or what has a length: bytes, text, or a message of fields."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def value_info(name: str, element: int, extents: list) -> bytes:
    shape = b''.join(field(1, field(1, extent) if isinstance(extent, int) else field(2, extent)) for extent in extents)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, shape)))


def node(name: str, kind: str, inputs: list, outputs: list) -> bytes:
    return b''.join(field(1, i) for i in inputs) + b''.join(field(2, o) for o in outputs) + field(3, name) + field(4, kind)


def detector() -> bytes:
    """Where a picture is bright, and the bright pixels: FLOAT is 1, INT64 7; the operator set is 13."""
    to_bool = field(5, field(1, 'to') + field(3, 9) + field(20, 2))
    nodes = [node('lit', 'Relu', ['picture'], ['lit']), node('line', 'Reshape', ['lit', 'minus_one'], ['all']),
             node('mask', 'Cast', ['all'], ['mask']) + to_bool, node('bright_NonZero', 'NonZero', ['lit'], ['where']),
             node('lit_pixels', 'Compress', ['picture', 'mask'], ['pixels'])]
    minus_one = field(1, 1) + field(2, 7) + field(8, 'minus_one') + field(9, b'\xff' * 8)
    graph = (b''.join(field(1, n) for n in nodes) + field(2, 'detector') + field(5, minus_one) +
             field(11, value_info('picture', 1, [1, 1, 16, 16])) +
             field(12, value_info('where', 7, [4, 'found'])) + field(12, value_info('pixels', 1, ['lit'])))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))
