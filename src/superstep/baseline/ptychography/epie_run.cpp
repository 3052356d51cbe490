#include "superstep/baseline/ptychography/epie_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/baseline/in_file.h"
#include "superstep/baseline/ptychography/epie_output.h"
#include "superstep/baseline/ptychography/epie_page.h"

namespace superstep::baseline {
namespace {

constexpr std::size_t memory_for_scans = 700u << 20;  // bytes of patterns held at once

struct RunSettings {
  EpieSettings epie;
  PtychoFile::Settings file;
  int passes = 100, scans = 0;
  std::filesystem::path answers;  // of a network, to start from; may be empty
  int central = 12;               // px of a window that are stitched
  bool start_from_file = true, halves = false;
  double start_width = 75e-9;  // m
};

const std::string methods[] = {"epie", "rpie"};
const std::string starts[] = {"file", "gaussian"};
const std::string no_or_yes[] = {"no", "yes"};

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
  settings.answers = options.text("start");
  settings.halves = options.choice("halves", no_or_yes) == 1;
  settings.central = static_cast<int>(options.integer("central", 1, 4096));
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

[[noreturn]] void refuse(int scan, double error) {
  throw Error(ErrorCode::diverged, fmt::format("the error of a pass grew to {:.3g}", error),
              fmt::format("scan {}", scan),
              "start from a better probe (probe=file, or another probe_width), or lower probe_step");
}

void require_progress(double error, double first, int scan) {
  // A reconstruction that starts from nothing has an error of about 1.
  if (!std::isfinite(error) || error > 100 * std::max(1.0, first)) refuse(scan, error);
}

// What ends worse than it began is no reconstruction, however small the number.
void require_gain(const EpieResult& result) {
  if (!result.errors.empty() && result.errors.back() > 2 * result.errors.front())
    refuse(result.scan, result.errors.back());
}

// Called after every pass, from the thread that runs the scan.
using PassDone = FunctionRef<void(double error)>;

// One scan, ready for a reconstruction.
struct Ready {
  const PtychoFile& file;
  const RunSettings& settings;
  int index;
  PtychoScanData scan;
  std::vector<float> area;  // by the probe that it starts from

  ObjectComparison compared(const std::vector<std::complex<float>>& object) const {
    return compare_objects(object, *scan.truth, area, file.height(), file.width());
  }
  ObjectQuality quality(const ObjectComparison& comparison) const {
    return quality_of(comparison, *scan.truth, area, file.height(), file.width());
  }
};

// Stops early when the user asks to.
EpieCourse passes_of(Epie& epie, const Ready& ready, ThreadPool& pool, PassDone pass_done) {
  EpieCourse course;
  double seconds = 0;
  for (int pass = 0; pass < ready.settings.passes && !interrupted(); ++pass) {
    const Stopwatch watch;
    course.errors.push_back(epie.pass(pool));
    course.seconds.push_back(seconds += watch.seconds());
    require_progress(course.errors.back(), course.errors.front(), ready.index);
    // What follows every pass is looked at where two courses are compared.
    if (ready.scan.truth && !ready.settings.answers.empty())
      course.phase_rms.push_back(ready.compared(epie.object()).phase_rms);
    pass_done(course.errors.back());
  }
  return course;
}

// The network's object, and the course from nothing; the course from the object follows.
EpieStart start_of(const Ready& ready, const PointAnswers& answers, ThreadPool& pool, PassDone pass_done) {
  const auto& positions = ready.scan.data.positions;
  EpieStart start;
  start.stitched = with_file_of("start", [&] {
    return answers.stitched(positions, ready.file.first_point(ready.index), ready.file.height(),
                            ready.file.width(), ready.settings.central);
  });
  start.network_seconds = answers.seconds_per_point() * static_cast<double>(positions.size());
  Epie epie(ready.scan.data, starting_probe(ready.file, ready.scan, ready.settings), ready.settings.epie);
  start.cold = passes_of(epie, ready, pool, pass_done);
  if (!ready.scan.truth) return start;
  start.from_nothing = ready.quality(ready.compared(epie.object()));
  std::vector<float> both = ready.area;  // lit, and answered
  for (std::size_t i = 0; i < both.size(); ++i) both[i] *= start.stitched.hit[i];
  start.network = quality_of(compare_objects(start.stitched.object, *ready.scan.truth, both,
                                             ready.file.height(), ready.file.width()),
                             *ready.scan.truth, both, ready.file.height(), ready.file.width());
  return start;
}

// Two reconstructions from every second point, beside each other where both put light, and the network's
// answers in the same way.
void compare_halves(const Ready& ready, const data::ComplexField& probe, const PointAnswers* answers,
                    ThreadPool& pool, PassDone pass_done, EpieResult& result) {
  const int height = ready.file.height(), width = ready.file.width();
  std::vector<std::vector<std::complex<float>>> objects, stitched;
  std::vector<float> area = ready.area, answered = ready.area;
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
    const PtychoData half = every_second_point(ready.scan.data, first);
    const std::vector<float> lit = scanned_area(half, probe);
    for (std::size_t i = 0; i < area.size(); ++i) area[i] *= lit[i];
    Epie epie(half, probe, ready.settings.epie);
    passes_of(epie, ready, pool, pass_done);
    objects.push_back(epie.object());
    if (!answers) continue;
    const auto from_answers =
        answers->stitched(ready.scan.data.positions, ready.file.first_point(ready.index), height, width,
                          ready.settings.central, first, 2);
    for (std::size_t i = 0; i < area.size(); ++i) answered[i] *= from_answers.hit[i];
    stitched.push_back(from_answers.object);
  }
  if (interrupted()) return;  // halves that were not done alike say nothing
  result.halves = agreement_of(objects[0], objects[1], area, height, width);
  if (answers) result.network_halves = agreement_of(stitched[0], stitched[1], answered, height, width);
}

// Stops early when the user asks to; without errors then, when no pass was done.
EpieResult reconstruct(const PtychoFile& file, int scan_index, const RunSettings& settings,
                       const PointAnswers* answers, ThreadPool& pool, PassDone pass_done) {
  EpieResult result;
  result.scan = scan_index;
  if (interrupted()) return result;
  Ready ready{file, settings, scan_index, file.read_scan(scan_index), {}};
  const data::ComplexField probe = starting_probe(file, ready.scan, settings);
  ready.area = scanned_area(ready.scan.data, probe);
  if (answers) result.start = start_of(ready, *answers, pool, pass_done);
  Epie epie(ready.scan.data, probe, settings.epie,
            result.start ? result.start->stitched.object : std::vector<std::complex<float>>());
  const EpieCourse course = passes_of(epie, ready, pool, pass_done);
  if (result.start) result.start->warm = course;
  result.errors = course.errors;
  if (!answers) require_gain(result);
  result.seconds = course.seconds.empty() ? 0 : course.seconds.back();
  result.points = static_cast<int>(ready.scan.data.positions.size());
  result.object = epie.object();
  result.probe = epie.probe();
  if (settings.halves && !interrupted()) compare_halves(ready, probe, answers, pool, pass_done, result);
  result.area = ready.scan.probe ? ready.area : scanned_area(ready.scan.data, result.probe);
  if (!ready.scan.truth) return result;
  result.truth = *ready.scan.truth;
  result.comparison = compare_objects(result.object, result.truth, result.area, file.height(), file.width());
  result.quality = quality_of(*result.comparison, result.truth, result.area, file.height(), file.width());
  return result;
}

// Several scans are worked on side by side, each by one thread, when their patterns fit into memory;
// a large single scan is shared by all threads. The results are the same bits either way.
int scans_at_once(const PtychoFile& file, int scans, int threads) {
  const auto bytes = std::max<std::size_t>(1, file.bytes_of_scan(0));
  const int fitting = static_cast<int>(std::max<std::size_t>(1, memory_for_scans / bytes));
  const int at_once = std::min({threads, scans, fitting});
  return 2 * at_once > threads ? at_once : 1;
}

// Scans [first, first + count), on all threads.
std::vector<EpieResult> reconstruct_some(const PtychoFile& file, int first, int count,
                                         const RunSettings& settings, const PointAnswers* answers,
                                         ThreadPool& pool,
                                         FunctionRef<void(int scan, double error)> after_pass) {
  std::vector<EpieResult> results(static_cast<std::size_t>(count));
  const auto one = [&](int item, ThreadPool& threads) {
    const int scan = first + item;
    results[static_cast<std::size_t>(item)] =
        reconstruct(file, scan, settings, answers, threads, [&](double error) { after_pass(scan, error); });
  };
  if (count == 1) {
    one(0, pool);
    return results;
  }
  pool.parallel_for(count, [&](std::int64_t item, int) {
    ThreadPool alone(1);
    one(static_cast<int>(item), alone);
  });
  return results;
}

std::string where_it_is(const Request& request) {
  return request.output.empty() ? "" : "what was done is in " + request.output.string();
}

}  // namespace

Report run_epie(const Request& request, const Options& options,
                FunctionRef<void(int scan, double error)> after_pass) {
  const RunSettings settings = read_settings(options);
  const PtychoFile file(request.input, settings.file);
  std::optional<PointAnswers> answers;
  if (!settings.answers.empty())
    with_file_of("start", [&] { answers.emplace(settings.answers, file.points(), file.window()); });
  const int scans = settings.scans > 0 ? std::min(settings.scans, file.scan_count()) : file.scan_count();
  const int passes = scans * settings.passes * ((answers ? 2 : 1) + (settings.halves ? 2 : 0));
  const Stopwatch watch;
  EpieOutput output(request.output, file, scans, settings.passes, answers.has_value());
  Progress progress(options.text("method"), passes, "passes");
  std::mutex mutex;
  int passes_done = 0;
  const auto pass_done = [&](int scan, double error) {
    std::lock_guard lock(mutex);
    progress.update(++passes_done, fmt::format("error {:.4f}", error));
    after_pass(scan, error);
  };
  EpieSummary summary;
  EpieResult shown;
  const int at_once = scans_at_once(file, scans, request.pool->threads());
  for (int first = 0; first < scans && !interrupted(); first += at_once) {
    const int count = std::min(at_once, scans - first);
    for (EpieResult& result : reconstruct_some(file, first, count, settings, answers ? &*answers : nullptr,
                                               *request.pool, pass_done)) {
      if (result.errors.empty()) continue;
      output.add(result);
      summary.add(result);
      if (shown.errors.empty()) shown = std::move(result);
    }
  }
  progress.finish();
  if (summary.scans() == 0) throw Error(ErrorCode::interrupted, "no pass was done, and nothing is written");
  output.close();
  if (!request.picture.empty()) write_epie_page(request.picture, shown, file);
  if (passes_done < passes)
    throw Error(ErrorCode::interrupted,
                fmt::format("{} of {} passes were done; the error came to {:.5f}", passes_done, passes,
                            shown.errors.empty() ? 0.0 : shown.errors.back()),
                request.input.string(), where_it_is(request));
  const double wall = watch.seconds();
  return summary.report(wall, file.pixel());
}

Report run_epie(const Request& request, const Options& options) {
  return run_epie(request, options, [](int, double) {});
}

std::vector<OptionSpec> epie_options() {
  return {
      {"method", "rpie", "rpie, or epie, which now and then stays in a false solution"},
      {"passes", "100", "visits of every point"},
      {"probe", "file", "what to start from: file (where it has one) or gaussian"},
      {"probe_width", "75", "of the Gaussian, full width at half maximum, nm"},
      {"probe_from", "10", "first pass that refines the probe; more than passes: never"},
      {"object_step", "1", "share of a change that goes into the object"},
      {"probe_step", "0.5",
       "share of a change that goes into the probe; with 1 in both, scans of few counts become unstable"},
      {"regularization", "0.3", "rpie only, in (0, 1]: smaller trusts weakly lit pixels more; 1 is epie"},
      {"seed", "1", "of the order of the points"},
      {"start", "", "a network's answers to the points, as infer --output writes them, to begin from too"},
      {"halves", "no",
       "yes: reconstruct every second point and the others, too; where they agree is resolved"},
      {"central", "12", "px of such an answer's window, in its middle, that are stitched"},
      {"scans", "0", "the first so many scans of the file; 0: all"},
      {"pixel", "0", "pixel of the object, nm; 0: as the file says"},
      {"threshold", "-1", "counts below this were written as 0; -1: as the file says"}};
}

}  // namespace superstep::baseline
