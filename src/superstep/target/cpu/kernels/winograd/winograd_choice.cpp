#include "superstep/target/cpu/kernels/winograd/winograd_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/system/pair_rate.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/winograd/winograd_grid.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"

namespace superstep::kernels {

namespace {

// Two vectors of 16, or of 16 pairs where the instruction set multiplies those.
double multiply_adds_a_cycle(ElementType products) {
  return multiplied_as(products) == ElementType::bf16 ? 64 : 32;
}
// What products of pairs take beside f32's: of their rate the share that Winograd's small products reach (a
// little work for each vector of results, added there, aside); cycles of a position of a bf16 image, brought
// to f32 before its transform, and of one of a result, rounded to bf16; how many times as fast weights come.
struct PairCosts {
  double rate, widened, narrowed, reading;
};
// Where two products begin in a cycle (Zen 5), and where one does (Zen 4): cycles are counted in products, so
// that caches and conversions give about twice as much in one. Layers of 16 to 128 channels lie within a
// fifth of the clock there; by the first they were expected to take 1.4 to 1.8 times as long as they do.
constexpr PairCosts of_two{.rate = 0.8, .widened = 1.5, .narrowed = 4, .reading = 1},
    of_one{.rate = 1, .widened = 1, .narrowed = 2, .reading = 2};

// Of products in f32 the first, whatever the processor.
const PairCosts& costs_of(ElementType products) {
  const bool one = multiplied_as(products) == ElementType::bf16 &&
                   instruction_set() == InstructionSet::avx512_bf16 && !begins_two_pair_products();
  return one ? of_one : of_two;
}

double winograd_rate(ElementType products) {
  const double rate = multiply_adds_a_cycle(products);
  return rate > 32 ? costs_of(products).rate * rate : rate;
}
constexpr double call_cycles = 25;   // of a matrix product
constexpr double gain_wanted = 0.9;  // of the direct time: estimates are not exact

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

// Of one tap of a plane; `depth` planes are under the window.
double weight_count(const Convolution& c) {
  return static_cast<double>(c.window.depth * c.x.channels * c.y.channels);
}

// Of a transform, for 16 channels of one sample of an image.
double input_cycles(const Image& image, std::int64_t side, double cycles, const PairCosts& costs) {
  return cycles + (image.type == ElementType::bf16 ? static_cast<double>(side * side) * costs.widened : 0);
}

double forward_cycles(const Convolution& c, ConvolutionPass pass, const WinogradForm& form) {
  const Sides side = sides_of(c, pass);
  const WinogradGrid grid(form.tile, side.result);
  const PairCosts& costs = costs_of(form.products);
  const auto planes = static_cast<double>(grid.planes()),
             columns = static_cast<double>(grid.count() * side.result.planes),
             depth = static_cast<double>(side.source.channels * c.window.depth),
             size = static_cast<double>(size_in_bytes(form.products));
  const double in = vectors(side.source.channels), out = vectors(side.result.channels);
  // As many blocks as winograd.cpp makes, nearly; of volumes each transforms planes that its neighbour has,
  // too.
  const auto together = static_cast<double>(winograd_block_planes(side.result.planes));
  const double read = (together + static_cast<double>(c.window.depth) - 1) / together;
  const double block =
      std::max(24.0, 448 * 1024 / (planes * 16 * (size * in * read + 4 * std::min(out, 4.0))));
  const double blocks = std::max(1.0, columns / block), panels = std::max(1.0, out / 4);
  const TransformCycles& t = transform_of(form.tile);
  const double products = planes * (columns * out * (16 * depth / winograd_rate(form.products) + 2) +
                                    blocks * panels * call_cycles);
  const double pieces = columns / static_cast<double>(grid.batch) * (1 + panels) * piece_cycles;
  const double narrowed =
      side.result.type == ElementType::bf16 ? static_cast<double>(form.tile * form.tile) * costs.narrowed : 0;
  const double bytes = size * planes * weight_count(c), read_once = reading_cycles(bytes) / costs.reading;
  double cycles = products +
                  columns * (in * read * input_cycles(side.source, form.tile + 2, t.input, costs) +
                             out * (t.output + narrowed)) +
                  pieces +
                  std::max(read_once, (blocks - 1) * std::min(bytes / 16 / costs.reading, read_once));
  if (!c.constant_weights)
    cycles += weight_count(c) / 16 * t.filter + (bytes > 4 * 1024 * 1024 ? 2 * read_once : 0);
  return cycles;
}

double weight_gradient_cycles(const Convolution& c, const WinogradForm& form) {
  const WinogradGrid grid(form.tile, c.y);
  const auto planes = static_cast<double>(grid.planes()), columns = static_cast<double>(grid.count()),
             channels = static_cast<double>(c.x.channels),
             size = static_cast<double>(size_in_bytes(form.products));
  const double in = vectors(c.x.channels), out = vectors(c.y.channels);
  const double block =
      std::max(32.0, 640 * 1024 / (planes * 16 * size * (std::min(in, 4.0) + std::min(out, 4.0))));
  const double blocks = std::max(1.0, columns / block);
  const double chunks = std::max(1.0, in / 4), panels = std::max(1.0, out / 4);
  const TransformCycles& t = transform_of(form.tile);
  const PairCosts& costs = costs_of(form.products);
  const double products =
      planes * (out * channels * (16 * columns / winograd_rate(form.products) + 3 * blocks) +
                blocks * chunks * panels * call_cycles);
  const double pieces = columns / static_cast<double>(grid.batch) * chunks * panels * 2 * piece_cycles;
  return products +
         columns * (in * panels * input_cycles(c.x, form.tile + 2, t.input, costs) +
                    out * chunks * input_cycles(c.y, form.tile, t.output_gradient, costs)) +
         pieces + channels * out * t.filter_gradient;
}

}  // namespace

double direct_cycles(const Convolution& c, ConvolutionPass pass) {
  const auto padded = [](std::int64_t along, std::int64_t other) {
    return 16 * vectors(along) * static_cast<double>(other);
  };
  const double products = multiply_adds(c) / static_cast<double>(c.x.channels * c.y.channels);
  const Sides side = sides_of(c, pass);
  const ElementType type = side.source.type;
  const double rate = multiply_adds_a_cycle(type);
  if (pass == ConvolutionPass::weight_gradient)  // the better filled side lies along the vectors
    return products * std::min(padded(c.y.channels, c.x.channels), padded(c.x.channels, c.y.channels)) /
           (0.97 * rate);
  return products * padded(side.result.channels, side.source.channels) / (0.92 * rate) +
         reading_cycles(9 * static_cast<double>(size_in_bytes(type)) * weight_count(c));
}

double winograd_cycles(const Convolution& c, ConvolutionPass pass, const WinogradForm& form) {
  return pass == ConvolutionPass::weight_gradient ? weight_gradient_cycles(c, form)
                                                  : forward_cycles(c, pass, form);
}

namespace {

// Products in bf16 pay where the instruction set has them, where the images are of that type and as exact.
bool may_be_narrow(const Convolution& c, ConvolutionPass pass, std::int64_t tile) {
  if (multiply_adds_a_cycle(ElementType::bf16) == multiply_adds_a_cycle(ElementType::f32)) return false;
  const Image& source = sides_of(c, pass).source;
  if (source.type != ElementType::bf16 || winograd_bf16_noise(tile) > winograd_noise_allowed) return false;
  return pass == ConvolutionPass::weight_gradient ? c.y.type == ElementType::bf16 : source.channels % 2 == 0;
}

WinogradForm fastest_form(const Convolution& c, ConvolutionPass pass) {
  WinogradForm best{smallest_winograd_tile};
  const auto consider = [&](const WinogradForm& form) {
    if (winograd_cycles(c, pass, form) < winograd_cycles(c, pass, best)) best = form;
  };
  for (std::int64_t tile = smallest_winograd_tile; tile <= largest_winograd_tile; ++tile) {
    consider({tile, ElementType::f32});
    if (may_be_narrow(c, pass, tile)) consider({tile, ElementType::bf16});
  }
  return best;
}

}  // namespace

double expected_cycles(const Convolution& c, ConvolutionPass pass) {
  const double direct = direct_cycles(c, pass);
  if (!winograd_fault(c, pass).empty()) return direct;
  const double winograd = winograd_cycles(c, pass, fastest_form(c, pass));
  return winograd > gain_wanted * direct ? direct : winograd;
}

template <ConvolutionPass pass>
Prepared prepare_winograd(const Convolution& c) {
  if (std::string fault = winograd_fault(c, pass); !fault.empty()) return refuse("winograd", fault);
  const WinogradForm best = fastest_form(c, pass);
  const double share = winograd_cycles(c, pass, best) / direct_cycles(c, pass);
  if (share > gain_wanted)
    return refuse("winograd",
                  fmt::format("estimated at {:.2f} of the direct time, with tiles of {}{}", share, best.tile,
                              sides_of(c, pass).source.type == best.products
                                  ? ""
                                  : fmt::format(" in {}", superstep::name_of(best.products))));
  if (pass == ConvolutionPass::forward) return prepare_winograd_forward(c, best, ProductMaker::libxsmm);
  if (pass == ConvolutionPass::input_gradient)
    return prepare_winograd_input_gradient(c, best, ProductMaker::libxsmm);
  return prepare_winograd_weight_gradient(c, best, ProductMaker::libxsmm);
}

template Prepared prepare_winograd<ConvolutionPass::forward>(const Convolution&);
template Prepared prepare_winograd<ConvolutionPass::input_gradient>(const Convolution&);
template Prepared prepare_winograd<ConvolutionPass::weight_gradient>(const Convolution&);

extern constinit const Implementation<Convolution> winograd_forward{
    "winograd", prepare_winograd<ConvolutionPass::forward>};
extern constinit const Implementation<Convolution> winograd_input_gradient{
    "winograd", prepare_winograd<ConvolutionPass::input_gradient>};
extern constinit const Implementation<Convolution> winograd_weight_gradient{
    "winograd", prepare_winograd<ConvolutionPass::weight_gradient>};

}  // namespace superstep::kernels
