#!/usr/bin/env python3
"""SciPy's Fourier transforms (pocketfft) on the shapes that build/bench/kernels/bench_volume_kernels prints, on one thread:
complex numbers of f32 in, a new array out, the best of some rounds.

    build/oracles/bin/python bench/fourier_peers.py       SciPy is among what tools/setup-oracles installs
"""
import math
import time

import numpy
import scipy
import scipy.fft

SHAPES = [(64, 64, 64), (32, 32, 32), (128, 128, 128), (60, 60, 60), (256, 256), (37, 41, 43)]
ROUNDS, RUNS = 7, 5


def best_seconds(x):
    best = math.inf
    for _ in range(ROUNDS * RUNS):
        begun = time.perf_counter()
        scipy.fft.fftn(x, workers=1)
        best = min(best, time.perf_counter() - begun)
    return best


def main():
    print(f"SciPy {scipy.__version__}")
    for shape in SHAPES:
        x = numpy.full(shape, 0.5 - 0.25j, numpy.complex64)
        assert scipy.fft.fftn(x).dtype == numpy.complex64
        seconds = best_seconds(x)
        flops = 5 * x.size * math.log2(x.size)
        print(f"{'x'.join(map(str, shape)):14} {1e6 * seconds:9.1f} us {1e-9 * flops / seconds:6.2f} GFLOP/s")


if __name__ == "__main__":
    main()
