"""Writes a Llama of any size with random weights, as Hugging Face's folders hold them, to measure how fast it goes: what it says is noise.

    python3 bench/llama_weights.py FOLDER                      the shape of Llama 2 of 7 billion parameters in bf16: 13.5 GB
    python3 bench/llama_weights.py FOLDER --layers 4 --width 512 --heads 8 --inner 1376 --vocabulary 1000
    superstep complete FOLDER --tokens 1,306,40 --most 16 --ignore-end

Needs nothing beside Python, and as much room on the disk as the weights take, which is looked at first. A million numbers of a normal
distribution are drawn and written over and over, from another place in them for every array, so that the disk sets the pace.
"""
import argparse
import array
import json
import pathlib
import random
import shutil
import struct
import sys

DRAWN = (1 << 20) + 7  # numbers: no power of two, so that rows of an array are not alike
SPREAD = 0.02          # their standard deviation, as such models begin with


def shapes(a):
    """Names and shapes, in the order of the file."""
    keys = a.width // a.heads * a.key_heads
    yield "model.embed_tokens.weight", (a.vocabulary, a.width)
    for i in range(a.layers):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (a.width,)
        yield layer + "self_attn.q_proj.weight", (a.width, a.width)
        yield layer + "self_attn.k_proj.weight", (keys, a.width)
        yield layer + "self_attn.v_proj.weight", (keys, a.width)
        yield layer + "self_attn.o_proj.weight", (a.width, a.width)
        yield layer + "post_attention_layernorm.weight", (a.width,)
        yield layer + "mlp.gate_proj.weight", (a.inner, a.width)
        yield layer + "mlp.up_proj.weight", (a.inner, a.width)
        yield layer + "mlp.down_proj.weight", (a.width, a.inner)
    yield "model.norm.weight", (a.width,)
    yield "lm_head.weight", (a.vocabulary, a.width)


def count_of(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def header_of(arrays):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in arrays:
        size = 2 * count_of(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 64)  # arrays begin at a cache line
    return struct.pack("<Q", len(text)) + text, at


def drawn_numbers(seed):
    """Random bf16: the upper halves of f32."""
    draw = random.Random(seed)
    numbers = array.array("f", (draw.gauss(0, SPREAD) for _ in range(DRAWN)))
    if sys.byteorder == "big":
        numbers.byteswap()
    halves = array.array("H", numbers.tobytes())[1::2]
    return halves.tobytes()


def write_array(file, numbers, first, count):
    at = 2 * (first % DRAWN)
    left = 2 * count
    while left > 0:
        part = numbers[at:at + left]
        file.write(part)
        left -= len(part)
        at = 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (("layers", 32), ("width", 4096), ("heads", 32), ("key-heads", 0), ("inner", 11008), ("vocabulary", 32000),
                        ("context", 4096), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"(default: {value or 'as many as heads'})")
    a = parser.parse_args()
    a.key_heads = a.key_heads or a.heads
    if min(a.layers, a.width, a.heads, a.inner, a.vocabulary) < 1 or a.width % a.heads or a.heads % a.key_heads:
        sys.exit("llama_weights: heads divide the width, key-heads divide the heads, and none is below 1")
    arrays = list(shapes(a))
    header, size = header_of(arrays)
    a.folder.mkdir(parents=True, exist_ok=True)
    room = shutil.disk_usage(a.folder).free
    if room < 1.02 * size:
        sys.exit(f"llama_weights: {a.folder}: the weights take {size / 1e9:.1f} GB and {room / 1e9:.1f} are free")
    (a.folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "num_hidden_layers": a.layers, "hidden_size": a.width, "num_attention_heads": a.heads,
        "num_key_value_heads": a.key_heads, "intermediate_size": a.inner, "vocab_size": a.vocabulary,
        "max_position_embeddings": a.context, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}, indent=1) + "\n")
    numbers = drawn_numbers(a.seed)
    one = struct.pack("<f", 1)[2:]
    with open(a.folder / "model.safetensors.part", "wb") as file:
        file.write(header)
        for i, (name, shape) in enumerate(arrays):
            if len(shape) == 1:
                file.write(one * count_of(shape))  # norms begin with ones
            else:
                write_array(file, numbers, 7919 * i, count_of(shape))
    (a.folder / "model.safetensors.part").rename(a.folder / "model.safetensors")
    print(f"{a.folder}: {sum(count_of(shape) for _, shape in arrays):,} parameters, {size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
