"""Damage, reproducible from a seed."""
import random
import re

EXTREMES = ['0', '-1', '1e999', 'NaN', '99999999999999999999', '9223372036854775807', '-9223372036854775808', '""', '[]',
            '{}', 'null', '1e-320']


def mutated(data: bytes, seed: int) -> bytes:
    draw = random.Random(seed)
    kinds = [flip_bits, cut, overwrite, remove, repeat, extreme_integer]
    if is_text(data):
        kinds += [extreme_number, swap_lines]
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        data = draw.choice(kinds)(bytearray(data), draw)
    return data


def is_text(data: bytes) -> bool:
    return b'\0' not in data[:4096]


def place(data, draw):
    """Somewhere; headers and tables at either end more often than their share."""
    if not data:
        return 0
    near = min(len(data), 2048)
    return draw.choice((draw.randrange(len(data)), draw.randrange(near), len(data) - 1 - draw.randrange(near)))


def flip_bits(data, draw):
    for _ in range(draw.choice((1, 1, 2, 8, 64))):
        if data:
            data[place(data, draw)] ^= 1 << draw.randrange(8)
    return bytes(data)


def cut(data, draw):
    return bytes(data[:place(data, draw)])


def overwrite(data, draw):
    at, length = place(data, draw), draw.choice((1, 4, 8, 64, 512))
    filling = draw.choice((b'\0' * length, b'\xff' * length, draw.randbytes(length)))
    return bytes(data[:at]) + filling + bytes(data[at + length:])


def remove(data, draw):
    at = place(data, draw)
    return bytes(data[:at]) + bytes(data[at + draw.choice((1, 2, 8, 100)):])


def repeat(data, draw):
    at, length = place(data, draw), draw.choice((1, 8, 100))
    return bytes(data[:at + length]) + bytes(data[at:])


def extreme_integer(data, draw):
    at, size = place(data, draw), draw.choice((1, 2, 4, 8))
    value = draw.choice((0, 1, (1 << 8 * size) - 1, 1 << (8 * size - 1), (1 << (8 * size - 1)) - 1))
    data[at:at + size] = value.to_bytes(size, draw.choice(('little', 'big')))
    return bytes(data)


def extreme_number(data, draw):
    numbers = list(re.finditer(rb'-?\d[\d.eE+-]*', bytes(data)))
    if not numbers:
        return bytes(data)
    found = draw.choice(numbers)
    return bytes(data[:found.start()]) + draw.choice(EXTREMES).encode() + bytes(data[found.end():])


def swap_lines(data, draw):
    lines = bytes(data).split(b'\n')
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b'\n'.join(lines)
