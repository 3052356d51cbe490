#include "superstep/baseline/ptychography/autophase_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/baseline/in_file.h"
#include "superstep/physics/fft.h"

namespace superstep::baseline {
namespace {

struct RunSettings {
  RetrievalSettings retrieval;
  int starts = 10;
  std::int64_t samples = 0;
  std::uint64_t seed = 1;
  std::vector<std::filesystem::path> answers;
};

// A pattern as large as the detector's noise leaves a share of 1 / sqrt(counts) here: 0.01 at 10^4.
constexpr double largest_share_beyond = 0.05;  // chosen: a cube of 0.55 of the grid has as much

RunSettings read_settings(const Options& options) {
  RunSettings settings;
  settings.retrieval.iterations = static_cast<int>(options.integer("iterations", 1, 1000000));
  settings.retrieval.beta = options.number("beta", 0, 2);
  settings.retrieval.shrink_every = static_cast<int>(options.integer("shrink_every", 1, 1000000));
  settings.retrieval.threshold = options.number("threshold", 0, 1);
  settings.retrieval.sigma_first = options.number("sigma_first", 0, 100);
  settings.retrieval.sigma_last = options.number("sigma_last", 0, 100);
  settings.starts = static_cast<int>(options.integer("starts", 1, 10000));
  settings.samples = options.integer("samples", 0, 1LL << 40);
  settings.seed = static_cast<std::uint64_t>(options.integer("seed", 0, 1LL << 62));
  if (!options.text("start").empty())
    for (const std::string& path : split(options.text("start"), ',')) settings.answers.emplace_back(path);
  return settings;
}

// The patterns and labels of a file.
class CrystalFile {
 public:
  explicit CrystalFile(const std::filesystem::path& path) : file_(path) {
    const std::int64_t any[] = {-1, -1, -1, -1};
    const Shape shape = file_.require_shape("diff", any).shape;
    samples_ = shape[0];
    n_ = shape[1];
    if (shape[2] != n_ || shape[3] != n_ || n_ % 4 != 0 || n_ < 8 || n_ > 1024 || samples_ < 1)
      throw Error(ErrorCode::bad_file,
                  fmt::format("patterns of shape {}: [samples, n, n, n] is needed, n a multiple of 4",
                              to_string(shape)),
                  fmt::format("{}: data set 'diff'", path.string()));
    has_labels_ = file_.contains("amp") && file_.contains("phase");
    if (!has_labels_) return;
    const std::int64_t half[] = {samples_, n_ / 2, n_ / 2, n_ / 2};
    file_.require_shape("amp", half);
    file_.require_shape("phase", half);
  }

  std::int64_t samples() const { return samples_; }
  std::int64_t side() const { return n_; }
  Shape shape() const { return {n_, n_, n_}; }

  std::vector<float> magnitude(std::int64_t sample) const {
    const Tensor pattern = file_.read_rows("diff", ElementType::f32, sample, 1);
    std::vector<float> values;
    for (const std::size_t target : data::fft_shift_targets(shape()))
      values.push_back(pattern.as<float>()[target]);
    const auto bad = [&](std::string what) {
      return Error(ErrorCode::bad_file, fmt::format("crystal {}: {}", sample, what),
                   data::place(file_.path(), "diff"));
    };
    for (const float value : values)
      if (!(std::isfinite(value) && value >= 0)) throw bad(fmt::format("a magnitude of {}", value));
    if (std::ranges::all_of(values, [](float value) { return value == 0; }))
      throw bad("the pattern has no count");
    if (const double share = share_beyond_half(values, shape()); share > largest_share_beyond)
      throw bad(
          fmt::format("it is larger than half of its grid ({:.2f} of its autocorrelation lies half a grid "
                      "away, where nothing should be): no support can find it",
                      share));
    return values;
  }

  // The labels in the middle of a pattern's grid; empty without labels.
  Field truth(std::int64_t sample) const {
    if (!has_labels_) return {};
    const Tensor amplitude = file_.read_rows("amp", ElementType::f32, sample, 1);
    const Tensor phase = file_.read_rows("phase", ElementType::f32, sample, 1);
    const auto n = static_cast<std::size_t>(n_), half = n / 2, first = n / 4;
    Field field(n * n * n);
    for (std::size_t i = 0; i < half * half * half; ++i) {
      const std::size_t z = first + i / (half * half), y = first + i / half % half, x = first + i % half;
      field[(z * n + y) * n + x] = std::polar(std::abs(amplitude.as<float>()[i]), phase.as<float>()[i]);
    }
    return field;
  }

 private:
  data::ArrayFile file_;
  std::int64_t samples_ = 0, n_ = 0;
  bool has_labels_ = false;
};

CrystalResult finish(const CrystalFile& file, std::int64_t sample, const Retrieval& best) {
  CrystalResult result;
  result.sample = sample;
  result.chi2 = best.chi2;
  const auto n = static_cast<std::size_t>(file.side());
  const Field truth = file.truth(sample);
  if (truth.empty()) {
    result.object = middle_cube(centered(best.object, file.shape()), n);
    return result;
  }
  const AlignedObject aligned = align(best.object, truth, file.shape());
  result.comparison = compare_shapes(aligned.object, truth, file.shape());
  result.twin = aligned.twin;
  result.object = middle_cube(aligned.object, n);
  result.truth = middle_cube(truth, n);
  return result;
}

// Writes a retrieval that begins now into a trace; with a truth (which must outlive it) its overlaps, too.
auto note_in(RetrievalTrace& trace, const Field& truth, const Shape& shape) {
  return [&, begun = thread_seconds(), looking = 0.0](int, double chi2, const Field& object) mutable {
    const double now = thread_seconds();
    trace.seconds.push_back(now - begun - looking);
    trace.chi2.push_back(chi2);
    if (!truth.empty()) trace.overlap.push_back(align(object, truth, shape).overlap);
    looking += thread_seconds() - now;
  };
}

// The answers to one crystal, and what a retrieval makes of each.
ComparedCrystal compared_with(const CrystalFile& file, std::int64_t sample,
                              std::span<const CrystalAnswers> answers, const RunSettings& settings,
                              const std::vector<float>& magnitude) {
  ComparedCrystal crystal;
  const Field truth = file.truth(sample);
  for (const CrystalAnswers& from : answers) {
    Field object = with_file_of("start", [&] { return from.object(sample); });
    scale_to(object, file.shape(), magnitude);
    AnswerResult result;
    result.own =
        quality_of_crystal(object, diffraction_chi2(object, file.shape(), magnitude), truth, file.shape());
    const Shape shape = file.shape();
    const Retrieval found = retrieve_phase(magnitude, shape, settings.retrieval, std::move(object),
                                           note_in(result.trace, truth, shape));
    result.continued = quality_of_crystal(found.object, found.chi2, truth, file.shape());
    crystal.answers.push_back(std::move(result));
  }
  return crystal;
}

// Crystals [first, first + count), each from all its starts; starts are the items that threads take.
std::vector<CrystalResult> retrieve_block(const CrystalFile& file, std::int64_t first, std::int64_t count,
                                          const RunSettings& settings,
                                          std::span<const CrystalAnswers> answers, ThreadPool& pool,
                                          FunctionRef<void()> start_done) {
  std::vector<std::vector<float>> magnitudes;
  for (std::int64_t i = 0; i < count; ++i) magnitudes.push_back(file.magnitude(first + i));
  std::vector<Retrieval> found(static_cast<std::size_t>(count * settings.starts));
  std::vector<RetrievalTrace> traces(found.size());
  pool.parallel_for(static_cast<std::int64_t>(found.size()), [&](std::int64_t item, int) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written");
    const auto at = static_cast<std::size_t>(item), crystal = at / static_cast<std::size_t>(settings.starts);
    RandomStream random(settings.seed, static_cast<std::uint64_t>(first) + crystal,
                        static_cast<std::uint32_t>(at % static_cast<std::size_t>(settings.starts)));
    const Field truth = answers.empty() ? Field() : file.truth(first + static_cast<std::int64_t>(crystal));
    const Shape shape = file.shape();
    found[at] = retrieve_phase(magnitudes[crystal], shape, settings.retrieval, random,
                               note_in(traces[at], truth, shape));
    start_done();
  });
  std::vector<CrystalResult> results(static_cast<std::size_t>(count));
  pool.parallel_for(count, [&](std::int64_t item, int) {
    const auto begin = found.begin() + item * settings.starts, end = begin + settings.starts;
    const auto best = std::min_element(begin, end, [](auto& a, auto& b) { return a.chi2 < b.chi2; });
    CrystalResult& result = results[static_cast<std::size_t>(item)] = finish(file, first + item, *best);
    for (auto start = begin; start != end; ++start) {
      result.start_chi2.push_back(start->chi2);
      result.seconds += traces[static_cast<std::size_t>(start - found.begin())].seconds.back();
    }
    if (answers.empty()) return;
    result.compared =
        compared_with(file, first + item, answers, settings, magnitudes[static_cast<std::size_t>(item)]);
    for (auto start = begin; start != end; ++start) {
      result.compared->starts.push_back(
          quality_of_crystal(start->object, start->chi2, file.truth(first + item), file.shape()));
      result.compared->traces.push_back(traces[static_cast<std::size_t>(start - found.begin())]);
    }
  });
  return results;
}

class Output {
 public:
  Output(const std::filesystem::path& path, std::int64_t samples, std::int64_t half) : half_(half) {
    if (path.empty()) return;
    writer_ = std::make_unique<data::Hdf5Writer>(path);
    writer_->create("amp", ElementType::f32, {samples, half, half, half});
    writer_->create("phase", ElementType::f32, {samples, half, half, half});
    writer_->create("chi2", ElementType::f64, {samples});
    writer_->set_attribute("phase", "unit", std::string("rad"));
  }
  void add(const CrystalResult& result) {
    if (!writer_) return;
    Tensor amplitude(ElementType::f32, {1, half_, half_, half_}), phase(ElementType::f32, amplitude.shape());
    for (std::size_t i = 0; i < result.object.size(); ++i) {
      amplitude.as<float>()[i] = std::abs(result.object[i]);
      phase.as<float>()[i] = std::arg(result.object[i]);
    }
    writer_->write_rows("amp", result.sample, amplitude);
    writer_->write_rows("phase", result.sample, phase);
    writer_->write_rows("chi2", result.sample, Tensor::from<double>({1}, {result.chi2}));
  }
  void close() {
    if (writer_) writer_->close();
  }

 private:
  std::int64_t half_;
  std::unique_ptr<data::Hdf5Writer> writer_;
};

struct Totals {
  double crystals = 0, compared = 0, chi2 = 0, iou = 0, phase_rms = 0, phase_mean = 0, ssim = 0, seconds = 0;

  void add(const CrystalResult& result) {
    ++crystals;
    chi2 += result.chi2;
    seconds += result.seconds;
    if (!result.comparison) return;
    ++compared;
    iou += result.comparison->iou;
    phase_rms += result.comparison->phase_rms;
    phase_mean += result.comparison->phase_mean;
    ssim += result.comparison->ssim;
  }
};

std::vector<Metric> metrics_of(const Totals& totals, double elapsed) {
  std::vector<Metric> metrics{{"throughput", totals.crystals / elapsed, "samples/s"},
                              {"elapsed", elapsed, "s"},
                              {"thread_time_per_crystal", totals.seconds / totals.crystals, "s"},
                              {"chi2", totals.chi2 / totals.crystals, ""}};
  if (totals.compared > 0) {
    metrics.push_back({"iou", totals.iou / totals.compared, ""});
    metrics.push_back({"phase_error_rms", totals.phase_rms / totals.compared, "rad"});
    metrics.push_back({"phase_error_mean", totals.phase_mean / totals.compared, "rad"});
    metrics.push_back({"ssim", totals.ssim / totals.compared, ""});
  }
  return metrics;
}

std::vector<std::string> row_of(const CrystalResult& result) {
  std::vector<std::string> row{std::to_string(result.sample), fmt::format("{:.5f}", result.chi2),
                               format_seconds(result.seconds)};
  if (!result.comparison) {
    row.insert(row.end(), {"-", "-", "-"});
    return row;
  }
  row.push_back(fmt::format("{:.3f}", result.comparison->iou));
  row.push_back(fmt::format("{:.3f}", result.comparison->phase_rms));
  row.push_back(fmt::format("{:.4f}", result.comparison->ssim));
  return row;
}

}  // namespace

Field middle_cube(const Field& field, std::size_t n) {
  const std::size_t half = n / 2, first = n / 4;
  Field cube;
  cube.reserve(half * half * half);
  for (std::size_t z = first; z < first + half; ++z)
    for (std::size_t y = first; y < first + half; ++y)
      for (std::size_t x = first; x < first + half; ++x) cube.push_back(field[(z * n + y) * n + x]);
  return cube;
}

Report run_phase_retrieval(const Request& request, const Options& options) {
  const RunSettings settings = read_settings(options);
  const CrystalFile file(request.input);
  const std::int64_t samples =
      settings.samples > 0 ? std::min(settings.samples, file.samples()) : file.samples();
  std::vector<CrystalAnswers> answers;
  for (const auto& path : settings.answers)
    with_file_of("start", [&] { answers.emplace_back(path, file.samples(), file.side()); });
  AnswerSummary compared(answers);
  const Stopwatch watch;
  Output output(request.output, samples, file.side() / 2);
  Progress progress(fmt::format("phase retrieval of {} crystals", samples),
                    static_cast<double>(samples) * settings.starts, "starts");
  std::mutex mutex;
  std::int64_t starts_done = 0;
  const auto start_done = [&] {
    std::lock_guard lock(mutex);
    progress.update(static_cast<double>(++starts_done));
  };
  // Enough starts at a time that no thread waits long for the last one.
  const std::int64_t block = std::max(1, 2 * request.pool->threads() / settings.starts);
  Totals totals;
  TextTable table({"crystal", "chi2", "thread time", "IoU", "phase rms (rad)", "SSIM"});
  CrystalResult shown;
  for (std::int64_t first = 0; first < samples; first += block) {
    const std::int64_t count = std::min(block, samples - first);
    for (CrystalResult& result :
         retrieve_block(file, first, count, settings, answers, *request.pool, start_done)) {
      output.add(result);
      if (result.compared) compared.add(*result.compared);
      totals.add(result);
      if (result.sample < 20) table.add_row(row_of(result));
      if (result.sample == 0) shown = std::move(result);
    }
  }
  progress.finish();
  output.close();
  const std::string comparison = answers.empty() ? "" : compared.table();
  if (!request.picture.empty())
    write_retrieval_page(request.picture, shown, static_cast<int>(file.side() / 2), answers, comparison);
  std::vector<Metric> metrics = metrics_of(totals, watch.seconds());
  if (!answers.empty())
    for (Metric& metric : compared.metrics()) metrics.push_back(std::move(metric));
  return {metrics, table.to_string() + (answers.empty() ? "" : "\nmeans over the crystals:\n") + comparison};
}

std::vector<OptionSpec> phase_retrieval_options() {
  return {{"starts", "10", "random starts of a crystal, of which the best is kept"},
          {"iterations", "300", "of a start: ER, cycles of HIO and ER, ER"},
          {"beta", "0.9", "feedback of HIO"},
          {"shrink_every", "20", "iterations between updates of the support"},
          {"threshold", "0.2", "of the support, of the largest blurred modulus"},
          {"sigma_first", "3", "first blur of the support, voxels"},
          {"sigma_last", "0.8", "last blur of the support, voxels"},
          {"samples", "0", "the first so many crystals of the file; 0: all"},
          {"seed", "1", "of the random starts"},
          {"start", "",
           "files of answers, FILE,...: what infer --output wrote; to compare with and to begin from"}};
}

}  // namespace superstep::baseline
