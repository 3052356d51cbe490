#include "superstep/baseline/xray/cookiebox.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/xray/cookiebox_fit.h"
#include "superstep/file/check.h"
#include "superstep/file/source/array_file.h"
#include "superstep/page/page.h"
#include "superstep/physics/random_field.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/physics/xray/cookiebox.h"

namespace superstep::baseline {
namespace {

using data::cookiebox_angles;
using data::cookiebox_bins;

constexpr std::size_t pixels = std::size_t{cookiebox_angles} * cookiebox_bins;
constexpr std::int64_t tuning_samples = 100, block_samples = 256;
constexpr double angle_sigmas[] = {1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12},
                 energy_sigmas[] = {0, 0.5, 0.75, 1, 1.5, 2, 3};

double squared_error(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
  return sum;
}

// A file holds the test part, or the training part alone as the generator writes it unless told otherwise.
std::string part_of(const data::ArrayFile& file, const std::string& wanted) {
  if (wanted != "auto") return wanted;
  return file.contains("X_train") && !file.contains("X_test") ? "train" : "test";
}

// Histograms and, where the file has them, densities.
class Pairs {
 public:
  Pairs(const std::filesystem::path& path, const std::string& part)
      : file_(path), x_("X_" + part_of(file_, part)), y_("Y_" + part_of(file_, part)) {
    const std::int64_t shape[] = {-1, cookiebox_angles, cookiebox_bins};
    count_ = file_.require_shape(x_, shape).shape[0];
    if (count_ == 0)
      throw Error(ErrorCode::bad_file, "has no samples", path.string() + ": data set '" + x_ + "'");
    labelled_ = file_.contains(y_);
    if (labelled_ && file_.require_shape(y_, shape).shape[0] != count_)
      throw Error(ErrorCode::bad_file, "has another number of samples than " + x_,
                  path.string() + ": data set '" + y_ + "'");
  }
  std::int64_t count() const { return count_; }
  bool labelled() const { return labelled_; }
  Tensor counts(std::int64_t first, std::int64_t count) const {
    return file_.read_rows(x_, ElementType::u8, first, count);
  }
  Tensor densities(std::int64_t first, std::int64_t count) const {
    Tensor rows = file_.read_rows(y_, ElementType::f32, first, count);
    data::require_finite(rows, file_.path().string() + ": data set '" + y_ + "'", first);
    return rows;
  }

 private:
  data::ArrayFile file_;
  std::string x_, y_;
  std::int64_t count_ = 0;
  bool labelled_ = false;
};

struct Errors {
  double square = 0, floor = 0, peak = 0;
  std::int64_t samples = 0, with_peaks = 0;
};

struct Work {
  const Pairs& pairs;
  const Request& request;
  Smoothing smoothing;
  std::int64_t judged_from;  // samples before it chose the smoothing
  bool fits = false;         // the shot is fitted rather than the histogram smoothed
  Errors errors;
  double seconds = 0;
};

// Estimates of samples [first, first + count) of the file.
Tensor estimate_block(Work& work, std::int64_t first, std::int64_t count) {
  const Tensor counts = work.pairs.counts(first, count);
  Tensor estimates(ElementType::f32, {count, cookiebox_angles, cookiebox_bins});
  const Stopwatch watch;
  work.request.pool->parallel_for(count, [&](std::int64_t k, int) {
    data::throw_if_interrupted();
    const auto at = static_cast<std::size_t>(k) * pixels;
    const auto own = counts.as<std::uint8_t>().subspan(at, pixels);
    const auto density = work.fits ? density_of(fit_shot(own)) : smooth_histogram(own, work.smoothing);
    std::copy(density.begin(), density.end(),
              estimates.as<float>().begin() + static_cast<std::ptrdiff_t>(at));
  });
  work.seconds += watch.seconds();
  return estimates;
}

void judge(Work& work, std::int64_t first, const Tensor& estimates) {
  const std::int64_t count = estimates.shape()[0];
  const Tensor truth = work.pairs.densities(first, count),
               zero(ElementType::f32, {cookiebox_angles, cookiebox_bins});
  for (std::int64_t k = 0; k < count; ++k) {
    if (first + k < work.judged_from) continue;
    const auto own = estimates.as<float>().subspan(static_cast<std::size_t>(k) * pixels, pixels);
    const auto right = truth.as<float>().subspan(static_cast<std::size_t>(k) * pixels, pixels);
    work.errors.square += squared_error(own, right);
    work.errors.floor += squared_error(zero.as<float>(), right);
    ++work.errors.samples;
    if (const auto peak = peak_energy_error(right, own)) {
      work.errors.peak += *peak;
      ++work.errors.with_peaks;
    }
  }
}

Report summarize(const Work& work) {
  const double samples = static_cast<double>(work.errors.samples),
               rate = static_cast<double>(work.pairs.count()) / work.seconds;
  Report report;
  report.metrics = {{"throughput", rate, "samples/s"},
                    {"angle_sigma", work.smoothing.angle_sigma, "px"},
                    {"energy_sigma", work.smoothing.energy_sigma, "px"}};
  TextTable table(
      {"samples", "sigma angle", "sigma energy", "MSE", "MSE of nothing", "peak off by", "samples/s"});
  std::vector<std::string> row{format_count(static_cast<double>(work.pairs.count())),
                               fmt::format("{}", work.smoothing.angle_sigma),
                               fmt::format("{}", work.smoothing.energy_sigma),
                               "-",
                               "-",
                               "-",
                               fmt::format("{:.0f}", rate)};
  if (work.errors.samples > 0) {
    const double mse = work.errors.square / samples / pixels;
    report.metrics.push_back({"mse", mse, ""});
    const double peak =
        work.errors.peak / static_cast<double>(std::max<std::int64_t>(1, work.errors.with_peaks));
    report.metrics.push_back({"peak_error", peak, "px"});
    row[3] = fmt::format("{:.3e}", mse);
    row[4] = fmt::format("{:.3e}", work.errors.floor / samples / pixels);
    row[5] = fmt::format("{:.2f} bins", peak);
  }
  table.add_row(row);
  report.text = table.to_string();
  return report;
}

page::Picture picture(std::span<const float> values, float high, std::string caption, const char* what) {
  return {page::colored(values, cookiebox_bins, cookiebox_angles, page::Colormap::viridis, 0.0f, high),
          std::move(caption),
          {},
          2,
          page::ColorBar{page::Colormap::viridis, "0", fmt::format("{:.3g}", high), what}};
}

void write_page(const Request& request, const Work& work, const Report& report) {
  page::Page page("Electron spectra: the estimated density");
  page.preformatted(report.text);
  std::vector<page::Picture> pictures;
  for (std::int64_t k = std::max<std::int64_t>(0, work.pairs.count() - 3); k < work.pairs.count(); ++k) {
    const Tensor counts = work.pairs.counts(k, 1);
    const std::vector<float> hits(counts.as<std::uint8_t>().begin(), counts.as<std::uint8_t>().end());
    const auto smooth = work.fits ? density_of(fit_shot(counts.as<std::uint8_t>()))
                                  : smooth_histogram(counts.as<std::uint8_t>(), work.smoothing);
    const float high = std::max(1e-3f, *std::max_element(smooth.begin(), smooth.end()));
    pictures.push_back(picture(hits, 3, fmt::format("sample {}: electrons", k), "electrons"));
    pictures.push_back(
        picture(smooth, high, fmt::format("sample {}: {}", k, work.fits ? "fitted" : "smoothed"), "density"));
    if (work.pairs.labelled())
      pictures.push_back(picture(work.pairs.densities(k, 1).as<float>(), high,
                                 fmt::format("sample {}: true density", k), "density"));
  }
  page.heading("Energy to the right, angle downwards").pictures(pictures).write(request.picture);
}

Smoothing choose(const Pairs& pairs, const Request& request, const Options& options) {
  if (options.text("angle-sigma") != "auto")
    return {options.number("angle-sigma", 0, 64), options.number("energy-sigma", 0, 64)};
  if (!pairs.labelled())
    throw Error(ErrorCode::bad_file, "has no densities to tune the smoothing on", request.input.string(),
                "give it: --set angle-sigma=4 --set energy-sigma=1");
  const std::int64_t count = std::min(tuning_samples, pairs.count());
  return tune_smoothing(pairs.counts(0, count).as<std::uint8_t>(), pairs.densities(0, count).as<float>(),
                        *request.pool);
}

Report run(const Request& request, const Options& options) {
  static const std::string parts[] = {"train", "test", "auto"}, methods[] = {"smooth", "fit"};
  const bool fits = options.choice("method", methods) == 1;
  const Pairs pairs(request.input, parts[options.choice("part", parts)]);
  const bool tuned = !fits && options.text("angle-sigma") == "auto" && pairs.count() > tuning_samples;
  Work work{pairs, request, fits ? Smoothing{} : choose(pairs, request, options), tuned ? tuning_samples : 0,
            fits,  {}};
  std::optional<data::Hdf5Writer> output;
  if (!request.output.empty()) {
    output.emplace(request.output);
    output->create("Y_pred", ElementType::f32, {pairs.count(), cookiebox_angles, cookiebox_bins});
  }
  Progress progress(fits ? "fitting" : "smoothing", static_cast<double>(pairs.count()), "samples");
  for (std::int64_t first = 0; first < pairs.count(); first += block_samples) {
    const Tensor estimates = estimate_block(work, first, std::min(block_samples, pairs.count() - first));
    if (pairs.labelled()) judge(work, first, estimates);
    if (output) output->write_rows("Y_pred", first, estimates);
    progress.update(static_cast<double>(first + estimates.shape()[0]));
  }
  if (output) output->close();
  const Report report = summarize(work);
  if (!request.picture.empty()) write_page(request, work, report);
  return report;
}

}  // namespace

std::vector<float> smooth_histogram(std::span<const std::uint8_t> counts, const Smoothing& smoothing) {
  std::vector<float> density(counts.size());
  std::transform(counts.begin(), counts.end(), density.begin(),
                 [](std::uint8_t count) { return static_cast<float>(count / data::electrons_a_density); });
  data::blur_rows(density, cookiebox_bins, cookiebox_angles, data::gaussian_kernel(smoothing.energy_sigma),
                  data::Border::clamp);
  data::blur_columns(density, cookiebox_bins, cookiebox_angles, data::gaussian_kernel(smoothing.angle_sigma),
                     data::Border::periodic);
  return density;
}

Smoothing tune_smoothing(std::span<const std::uint8_t> counts, std::span<const float> densities,
                         ThreadPool& pool) {
  const std::size_t columns = std::size(energy_sigmas), samples = counts.size() / pixels;
  std::vector<double> error(std::size(angle_sigmas) * columns, 0.0);
  const auto candidate = [&](std::size_t at) {
    return Smoothing{angle_sigmas[at / columns], energy_sigmas[at % columns]};
  };
  pool.parallel_for(static_cast<std::int64_t>(error.size()), [&](std::int64_t item, int) {
    const auto at = static_cast<std::size_t>(item);
    for (std::size_t k = 0; k < samples; ++k)
      error[at] += squared_error(smooth_histogram(counts.subspan(k * pixels, pixels), candidate(at)),
                                 densities.subspan(k * pixels, pixels));
  });
  return candidate(static_cast<std::size_t>(std::min_element(error.begin(), error.end()) - error.begin()));
}

std::optional<double> peak_energy_error(std::span<const float> truth, std::span<const float> found) {
  double sum = 0;
  std::int64_t rows = 0;
  for (std::size_t at = 0; at + cookiebox_bins <= truth.size(); at += cookiebox_bins) {
    const auto own = truth.subspan(at, cookiebox_bins), other = found.subspan(at, cookiebox_bins);
    const auto [least, most] = std::ranges::minmax_element(own);
    if (*least == *most) continue;
    sum += std::abs(
        static_cast<double>((most - own.begin()) - (std::ranges::max_element(other) - other.begin())));
    ++rows;
  }
  if (rows == 0) return std::nullopt;
  return sum / static_cast<double>(rows);
}

Entry cookiebox_smoother() {
  return {
      "cookienetae",
      "kernel density, tuned on the first samples; or the shot itself by maximum likelihood",
      {{"method", "smooth", "smooth, or fit: maximum likelihood of the shot that made the electrons"},
       {"part", "auto", "data sets X_test, Y_test or X_train, Y_train: test, train; auto: test where it is"},
       {"angle-sigma", "auto", "rows; auto: both sigmas are tuned on the first 100 samples"},
       {"energy-sigma", "1", "bins, where angle-sigma is given"}},
      run};
}

}  // namespace superstep::baseline
