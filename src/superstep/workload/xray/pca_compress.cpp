// Lossy compression of detector frames next to the detector: y = W^T (x - mean), on the principal components
// of frames that were seen before, and back (ANL-23/15, 2022 AI Testbed Expeditions Report).
//
// frame f32 [N, 128, 128] -> code f32 [N, 64], recon f32 [N, 128, 128].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/baseline/xray/pca.h"
#include "superstep/baseline/xray/pca_quality.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

using baseline::FrameMatrix;

// --- the model

// Counts and codes are divided by so many before products: a power of two, with which 16 bits hold the sums
// of frames of ten million photons and a single photon alike.
constexpr double counts_a_unit = 1024;

struct PcaSizes {
  std::int64_t side, components;
  double scale;
  bool returns;
  std::int64_t pixels() const { return side * side; }
};

PcaSizes pca_sizes(const Options& options) {
  const PcaSizes sizes{options.integer("side", 2, 4096), options.integer("components", 1, 65536),
                       static_cast<double>(options.integer("scale", 1, 65536)), options.flag("returns")};
  if (sizes.components > sizes.pixels())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a frame of {} pixels has no {} components", sizes.pixels(), sizes.components),
                "option components");
  return sizes;
}

// The basis is kept times `scale`: most entries of a component of 16,384 pixels are so small that 16-bit
// formats have few bits left for them. The scale comes out of the products again.
graph::Graph build_pca_compress(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const PcaSizes sizes = pca_sizes(options);
  graph::Graph graph("pca-compress-128");
  Builder b(graph);
  Layers layers(b, seed);
  const Var frame = b.input("frame", ElementType::f32, {batch, sizes.side, sizes.side});
  // Drawn as long as the data have not been seen: columns of about unit length.
  const Var basis = layers.uniform("basis", {sizes.pixels(), sizes.components},
                                   sizes.scale * std::sqrt(3.0 / static_cast<double>(sizes.pixels())));
  const Var mean = layers.zeros("mean", {sizes.pixels()});
  const double back = counts_a_unit / sizes.scale;
  b.set_name("compress");
  const Var inside = (op::flatten(frame) - mean) * (1 / counts_a_unit);
  const Var code = op::matmul(inside, basis) * back;
  b.output("code", code);
  if (sizes.returns) {
    b.set_name("return");
    const Var from_code = op::matmul(code * (1 / counts_a_unit), op::transpose(basis)) * back + mean;
    b.output("recon", op::reshape(from_code, {batch, sizes.side, sizes.side}));
  }
  b.set_name({});
  return graph;
}

// How far frames that come back are from what they were.
Var distance_of_frames(transform::LossPorts& ports) {
  // As rows: what the product gives, whose last step the difference is then.
  const Var difference =
      (op::flatten(ports.output("recon")) - op::flatten(ports.input("frame"))) * (1 / counts_a_unit);
  return op::reduce_mean(difference * difference);
}

// --- the states: counted, not learnt

std::map<std::string, Tensor> fitted_basis(const Task& task, const Options& options, ThreadPool& pool) {
  const PcaSizes sizes = pca_sizes(options);
  const auto read = [&](std::int64_t first, std::int64_t count) -> FrameMatrix {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), first);
    Tensor frames(ElementType::f32, {count, sizes.side, sizes.side});
    task.fill_inputs(indices, std::span(&frames, 1), pool);
    return Eigen::Map<const FrameMatrix>(frames.as<float>().data(), count, sizes.pixels());
  };
  const auto basis = baseline::principal_components(
      {.frames = task.training_count(), .pixels = sizes.pixels(), .read = read},
      {.components = static_cast<int>(sizes.components)}, pool, [](double, double) {});
  Tensor mean(ElementType::f32, {sizes.pixels()}),
      columns(ElementType::f32, {sizes.pixels(), sizes.components});
  std::copy_n(basis.mean.data(), sizes.pixels(), mean.as<float>().begin());
  Eigen::Map<FrameMatrix>(columns.as<float>().data(), sizes.pixels(), sizes.components) =
      basis.components * static_cast<float>(sizes.scale);
  return {{"mean", mean}, {"basis", columns}};
}

// --- quality and references

FrameMatrix frames_at(const Tensor& frames, std::span<const std::int64_t> indices) {
  const std::int64_t pixels = frames.element_count() / frames.shape()[0];
  FrameMatrix rows(static_cast<Eigen::Index>(indices.size()), pixels);
  for (std::size_t k = 0; k < indices.size(); ++k)
    std::copy_n(frames.as<float>().begin() + indices[k] * pixels, pixels,
                rows.row(static_cast<Eigen::Index>(k)).data());
  return rows;
}

FrameMatrix returned_frames(const Predictions& found) {
  const auto rows = static_cast<Eigen::Index>(found.indices.size());
  const auto values = found.outputs[1].as<float>();
  return Eigen::Map<const FrameMatrix>(values.data(), rows, static_cast<Eigen::Index>(values.size()) / rows);
}

// What is left of a frame without the mean of all frames of the task is the signal that errors are shares of.
Eigen::VectorXf mean_frame(const Tensor& frames) {
  const std::int64_t pixels = frames.element_count() / frames.shape()[0];
  const Eigen::Map<const FrameMatrix> all(frames.as<float>().data(), frames.shape()[0], pixels);
  return all.cast<double>().colwise().mean().transpose().cast<float>();
}

baseline::Quality quality_of_return(const Tensor& frames, const FrameMatrix& truth,
                                    const FrameMatrix& found) {
  baseline::QualitySum sum;
  sum.add(truth, found, mean_frame(frames));
  return sum.quality();
}

// Square bins that leave at most as many values: the smallest that divide the frame.
std::int64_t bin_of_as_many(std::int64_t side, std::int64_t components) {
  for (std::int64_t bin = 1; bin < side; ++bin)
    if (side % bin == 0 && (side / bin) * (side / bin) <= components) return bin;
  return side;
}

References bins_and_components(const TableSamples& samples, const PcaSizes& sizes) {
  const Tensor& frames = samples.fields.at("frame");
  const FrameMatrix truth = frames_at(frames, samples.indices);
  const auto nrmse = [&](const FrameMatrix& found) { return quality_of_return(frames, truth, found).nrmse; };
  const std::int64_t bin = bin_of_as_many(sizes.side, sizes.components);
  const FrameMatrix known = frames_at(frames, first_samples(samples.training));
  // More passes than the fit takes: as good as the exact decomposition.
  const auto basis = baseline::principal_components(
      {.frames = known.rows(),
       .pixels = known.cols(),
       .read = [&](std::int64_t first, std::int64_t count) -> FrameMatrix {
         return known.middleRows(first, count);
       }},
      {.components = static_cast<int>(std::min(sizes.components, samples.training)), .power_iterations = 8},
      samples.pool, [](double, double) {});
  const double components = nrmse(baseline::reconstruct(baseline::compress(truth, basis), basis));
  return {
      .floor = Reference{fmt::format("bins of {0}x{0} pixels", bin),
                         nrmse(baseline::binned(truth, sizes.side, sizes.side, bin))},
      .conventional = Reference{fmt::format("{} principal components", basis.components.cols()), components},
      .limit = {},
      .target = 1.01 * components};
}

std::vector<Metric> quality_of_codes(const Tensor& frames, std::span<const std::int64_t> indices,
                                     std::span<const Tensor> outputs, const PcaSizes& sizes) {
  if (outputs.size() < 2)
    throw Error(ErrorCode::invalid_argument, "codes alone cannot be compared with frames", "option returns",
                "leave out --set returns=no");
  const Predictions found{.model = {}, .indices = indices, .outputs = outputs};
  const auto quality = quality_of_return(frames, frames_at(frames, indices), returned_frames(found));
  return {quality_metric("nrmse", quality.nrmse), quality_metric("psnr_sqrt_counts", quality.psnr, "dB"),
          quality_metric("compression_ratio",
                         static_cast<double>(sizes.pixels()) / static_cast<double>(sizes.components))};
}

// --- pictures: frames and what comes back of them

std::string present_frames(const Tensor& frames, const Predictions& found, page::Page& page) {
  if (found.outputs.size() < 2) {
    page.paragraph("Codes alone: there is no frame to look at.");
    return {};
  }
  const FrameMatrix truth = frames_at(frames, found.indices), recon = returned_frames(found);
  const int side = static_cast<int>(frames.shape()[1]);
  std::vector<double> errors;
  for (Eigen::Index k = 0; k < truth.rows(); ++k)
    errors.push_back(std::sqrt((recon.row(k) - truth.row(k)).cast<double>().squaredNorm() /
                               std::max(1e-30, truth.row(k).cast<double>().squaredNorm())));
  const auto finite = [](double error) { return std::isfinite(error); };
  page.plot({.title = "Frames by how well they come back",
             .x_label = "norm of the error / norm of the frame",
             .y_label = "frames",
             .series = {page::histogram(
                 "", errors, 0, std::ranges::all_of(errors, finite) ? std::ranges::max(errors) : 1, 40)}});
  for (const Chosen& chosen : best_median_worst(errors, 1)) {
    const auto row = static_cast<Eigen::Index>(chosen.at);
    const auto picture = [&](const FrameMatrix& one, const char* caption) {
      std::vector<float> shown;
      for (Eigen::Index i = 0; i < one.size(); ++i)
        shown.push_back(std::log10(1 + std::max(0.0f, one(0, i))));
      const float high = std::max(0.1f, std::log10(1 + truth.row(row).maxCoeff()));
      return page::Picture{.image = page::colored(shown, side, side, page::Colormap::viridis, 0.0f, high),
                           .caption = caption,
                           .marks = {},
                           .scale = std::max(1, 256 / side),
                           .bar = page::ColorBar{page::Colormap::viridis, "0", fmt::format("{:.2f}", high),
                                                 "log10(1 + counts)"}};
    };
    page.heading(fmt::format("{}: sample {}, {:.3f} of its norm is lost", chosen.why,
                             found.indices[chosen.at], errors[chosen.at]),
                 3);
    page.pictures({picture(truth.row(row), "frame"), picture(recon.row(row), "out of its code"),
                   picture((recon.row(row) - truth.row(row)).cwiseAbs(), "what is lost, without its sign")});
  }
  return {};
}

// --- data

std::unique_ptr<Task> open_frames(const TaskSettings& settings, const Options& model) {
  const PcaSizes sizes = pca_sizes(model);
  return open_table_task(
      {.generator = "pca-compress-128",
       .settings = {"window=" + model.text("side"), "points=1280", "photons=1e6"},
       .default_samples = 1280,
       .group = "scan",
       .group_required = false,  // speckle has no scans
       .inputs = {{"frame"}},
       .targets = {},
       .more = {},
       .looks_at_all = true,  // their mean
       .quality =
           [sizes](const Fields& fields, std::span<const std::int64_t> indices,
                   std::span<const Tensor> outputs) {
             return quality_of_codes(fields.at("frame"), indices, outputs, sizes);
           },
       .present = [](const Fields& fields, const Predictions& found,
                     page::Page& page) { return present_frames(fields.at("frame"), found, page); },
       .references = [sizes](const TableSamples& samples) { return bins_and_components(samples, sizes); },
       .reference_seconds = 2,
       .reference_fields = {}},
      settings);
}

}  // namespace

Workload pca_compress_128() {
  const Shape frame{128, 128};
  return {
      .name = "pca-compress-128",
      .summary = "frames of a detector as 64 numbers each, and back: principal components",
      .options = {{"side", "128", "pixels per side"},
                  {"components", "64", "numbers kept of a frame"},
                  {"scale", "128",
                   "the basis is kept times this, so that 16 bits hold its entries; 1: plain"},
                  {"returns", "yes", "frames come back too; no: the codes alone, as they leave a detector"}},
      .build = build_pca_compress,
      .parameters = 16384 * 65,
      .flops = 4259968,
      .inputs = {{"frame", ElementType::f32, frame, "counts", "a frame of the detector"}},
      .outputs = {{"code", ElementType::f32, {64}, "counts", "its shares of the principal components"},
                  {"recon", ElementType::f32, frame, "counts", "the frame, out of its code"}},
      .targets = {},
      .training = {.batch = 64,
                   .epochs = 1,
                   .loss = {.terms = {}, .own = distance_of_frames},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 1e-6},
      .open = open_frames,
      .fit = fitted_basis,
      .metrics = {{"nrmse", ""}, {"psnr_sqrt_counts", "dB", true}, {"compression_ratio", "", true}},
      .target = std::nullopt,
  };
}

}  // namespace superstep::workload
