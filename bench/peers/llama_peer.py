#!/usr/bin/env python3
"""llama.cpp through its Python package's C functions: a prompt and the tokens after it, each timed apart.

    llama_peer.py FILE.gguf --threads 2 --prompt 480 --most 32

Prints one line of JSON: seconds of the prompt, of every token after it, the tokens, the peak of resident memory. Exit
status 3 with the reason where the package is not installed. The likeliest token is taken, as `superstep complete` does.
"""

import argparse
import ctypes
import json
import resource
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", required=True, help="the prompt, numbers of tokens: 1,306,40")
    parser.add_argument("--most", type=int, default=32)
    return parser.parse_args()


def opened(llama, path, threads, positions):
    """A model and a context of it. Log messages go nowhere."""
    quiet = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(quiet, ctypes.c_void_p(0))
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
    if not model:
        sys.exit(f"llama_peer: {path}: llama.cpp does not read it")
    settings = llama.llama_context_default_params()
    settings.n_ctx = settings.n_batch = positions
    settings.n_threads = settings.n_threads_batch = threads
    context = llama.llama_init_from_model(model, settings)
    if not context:
        sys.exit("llama_peer: no context")
    return model, context, quiet


def main():
    a = arguments()
    try:
        import llama_cpp as llama
    except ImportError as error:
        print(f"absent: {error}")
        sys.exit(3)
    prompt = [int(token) for token in a.tokens.split(",")]
    model, context, _quiet = opened(llama, a.model, a.threads, len(prompt) + a.most + 8)
    vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))

    def feed(tokens):
        begun = time.perf_counter()
        array = (llama.llama_token * len(tokens))(*tokens)
        if llama.llama_decode(context, llama.llama_batch_get_one(array, len(tokens))) != 0:
            sys.exit("llama_peer: llama_decode failed")
        scores = llama.llama_get_logits_ith(context, -1)
        seconds = time.perf_counter() - begun
        return seconds, max(range(vocabulary), key=lambda token: scores[token])

    first, token = feed(prompt)
    found, seconds = [token], []
    for _ in range(a.most - 1):
        took, token = feed([token])
        seconds.append(took)
        found.append(token)
    print(json.dumps({"contender": "llama.cpp by llama-cpp-python " + llama.__version__, "prompt_seconds": first,
                      "token_seconds": seconds, "tokens": found,
                      "resident_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    main()
