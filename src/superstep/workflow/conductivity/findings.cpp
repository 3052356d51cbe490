// What the networks, the solve and the ways out of a striped micrograph say of the test sections.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/imaging/mri.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workflow/conductivity/served.h"
#include "superstep/workflow/conductivity/study.h"

namespace superstep::workflow {
namespace {

constexpr std::int64_t serving_batch = 16;

std::vector<double> share_of_wrong_pixels(const Sections& truth, std::span<const std::uint8_t> images) {
  std::vector<double> wrong;
  std::size_t at = 0;
  for (std::int64_t k = 0; k < truth.count(); ++k) {
    double count = 0;
    for (const std::uint8_t pixel : truth.image(k)) count += pixel != images[at++];
    wrong.push_back(count / static_cast<double>(truth.image(k).size()));
  }
  return wrong;
}

// Otsu's threshold after smoothing; with damping above zero after the wavelets that take stripes away.
Way segmented(std::string name, const Sections& test, const baseline::PhaseSettings& settings, int side,
              ThreadPool& pool) {
  Way way{.name = std::move(name), .ratio = {}, .wrong = {}, .images = {}};
  const auto plane = test.image(0).size();
  way.images.resize(static_cast<std::size_t>(test.count()) * plane);
  way.ratio.resize(static_cast<std::size_t>(test.count()));
  pool.parallel_for(test.count(), [&](std::int64_t k, int) {
    data::throw_if_interrupted();
    const auto found = baseline::segment_phases(test.micrograph(k), side, side, settings);
    std::ranges::copy(found, way.images.begin() + k * static_cast<std::int64_t>(plane));
    way.ratio[static_cast<std::size_t>(k)] = solved_ratio(found, side);
  });
  way.wrong = share_of_wrong_pixels(test, way.images);
  return way;
}

Way by_network(const ConductivityStudy& study, const Sections& test) {
  const Sections found = read_sections(study.file("test-denoised.h5"));
  const auto pixels = found.images.as<std::uint8_t>();
  return {.name = "U-Net, then the solve",
          .ratio = found.ratio,
          .wrong = share_of_wrong_pixels(test, pixels),
          .images = {pixels.begin(), pixels.end()}};
}

// Ratios that a network gives sections [first, ...) with all conductors `sigma`, or each its own (0).
std::vector<double> predicted_ratios(Served& network, const Sections& sections, std::int64_t begin,
                                     double sigma) {
  std::vector<double> ratios(static_cast<std::size_t>(sections.count() - begin));
  const auto conductor = [&](std::int64_t k) {
    return static_cast<float>(sigma > 0 ? sigma : sections.sigma[static_cast<std::size_t>(begin + k)]);
  };
  network.run(
      sections.count() - begin,
      [&](std::int64_t first, std::int64_t count, std::span<Tensor> inputs) {
        auto pixel = inputs[0].as<float>().begin();
        for (std::int64_t k = 0; k < count; ++k) {
          pixel = std::ranges::copy(sections.image(begin + first + k), pixel).out;
          inputs[1].as<float>()[static_cast<std::size_t>(k)] = conductor(first + k);
        }
        for (std::int64_t k = count; k < inputs[1].element_count(); ++k) inputs[1].set(k, 1);
      },
      [&](std::int64_t first, std::int64_t count, const Tensor& output) {
        for (std::int64_t k = 0; k < count; ++k)
          ratios[static_cast<std::size_t>(first + k)] = output.at(k) / double{conductor(first + k)};
      });
  return ratios;
}

// By how much the ensemble's ratio changes when the conductor is a tenth or ten times of 1 mS/cm; relative to
// it of sections that conduct a hundredth or more.
void find_scalar_change(const std::vector<std::vector<std::vector<double>>>& at, Findings& findings) {
  constexpr double least = 0.01;
  const Ensemble one = ensemble_of(at[1]);
  std::vector<double> relative;
  for (const auto* other : {&at[0], &at[2]}) {
    const Ensemble moved = ensemble_of(*other);
    for (std::size_t k = 0; k < one.mean.size(); ++k) {
      const double change = std::abs(moved.mean[k] - one.mean[k]);
      findings.scalar_change_largest = std::max(findings.scalar_change_largest, change);
      if (one.mean[k] >= least) relative.push_back(change / one.mean[k]);
    }
  }
  if (relative.empty()) return;
  findings.scalar_change_relative = std::ranges::max(relative);
  findings.scalar_change_mean = mean(relative);
}

void ask_members(const ConductivityStudy& study, Findings& findings) {
  const Sections known = read_sections(study.file("sections-denoised.h5"));
  const Sections unseen = read_sections(study.file("test-denoised.h5"));
  const std::int64_t begin = training_samples(study.member(1));
  constexpr double conductors[] = {0.1, 1, 10};  // mS/cm: the range of the generated ones
  std::vector<std::vector<std::vector<double>>> at_conductor(std::size(conductors));
  for (int k = 1; k <= study.members; ++k) {
    Served member(study.member(k), serving_batch, study.threads);
    findings.members_validation.push_back(predicted_ratios(member, known, begin, 0));
    findings.members_test.push_back(predicted_ratios(member, unseen, 0, 0));
    for (std::size_t i = 0; i < std::size(conductors); ++i)
      at_conductor[i].push_back(predicted_ratios(member, unseen, 0, conductors[i]));
  }
  find_scalar_change(at_conductor, findings);
}

// Of a section, by one thread: the solve, and all members.
void time_both(const ConductivityStudy& study, Findings& findings) {
  const std::int64_t some = std::min<std::int64_t>(findings.test.count(), 32);
  const Stopwatch solving;
  for (std::int64_t k = 0; k < some; ++k) solved_ratio(findings.test.image(k), study.side);
  findings.solve_seconds = solving.seconds() / static_cast<double>(some);
  for (int k = 1; k <= study.members; ++k) {
    Served member(study.member(k), serving_batch, 1);
    predicted_ratios(member, findings.test, 0, 0);  // the first calls are slower
    const Stopwatch watch;
    predicted_ratios(member, findings.test, 0, 0);
    findings.network_seconds += watch.seconds() / static_cast<double>(findings.test.count());
  }
}

struct Errors {
  double mean = 0, largest = 0, r2 = 0;
  double paths = 0;  // share of sections that conduct in one and not in the other
};

Errors errors_of(const std::vector<double>& truth, const std::vector<double>& found) {
  Errors errors;
  for (std::size_t k = 0; k < truth.size(); ++k) {
    errors.mean += std::abs(found[k] - truth[k]) / static_cast<double>(truth.size());
    errors.largest = std::max(errors.largest, std::abs(found[k] - truth[k]));
    errors.paths += (found[k] > 0) != (truth[k] > 0) ? 1 / static_cast<double>(truth.size()) : 0;
  }
  errors.r2 = baseline::score(truth, found).r2;
  return errors;
}

std::vector<std::string> error_row(const std::string& name, const Errors& errors,
                                   const std::vector<double>& wrong, bool of_solve) {
  return {name,
          wrong.empty() ? "-" : fmt::format("{:.2f} %", 100 * mean(wrong)),
          fmt::format("{:.4f}", errors.mean),
          fmt::format("{:.4f}", errors.largest),
          fmt::format("{:.4f}", errors.r2),
          of_solve ? fmt::format("{:.1f} %", 100 * errors.paths) : "-"};
}

}  // namespace

Findings find_answers(const ConductivityStudy& study, ThreadPool& pool) {
  Findings findings{.test = read_sections(study.file("test.h5"))};
  findings.ways.push_back(segmented("Otsu's threshold", findings.test, {.damping = 0}, study.side, pool));
  findings.ways.push_back(segmented("wavelets, then Otsu's", findings.test, {}, study.side, pool));
  findings.ways.push_back(by_network(study, findings.test));
  ask_members(study, findings);
  const Sections clean = read_sections(study.file("sections.h5"));
  findings.truth_validation.assign(clean.ratio.begin() + training_samples(study.member(1)),
                                   clean.ratio.end());
  const Calibration calibration(ensemble_of(findings.members_validation), findings.truth_validation);
  findings.intervals =
      intervals_of(calibration, ensemble_of(findings.members_test), findings.test.ratio, study.level);
  time_both(study, findings);
  return findings;
}

std::string tables_of(const ConductivityStudy& study, const Findings& findings) {
  TextTable ways(
      {"from the micrograph", "wrong pixels", "mean error", "largest", "R2", "paths made or lost"});
  const std::vector<double>& truth = findings.test.ratio;
  for (const Way& way : findings.ways)
    ways.add_row(error_row(way.name, errors_of(truth, way.ratio), way.wrong, true));
  const Ensemble ensemble = ensemble_of(findings.members_test);
  ways.add_row(error_row("U-Net, then the networks", errors_of(truth, ensemble.mean), {}, false));
  TextTable networks({"on the U-Net's images", "mean error", "largest", "R2"});
  const std::vector<double>& solved = findings.ways.back().ratio;
  const auto add = [&](const std::string& name, const std::vector<double>& found) {
    const Errors errors = errors_of(solved, found);
    networks.add_row({name, fmt::format("{:.4f}", errors.mean), fmt::format("{:.4f}", errors.largest),
                      fmt::format("{:.4f}", errors.r2)});
  };
  for (std::size_t k = 0; k < findings.members_test.size(); ++k)
    add(fmt::format("network {}", k + 1), findings.members_test[k]);
  add("their mean", ensemble.mean);
  TextTable covered({"asked for", "inside"});
  for (std::size_t i = 0; i < findings.intervals.levels.size(); ++i)
    covered.add_row({fmt::format("{:.0f} %", 100 * findings.intervals.levels[i]),
                     fmt::format("{:.1f} %", 100 * findings.intervals.covered[i])});
  return fmt::format(
      "sigma_eff / sigma of {} sections, against the solve of the true section:\n{}\n"
      "what the stripes that the U-Net leaves do to it:\n{}"
      "rank correlation of wrong pixels and error: {:.2f}\n\n"
      "against the solve of the same image:\n{}\n"
      "true sections within their interval (split conformal, {} sections):\n{}\n"
      "{:.1f} % within the interval of {:g} %, which is {:.4f} wide to either side in the mean\n"
      "a hundredfold conductor changes the ratio by {:.2f} % in the mean, {:.2f} % and {:.5f} at most\n"
      "one thread: {} a solve, {} all {} networks\n",
      truth.size(), ways.to_string(), table_of_stripes(findings.test, findings.ways.back()),
      stripe_errors(findings.test, findings.ways.back()).rank_correlation, networks.to_string(),
      findings.truth_validation.size(), covered.to_string(), 100 * findings.intervals.inside,
      100 * study.level, mean(findings.intervals.half_width), 100 * findings.scalar_change_mean,
      100 * findings.scalar_change_relative, findings.scalar_change_largest,
      format_seconds(findings.solve_seconds), format_seconds(findings.network_seconds), study.members);
}

std::vector<Metric> metrics_of(const ConductivityStudy&, const Findings& findings) {
  const std::vector<double>& truth = findings.test.ratio;
  const Ensemble ensemble = ensemble_of(findings.members_test);
  const Errors all = errors_of(truth, ensemble.mean),
               network = errors_of(findings.ways.back().ratio, ensemble.mean);
  std::vector<Metric> metrics{{"r2", network.r2, ""},
                              {"mae", network.mean, ""},
                              {"r2_of_section", all.r2, ""},
                              {"mae_of_section", all.mean, ""}};
  const char* names[] = {"striped", "destriped", "denoised"};
  for (std::size_t i = 0; i < findings.ways.size(); ++i) {
    const Way& way = findings.ways[i];
    const Errors errors = errors_of(truth, way.ratio);
    metrics.push_back({fmt::format("{}_pixel_error", names[i]), mean(way.wrong), ""});
    metrics.push_back({fmt::format("{}_label_error", names[i]), errors.mean, ""});
    metrics.push_back({fmt::format("{}_path_error", names[i]), errors.paths, ""});
    metrics.push_back({fmt::format("{}_label_bias", names[i]), stripe_errors(findings.test, way).bias, ""});
  }
  metrics.push_back({"coverage", findings.intervals.inside, ""});
  metrics.push_back({"interval_half_width", mean(findings.intervals.half_width), ""});
  metrics.push_back({"scalar_change_mean", findings.scalar_change_mean, ""});
  metrics.push_back({"scalar_change_relative", findings.scalar_change_relative, ""});
  metrics.push_back({"scalar_change_largest", findings.scalar_change_largest, ""});
  metrics.push_back({"solve_time", findings.solve_seconds, "s"});
  metrics.push_back({"network_time", findings.network_seconds, "s"});
  return metrics;
}

void write_table(const ConductivityStudy& study, const Findings& findings) {
  data::CsvWriter table(study.file("test.csv"),
                        {"section", "sigma", "sigma_eff", "low", "high", "sigma_eff_true",
                         "sigma_eff_denoised", "sigma_eff_destriped", "sigma_eff_striped"});
  for (std::size_t k = 0; k < findings.test.ratio.size(); ++k) {
    const double sigma = findings.test.sigma[k], ratio = findings.intervals.mean[k],
                 half = findings.intervals.half_width[k];
    table.cell(static_cast<std::int64_t>(k)).cell(sigma).cell(sigma * ratio);
    // Nothing conducts less than nothing or better than the conductor.
    table.cell(sigma * std::clamp(ratio - half, 0.0, 1.0)).cell(sigma * std::clamp(ratio + half, 0.0, 1.0));
    table.cell(sigma * findings.test.ratio[k]);
    for (const std::size_t way : {2, 1, 0}) table.cell(sigma * findings.ways[way].ratio[k]);
    table.end_row();
  }
  table.close();
}

}  // namespace superstep::workflow
