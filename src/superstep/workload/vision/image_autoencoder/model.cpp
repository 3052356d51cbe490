// A residual image auto-encoder around one bottleneck, as a stand-in for learned compression (A. Nasari et
// al., PEARC '22, doi 10.1145/3491418.3530772, section 3.4). The paper names residual blocks, one bottleneck
// and 28x28 images; the layers are chosen here.
//
// image f32 [N, 1, 28, 28] -> recon f32 [N, 1, 28, 28], code f32 [N, 16, 7, 7].
#include <fmt/format.h>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/vision/image_autoencoder/image_autoencoder.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr op::ConvAttributes same_size() { return {.pads = {1, 1, 1, 1}}; }

Var residual_block(Layers& layers, Var x, const std::string& name) {
  const std::int64_t channels = x.shape()[1];
  Var y = layers.plain_conv(x, name + ".conv1", channels, 3, same_size());
  y = layers.relu(layers.batch_norm(y, name + ".norm1"));
  y = layers.plain_conv(y, name + ".conv2", channels, 3, same_size());
  return x + layers.batch_norm(y, name + ".norm2");
}

Var residual_blocks(Layers& layers, Var x, const std::string& name, int count) {
  for (int i = 1; i <= count; ++i) x = residual_block(layers, x, fmt::format("{}.block{}", name, i));
  return x;
}

// The code in `bits` bits: whole multiples of a scale that the largest value of each image sets. Rounding has
// no derivative: what it changes is rounded once more, finely, so that the code itself passes through to
// training as if it were not rounded.
Var rounded_code(Var code, std::int64_t bits) {
  if (bits == 0) return code;
  constexpr double fine = 1 << 20, least = 1e-6;
  Builder& b = code.builder();
  const op::NameScope scope(b, "code");
  const double levels = static_cast<double>((std::int64_t{1} << (bits - 1)) - 1);
  const Var largest = op::reduce_max(op::abs(code), {1, 2, 3}, true);
  const Var scale = op::max(largest, b.scalar(code.element(), least)) / levels;
  const Var change = op::round(code / scale) * scale - code;
  return code + op::round(change * fine) / fine;
}

Var coded(Layers& layers, Var x, const AutoencoderSizes& sizes) {
  const op::ConvAttributes half{.strides = {2, 2}, .pads = {1, 1, 1, 1}};
  x = residual_blocks(layers, layers.conv(x, "stem", sizes.width, 3, same_size()), "encoder1", 3);
  x = residual_blocks(layers, layers.conv(x, "down1", 2 * sizes.width, 3, half), "encoder2", 3);
  x = residual_blocks(layers, layers.conv(x, "down2", 4 * sizes.width, 3, half), "encoder3", 2);
  return rounded_code(layers.conv(x, "bottleneck", sizes.bottleneck, 3, same_size()), sizes.bits);
}

Var decoded(Layers& layers, Var x, std::int64_t width) {
  const op::ConvTransposeAttributes twice{{.strides = {2, 2}, .pads = {1, 1, 1, 1}}};
  x = residual_blocks(layers, layers.conv(x, "expand", 4 * width, 3, same_size()), "decoder3", 2);
  x = residual_blocks(layers, layers.conv_transpose(x, "up2", 2 * width, 4, twice), "decoder2", 3);
  x = residual_blocks(layers, layers.conv_transpose(x, "up1", width, 4, twice), "decoder1", 3);
  return layers.conv(x, "head", 1, 3, same_size());
}

graph::Graph build_image_autoencoder(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const AutoencoderSizes sizes = autoencoder_sizes(options);
  graph::Graph graph("image-autoencoder");
  Builder b(graph);
  Layers layers(b, seed);
  const Var code =
      coded(layers, b.input("image", ElementType::f32, {batch, 1, sizes.size, sizes.size}), sizes);
  const Var head = decoded(layers, code, sizes.width);
  b.set_name("head");
  b.output("recon", op::sigmoid(head));
  b.set_name({});
  b.output("code", code);
  return graph;
}

// What comes out is compared with what went in.
Var distance_of_images(transform::LossPorts& ports) {
  const Var difference = ports.output("recon") - ports.input("image");
  return op::reduce_mean(difference * difference);
}

}  // namespace

AutoencoderSizes autoencoder_sizes(const Options& options) {
  const AutoencoderSizes sizes{options.integer("size", 8, 4096), options.integer("width", 1, 512),
                               options.integer("bottleneck", 1, 1024), options.integer("bits", 0, 16)};
  if (sizes.size % 4 != 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} pixels cannot be halved twice", sizes.size),
                "option size", "take a multiple of 4");
  if (sizes.bits == 1)
    throw Error(ErrorCode::invalid_argument, "one bit holds no sign and no value beside zero", "option bits",
                "take 2 to 16, or 0 for codes that are not rounded");
  return sizes;
}

double AutoencoderSizes::bits_an_image() const {
  constexpr double wide = 32;  // bits of a value that is not rounded, and of the scale
  const auto count = static_cast<double>(values());
  return bits == 0 ? wide * count : static_cast<double>(bits) * count + wide;
}

Workload image_autoencoder() {
  const Shape image{1, 28, 28};
  return {
      .name = "image-autoencoder",
      .summary = "28x28 images through a bottleneck and back: learned compression, by residual blocks",
      .options = {{"size", "28", "pixels per side, a multiple of 4; generated digits have 28"},
                  {"width", "64", "channels of the first level"},
                  {"bottleneck", "16", "channels of the code: 16 are 784 values, 4 are 196"},
                  {"bits", "8", "of a value of the code, 2 to 16; 0: codes are not rounded"}},
      .build = build_image_autoencoder,
      .parameters = 8038929,
      .flops = 2023495890,
      .inputs = {{"image", ElementType::f32, image, "", "pixels divided by 255"}},
      .outputs = {{"recon", ElementType::f32, image, "", "the same image, out of its code"},
                  {"code", ElementType::f32, {16, 7, 7}, "", "what is kept of it"}},
      .targets = {},
      .training = {.batch = 128,
                   .epochs = 20,
                   .loss = {.terms = {}, .own = distance_of_images},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      .open = open_digits,
      .metrics = {{"psnr", "dB", true}, {"ms_ssim", "", true}, {"bits_per_pixel", ""}},
      .target = std::nullopt,
  };
}

}  // namespace superstep::workload
