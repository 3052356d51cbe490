"""Writes a Llama of any size with random weights, as Hugging Face's folders hold them or as one file of GGUF, to measure how fast it goes: what it says is noise.

    python3 bench/llama_weights.py FOLDER                      the shape of Llama 2 of 7 billion parameters in bf16: 13.5 GB
    python3 bench/llama_weights.py FOLDER --layers 4 --width 512 --heads 8 --inner 1376 --vocabulary 1000
    python3 bench/llama_weights.py FILE.gguf --packing Q4_K    one file, weights in blocks (Q8_0, Q4_K) or numbers (BF16), as llama.cpp
                                                               reads them, too
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


def write_array(file, units, unit, first, count):
    """`count` of the drawn units, of `unit` bytes each, from one on."""
    at = unit * (first % (len(units) // unit))
    left = unit * count
    while left > 0:
        part = units[at:at + left]
        file.write(part)
        left -= len(part)
        at = 0


# --- GGUF, version 3

TEXT, U32, F32 = 8, 4, 6  # types of its notes
ALIGNMENT = 32
NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def half(value):
    return struct.pack("<e", value)


def drawn_blocks(draw, head, body):
    """What is packed is as good as any other bytes; scales are of weights as spread as those above."""
    count = 32749  # a prime, as DRAWN is
    return b"".join(head + draw.randbytes(body) for _ in range(count))


# By name: the number of the type in the file, weights and bytes of a unit, and what draws many of them.
PACKINGS = {"BF16": (30, 1, 2, drawn_numbers),
            "Q8_0": (8, 32, 34, lambda seed: drawn_blocks(random.Random(seed), half(SPREAD / 73), 32)),
            "Q4_K": (12, 256, 144, lambda seed: drawn_blocks(random.Random(seed), half(SPREAD / 200) + half(SPREAD / 27), 140))}


def gguf_name(name):
    name = name.removesuffix(".weight")
    if not name.startswith("model.layers."):
        return NAMES[name] + ".weight"
    number, _, rest = name.removeprefix("model.layers.").partition(".")
    return f"blk.{number}.{NAMES[rest]}.weight"


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_notes(a):
    notes = [("general.architecture", TEXT, "llama"), ("llama.block_count", U32, a.layers), ("llama.embedding_length", U32, a.width),
             ("llama.feed_forward_length", U32, a.inner), ("llama.context_length", U32, a.context),
             ("llama.attention.head_count", U32, a.heads), ("llama.attention.head_count_kv", U32, a.key_heads),
             ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5), ("llama.rope.freq_base", F32, 10000.0),
             ("llama.vocab_size", U32, a.vocabulary), ("tokenizer.ggml.model", TEXT, "no_vocab")]
    written = b"".join(gguf_text(name) + struct.pack("<I", kind) +
                       (gguf_text(value) if kind == TEXT else struct.pack("<I" if kind == U32 else "<f", value))
                       for name, kind, value in notes)
    return len(notes), written


def packing_of(a, shape):
    """Norms are f32; so are they there."""
    return (0, 1, 4, None) if len(shape) == 1 else PACKINGS[a.packing]


def gguf_header(a, arrays):
    count, notes = gguf_notes(a)
    infos, at = b"", 0
    for name, shape in arrays:
        kind, values, size, _ = packing_of(a, shape)
        infos += gguf_text(gguf_name(name)) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, at)
        at += aligned(count_of(shape) // values * size)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(arrays), count) + notes + infos
    return header + bytes(aligned(len(header)) - len(header)), at


def aligned(size):
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def write_gguf(a, arrays):
    header, size = gguf_header(a, arrays)
    require_room(a.where.parent, size)
    _, values, unit, draw = PACKINGS[a.packing]
    units, part = draw(a.seed), a.where.with_suffix(".part")
    with open(part, "wb") as file:
        file.write(header)
        for i, (_, shape) in enumerate(arrays):
            if len(shape) == 1:
                file.write(struct.pack("<f", 1) * count_of(shape))
            else:
                write_array(file, units, unit, 7919 * i, count_of(shape) // values)
            file.write(bytes(-file.tell() % ALIGNMENT))
    part.rename(a.where)
    return size


# --- Hugging Face's folders


def require_room(folder, size):
    folder.mkdir(parents=True, exist_ok=True)
    room = shutil.disk_usage(folder).free
    if room < 1.02 * size:
        sys.exit(f"llama_weights: {folder}: the weights take {size / 1e9:.1f} GB and {room / 1e9:.1f} are free")


def write_folder(a, arrays):
    header, size = header_of(arrays)
    require_room(a.where, size)
    (a.where / "config.json").write_text(json.dumps({
        "model_type": "llama", "num_hidden_layers": a.layers, "hidden_size": a.width, "num_attention_heads": a.heads,
        "num_key_value_heads": a.key_heads, "intermediate_size": a.inner, "vocab_size": a.vocabulary,
        "max_position_embeddings": a.context, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}, indent=1) + "\n")
    numbers = drawn_numbers(a.seed)
    one = struct.pack("<f", 1)[2:]
    with open(a.where / "model.safetensors.part", "wb") as file:
        file.write(header)
        for i, (_, shape) in enumerate(arrays):
            if len(shape) == 1:
                file.write(one * count_of(shape))  # norms begin with ones
            else:
                write_array(file, numbers, 2, 7919 * i, count_of(shape))
    (a.where / "model.safetensors.part").rename(a.where / "model.safetensors")
    return size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", type=pathlib.Path, metavar="FOLDER|FILE.gguf")
    parser.add_argument("--packing", choices=PACKINGS, default="BF16", help="of the matrices in a file of GGUF (default: BF16)")
    for name, value in (("layers", 32), ("width", 4096), ("heads", 32), ("key-heads", 0), ("inner", 11008), ("vocabulary", 32000),
                        ("context", 4096), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"(default: {value or 'as many as heads'})")
    a = parser.parse_args()
    a.key_heads = a.key_heads or a.heads
    if min(a.layers, a.width, a.heads, a.inner, a.vocabulary) < 1 or a.width % a.heads or a.heads % a.key_heads:
        sys.exit("llama_weights: heads divide the width, key-heads divide the heads, and none is below 1")
    unit = PACKINGS[a.packing][1]
    if a.width % unit or a.inner % unit:
        sys.exit(f"llama_weights: {a.packing} packs {unit} weights together, which divide --width and --inner")
    arrays = list(shapes(a))
    size = write_gguf(a, arrays) if a.where.suffix == ".gguf" else write_folder(a, arrays)
    print(f"{a.where}: {sum(count_of(shape) for _, shape in arrays):,} parameters, {size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
