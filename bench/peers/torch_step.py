#!/usr/bin/env python3
"""A few training steps of a model in PyTorch and nothing else: what `../memory.py` takes the peak memory of.

Without the search of torch_peer.py, which would keep several models at a time, and without the settings that trade memory
for speed (environment.py keeps freed memory with the process).
"""

import argparse
import types

import torch

import torch_setups


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a name in models.py")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--optimizer", default="single", choices=["single", "foreach"])
    parser.add_argument("--layout", default="contiguous", choices=["contiguous", "channels_last"])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = {"graph": "eager", "layout": arguments.layout, "onednn": "on", "optimizer": arguments.optimizer,
                "gradients": "dropped"}
    setup = torch_setups.training(types.SimpleNamespace(model=arguments.model, batch=arguments.batch, seed=1, precision="f32"), settings)
    for _ in range(arguments.steps):
        setup.step()


if __name__ == "__main__":
    main()
