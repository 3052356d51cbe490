#!/usr/bin/env python3
"""How fast a language model goes on with a text, beside llama.cpp on the same file: prompt and tokens after it apart.

    bench/language.py                                     a llama of 1.1 billion parameters
    bench/language.py --packings BF16 --layers 32 --width 4096 --heads 32 --key-heads 32 --inner 11008 --prompt 128 --most 8

A model of random weights is written for every packing (llama_weights.py; what it says is noise). Each round is a process of
each contender, the order drawn anew; the median of the rounds counts. Floors, measured before and after: decoding reads
every weight once, at the rate at which memory is read; a prompt is multiplied at the multiply-add peak in f32, of BF16 at that of pairs of
bf16 where the processor multiplies them faster. Needs
llama-cpp-python in BUILD/peers/venv for the second contender (`tools/setup-peers BUILD --llama`); goes without it.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKINGS = ("BF16", "Q8_0", "Q4_K")  # that llama_weights.py writes


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--packings", default=",".join(PACKINGS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of the prompt (default: 256)")
    parser.add_argument("--most", type=int, default=32, help="tokens after it (default: 32)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="write every round to this file")
    for name, default in (("layers", 22), ("width", 2048), ("heads", 32), ("key-heads", 4), ("inner", 5632), ("vocabulary", 8192)):
        parser.add_argument("--" + name, type=int, default=default)
    given = parser.parse_args()
    if wrong := set(given.packings.split(",")) - set(PACKINGS):
        parser.error(f"--packings: {', '.join(sorted(wrong))}: there are {', '.join(PACKINGS)}")
    return given


def floors(build, threads, folder):
    """Bytes per second read from memory, multiply-adds in f32, and in pairs of bf16 or, where these are no faster, in f32 (FLOP/s)."""
    result = folder / "peak.json"
    subprocess.run([build / "bench" / "peak", "--threads", str(threads), "--json", result], check=True, stdout=subprocess.DEVNULL)
    metrics = json.loads(result.read_text())[0]["metrics"]
    f32 = metrics["f32_fma"]["value"]
    return metrics["memory_read"]["value"], f32, max(f32, metrics.get("bf16_dot", {"value": 0})["value"])


def write_weights(a, packing, path):
    sizes = [f"--{name}={getattr(a, name.replace('-', '_'))}" for name in ("layers", "width", "heads", "key-heads", "inner", "vocabulary")]
    subprocess.run([sys.executable, HERE / "llama_weights.py", path, "--packing", packing, *sizes], check=True,
                   stdout=subprocess.DEVNULL)


def peak_of(command):
    """What a command printed and the peak of its resident memory."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, out, err, 1024 * usage.ru_maxrss


def ours(a, model, threads, prompt, folder):
    result = folder / "result.json"
    code, _, err, peak = peak_of([a.build / "superstep", "complete", model, "--tokens", prompt, "--most", a.most, "--ignore-end",
                                  "--threads", threads, "--json", result])
    if code != 0:
        sys.exit(err)
    found = json.loads(result.read_text())
    metrics = {name: value["value"] for name, value in found["metrics"].items()}
    return {"prompt": metrics["prefill_throughput"], "decode": metrics["decode_throughput"], "tokens": found["tokens"],
            "bytes": metrics["weight_bytes"], "flops_a_token": metrics["prefill_rate"] / metrics["prefill_throughput"],
            "resident": peak}


def theirs(a, model, threads, prompt, _folder):
    """None where llama.cpp is not installed."""
    python = a.build / "peers" / "venv" / "bin" / "python"
    if not python.exists():
        return None
    code, out, err, peak = peak_of([python, HERE / "peers" / "llama_peer.py", model, "--threads", threads, "--tokens", prompt,
                                    "--most", a.most])
    if code == 3:
        return None
    if code != 0:
        sys.exit(err or out)
    found = json.loads(out)
    return {"prompt": (prompt.count(",") + 1) / found["prompt_seconds"],
            "decode": len(found["token_seconds"]) / sum(found["token_seconds"]), "tokens": found["tokens"], "resident": peak,
            "name": found["contender"]}


def row(a, packing, model, threads, prompt, folder):
    before = floors(a.build, threads, folder)
    contenders, rounds = {"Superstep": ours, "llama.cpp": theirs}, {}
    for number in range(a.rounds):
        for name in random.Random(number).sample(list(contenders), len(contenders)):
            if rounds.get(name) != [None]:
                rounds.setdefault(name, []).append(contenders[name](a, model, threads, prompt, folder))
    after = floors(a.build, threads, folder)
    return {"packing": packing, "threads": threads, "memory_read": [before[0], after[0]], "f32_fma": [before[1], after[1]],
            "bf16": [before[2], after[2]],
            "rounds": {name: each for name, each in rounds.items() if each != [None]}}


def median(rounds, key):
    return statistics.median(one[key] for one in rounds)


def line(found):
    mine, peer = found["rounds"]["Superstep"], found["rounds"].get("llama.cpp")
    decode, prompt = median(mine, "decode"), median(mine, "prompt")
    of_memory = decode * mine[0]["bytes"] / max(found["memory_read"])
    of_peak = prompt * mine[0]["flops_a_token"] / max(found["bf16" if found["packing"] == "BF16" else "f32_fma"])
    cells = [found["packing"], str(found["threads"]), f"{decode:.1f}", f"{100 * of_memory:.0f} %", f"{prompt:.1f}", f"{100 * of_peak:.0f} %"]
    if not peer:
        return cells + ["-"] * 6
    same = next((i for i, (a, b) in enumerate(zip(mine[0]["tokens"], peer[0]["tokens"])) if a != b), len(peer[0]["tokens"]))
    return cells + [f"{median(peer, 'decode'):.1f}", f"{decode / median(peer, 'decode'):.2f}", f"{median(peer, 'prompt'):.1f}",
                    f"{prompt / median(peer, 'prompt'):.2f}", f"{median(mine, 'resident') / median(peer, 'resident'):.2f}",
                    f"{same} of {len(peer[0]['tokens'])}"]


HEADER = ["weights", "threads", "tokens/s", "of memory", "prompt, tokens/s", "of the peak", "llama.cpp", "ratio", "prompt", "ratio",
          "memory, ratio", "same tokens"]


def main():
    a = arguments()
    prompt = ",".join(str(1 + 7 * i % (a.vocabulary - 1)) for i in range(a.prompt))
    found = []
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for packing in a.packings.split(","):
            model = folder / f"{packing}.gguf"
            write_weights(a, packing, model)
            for threads in map(int, a.threads.split(",")):
                found.append(row(a, packing, model, threads, prompt, folder))
                print("| " + " | ".join(line(found[-1])) + " |", flush=True)
            model.unlink()
    if a.json:
        settings = {key: str(value) if isinstance(value, pathlib.Path) else value for key, value in vars(a).items()}
        a.json.write_text(json.dumps({"settings": settings, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
