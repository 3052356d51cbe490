#include "superstep/design/study_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/design/json_member.h"
#include "superstep/file/csv.h"

namespace superstep::design {
namespace {

using nlohmann::json;

constexpr const char* state_file = "state.json";
constexpr const char* schema = "superstep-design/1";
// Columns of a table of trials that are neither settings nor points; "sample" is what generators number by.
constexpr std::string_view bookkeeping[] = {"trial", "sample", "iteration", "role", "deviation"};

json json_of(const Hyperparameters& p) {
  return {{"variance", p.variance},       {"lengths", p.lengths},         {"curve_length", p.curve.length},
          {"curve_decay", p.curve.decay}, {"curve_delta", p.curve.delta}, {"noise", p.noise}};
}

json json_of(const Iteration& iteration) {
  return {{"iteration", iteration.number},
          {"parameters", json_of(iteration.parameters)},
          {"log_marginal", iteration.log_marginal},
          {"acquisition", iteration.acquisition},
          {"rank", iteration.rank},
          {"settings", iteration.settings},
          {"learning", iteration.learning},
          {"predicted", iteration.predicted},
          {"deviation", iteration.deviation},
          {"expected_inside", iteration.expected_inside},
          {"measured_inside", iteration.measured_inside}};
}

constexpr double any = 1e300;

std::vector<double> numbers_of(const JsonMember& member, std::size_t count) {
  std::vector<double> numbers = member.numbers();
  if (numbers.size() != count) member.refuse(fmt::format("has {} numbers, not {}", numbers.size(), count));
  return numbers;
}

bool flag_of(const JsonMember& member) {
  if (!member.json().is_boolean()) member.refuse("must be true or false");
  return member.json().get<bool>();
}

std::vector<JsonMember> elements(const JsonMember& list, const std::string& where) {
  if (!list.json().is_array()) list.refuse("must be a list");
  std::vector<JsonMember> members;
  for (std::size_t k = 0; k < list.json().size(); ++k)
    members.emplace_back(list.json()[k], where, fmt::format("{}[{}]", list.path(), k));
  return members;
}

Trial trial_of(const JsonMember& member, const Problem& problem) {
  Trial trial{member.at("iteration").whole(0, 1000000), Role::initial,
              numbers_of(member.at("settings"), problem.unknowns.size()),
              numbers_of(member.at("curve"), problem.points())};
  const std::string role = member.at("role").text();
  for (Role each : {Role::initial, Role::learning, Role::target}) {
    if (name_of(each) != role) continue;
    trial.role = each;
    return trial;
  }
  member.at("role").refuse("is none of initial, learning, target");
}

Iteration iteration_of(const JsonMember& member, const Problem& problem, const std::string& where) {
  Iteration iteration;
  const JsonMember p = member.at("parameters");
  const std::size_t unknowns = problem.unknowns.size();
  iteration.parameters = {p.at("variance").number(0, any),
                          numbers_of(p.at("lengths"), unknowns),
                          {p.at("curve_length").number(0, any), p.at("curve_decay").number(0, any),
                           p.at("curve_delta").number(0, any)},
                          p.at("noise").number(0, any)};
  iteration.number = member.at("iteration").whole(1, 1000000);
  iteration.log_marginal = member.at("log_marginal").number(-any, any);
  iteration.acquisition = member.at("acquisition").number(-any, any);
  iteration.rank = member.at("rank").whole(0, 1000000);
  iteration.settings = numbers_of(member.at("settings"), unknowns);
  for (const JsonMember& each : elements(member.at("learning"), where))
    iteration.learning.push_back(numbers_of(each, unknowns));
  iteration.predicted = numbers_of(member.at("predicted"), problem.points());
  iteration.deviation = numbers_of(member.at("deviation"), problem.points());
  iteration.expected_inside = flag_of(member.at("expected_inside"));
  iteration.measured_inside = flag_of(member.at("measured_inside"));
  return iteration;
}

json parsed(const std::string& text, const std::string& where) {
  json value = parse_json(text);
  if (value.is_discarded()) throw Error(ErrorCode::bad_file, "is no JSON", where, "give another folder");
  return value;
}

void require_same(bool same, const char* what, const std::string& where) {
  if (!same)
    throw Error(ErrorCode::invalid_argument, fmt::format("holds a study of another {}", what), where,
                "give its problem and seed to go on with it, or another folder to begin anew");
}

std::vector<std::string> names_of(const Problem& problem) {
  std::vector<std::string> names;
  for (const Unknown& unknown : problem.unknowns) names.push_back(unknown.name);
  return names;
}

// The columns that hold the points of the curve, in order.
std::vector<std::size_t> point_columns(const data::CsvReader& table, const Problem& problem,
                                       const std::string& where) {
  const std::vector<std::string> unknowns = names_of(problem);
  std::vector<std::size_t> columns;
  for (std::size_t k = 0; k < table.header().size(); ++k) {
    const std::string& name = table.header()[k];
    const bool other = std::ranges::find(unknowns, name) != unknowns.end() ||
                       std::ranges::find(bookkeeping, name) != std::end(bookkeeping);
    if (!other) columns.push_back(k);
  }
  if (columns.size() != problem.points())
    throw Error(ErrorCode::bad_file,
                fmt::format("has {} columns beside the unknowns, the target has {} points", columns.size(),
                            problem.points()),
                where, "give a column for every unknown by its name, and one for every point of the curve");
  return columns;
}

}  // namespace

json to_json(const Study& study, const Problem& problem) {
  json trials = json::array(), iterations = json::array();
  for (const Trial& trial : study.trials)
    trials.push_back({{"iteration", trial.iteration},
                      {"role", name_of(trial.role)},
                      {"settings", trial.settings},
                      {"curve", trial.curve}});
  for (const Iteration& iteration : study.iterations) iterations.push_back(json_of(iteration));
  return {{"schema", schema},   {"problem", problem.source},   {"unknowns", names_of(problem)},
          {"seed", study.seed}, {"trials", std::move(trials)}, {"iterations", std::move(iterations)}};
}

void save_state(const std::filesystem::path& folder, const Study& study, const Problem& problem) {
  make_folder(folder);
  write_file_atomically(folder / state_file, to_json(study, problem).dump() + "\n");
}

std::optional<Study> load_state(const std::filesystem::path& folder, const Problem& problem,
                                std::uint64_t seed) {
  const std::filesystem::path path = folder / state_file;
  if (!std::filesystem::exists(path)) return {};
  const std::string where = path.string();
  const json value = parsed(read_text_file(path), where);
  const JsonMember file(value, where);
  if (file.at("schema").text() != schema) file.at("schema").refuse(fmt::format("must be \"{}\"", schema));
  require_same(file.at("problem").json() == problem.source, "problem", where);
  if (!file.at("seed").json().is_number_unsigned()) file.at("seed").refuse("must be a whole number");
  Study study{file.at("seed").json().get<std::uint64_t>(), {}, {}};
  require_same(study.seed == seed, "seed", where);
  for (const JsonMember& member : elements(file.at("trials"), where))
    study.trials.push_back(trial_of(member, problem));
  for (const JsonMember& member : elements(file.at("iterations"), where))
    study.iterations.push_back(iteration_of(member, problem, where));
  return study;
}

void write_trials(const std::filesystem::path& path, const Problem& problem, std::span<const Trial> trials) {
  std::vector<std::string> header{"trial", "iteration", "role", "deviation"};
  std::ranges::copy(names_of(problem), std::back_inserter(header));
  for (std::size_t k = 1; k <= problem.points(); ++k) header.push_back(fmt::format("curve_{}", k));
  data::CsvWriter table(path, header);
  for (std::size_t k = 0; k < trials.size(); ++k) {
    const Trial& trial = trials[k];
    table.cell(static_cast<std::int64_t>(k)).cell(trial.iteration).cell(name_of(trial.role));
    table.cell(problem.deviation(trial.curve));
    for (double setting : trial.settings) table.cell(setting);
    for (double value : trial.curve) table.cell(value);
    table.end_row();
  }
  table.close();
}

void write_proposal(const std::filesystem::path& path, const Problem& problem, const Iteration& iteration) {
  std::vector<std::string> header{"role"};
  std::ranges::copy(names_of(problem), std::back_inserter(header));
  for (std::size_t k = 1; k <= problem.points(); ++k) header.push_back(fmt::format("curve_{}", k));
  data::CsvWriter table(path, header);
  const auto row = [&](Role role, const std::vector<double>& settings) {
    table.cell(name_of(role));
    for (double setting : settings) table.cell(setting);
    for (std::size_t k = 0; k < problem.points(); ++k) table.cell("");
    table.end_row();
  };
  row(Role::target, iteration.settings);
  for (const std::vector<double>& settings : iteration.learning) row(Role::learning, settings);
  table.close();
}

std::vector<Trial> read_trials(const std::filesystem::path& path, const Problem& problem) {
  data::CsvReader table(path);
  std::vector<std::size_t> settings;
  for (const std::string& name : names_of(problem)) settings.push_back(table.column(name));
  const std::vector<std::size_t> points = point_columns(table, problem, path.string());
  std::vector<Trial> trials;
  const auto finite = [&](std::size_t column) {
    const double value = table.number(column);
    if (!std::isfinite(value))
      throw Error(ErrorCode::bad_file, fmt::format("'{}' is not finite", table.header()[column]),
                  fmt::format("{}:{}", path.string(), table.line()));
    return value;
  };
  while (table.next()) {
    const bool open =
        std::ranges::all_of(points, [&](std::size_t column) { return table.text(column).empty(); });
    if (open) continue;
    Trial trial;
    for (std::size_t column : settings) trial.settings.push_back(finite(column));
    for (std::size_t column : points) trial.curve.push_back(finite(column));
    trials.push_back(std::move(trial));
  }
  return trials;
}

}  // namespace superstep::design
