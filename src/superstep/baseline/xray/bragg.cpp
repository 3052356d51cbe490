#include "superstep/baseline/xray/bragg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/bragg_error.h"

namespace superstep::baseline {
namespace {

constexpr std::int64_t group = 64;             // patches a work item
constexpr std::int64_t groups_an_update = 64;  // of the progress bar

std::vector<OptionSpec> options() {
  return {{"method", "rotated",
           "rotated, axis-aligned (pseudo-Voigt fits of 8 and 7 parameters), centroid or brightest (pixel)"},
          {"patch_size", "0", "px of the patch to fit; 0: as in a file of patches, 11 in frames"}};
}

// One number of every fit, as it is stored.
struct Output {
  const char* name;
  const char* unit;
  double (*value)(const PeakFit& fit);
};

constexpr Output fit_outputs[] = {
    {"amplitude", "counts", [](const PeakFit& fit) { return fit.amplitude; }},
    {"sigma1", "px", [](const PeakFit& fit) { return fit.sigma1; }},
    {"sigma2", "px", [](const PeakFit& fit) { return fit.sigma2; }},
    {"angle", "rad", [](const PeakFit& fit) { return fit.angle; }},
    {"eta", "", [](const PeakFit& fit) { return fit.eta; }},
    {"background", "counts", [](const PeakFit& fit) { return fit.background; }},
    {"iterations", "", [](const PeakFit& fit) { return double(fit.iterations); }}};

bool is_fit(BraggMethod method) {
  return method == BraggMethod::rotated || method == BraggMethod::axis_aligned;
}

// (column, row) of every fit, times `scale`.
Tensor positions(const std::vector<PeakFit>& fits, double scale) {
  Tensor tensor(ElementType::f32, {static_cast<std::int64_t>(fits.size()), 2});
  for (std::size_t i = 0; i < fits.size(); ++i) {
    tensor.as<float>()[2 * i] = static_cast<float>(fits[i].position.column * scale);
    tensor.as<float>()[2 * i + 1] = static_cast<float>(fits[i].position.row * scale);
  }
  return tensor;
}

Tensor column_of(const std::vector<PeakFit>& fits, double (*value)(const PeakFit&)) {
  Tensor tensor(ElementType::f32, {static_cast<std::int64_t>(fits.size())});
  for (std::size_t i = 0; i < fits.size(); ++i) tensor.as<float>()[i] = static_cast<float>(value(fits[i]));
  return tensor;
}

void write_fits(data::Hdf5Writer& file, BraggMethod method, const std::vector<PeakFit>& fits) {
  if (!is_fit(method)) return;
  for (const Output& output : fit_outputs) {
    file.write(output.name, column_of(fits, output.value));
    if (*output.unit) file.set_attribute(output.name, "unit", output.unit);
  }
  Tensor converged(ElementType::boolean, {static_cast<std::int64_t>(fits.size())});
  for (std::size_t i = 0; i < fits.size(); ++i) converged.as<bool>()[i] = fits[i].converged;
  file.write("converged", converged);
}

void write_result(const Request& request, BraggMethod method, const std::vector<PeakFit>& fits,
                  const data::BraggDataset& peaks, const std::vector<double>& errors) {
  data::Hdf5Writer file(request.output);
  file.set_attribute("", "method", bragg_method_names()[static_cast<std::size_t>(method)]);
  file.set_attribute("", "input", request.input.string());
  file.set_attribute("", "patch_size", std::int64_t{peaks.patch_size()});
  file.write("ploc", positions(fits, 1.0 / peaks.patch_size()));
  file.write("position", positions(fits, 1));
  file.set_attribute("position", "unit", "px");
  Tensor rows(ElementType::i64, {peaks.size()});
  for (std::int64_t i = 0; i < peaks.size(); ++i)
    rows.as<std::int64_t>()[static_cast<std::size_t>(i)] = peaks.row(i);
  file.write("row", rows);
  file.set_attribute("row", "meaning", "row of the input that the peak is");
  write_fits(file, method, fits);
  if (!errors.empty()) {
    file.write("error_px", Tensor::from<double>({peaks.size()}, errors).converted(ElementType::f32));
    file.set_attribute("error_px", "unit", "px");
  }
  file.close();
}

std::vector<Metric> metrics_of(const std::vector<PeakFit>& fits, const std::vector<double>& errors,
                               double seconds) {
  std::vector<Metric> metrics;
  if (!errors.empty()) metrics = data::position_error_metrics(errors);
  const auto count = static_cast<double>(fits.size());
  const auto converged = static_cast<double>(std::ranges::count(fits, true, &PeakFit::converged));
  metrics.push_back({.name = "converged", .value = converged / count});
  metrics.push_back({.name = "throughput", .value = count / seconds, .unit = "samples/s"});
  return metrics;
}

std::string table_of(BraggMethod method, const std::vector<PeakFit>& fits,
                     const std::vector<Metric>& metrics) {
  TextTable table({"method", "peaks", "mean px", "50 %", "75 %", "95 %", "99.5 %", "converged", "peaks/s"});
  std::vector<std::string> cells{bragg_method_names()[static_cast<std::size_t>(method)],
                                 format_count(static_cast<double>(fits.size()))};
  const std::size_t missing = 7 - metrics.size();  // without the truth there are no errors
  cells.insert(cells.end(), missing, "-");
  for (std::size_t i = 0; i + 2 < metrics.size(); ++i)
    cells.push_back(fmt::format("{:.4f}", metrics[i].value));
  cells.push_back(fmt::format("{:.2f} %", 100 * metrics[metrics.size() - 2].value));
  cells.push_back(format_count(std::round(metrics.back().value)));
  table.add_row(cells);
  return table.to_string();
}

Report run(const Request& request, const Options& given) {
  const auto method = static_cast<BraggMethod>(given.choice("method", bragg_method_names()));
  const auto size = static_cast<int>(given.integer("patch_size", 0, 511));
  const auto peaks = data::BraggDataset::open(request.input, {.patch_size = size, .labels_required = false});
  const Stopwatch watch;
  const std::vector<PeakFit> fits = locate_all(method, peaks, *request.pool);
  const double elapsed = watch.seconds();
  const std::vector<double> errors =
      peaks.has_labels() ? position_errors(fits, peaks) : std::vector<double>{};
  if (!request.output.empty()) write_result(request, method, fits, peaks, errors);
  if (!request.picture.empty()) draw_fits(request.picture, method, fits, peaks);
  Report report{metrics_of(fits, errors, elapsed), ""};
  report.text = table_of(method, fits, report.metrics);
  return report;
}

}  // namespace

std::vector<PeakFit> locate_all(BraggMethod method, const data::BraggDataset& peaks, ThreadPool& pool) {
  std::vector<PeakFit> fits(static_cast<std::size_t>(peaks.size()));
  const int size = peaks.patch_size();
  Progress progress("fitting peaks", static_cast<double>(peaks.size()), "peaks");
  const auto locate_group = [&](std::int64_t first) {
    std::vector<float> patch(static_cast<std::size_t>(size * size));
    for (std::int64_t i = first; i < std::min(first + group, peaks.size()); ++i) {
      peaks.raw(i, patch);
      fits[static_cast<std::size_t>(i)] = locate(method, patch, size);
    }
  };
  for (std::int64_t first = 0; first < peaks.size(); first += group * groups_an_update) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "no result was written");
    const std::int64_t left = (peaks.size() - first + group - 1) / group;
    pool.parallel_for(std::min(groups_an_update, left),
                      [&](std::int64_t item, int) { locate_group(first + item * group); });
    progress.update(static_cast<double>(std::min(first + group * groups_an_update, peaks.size())));
  }
  return fits;
}

std::vector<double> position_errors(const std::vector<PeakFit>& fits, const data::BraggDataset& peaks) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    const auto [column, row] = peaks.position(static_cast<std::int64_t>(i));
    errors.push_back(std::hypot(fits[i].position.column - column, fits[i].position.row - row));
  }
  return errors;
}

Entry bragg_baseline_entry() {
  return {"braggnn",
          "pseudo-Voigt fit of every peak by Levenberg and Marquardt; also centroid and brightest pixel",
          options(), run};
}

}  // namespace superstep::baseline
