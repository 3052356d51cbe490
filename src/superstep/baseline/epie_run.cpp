#include "superstep/baseline/epie_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>

#include "superstep/base/interrupt.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/baseline/epie_page.h"
#include "superstep/data/hdf5.h"

namespace superstep::baseline {
namespace {

constexpr std::size_t memory_for_scans = 700u << 20;  // bytes of patterns held at once

struct RunSettings {
  EpieSettings epie;
  PtychoFile::Settings file;
  int passes = 100, scans = 0;
  bool start_from_file = true;
  double start_width = 75e-9;  // m
};

const std::string methods[] = {"epie", "rpie"};
const std::string starts[] = {"file", "gaussian"};

RunSettings read_settings(const Options& options) {
  RunSettings settings;
  const bool regularized = options.choice("method", methods) == 1;
  settings.epie.regularization = regularized ? options.number("regularization", 1e-6, 1) : 1.0;
  settings.epie.probe_from = static_cast<int>(options.integer("probe_from", 0, 1000000));
  settings.epie.object_step = options.number("object_step", 0, 2);
  settings.epie.probe_step = options.number("probe_step", 0, 2);
  settings.epie.seed = static_cast<std::uint64_t>(options.integer("seed", 0, 1LL << 62));
  settings.passes = static_cast<int>(options.integer("passes", 1, 1000000));
  settings.scans = static_cast<int>(options.integer("scans", 0, 1000000));
  settings.start_from_file = options.choice("probe", starts) == 0;
  settings.start_width = options.number("probe_width", 1e-3, 1e9) * 1e-9;
  settings.file.pixel = options.number("pixel", 0, 1e9) * 1e-9;
  settings.file.threshold = options.number("threshold", -1, 1e9);
  return settings;
}

data::ComplexField starting_probe(const PtychoFile& file, const PtychoScanData& scan,
                                  const RunSettings& settings) {
  if (settings.start_from_file && scan.probe) return *scan.probe;
  data::ComplexField probe = data::gaussian_probe(file.window(), settings.start_width / file.pixel());
  data::scale(probe, std::sqrt(scan.mean_counts));
  return probe;
}

void stop_when_asked() {
  if (interrupted()) throw Error(ErrorCode::interrupted, "no object was written");
}

void require_progress(double error, double first, int scan) {
  // A reconstruction that starts from nothing has an error of about 1.
  if (std::isfinite(error) && error < 100 * std::max(1.0, first)) return;
  throw Error(ErrorCode::diverged, fmt::format("the error of a pass grew to {:.3g}", error),
              fmt::format("scan {}", scan),
              "start from a better probe (probe=file, or another probe_width), or lower probe_step");
}

// Called after every pass, from the thread that runs the scan.
using PassDone = FunctionRef<void(double error)>;

EpieResult reconstruct(const PtychoFile& file, int scan_index, const RunSettings& settings, ThreadPool& pool,
                       PassDone pass_done) {
  const PtychoScanData scan = file.read_scan(scan_index);
  const auto begun = std::chrono::steady_clock::now();
  EpieResult result;
  result.scan = scan_index;
  Epie epie(scan.data, starting_probe(file, scan, settings), settings.epie);
  for (int pass = 0; pass < settings.passes; ++pass) {
    stop_when_asked();
    result.errors.push_back(epie.pass(pool));
    require_progress(result.errors.back(), result.errors.front(), scan_index);
    pass_done(result.errors.back());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  result.points = static_cast<int>(scan.data.positions.size());
  result.object = epie.object();
  result.probe = epie.probe();
  result.area = scanned_area(scan.data, scan.probe ? *scan.probe : result.probe);
  if (scan.truth) {
    result.truth = *scan.truth;
    result.comparison = compare_objects(result.object, *scan.truth, result.area, file.height(), file.width());
  }
  return result;
}

class Output {
 public:
  Output(const std::filesystem::path& path, const PtychoFile& file, int scans, int passes)
      : height_(file.height()), width_(file.width()) {
    if (path.empty()) return;
    writer_ = std::make_unique<data::Hdf5Writer>(path);
    writer_->create("object_amp", ElementType::f32, {scans, height_, width_});
    writer_->create("object_phase", ElementType::f32, {scans, height_, width_});
    writer_->create("probe", ElementType::f32, {scans, file.window(), file.window(), 2});
    writer_->create("fourier_error", ElementType::f64, {scans, passes});
    writer_->set_attribute("object_phase", "unit", std::string("rad"));
    writer_->write("pixel_size", Tensor::scalar(file.pixel()));
  }

  void add(const EpieResult& result) {
    if (!writer_) return;
    // With the truth at hand, what no measurement can tell is written as the truth has it.
    const auto& object = result.comparison ? result.comparison->aligned : result.object;
    Tensor amplitude(ElementType::f32, {1, height_, width_}), phase(ElementType::f32, amplitude.shape());
    for (std::size_t i = 0; i < object.size(); ++i) {
      amplitude.as<float>()[i] = std::abs(object[i]);
      phase.as<float>()[i] = std::arg(object[i]);
    }
    writer_->write_rows("object_amp", result.scan, amplitude);
    writer_->write_rows("object_phase", result.scan, phase);
    writer_->write_rows("probe", result.scan, 1, std::as_bytes(std::span(result.probe)));
    writer_->write_rows("fourier_error", result.scan, 1, std::as_bytes(std::span(result.errors)));
  }

  void close() {
    if (writer_) writer_->close();
  }

 private:
  std::unique_ptr<data::Hdf5Writer> writer_;
  std::int64_t height_, width_;
};

struct Totals {
  double seconds = 0, fourier = 0, phase_squares = 0, amplitude_squares = 0, worst_phase = 0, pixels = 0,
         points = 0;
  int scans = 0, compared = 0;

  void add(const EpieResult& result) {
    ++scans;
    seconds += result.seconds;
    points += result.points;
    fourier += result.errors.back();
    if (!result.comparison) return;
    ++compared;
    const ObjectComparison& comparison = *result.comparison;
    pixels += comparison.pixels;
    phase_squares += comparison.pixels * comparison.phase_rms * comparison.phase_rms;
    amplitude_squares += comparison.pixels * comparison.amplitude_rms * comparison.amplitude_rms;
    worst_phase = std::max(worst_phase, comparison.phase_rms);
  }
};

std::vector<Metric> metrics_of(const Totals& totals, double wall_seconds, int passes) {
  std::vector<Metric> metrics{{"time_per_scan", totals.seconds / totals.scans, "s"},
                              {"elapsed", wall_seconds, "s"},
                              {"throughput", totals.points / wall_seconds, "samples/s"},
                              {"pattern_updates", totals.points * passes / wall_seconds, "1/s"},
                              {"fourier_error", totals.fourier / totals.scans, ""}};
  if (totals.compared > 0) {
    metrics.push_back({"phase_error_rms", std::sqrt(totals.phase_squares / totals.pixels), "rad"});
    metrics.push_back({"phase_error_worst_scan", totals.worst_phase, "rad"});
    metrics.push_back({"amplitude_error_rms", std::sqrt(totals.amplitude_squares / totals.pixels), ""});
  }
  return metrics;
}

std::vector<std::string> row_of(const EpieResult& result) {
  std::vector<std::string> row{std::to_string(result.scan), std::to_string(result.points),
                               format_seconds(result.seconds), fmt::format("{:.5f}", result.errors.back())};
  if (result.comparison) {
    row.push_back(fmt::format("{:.4f}", result.comparison->phase_rms));
    row.push_back(fmt::format("{:.4f}", result.comparison->amplitude_rms));
  } else {
    row.insert(row.end(), {"-", "-"});
  }
  return row;
}

// Several scans are worked on side by side, each by one thread, when their patterns fit into memory;
// a large single scan is shared by all threads. The results are the same bits either way.
int scans_at_once(const PtychoFile& file, int scans, int threads) {
  const auto bytes = std::max<std::size_t>(1, file.bytes_of_scan(0));
  const int fitting = static_cast<int>(std::max<std::size_t>(1, memory_for_scans / bytes));
  const int at_once = std::min({threads, scans, fitting});
  return 2 * at_once > threads ? at_once : 1;
}

}  // namespace

Report run_epie(const Request& request, const Options& options) {
  const RunSettings settings = read_settings(options);
  const PtychoFile file(request.input, settings.file);
  const int scans = settings.scans > 0 ? std::min(settings.scans, file.scan_count()) : file.scan_count();
  const auto begun = std::chrono::steady_clock::now();
  Output output(request.output, file, scans, settings.passes);
  Progress progress(fmt::format("{} of {} scans", options.text("method"), scans),
                    double{1} * scans * settings.passes, "passes");
  std::mutex mutex;
  int passes_done = 0;
  const auto pass_done = [&](double error) {
    std::lock_guard lock(mutex);
    progress.update(++passes_done, fmt::format("error {:.5f}", error));
  };
  Totals totals;
  TextTable table({"scan", "points", "time", "error", "phase rms (rad)", "amplitude rms"});
  EpieResult shown;
  const int at_once = scans_at_once(file, scans, request.pool->threads());
  for (int first = 0; first < scans; first += at_once) {
    const int count = std::min(at_once, scans - first);
    std::vector<EpieResult> results(static_cast<std::size_t>(count));
    if (count == 1) {
      results[0] = reconstruct(file, first, settings, *request.pool, pass_done);
    } else {
      request.pool->parallel_for(count, [&](std::int64_t item, int) {
        ThreadPool alone(1);
        results[static_cast<std::size_t>(item)] =
            reconstruct(file, first + static_cast<int>(item), settings, alone, pass_done);
      });
    }
    for (EpieResult& result : results) {
      output.add(result);
      totals.add(result);
      if (result.scan < 20) table.add_row(row_of(result));
      if (result.scan == 0) shown = std::move(result);
    }
  }
  progress.finish();
  output.close();
  if (!request.picture.empty())
    write_epie_page(request.picture, shown, file.height(), file.width(), file.window());
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return {metrics_of(totals, wall, settings.passes), table.to_string()};
}

std::vector<OptionSpec> epie_options() {
  return {{"method", "rpie", "rpie, or epie, which now and then stays in a false solution"},
          {"passes", "100", "visits of every point"},
          {"probe", "file", "what to start from: file (where it has one) or gaussian"},
          {"probe_width", "75", "of the Gaussian, full width at half maximum, nm"},
          {"probe_from", "10", "first pass that refines the probe; more than passes: never"},
          {"object_step", "1", "share of a change that goes into the object"},
          {"probe_step", "1", "share of a change that goes into the probe"},
          {"regularization", "0.3", "rpie only, in (0, 1]: smaller trusts weakly lit pixels more; 1 is epie"},
          {"seed", "1", "of the order of the points"},
          {"scans", "0", "the first so many scans of the file; 0: all"},
          {"pixel", "0", "pixel of the object, nm; 0: as the file says"},
          {"threshold", "-1", "counts below this were written as 0; -1: as the file says"}};
}

}  // namespace superstep::baseline
