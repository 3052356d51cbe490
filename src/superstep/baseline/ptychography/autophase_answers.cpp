#include "superstep/baseline/ptychography/autophase_answers.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/base/error.h"

namespace superstep::baseline {
namespace {

void require_cubes(const data::ArrayFile& file, const char* name, std::int64_t samples, std::int64_t half) {
  const Shape shape = file.info(name).shape;
  const Shape plain{samples, half, half, half}, with_channel{samples, 1, half, half, half};
  if (shape != plain && shape != with_channel)
    throw Error(ErrorCode::bad_file,
                fmt::format("crystals of shape {}, where {} is needed for the patterns", to_string(shape),
                            to_string(with_channel)),
                data::place(file.path(), name));
}

double seconds_in(const data::ArrayFile& file) {
  const auto attributes = file.attributes();
  const auto found = attributes.find("seconds_per_sample");
  if (found == attributes.end() || !std::holds_alternative<double>(found->second)) return 0;
  const double value = std::get<double>(found->second);
  return std::isfinite(value) && value > 0 ? value : 0;
}

}  // namespace

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::optional<double> RetrievalTrace::seconds_to(const CrystalQuality& quality) const {
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (overlap.empty() || quality.overlap == 0 ? chi2[i] <= quality.chi2 : overlap[i] >= quality.overlap)
      return seconds[i];
  return std::nullopt;
}

CrystalAnswers::CrystalAnswers(const std::filesystem::path& path, std::int64_t samples, std::int64_t n)
    : file_(path), name_(path.stem().string()), n_(n), seconds_(seconds_in(file_)) {
  for (const char* name : {"amp", "phase"}) require_cubes(file_, name, samples, n / 2);
  // All of them before the work, one by one: the first bad one is named, not the one that a thread meets
  // first.
  for (std::int64_t sample = 0; sample < samples; ++sample) object(sample);
}

Field CrystalAnswers::object(std::int64_t sample) const {
  const Tensor amplitude = file_.read_rows("amp", ElementType::f32, sample, 1);
  const Tensor phase = file_.read_rows("phase", ElementType::f32, sample, 1);
  const auto n = static_cast<std::size_t>(n_), half = n / 2, first = n / 4;
  Field field(n * n * n);
  double power = 0;
  for (std::size_t i = 0; i < half * half * half; ++i) {
    const std::size_t z = first + i / (half * half), y = first + i / half % half, x = first + i % half;
    const auto value = std::polar(std::abs(amplitude.as<float>()[i]), phase.as<float>()[i]);
    power += std::norm(value);
    field[(z * n + y) * n + x] = value;
  }
  if (!std::isfinite(power) || power == 0)
    throw Error(ErrorCode::bad_file,
                fmt::format("crystal {} {}", sample, power == 0 ? "is empty" : "holds what is not finite"),
                data::place(file_.path(), "amp"));
  return field;
}

CrystalQuality quality_of_crystal(const Field& object, double chi2, const Field& truth, const Shape& shape) {
  CrystalQuality quality{.chi2 = chi2, .shape = {}};
  if (truth.empty()) return quality;
  const AlignedObject aligned = align(object, truth, shape);
  quality.overlap = aligned.overlap;
  quality.shape = compare_shapes(aligned.object, truth, shape);
  return quality;
}

void AnswerSummary::Way::add(const CrystalQuality& quality, double taken) {
  ++crystals;
  chi2 += quality.chi2;
  seconds += taken;
  if (!quality.shape) return;
  ++compared;
  overlap += quality.overlap;
  iou += quality.shape->iou;
  phase_rms += quality.shape->phase_rms;
  ssim += quality.shape->ssim;
}

void AnswerSummary::Way::add_time_to(std::size_t file, std::optional<double> taken) {
  if (!taken) return;
  ++reached[file];
  seconds_to[file] += *taken;
}

AnswerSummary::AnswerSummary(std::span<const CrystalAnswers> answers) {
  for (const CrystalAnswers& file : answers) {
    names_.push_back(file.name());
    own_seconds_.push_back(file.seconds_per_crystal());
  }
  const auto add = [&](const std::string& name) {
    ways_.push_back({.name = name,
                     .reached = std::vector<double>(names_.size()),
                     .seconds_to = std::vector<double>(names_.size())});
  };
  for (const std::string& name : names_) add(name);
  add("HIO and ER, one random start");
  add("HIO and ER, the best of all");
  for (const std::string& name : names_) add("HIO and ER from " + name);
}

void AnswerSummary::add(const ComparedCrystal& crystal) {
  const std::size_t files = names_.size();
  Way &one = ways_[files], &best = ways_[files + 1];
  double all = 0;
  for (const RetrievalTrace& trace : crystal.traces) all += trace.seconds.back();
  one.add(crystal.starts.front(), crystal.traces.front().seconds.back());
  best.add(*std::ranges::min_element(crystal.starts, {}, &CrystalQuality::chi2), all);
  for (std::size_t file = 0; file < files; ++file) {
    const AnswerResult& answer = crystal.answers[file];
    ways_[file].add(answer.own, own_seconds_[file]);
    ways_[files + 2 + file].add(answer.continued, answer.trace.seconds.back());
    ways_[files + 2 + file].add_time_to(file, answer.trace.seconds_to(answer.own));
    one.add_time_to(file, crystal.traces.front().seconds_to(answer.own));
    // One start after the other, until one is as good.
    double before = 0;
    for (const RetrievalTrace& trace : crystal.traces) {
      if (const auto taken = trace.seconds_to(answer.own)) {
        best.add_time_to(file, before + *taken);
        break;
      }
      before += trace.seconds.back();
    }
  }
}

std::vector<std::string> AnswerSummary::row_of(const Way& way) const {
  const auto mean = [](double sum, double count, const char* form) {
    return count > 0 ? fmt::format(fmt::runtime(form), sum / count) : std::string("-");
  };
  std::vector<std::string> row{way.name,
                               mean(way.chi2, way.crystals, "{:.5f}"),
                               mean(way.overlap, way.compared, "{:.3f}"),
                               mean(way.iou, way.compared, "{:.3f}"),
                               mean(way.phase_rms, way.compared, "{:.3f}"),
                               mean(way.ssim, way.compared, "{:.4f}"),
                               way.seconds > 0 ? format_seconds(way.seconds / way.crystals) : "-"};
  for (std::size_t file = 0; file < names_.size(); ++file)
    row.push_back(way.reached[file] > 0
                      ? fmt::format("{}, {:.0f} of {:.0f}",
                                    format_seconds(way.seconds_to[file] / way.reached[file]),
                                    way.reached[file], way.crystals)
                      : "-");
  return row;
}

std::string AnswerSummary::table() const {
  std::vector<std::string> header{"crystal", "chi2", "overlap", "IoU", "phase rms (rad)", "SSIM", "time"};
  for (const std::string& name : names_) header.push_back("time to equal " + name);
  TextTable table(header);
  for (const Way& way : ways_) table.add_row(row_of(way));
  return table.to_string();
}

std::vector<Metric> AnswerSummary::metrics() const {
  std::vector<Metric> metrics;
  const std::size_t files = names_.size();
  for (std::size_t file = 0; file < files; ++file)
    for (const auto& [what, way] :
         {std::pair("", &ways_[file]), std::pair("_continued", &ways_[files + 2 + file])}) {
      const std::string name = names_[file] + what;
      metrics.push_back({name + "_chi2", way->chi2 / way->crystals, ""});
      if (way->compared == 0) continue;
      metrics.push_back({name + "_overlap", way->overlap / way->compared, ""});
      metrics.push_back({name + "_iou", way->iou / way->compared, ""});
      metrics.push_back({name + "_phase_error_rms", way->phase_rms / way->compared, "rad"});
    }
  return metrics;
}

}  // namespace superstep::baseline
