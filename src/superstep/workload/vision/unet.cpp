// U-Net with batch normalisation, as it marks tumours in slices of brain MRI (M. Buda, A. Saha, M.
// Mazurowski, Comput. Biol. Med. 109, 2019).
//
// unet-256: image f32 [N, 3, 256, 256] -> mask f32 [N, 1, 256, 256], the probability of each pixel. unet-64:
// the same with 16 channels, two levels and 64x64 pixels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "superstep/baseline/imaging/lesion.h"
#include "superstep/baseline/imaging/segment.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/window/pooling.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"
#include "superstep/workload/vision/brain_volumes.h"

namespace superstep::workload {
namespace {

Var unet_block(Layers& layers, Var x, const std::string& name, std::int64_t channels) {
  for (int i = 1; i <= 2; ++i) {
    const std::string number = std::to_string(i);
    x = layers.plain_conv(x, name + ".conv" + number, channels, 3, {.pads = {1, 1, 1, 1}});
    x = layers.relu(layers.batch_norm(x, name + ".norm" + number));
  }
  return x;
}

struct UnetSizes {
  std::int64_t size, channels, width, levels;
};

UnetSizes unet_sizes(const Options& options) {
  const UnetSizes sizes{options.integer("size", 8, 4096), options.integer("channels", 1, 64),
                        options.integer("width", 1, 512), options.integer("levels", 1, 6)};
  if (sizes.size % (std::int64_t{1} << sizes.levels) != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} pixels cannot be halved {} times", sizes.size, sizes.levels), "option size",
                fmt::format("take a multiple of {}", std::int64_t{1} << sizes.levels));
  return sizes;
}

Var decoded(Layers& layers, Var x, const std::vector<Var>& skips, std::int64_t width) {
  for (std::size_t level = skips.size(); level-- > 0;) {
    const std::int64_t channels = width << level;
    const Var up =
        layers.conv_transpose(x, fmt::format("up{}", level + 1), channels, 2, {{.strides = {2, 2}}});
    const Var both[] = {up, skips[level]};
    x = unet_block(layers, op::concat(both, 1), fmt::format("decoder{}", level + 1), channels);
  }
  return x;
}

graph::Graph build_unet(const char* name, std::int64_t batch, const Options& options, std::uint64_t seed) {
  const UnetSizes sizes = unet_sizes(options);
  graph::Graph graph(name);
  Builder b(graph);
  Layers layers(b, seed);
  Var x = b.input("image", ElementType::f32, {batch, sizes.channels, sizes.size, sizes.size});
  std::vector<Var> skips;
  for (std::int64_t level = 0; level < sizes.levels; ++level) {
    skips.push_back(unet_block(layers, x, fmt::format("encoder{}", level + 1), sizes.width << level));
    x = op::max_pool(skips.back(), {.kernel_shape = {2, 2}, .strides = {2, 2}}).values;
  }
  x = unet_block(layers, x, "bottleneck", sizes.width << sizes.levels);
  x = layers.conv(decoded(layers, x, skips, sizes.width), "head", 1, 1);
  b.set_name("head");
  b.output("mask", op::sigmoid(x));
  return graph;
}

graph::Graph build_unet_256(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build_unet("unet-256", batch, options, seed);
}
graph::Graph build_unet_64(std::int64_t batch, const Options& options, std::uint64_t seed) {
  return build_unet("unet-64", batch, options, seed);
}

// --- quality and references: slices with the mask of the lesion, patient by patient

double of_byte(double value) { return value / 255; }

struct Overlap {
  double both = 0, either = 0;
  void add(bool marked, bool lesion) {
    both += marked && lesion;
    either += static_cast<int>(marked) + static_cast<int>(lesion);
  }
};

using Overlaps = std::map<double, Overlap>;  // by patient

double mean_dice(const Overlaps& overlaps) {
  double sum = 0;
  for (const auto& [patient, overlap] : overlaps)
    sum += overlap.either > 0 ? 2 * overlap.both / overlap.either : 1;
  return sum / static_cast<double>(std::max<std::size_t>(1, overlaps.size()));
}

// The largest connected part of what is marked in a patient's slices, which lie one above the other.
Overlap largest_part(const Tensor& masks, std::span<const float> found,
                     const std::vector<std::size_t>& places, std::span<const std::int64_t> indices) {
  const std::int64_t height = masks.shape()[masks.shape().rank() - 2],
                     width = masks.shape()[masks.shape().rank() - 1];
  const auto pixels = static_cast<std::size_t>(height * width);
  std::vector<std::uint8_t> marked;
  for (const std::size_t place : places)
    for (const float probability : found.subspan(place * pixels, pixels))
      marked.push_back(probability >= 0.5f ? 1 : 0);
  marked = baseline::largest_component(marked, static_cast<int>(width), static_cast<int>(height),
                                       static_cast<int>(places.size()));
  Overlap overlap;
  for (std::size_t i = 0; i < marked.size(); ++i)
    overlap.add(marked[i] != 0, masks.at(indices[places[i / pixels]] * static_cast<std::int64_t>(pixels) +
                                         static_cast<std::int64_t>(i % pixels)) != 0);
  return overlap;
}

// The mean over patients of 2 |P and M| / (|P| + |M|), P where the probability is one half or more, and the
// same of the largest connected part of P, as published.
std::vector<Metric> dice_of_patients(const Fields& fields, std::span<const std::int64_t> indices,
                                     std::span<const Tensor> outputs) {
  const Tensor &masks = fields.at("mask"), &patients = fields.at("patient");
  const auto found = outputs[0].as<float>();
  const std::size_t pixels = found.size() / std::max<std::size_t>(1, indices.size());
  Overlaps overlaps, largest;
  std::map<double, std::vector<std::size_t>> volumes;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    volumes[patients.at(indices[i])].push_back(i);
    Overlap& overlap = overlaps[patients.at(indices[i])];
    for (std::size_t k = 0; k < pixels; ++k)
      overlap.add(found[i * pixels + k] >= 0.5f, masks.at(indices[i] * static_cast<std::int64_t>(pixels) +
                                                          static_cast<std::int64_t>(k)) != 0);
  }
  for (const auto& [patient, places] : volumes)
    largest[patient] = largest_part(masks, found, places, indices);
  return {quality_metric("dice", mean_dice(overlaps)), quality_metric("dice_largest", mean_dice(largest))};
}

// A patient's samples.
using Volume = std::vector<std::int64_t>;

std::vector<Volume> volumes_of(const Tensor& patients, std::span<const std::int64_t> indices) {
  std::map<double, Volume> volumes;
  for (const std::int64_t index : indices) volumes[patients.at(index)].push_back(index);
  std::vector<Volume> list;
  for (auto& [patient, volume] : volumes) list.push_back(std::move(volume));
  return list;
}

// Lesions by thresholds in the FLAIR volume of a patient.
Overlap thresholded(const Fields& fields, const Volume& volume, const baseline::LesionSettings& settings) {
  const Tensor &images = fields.at("image"), &masks = fields.at("mask");
  const auto height = images.shape()[2], width = images.shape()[3], plane = height * width;
  std::vector<std::uint8_t> flair;
  for (const std::int64_t slice : volume) {
    const auto channel = images.as<std::uint8_t>().subspan(static_cast<std::size_t>((3 * slice + 1) * plane),
                                                           static_cast<std::size_t>(plane));
    flair.insert(flair.end(), channel.begin(), channel.end());
  }
  const auto found = baseline::segment_lesion(flair, static_cast<int>(width), static_cast<int>(height),
                                              static_cast<int>(volume.size()), settings);
  Overlap overlap;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    overlap.add(found[i] != 0,
                masks.at(volume[i / static_cast<std::size_t>(plane)] * plane + at % plane) != 0);
  }
  return overlap;
}

References thresholds(const TableSamples& samples) {
  if (samples.fields.at("image").shape()[1] != 3) return {};
  const std::vector<Volume> volumes = volumes_of(samples.fields.at("patient"), samples.indices);
  const auto dice = [&](const baseline::LesionSettings& settings) {
    std::vector<Overlap> found(volumes.size());
    samples.pool.parallel_for(static_cast<std::int64_t>(volumes.size()), [&](std::int64_t item, int) {
      data::throw_if_interrupted();
      found[static_cast<std::size_t>(item)] =
          thresholded(samples.fields, volumes[static_cast<std::size_t>(item)], settings);
    });
    Overlaps overlaps;
    for (const Overlap& overlap : found) overlaps.emplace(static_cast<double>(overlaps.size()), overlap);
    return mean_dice(overlaps);
  };
  return {.floor = Reference{"Otsu's threshold", dice({.classes = 3, .correct_bias = false, .growth = 0})},
          .conventional = Reference{"thresholds without bias, region growing",
                                    dice({.classes = 4, .correct_bias = true, .growth = 1.5})},
          .limit = {},
          .target = {}};
}

// --- pictures: slices with the true and the found lesion

constexpr std::size_t slices_each = 2;
constexpr int slice_pixels = 160;

// One slice: bytes of three planes, mask, probability.
struct BrainSlice {
  int size = 0;
  std::vector<float> image, truth, found;

  double dice() const {
    double both = 0, either = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const bool marked = found[i] >= 0.5f, lesion = truth[i] != 0;
      both += marked && lesion;
      either += static_cast<int>(marked) + static_cast<int>(lesion);
    }
    return either > 0 ? 2 * both / either : 1;
  }
  bool has_lesion() const {
    return std::ranges::any_of(truth, [](float value) { return value != 0; });
  }
};

BrainSlice slice_at(const Fields& fields, const Predictions& found, std::size_t at) {
  const Tensor &images = fields.at("image"), &masks = fields.at("mask");
  BrainSlice slice{.size = static_cast<int>(images.shape()[images.shape().rank() - 1]),
                   .image = {},
                   .truth = {},
                   .found = {}};
  const auto pixels = std::int64_t{slice.size} * slice.size;
  const std::int64_t planes = images.element_count() / images.shape()[0] / pixels, index = found.indices[at];
  const auto probabilities = found.outputs[0].as<float>();
  for (std::int64_t k = 0; k < pixels; ++k) {
    // The middle plane is FLAIR, on which lesions are bright.
    slice.image.push_back(static_cast<float>(images.at((index * planes + planes / 2) * pixels + k)));
    slice.truth.push_back(static_cast<float>(masks.at(index * pixels + k)));
    slice.found.push_back(probabilities[at * static_cast<std::size_t>(pixels) + static_cast<std::size_t>(k)]);
  }
  return slice;
}

// Grey where both agree that there is nothing; green found, red missed, blue wrongly marked.
page::Image tinted(const BrainSlice& slice) {
  page::Image image = page::colored(slice.image, slice.size, slice.size, page::Colormap::gray, 0.0f, 255.0f);
  const auto tint = [&](std::size_t pixel, std::array<int, 3> color) {
    for (std::size_t c = 0; c < 3; ++c) {
      std::uint8_t& channel = image.rgb[3 * pixel + c];
      channel = static_cast<std::uint8_t>((channel + 2 * color[c]) / 3);
    }
  };
  for (std::size_t i = 0; i < slice.truth.size(); ++i) {
    const bool marked = slice.found[i] >= 0.5f, lesion = slice.truth[i] != 0;
    if (marked && lesion) tint(i, {60, 200, 90});
    if (lesion && !marked) tint(i, {235, 50, 50});
    if (marked && !lesion) tint(i, {60, 130, 255});
  }
  return image;
}

void add_slice(page::Page& page, const BrainSlice& slice, const std::string& title) {
  const int size = slice.size, scale = std::max(1, slice_pixels / size);
  const auto picture = [&](page::Image image, std::string caption) {
    return page::Picture{
        .image = std::move(image), .caption = std::move(caption), .marks = {}, .scale = scale};
  };
  using page::Colormap;
  std::vector<page::Picture> pictures{
      picture(page::colored(slice.image, size, size, Colormap::gray, 0.0f, 255.0f), "slice"),
      picture(page::colored(slice.truth, size, size, Colormap::gray, 0.0f, 1.0f), "true lesion"),
      picture(page::colored(slice.found, size, size, Colormap::viridis, 0.0f, 1.0f), "predicted"),
      picture(tinted(slice), "green: found, red: missed, blue: wrongly marked")};
  pictures[2].bar = page::ColorBar{Colormap::viridis, "0", "1", "probability of lesion"};
  page.begin_column().heading(title, 4).pictures(pictures).end_column();
}

std::string present_lesions(const Fields& fields, const Predictions& found, page::Page& page) {
  std::vector<std::size_t> shown;
  std::vector<double> errors, overlaps;
  for (std::size_t i = 0; i < found.indices.size(); ++i) {
    const BrainSlice slice = slice_at(fields, found, i);
    if (!slice.has_lesion()) continue;
    shown.push_back(i);
    overlaps.push_back(slice.dice());
    errors.push_back(1 - overlaps.back());
  }
  if (shown.empty()) {
    page.paragraph("None of these slices has a lesion.");
    return {};
  }
  page.plot({.title = "Dice of the slices with a lesion",
             .x_label = "Dice",
             .y_label = "slices",
             .series = {page::histogram("", overlaps, 0, 1, 25)}});
  page.begin_row();
  for (const Chosen& chosen : best_median_worst(errors, slices_each)) {
    const std::size_t at = shown[chosen.at];
    add_slice(page, slice_at(fields, found, at),
              fmt::format("{}: sample {}, Dice {:.3f}", chosen.why, found.indices[at], overlaps[chosen.at]));
  }
  page.end_row();
  return {};
}

// Pixels as the published network takes them, of whole volumes.
void scale_volumes(TableSpec& spec, const Fields& fields) {
  const auto patients = fields.find("patient");
  const auto scales = std::make_shared<const VolumeScales>(
      fields.at("image"), patients == fields.end() ? nullptr : &patients->second);
  spec.inputs[0].make = [scales](const Tensor& field, std::int64_t index, std::span<float> row) {
    scales->scale(field, index, row);
  };
}

// Of a batch of images and masks.
void vary_masked_slice(const Fields&, std::int64_t, RandomStream& random, std::span<Tensor> batch,
                       std::size_t row) {
  const auto in_row = [&](Tensor& tensor) {
    const auto all = tensor.as<float>();
    const std::size_t values = all.size() / static_cast<std::size_t>(tensor.shape()[0]);
    return all.subspan(row * values, values);
  };
  vary_slice(random, batch[0].shape()[2], in_row(batch[0]), in_row(batch[1]));
}

const std::vector<std::string> pixel_scales = {"byte", "volume"};

std::unique_ptr<Task> open_slices(const TaskSettings& settings, const Options& model) {
  const bool large = model.integer("size", 1, 1 << 20) > 128;
  const bool by_volume = model.choice("pixels", pixel_scales) == 1;
  return open_table_task({.generator = large ? "unet-256" : "unet-64",
                          .settings = {"size=" + model.text("size"), "slices=20"},
                          .default_samples = large ? 240 : 2000,
                          .group = "patient",
                          .inputs = {{"image", of_byte}},
                          .targets = {{"mask"}},
                          .more = {},
                          .prepare = by_volume ? scale_volumes : nullptr,
                          .augment = model.flag("vary") ? vary_masked_slice : nullptr,
                          .quality = dice_of_patients,
                          .present = present_lesions,
                          .references = thresholds,
                          .reference_seconds = large ? 60.0 : 5.0,
                          .reference_fields = {}},
                         settings);
}

Workload unet(std::int64_t size, const char* width, const char* levels) {
  return {
      .name = fmt::format("unet-{}", size),
      .summary =
          fmt::format("lesions in {0}x{0} slices of brain MRI, by a U-Net of {1} channels", size, width),
      .options = {{"size", std::to_string(size), "pixels per side; halved at every level"},
                  {"channels", "3", "of the image"},
                  {"width", width, "channels of the first level"},
                  {"levels", levels, "how often the image is halved"},
                  {"pixels", "byte",
                   "divided by 255 (byte), or of mean 0 and deviation 1 in a volume (volume)"},
                  {"vary", "no", "slices are scaled, turned and mirrored while the model is trained"}},
      .build = nullptr,
      .parameters = 0,
      .inputs = {{"image", ElementType::f32, {3, size, size}, "", "pixels, by default divided by 255"}},
      .outputs = {{"mask", ElementType::f32, {1, size, size}, "", "probability of a lesion"}},
      .targets = {{"mask_target", ElementType::f32, {1, size, size}, "", "1 where the lesion is, else 0"}},
      .training = {.batch = 16,
                   .epochs = 20,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::dice,
                                                 .target = "mask_target"}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-3,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      .published =
          Recipe{.batch = 16,
                 .epochs = 100,
                 .loss = {{transform::LossTerm{.kind = transform::LossKind::dice, .target = "mask_target"}}},
                 .optimizer = {.kind = transform::OptimizerKind::adam},
                 .learning_rate = 1e-4,
                 .model_options = {"pixels=volume", "vary=yes"},
                 .source = "M. Buda et al., Comput. Biol. Med. (2019); slices are drawn evenly here"},
      .by_default = RecipeName::quick,
      .open = open_slices,
      .metrics = {{"dice", "", true}, {"dice_largest", "", true}},
      .target = QualityTarget{.metric = "dice", .value = 0.85, .higher_is_better = true},
  };
}

}  // namespace

Workload unet_256() {
  Workload workload = unet(256, "32", "4");
  workload.build = build_unet_256;
  workload.parameters = 7763041;
  workload.flops = 24214381184;
  return workload;
}

Workload unet_64() {
  Workload workload = unet(64, "16", "2");
  workload.build = build_unet_64;
  workload.parameters = 117361;
  workload.flops = 202712000;
  return workload;
}

}  // namespace superstep::workload
