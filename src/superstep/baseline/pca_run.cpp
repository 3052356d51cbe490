#include "superstep/baseline/pca_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "superstep/base/interrupt.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/baseline/frame_file.h"
#include "superstep/baseline/pca.h"
#include "superstep/baseline/pca_quality.h"
#include "superstep/page/page.h"

namespace superstep::baseline {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t frames_at_once = 256;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

FrameMatrix read_frames(const FrameFile& file, std::int64_t first, std::int64_t count) {
  const Tensor block = file.read(ElementType::f32, first, count);
  return Eigen::Map<const FrameMatrix>(block.as<float>().data(), count, file.pixels());
}

PcaBasis make_basis(const FrameFile& file, std::int64_t frames, const PcaSettings& settings,
                    ThreadPool& pool) {
  const FrameSource source{frames, file.pixels(), [&](std::int64_t first, std::int64_t count) {
                             if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written");
                             return read_frames(file, first, count);
                           }};
  Progress progress("principal components", 1, "passes");
  try {
    return principal_components(source, settings, pool,
                                [&](double done, double total) { progress.update(done / total); });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) throw;
    throw Error(ErrorCode::bad_file, error.message(), file.path().string(), "lower the option components");
  }
}

// Numbers of components to report: 1, 4, 16, ... and the last.
std::vector<int> sweep_of(int components) {
  std::vector<int> sweep;
  for (int k = 1; k < components; k *= 4) sweep.push_back(k);
  sweep.push_back(components);
  return sweep;
}

// The side of the bins that leave `k` values of a frame; 0 when none do.
std::int64_t bin_for(const FrameFile& file, int k) {
  for (std::int64_t bin = 1; bin <= std::min(file.height(), file.width()); ++bin)
    if (file.height() % bin == 0 && file.width() % bin == 0 && file.pixels() == k * bin * bin) return bin;
  return 0;
}

struct Point {
  int k = 0;
  QualitySum components, bins;
  std::int64_t bin = 0;
};

struct HalfError {
  double difference = 0, size = 0;
  void add(const FrameMatrix& half, const FrameMatrix& full) {
    difference += (half - full).cast<double>().squaredNorm();
    size += full.cast<double>().squaredNorm();
  }
  double relative() const { return size > 0 ? std::sqrt(difference / size) : 0; }
};

struct Measured {
  std::vector<Point> points;
  HalfError scaled, plain;
  double compress_seconds = 0;
  std::int64_t frames = 0;
  FrameMatrix shown;  // the first measured frame
};

// Reads frames [first, last), hands their codes to `take`, and measures those from `measure_from` on.
template <class Take>
Measured compress_file(const FrameFile& file, const PcaBasis& basis, std::int64_t measure_from, Take take) {
  Measured measured;
  for (const int k : sweep_of(static_cast<int>(basis.components.cols())))
    measured.points.push_back({k, {}, {}, bin_for(file, k)});
  const HalfBasis scaled = half_basis(basis), plain = half_basis(basis, 1);
  Progress progress("compressing", static_cast<double>(file.frames()), "frames");
  for (std::int64_t first = 0; first < file.frames(); first += frames_at_once) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written");
    const std::int64_t count = std::min(frames_at_once, file.frames() - first);
    const FrameMatrix frames = read_frames(file, first, count);
    const auto begun = Clock::now();
    const FrameMatrix codes = compress(frames, basis);
    measured.compress_seconds += seconds_since(begun);
    take(first, codes);
    progress.update(static_cast<double>(first + count));
    if (first + count <= measure_from) continue;
    const Eigen::Index skip = std::max<std::int64_t>(0, measure_from - first);
    const FrameMatrix part = frames.bottomRows(count - skip), part_codes = codes.bottomRows(count - skip);
    if (measured.frames == 0) measured.shown = part.topRows(1);
    measured.frames += part.rows();
    for (Point& point : measured.points) {
      point.components.add(part, reconstruct(part_codes.leftCols(point.k), basis), basis.mean);
      if (point.bin > 0)
        point.bins.add(part, binned(part, file.height(), file.width(), point.bin), basis.mean);
    }
    measured.scaled.add(compress(part, basis, scaled), part_codes);
    measured.plain.add(compress(part, basis, plain), part_codes);
  }
  return measured;
}

std::string quality_table(const Measured& measured, const PcaBasis& basis, const FrameFile& file) {
  TextTable table(
      {"components", "ratio", "captured", "NRMSE", "PSNR sqrt (dB)", "binned NRMSE", "binned PSNR (dB)"});
  for (const Point& point : measured.points) {
    const Quality quality = point.components.quality();
    const double captured = basis.eigenvalues.head(point.k).sum() / basis.total_variance;
    std::vector<std::string> row{std::to_string(point.k),
                                 fmt::format("{:.0f}", static_cast<double>(file.pixels()) / point.k),
                                 fmt::format("{:.5f}", captured), fmt::format("{:.5f}", quality.nrmse),
                                 fmt::format("{:.2f}", quality.psnr)};
    if (point.bin > 0) {
      const Quality bins = point.bins.quality();
      row.push_back(fmt::format("{:.5f}", bins.nrmse));
      row.push_back(fmt::format("{:.2f}", bins.psnr));
    } else {
      row.insert(row.end(), {"-", "-"});
    }
    table.add_row(row);
  }
  return table.to_string();
}

double orthonormality_error(const PcaBasis& basis) {
  const Eigen::MatrixXd w = basis.components.cast<double>();
  return (w.transpose() * w - Eigen::MatrixXd::Identity(w.cols(), w.cols())).cwiseAbs().maxCoeff();
}

Tensor row_of(const float* values, Shape shape) {
  Tensor tensor(ElementType::f32, std::move(shape));
  std::memcpy(tensor.bytes(), values, tensor.byte_count());
  return tensor;
}

// Starts the output file with everything but the codes.
std::unique_ptr<data::Hdf5Writer> start_output(const std::filesystem::path& path, const FrameFile& file,
                                               const PcaBasis& basis) {
  if (path.empty()) return nullptr;
  auto writer = std::make_unique<data::Hdf5Writer>(path);
  const std::int64_t k = basis.components.cols();
  writer->write("mean", row_of(basis.mean.data(), {file.height(), file.width()}));
  writer->write("basis", row_of(basis.components.data(), {k, file.height(), file.width()}));  // column-major
  Tensor eigenvalues(ElementType::f64, {k});
  std::memcpy(eigenvalues.bytes(), basis.eigenvalues.data(), eigenvalues.byte_count());
  writer->write("eigenvalues", eigenvalues);
  writer->create("codes", ElementType::f32, {file.frames(), k});
  return writer;
}

page::Picture frame_picture(const float* values, const FrameFile& file, std::string caption, bool counts) {
  std::vector<float> shown;
  for (std::int64_t i = 0; i < file.pixels(); ++i)
    shown.push_back(counts ? std::log10(1 + std::max(0.0f, values[i])) : values[i]);
  const int width = static_cast<int>(file.width()), height = static_cast<int>(file.height());
  return {page::colored(shown, width, height, counts ? page::Colormap::viridis : page::Colormap::gray),
          std::move(caption),
          {},
          std::max(1, 192 / std::max(width, height)),
          counts ? page::ColorBar{page::Colormap::viridis, "least", "most", "log10(1 + counts)"}
                 : page::ColorBar{page::Colormap::gray, "least", "most", "of the component"}};
}

page::Plot spectrum_plot(const PcaBasis& basis) {
  page::Series spectrum{"share of the variance", {}, {}, {}, {}};
  for (Eigen::Index i = 0; i < basis.eigenvalues.size(); ++i) {
    spectrum.x.push_back(static_cast<double>(i + 1));
    spectrum.y.push_back(basis.eigenvalues(i) / basis.total_variance);
  }
  page::Plot plot{"Spectrum", "component", "share of the variance", true, true};
  plot.series = {spectrum};
  return plot;
}

void write_page(const std::filesystem::path& path, const FrameFile& file, const PcaBasis& basis,
                const Measured& measured) {
  page::Page page("Frames compressed by principal components");
  page.begin_row().preformatted(quality_table(measured, basis, file));
  page.plot(spectrum_plot(basis)).end_row();
  std::vector<page::Picture> returned{
      frame_picture(measured.shown.data(), file, "frame, log10(1 + counts)", true)};
  const FrameMatrix codes = compress(measured.shown, basis);
  for (const Point& point : measured.points) {
    const FrameMatrix frame = reconstruct(codes.leftCols(point.k), basis);
    returned.push_back(frame_picture(frame.data(), file, fmt::format("from {} components", point.k), true));
  }
  page.heading("A frame and what comes back").pictures(returned);
  std::vector<page::Picture> components;
  for (Eigen::Index i = 0; i < std::min<Eigen::Index>(8, basis.components.cols()); ++i)
    components.push_back(
        frame_picture(basis.components.col(i).data(), file, fmt::format("component {}", i + 1), false));
  page.heading("Components").pictures(components);
  page.write(path);
}

}  // namespace

Report run_pca(const Request& request, const Options& options) {
  PcaSettings settings;
  settings.components = static_cast<int>(options.integer("components", 1, 65536));
  settings.power_iterations = static_cast<int>(options.integer("power_iterations", 0, 100));
  settings.seed = static_cast<std::uint64_t>(options.integer("seed", 0, 1LL << 62));
  const FrameFile file(request.input);
  const std::int64_t basis_frames =
      std::min<std::int64_t>(options.integer("basis_frames", 1, 1LL << 40), file.frames());
  const auto begun = Clock::now();
  const PcaBasis basis = make_basis(file, basis_frames, settings, *request.pool);
  const double basis_seconds = seconds_since(begun);
  const auto writer = start_output(request.output, file, basis);
  const std::int64_t measure_from = basis_frames < file.frames() ? basis_frames : 0;
  const Measured measured =
      compress_file(file, basis, measure_from, [&](std::int64_t first, const FrameMatrix& codes) {
        if (writer) writer->write_rows("codes", first, row_of(codes.data(), {codes.rows(), codes.cols()}));
      });
  if (writer) writer->close();
  if (!request.picture.empty()) write_page(request.picture, file, basis, measured);
  const Quality quality = measured.points.back().components.quality();
  return {{{"nrmse", quality.nrmse, ""},
           {"psnr_sqrt_counts", quality.psnr, "dB"},
           {"compression_ratio", static_cast<double>(file.pixels()) / settings.components, ""},
           {"captured_variance", basis.eigenvalues.sum() / basis.total_variance, ""},
           {"orthonormality_error", orthonormality_error(basis), ""},
           {"scaled_f16_error", measured.scaled.relative(), ""},
           {"plain_f16_error", measured.plain.relative(), ""},
           {"basis_time", basis_seconds, "s"},
           {"throughput", static_cast<double>(file.frames()) / measured.compress_seconds, "samples/s"}},
          quality_table(measured, basis, file)};
}

std::vector<OptionSpec> pca_options() {
  return {{"components", "64", "values kept of a frame"},
          {"basis_frames", "10000", "the first so many frames give the basis; the others are measured"},
          {"power_iterations", "3", "passes over the frames that sharpen the subspace"},
          {"seed", "1", "of the random directions"}};
}

}  // namespace superstep::baseline
