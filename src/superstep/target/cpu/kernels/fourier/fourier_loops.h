// The loops of Fourier transforms over lines that lie side by side. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/fourier/fourier_plan.h"

namespace superstep::kernels {

// Rows of `lines` numbers each: element t of all lines. A real and an imaginary part; im null: zeros.
struct FourierRows {
  float *re, *im;
  std::int64_t step;  // floats from a row to the next
};

// A stage from x to y, which are apart. A stage in front of others reads rows `lines` apart, and writes them
// so, but for the first one's x and the last one's y.
struct FourierPass {
  const FourierStage* stage;
  FourierRows x, y;
  std::int64_t lines;
  float scale;
};

// y = x times numbers [row][re, im], for all lines.
struct FourierProduct {
  FourierRows x, y;
  const float* numbers;
  std::int64_t rows, lines;
};

// Lines between a tensor and rows. `element` floats lie between elements of a line, `line` between lines, and
// `imaginary` from a real part to its imaginary part, where that is not a tensor of its own (then 0).
struct FourierLines {
  float *re, *im;  // im null: none
  std::int64_t element, line;
  bool interleaved;
};
struct FourierTransfer {
  FourierLines tensor;
  FourierRows rows;
  std::int64_t count, lines;  // elements of each line
};

struct FourierLoops {
  std::int64_t lanes;
  void (*pass)(const FourierPass& pass);
  void (*multiply)(const FourierProduct& product);
  void (*gather)(const FourierTransfer& transfer);   // tensor -> rows
  void (*scatter)(const FourierTransfer& transfer);  // rows -> tensor
};

const FourierLoops& fourier_loops();  // for the instruction set in force

}  // namespace superstep::kernels
