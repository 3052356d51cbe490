#include "superstep/target/cpu/kernels/winograd_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/winograd_grid.h"
#include "superstep/target/cpu/kernels/winograd_loops.h"

namespace superstep::kernels {

namespace {

constexpr double multiply_adds_a_cycle = 32;  // two vectors of 16
constexpr double call_cycles = 25;            // of a matrix product
constexpr double gain_wanted = 0.9;           // of the direct time: estimates are not exact

// Cycles of the transforms a tile of 2, 3, 4 for 16 channels of one sample.
struct TransformCycles {
  double input, output, output_gradient, filter, filter_gradient;
};
constexpr TransformCycles transforms[] = {
    {45, 45, 45, 40, 60}, {95, 85, 80, 70, 90}, {125, 135, 120, 110, 130}};
constexpr double piece_cycles = 35;  // of a transform's call: once a tile

const TransformCycles& transform_of(std::int64_t tile) { return transforms[tile - smallest_winograd_tile]; }

double vectors(std::int64_t channels) { return static_cast<double>((channels + 15) / 16); }

// Reading bytes that the second-level cache may hold costs nothing beside the products; from the third level
// and from memory they come at these rates, and nobody knows who used them last.
double reading_cycles(double bytes) {
  if (bytes <= 512 * 1024) return 0;
  return bytes / (bytes <= 4 * 1024 * 1024 ? 12 : 5);
}

struct Sides {
  const Image &result, &source;
};
Sides sides_of(const Convolution& c, ConvolutionPass pass) {
  return pass == ConvolutionPass::forward ? Sides{c.y, c.x} : Sides{c.x, c.y};
}

double weight_count(const Convolution& c) { return static_cast<double>(c.x.channels * c.y.channels); }

double forward_cycles(const Convolution& c, ConvolutionPass pass, std::int64_t tile) {
  const Sides side = sides_of(c, pass);
  const WinogradGrid grid(tile, side.result);
  const auto planes = static_cast<double>(grid.planes()), columns = static_cast<double>(grid.count()),
             depth = static_cast<double>(side.source.channels);
  const double in = vectors(side.source.channels), out = vectors(side.result.channels);
  // As many blocks as winograd.cpp makes, nearly.
  const double block = std::max(24.0, 448 * 1024 / (planes * 64 * (in + std::min(out, 4.0))));
  const double blocks = std::max(1.0, columns / block), panels = std::max(1.0, out / 4);
  const TransformCycles& t = transform_of(tile);
  const double products = planes * (columns * out * (depth / 2 + 2) + blocks * panels * call_cycles);
  const double pieces = columns / static_cast<double>(grid.batch) * (1 + panels) * piece_cycles;
  const double bytes = 4 * planes * weight_count(c);
  double cycles = products + columns * (in * t.input + out * t.output) + pieces +
                  std::max(reading_cycles(bytes), (blocks - 1) * std::min(bytes / 16, reading_cycles(bytes)));
  if (!c.constant_weights)
    cycles += weight_count(c) / 16 * t.filter + (bytes > 4 * 1024 * 1024 ? 2 * reading_cycles(bytes) : 0);
  return cycles;
}

double weight_gradient_cycles(const Convolution& c, std::int64_t tile) {
  const WinogradGrid grid(tile, c.y);
  const auto planes = static_cast<double>(grid.planes()), columns = static_cast<double>(grid.count()),
             channels = static_cast<double>(c.x.channels);
  const double in = vectors(c.x.channels), out = vectors(c.y.channels);
  const double block = std::max(32.0, 640 * 1024 / (planes * 64 * (std::min(in, 4.0) + std::min(out, 4.0))));
  const double blocks = std::max(1.0, columns / block);
  const double chunks = std::max(1.0, in / 4), panels = std::max(1.0, out / 4);
  const TransformCycles& t = transform_of(tile);
  const double products =
      planes * (out * channels * (columns / 2 + 3 * blocks) + blocks * chunks * panels * call_cycles);
  const double pieces = columns / static_cast<double>(grid.batch) * chunks * panels * 2 * piece_cycles;
  return products + columns * (in * panels * t.input + out * chunks * t.output_gradient) + pieces +
         channels * out * t.filter_gradient;
}

}  // namespace

double direct_cycles(const Convolution& c, ConvolutionPass pass) {
  const auto padded = [](std::int64_t along, std::int64_t other) {
    return 16 * vectors(along) * static_cast<double>(other);
  };
  const double products = multiply_adds(c) / weight_count(c);
  if (pass == ConvolutionPass::weight_gradient)  // the better filled side lies along the vectors
    return products * std::min(padded(c.y.channels, c.x.channels), padded(c.x.channels, c.y.channels)) /
           (0.97 * multiply_adds_a_cycle);
  const Sides side = sides_of(c, pass);
  return products * padded(side.result.channels, side.source.channels) / (0.92 * multiply_adds_a_cycle) +
         reading_cycles(36 * weight_count(c));
}

double winograd_cycles(const Convolution& c, ConvolutionPass pass, std::int64_t tile) {
  return pass == ConvolutionPass::weight_gradient ? weight_gradient_cycles(c, tile)
                                                  : forward_cycles(c, pass, tile);
}

template <ConvolutionPass pass>
Prepared prepare_winograd(const Convolution& c) {
  if (std::string fault = winograd_fault(c); !fault.empty()) return refuse("winograd", fault);
  std::int64_t best = smallest_winograd_tile;
  for (std::int64_t tile = best + 1; tile <= largest_winograd_tile; ++tile)
    if (winograd_cycles(c, pass, tile) < winograd_cycles(c, pass, best)) best = tile;
  const double share = winograd_cycles(c, pass, best) / direct_cycles(c, pass);
  if (share > gain_wanted)
    return refuse("winograd",
                  fmt::format("estimated at {:.2f} of the direct time, with tiles of {}", share, best));
  if (pass == ConvolutionPass::forward) return prepare_winograd_forward(c, best, ProductMaker::libxsmm);
  if (pass == ConvolutionPass::input_gradient)
    return prepare_winograd_input_gradient(c, best, ProductMaker::libxsmm);
  return prepare_winograd_weight_gradient(c, best, ProductMaker::libxsmm);
}

template Prepared prepare_winograd<ConvolutionPass::forward>(const Convolution&);
template Prepared prepare_winograd<ConvolutionPass::input_gradient>(const Convolution&);
template Prepared prepare_winograd<ConvolutionPass::weight_gradient>(const Convolution&);

}  // namespace superstep::kernels
