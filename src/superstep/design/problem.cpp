#include "superstep/design/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/design/deposition.h"
#include "superstep/design/json_member.h"

namespace superstep::design {
namespace {

using nlohmann::json;

// A covariance of more points, or of more settings, is no longer a matter of seconds.
constexpr int most_points = 1000, most_unknowns = 20, most_trials = 1000, most_cycles = 100000;
// A file of more is no problem that somebody wrote.
constexpr std::size_t most_bytes = 1 << 24;

data::AldProcess read_process(const JsonMember& member) {
  member.require_object();
  data::AldProcess process;
  std::vector<std::string> known = process_setting_names();
  known.insert(known.begin(), "chemistry");
  if (const auto chemistry = member.find("chemistry")) try {
      process = data::find_ald_chemistry(chemistry->text());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::bad_file) throw;
      chemistry->refuse(fmt::format("is '{}', which is no chemistry", printable(chemistry->text())),
                        error.hint());
    }
  for (const auto& [name, value] : member.json().items()) {
    if (name == "chemistry") continue;
    const JsonMember setting = member.at(name);
    if (const ProcessSetting* found = find_process_setting(name))
      found->of(process) = setting.number(0, 1e6);
    else
      setting.refuse("is no setting of a deposition", unknown_name_hint(name, known));
  }
  return process;
}

std::vector<Unknown> read_unknowns(const JsonMember& member, bool simulated) {
  member.require_object();
  std::vector<Unknown> unknowns;
  for (const auto& [name, value] : member.json().items()) {
    const JsonMember range = member.at(name);
    const ProcessSetting* setting = find_process_setting(name);
    if (simulated && !setting)
      range.refuse("is no setting of a deposition", unknown_name_hint(name, process_setting_names()));
    const std::vector<double> ends = range.numbers();
    if (ends.size() != 2 || !(ends[0] < ends[1]))
      range.refuse("must be a range: [low, high], low below high");
    unknowns.push_back({name, simulated ? std::string(setting->unit) : "", ends[0], ends[1]});
  }
  if (unknowns.empty() || unknowns.size() > most_unknowns)
    member.refuse(fmt::format("names {} settings, must name 1 to {}", unknowns.size(), most_unknowns));
  return unknowns;
}

// The curve of settings as the simulator gives it, or why it refuses them, said of `member`.
std::vector<double> simulated(const Problem& problem, std::span<const double> settings,
                              const JsonMember& member) {
  try {
    return problem.simulate(settings);
  } catch (const Error& error) {
    member.refuse(fmt::format("cannot be simulated: {}", error.message()));
  }
}

// At every corner of the ranges: what is refused there is not found out in the middle of a search.
void try_corners(const Problem& problem, const JsonMember& unknowns) {
  const std::size_t n = problem.unknowns.size();
  for (std::size_t end = 0; end < 2; ++end) {
    std::vector<double> settings;
    for (std::size_t k = 0; k < n; ++k)
      settings.push_back(end ? problem.unknowns[k].high : problem.unknowns[k].low);
    simulated(problem, settings, unknowns);
  }
}

void read_simulator(const JsonMember& file, Problem& problem) {
  const auto process_member = file.find("process");
  if (!process_member) return;
  const data::AldProcess process = read_process(*process_member);
  DepositionCurve curve;
  if (const auto kind = file.find("curve")) {
    if (kind->text() != "growth" && kind->text() != "trace") kind->refuse("must be \"growth\" or \"trace\"");
    curve.trace = kind->text() == "trace";
  }
  if (const auto cycles = file.find("cycles"))
    curve.cycles = cycles->whole(1, curve.trace ? most_cycles : most_points);
  if (const auto points = file.find("points")) curve.points = points->whole(2, most_points);
  curve.step_s = data::default_time_step(process);
  if (const auto step = file.find("step")) curve.step_s = step->number(1e-7, 1);
  if (!(curve.step_s > 0) || !std::isfinite(curve.step_s))
    process_member->refuse(
        "lacks what its rates need: temperature, site_area, and of both precursors pressure, "
        "molar_mass and sticking",
        "or name a chemistry");
  problem.x_label = curve.trace ? "time in the last cycle, s" : "cycle";
  problem.y_label = curve.trace ? "mass gained" : "growth per cycle";
  problem.positions = curve.positions(process);
  problem.simulate = [process, curve, unknowns = problem.unknowns](std::span<const double> settings) {
    data::AldProcess trial = process;
    for (std::size_t k = 0; k < unknowns.size(); ++k)
      find_process_setting(unknowns[k].name)->of(trial) = settings[k];
    return curve(trial);
  };
}

std::vector<double> read_target_settings(const JsonMember& member, const Problem& problem) {
  member.require_object();
  std::vector<std::string> names;
  for (const Unknown& unknown : problem.unknowns) names.push_back(unknown.name);
  for (const auto& [name, value] : member.json().items())
    if (std::ranges::find(names, name) == names.end())
      member.at(name).refuse("is none of the unknowns", unknown_name_hint(name, names));
  std::vector<double> settings;
  for (const std::string& name : names) settings.push_back(member.at(name).number(-1e300, 1e300));
  return settings;
}

void read_target(const JsonMember& file, Problem& problem) {
  const JsonMember target = file.at("target");
  target.allow({"settings", "curve"});
  const auto settings = target.find("settings"), curve = target.find("curve");
  if (settings.has_value() == curve.has_value()) target.refuse("must have either 'settings' or 'curve'");
  if (settings) {
    if (!problem.simulate)
      settings->refuse("need a 'process' to be simulated with", "give the target's 'curve'");
    problem.target_settings = read_target_settings(*settings, problem);
    problem.target = simulated(problem, problem.target_settings, *settings);
  } else {
    problem.target = curve->numbers();
    if (problem.target.size() > most_points)
      curve->refuse(fmt::format("has more than {} points", most_points));
    if (problem.simulate && problem.positions.size() != problem.target.size())
      curve->refuse(fmt::format("has {} points, a simulated curve has {}", problem.target.size(),
                                problem.positions.size()));
  }
  if (problem.positions.empty())
    for (std::size_t k = 1; k <= problem.target.size(); ++k)
      problem.positions.push_back(static_cast<double>(k));
}

void read_tolerance(const JsonMember& file, Problem& problem) {
  if (const auto tolerance = file.find("tolerance")) problem.tolerance = tolerance->number(1e-6, 10);
  bool of_largest = file.find("curve") && file.at("curve").text() == "trace";
  if (const auto relative = file.find("relative_to")) {
    if (relative->text() != "point" && relative->text() != "largest")
      relative->refuse("must be \"point\" or \"largest\"");
    of_largest = relative->text() == "largest";
  }
  double largest = 0;
  for (double value : problem.target) largest = std::max(largest, std::abs(value));
  for (double value : problem.target) {
    problem.half_width.push_back(problem.tolerance * (of_largest ? largest : std::abs(value)));
    if (!(problem.half_width.back() > 0))
      file.at("target").refuse("has a point at 0, around which a relative tolerance is no width",
                               "say \"relative_to\": \"largest\"");
  }
}

}  // namespace

double Problem::distance(std::span<const double> curve) const {
  double largest = 0;
  for (std::size_t k = 0; k < target.size(); ++k) {
    const double off = std::abs(curve[k] - target[k]) / half_width[k];
    if (!(off <= largest)) largest = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
  }
  return largest;
}

json published_case() {
  return {{"name", "anl"},
          {"process", {{"chemistry", "reference"}}},
          {"curve", "growth"},
          {"cycles", 50},
          {"unknowns",
           {{"purge_a", {0.05, 0.5}}, {"purge_b", {0.05, 0.5}}, {"mass_a", {0.1, 1}}, {"mass_b", {0.1, 1}}}},
          {"target", {{"settings", {{"purge_a", 0.2}, {"purge_b", 0.3}, {"mass_a", 0.8}, {"mass_b", 0.5}}}}},
          {"tolerance", 0.1},
          {"noise", 0.01},
          {"initial", 20},
          {"batch", 10}};
}

std::string settings_table() {
  std::string text;
  for (const ProcessSetting& setting : process_settings())
    text += fmt::format("  {:<13} {:<6} {}\n", setting.name, setting.unit, setting.meaning);
  return text;
}

Problem problem_from_json(const json& source, const std::string& where) {
  const JsonMember file(source, where);
  file.allow({"name", "process", "curve", "cycles", "points", "step", "unknowns", "target", "tolerance",
              "relative_to", "noise", "initial", "batch"});
  Problem problem;
  problem.source = source;
  problem.name = file.find("name") ? file.at("name").text() : "problem";
  problem.unknowns = read_unknowns(file.at("unknowns"), file.find("process").has_value());
  read_simulator(file, problem);
  if (!problem.simulate)
    for (const char* name : {"curve", "cycles", "points", "step", "noise"})
      if (const auto member = file.find(name))
        member->refuse("is of a simulated 'process', which is missing");
  if (problem.simulate) try_corners(problem, file.at("unknowns"));
  read_target(file, problem);
  read_tolerance(file, problem);
  if (const auto noise = file.find("noise")) problem.noise = noise->number(0, 1e6);
  if (const auto initial = file.find("initial")) problem.initial = initial->whole(2, most_trials);
  if (const auto batch = file.find("batch")) problem.batch = batch->whole(1, 100);
  return problem;
}

Problem read_problem(const std::string& path) {
  const std::string text = read_text_file(path);
  if (text.size() > most_bytes) throw Error(ErrorCode::bad_file, "is too large for a problem", path);
  try {
    return problem_from_json(parse_json_or_throw(text), path);
  } catch (const json::parse_error& error) {
    throw Error(ErrorCode::bad_file, fmt::format("is no JSON: byte {} is not understood", error.byte), path);
  }
}

}  // namespace superstep::design
