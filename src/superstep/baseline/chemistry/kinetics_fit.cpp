#include "superstep/baseline/chemistry/kinetics_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/least_squares.h"
#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/chemistry/yield_reactions.h"
#include "superstep/physics/row_writer.h"

namespace superstep::baseline {
namespace {

constexpr const char* kinds[component_kinds] = {"ligand", "base", "solvent", "electrophile", "nucleophile"};
enum Kind { ligand, base, solvent, electrophile, nucleophile };

// Nodes and weights of Gauss and Legendre's rule with eight points on [0, 1].
constexpr double nodes[8] = {0.01985507175123188, 0.10166676129318664, 0.2372337950418355,
                             0.4082826787521751,  0.5917173212478249,  0.7627662049581645,
                             0.8983332387068134,  0.9801449282487681};
constexpr double weights[8] = {0.05061426814518813, 0.11119051722668724, 0.15685332293894364,
                               0.18134189168918099, 0.18134189168918099, 0.15685332293894364,
                               0.11119051722668724, 0.05061426814518813};

// Product after `seconds`, per cent: the integral of k c S with c = exp(-kx t) and
// S = exp(-kd t - k (1 - exp(-kx t))/kx), in three parts that grow with time.
template <class T>
T yield_of(const T& k, const T& kd, const T& kx, double seconds) {
  using std::exp;
  const double ends[4] = {0, 0.08 * seconds, 0.3 * seconds, seconds};
  T sum(0.0);
  for (int part = 0; part < 3; ++part)
    for (int i = 0; i < 8; ++i) {
      const double width = ends[part + 1] - ends[part], t = ends[part] + width * nodes[i];
      const T alive = exp(-kx * t);
      sum += weights[i] * width * k * alive * exp(-kd * t - k * (1.0 - alive) / kx);
    }
  return 100.0 * sum;
}

// One reaction; the parameters are the logs of the factors it uses.
struct YieldResidual {
  double yield, seconds;
  template <class T>
  bool operator()(const T* ol, const T* oe, const T* tb, const T* ts, const T* tn, const T* el, const T* sb,
                  const T* ss, const T* sn, const T* dl, T* residual) const {
    using std::exp;
    const T k = 1.0 / (exp(-*ol - *oe) + exp(-*tb - *ts - *tn) + exp(-*el));
    residual[0] = yield_of(k, T(exp(*sb + *ss + *sn)), T(exp(*dl)), seconds) - yield;
    return true;
  }
};

// Keeps factors that the data do not fix near where they began: per cent of yield for a factor of e.
constexpr double prior_strength = 0.5;

struct Start {
  std::vector<double> KineticModel::*parameters;
  Kind kind;
  double value;
};
constexpr Start starts[] = {
    {&KineticModel::oxidative_ligand, ligand, 0},
    {&KineticModel::oxidative_electrophile, electrophile, -3},
    {&KineticModel::transmetalation_base, base, -3},
    {&KineticModel::transmetalation_solvent, solvent, 0},
    {&KineticModel::transmetalation_nucleophile, nucleophile, 0},
    {&KineticModel::elimination_ligand, ligand, -2},
    {&KineticModel::side_base, base, -6},
    {&KineticModel::side_solvent, solvent, 0},
    {&KineticModel::side_nucleophile, nucleophile, 0},
    {&KineticModel::death_ligand, ligand, -4.5},
};

constexpr int factors = std::size(starts);  // of one reaction

// Residuals of all reactions, then of the prior of every parameter: each reaction sees ten of them.
class KineticResiduals {
 public:
  using Scalar = double;
  enum { NUM_RESIDUALS = Eigen::Dynamic, NUM_PARAMETERS = Eigen::Dynamic };

  KineticResiduals(const std::vector<const MeasuredYield*>& reactions, const YieldTable& table,
                   double seconds)
      : reactions_(reactions), seconds_(seconds) {
    for (int k = 0; k < factors; ++k) {
      first_[static_cast<std::size_t>(k)] = static_cast<int>(start_.size());
      start_.insert(start_.end(), table.names[starts[k].kind].size(), starts[k].value);
    }
  }
  int NumParameters() const { return static_cast<int>(start_.size()); }
  int NumResiduals() const { return static_cast<int>(reactions_.size() + start_.size()); }
  const std::vector<double>& start() const { return start_; }

  // `jacobian` (null when not wanted) has a column for each parameter.
  bool operator()(const double* parameters, double* residuals, double* jacobian) const {
    const Eigen::Index rows = NumResiduals();
    if (jacobian) std::fill_n(jacobian, rows * NumParameters(), 0.0);
    for (std::size_t i = 0; i < reactions_.size(); ++i) {
      if (jacobian)
        residuals[i] = differentiate(*reactions_[i], parameters, jacobian + i, rows);
      else
        residuals[i] = residual_of<double>(*reactions_[i], parameters_of(*reactions_[i], parameters));
    }
    for (std::size_t k = 0; k < start_.size(); ++k) {
      const std::size_t row = reactions_.size() + k;
      residuals[row] = prior_strength * (parameters[k] - start_[k]);
      if (jacobian) jacobian[row + k * static_cast<std::size_t>(rows)] = prior_strength;
    }
    return true;
  }

  void give(const Eigen::VectorXd& x, KineticModel& model) const {
    for (std::size_t k = 0; k < factors; ++k) {
      const auto end = k + 1 < factors ? first_[k + 1] : NumParameters();
      (model.*starts[k].parameters).assign(x.begin() + first_[k], x.begin() + end);
    }
  }

 private:
  int place(const MeasuredYield& reaction, std::size_t factor) const {
    return first_[factor] + reaction.component[starts[factor].kind];
  }
  std::array<double, factors> parameters_of(const MeasuredYield& reaction, const double* parameters) const {
    std::array<double, factors> own;
    for (std::size_t k = 0; k < factors; ++k) own[k] = parameters[place(reaction, k)];
    return own;
  }
  template <class T>
  T residual_of(const MeasuredYield& reaction, const std::array<T, factors>& p) const {
    T residual;
    YieldResidual{reaction.yield, seconds_}(&p[0], &p[1], &p[2], &p[3], &p[4], &p[5], &p[6], &p[7], &p[8],
                                            &p[9], &residual);
    return residual;
  }
  double differentiate(const MeasuredYield& reaction, const double* parameters, double* row,
                       Eigen::Index rows) const {
    std::array<ceres::Jet<double, factors>, factors> p;
    for (std::size_t k = 0; k < factors; ++k) p[k] = {parameters[place(reaction, k)], static_cast<int>(k)};
    const auto residual = residual_of(reaction, p);
    for (std::size_t k = 0; k < factors; ++k)
      row[rows * place(reaction, k)] = residual.v[static_cast<Eigen::Index>(k)];
    return residual.a;
  }

  const std::vector<const MeasuredYield*>& reactions_;
  double seconds_;
  std::array<int, factors> first_{};  // parameter of each factor
  std::vector<double> start_;
};

// Components as numbers, in the order they come.
int number_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  names.push_back(name);
  return static_cast<int>(names.size()) - 1;
}

double checked_yield(double yield, const std::string& place) {
  if (!(yield >= 0 && yield <= 100))
    throw Error(ErrorCode::bad_file, fmt::format("a yield of {} is not between 0 and 100 per cent", yield),
                place);
  return yield;
}

YieldTable read_table(const std::filesystem::path& path) {
  data::CsvReader file(path);
  const std::size_t yield = file.column("yield");
  YieldTable table;
  std::array<std::size_t, component_kinds> columns{};
  for (std::size_t kind = 0; kind < component_kinds; ++kind) columns[kind] = file.column(kinds[kind]);
  while (file.next()) {
    MeasuredYield reaction;
    for (std::size_t kind = 0; kind < component_kinds; ++kind)
      reaction.component[kind] = number_of(table.names[kind], file.text(columns[kind]));
    reaction.yield =
        checked_yield(file.number(yield), fmt::format("{}, line {}", path.string(), file.line()));
    table.reactions.push_back(reaction);
  }
  return table;
}

template <class Entries>
auto& entry_at(const Entries& entries, double index, const std::string& where) {
  if (!(index >= 0 && index < static_cast<double>(entries.size())))
    throw Error(ErrorCode::bad_file, fmt::format("{} is no condition of the factorial", index), where);
  return entries[static_cast<std::size_t>(index)];
}

YieldTable read_hdf5(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const Tensor yield = file.read("yield", ElementType::f64);
  const std::int64_t count = yield.element_count(), shape[] = {count, 4};
  const Tensor conditions = file.read("conditions", ElementType::i32, shape);
  YieldTable table;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string where = fmt::format("{}, data set 'conditions', row {}", path.string(), i);
    const auto& pair = entry_at(data::coupling_pairs(), conditions.at(4 * i + 3), where);
    const char* names[component_kinds] = {
        entry_at(data::coupling_ligands(), conditions.at(4 * i), where).name,
        entry_at(data::coupling_bases(), conditions.at(4 * i + 1), where).name,
        entry_at(data::coupling_solvents(), conditions.at(4 * i + 2), where).name, pair.electrophile_name,
        pair.nucleophile_name};
    MeasuredYield reaction;
    for (std::size_t kind = 0; kind < component_kinds; ++kind)
      reaction.component[kind] = number_of(table.names[kind], names[kind]);
    reaction.yield =
        checked_yield(yield.at(i), fmt::format("{}, data set 'yield', row {}", path.string(), i));
    table.reactions.push_back(reaction);
  }
  return table;
}

std::string name_of_reaction(const YieldTable& table, const MeasuredYield& reaction) {
  std::string name;
  for (std::size_t kind = 0; kind < component_kinds; ++kind)
    name += table.names[kind][static_cast<std::size_t>(reaction.component[kind])] + "|";
  return name;
}

using Reactions = std::vector<const MeasuredYield*>;

// One column for each component and one for each pair of components.
Eigen::MatrixXd pair_features(const Reactions& reactions, const YieldTable& table) {
  std::array<Eigen::Index, component_kinds + 1> first{};
  for (std::size_t kind = 0; kind < component_kinds; ++kind)
    first[kind + 1] = first[kind] + static_cast<Eigen::Index>(table.names[kind].size());
  const Eigen::Index singles = first[component_kinds];
  Eigen::MatrixXd x =
      Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(reactions.size()), singles + singles * singles);
  for (std::size_t row = 0; row < reactions.size(); ++row)
    for (std::size_t a = 0; a < component_kinds; ++a) {
      const Eigen::Index one = first[a] + reactions[row]->component[a];
      x(static_cast<Eigen::Index>(row), one) = 1;
      for (std::size_t b = 0; b < a; ++b)
        x(static_cast<Eigen::Index>(row), singles + one * singles + first[b] + reactions[row]->component[b]) =
            1;
    }
  return x;
}

std::vector<double> yields_of(const Reactions& reactions) {
  std::vector<double> yields;
  for (const MeasuredYield* reaction : reactions) yields.push_back(reaction->yield);
  return yields;
}

std::vector<double> pair_regression(const Reactions& training, const Reactions& held_out,
                                    const YieldTable& table) {
  const std::vector<double> y = yields_of(training);
  const LinearModel model =
      fit_ridge(pair_features(training, table),
                Eigen::Map<const Eigen::VectorXd>(y.data(), static_cast<Eigen::Index>(y.size())), 0.01);
  const Eigen::VectorXd predicted = model.predict_all(pair_features(held_out, table));
  return {predicted.begin(), predicted.end()};
}

// A random forest that sees which components were used.
std::vector<double> forest_regression(const Reactions& training, const Reactions& held_out,
                                      const YieldTable& table, int threads) {
  Eigen::Index singles = 0;
  for (const auto& names : table.names) singles += static_cast<Eigen::Index>(names.size());
  const TreeFeatures known = pair_features(training, table).leftCols(singles).cast<float>(),
                     others = pair_features(held_out, table).leftCols(singles).cast<float>();
  return fit_trees(known, yields_of(training), others, random_forest(threads));
}

// The floor: the mean yield of the ligand.
std::vector<double> ligand_means(const Reactions& training, const Reactions& held_out,
                                 const YieldTable& table) {
  std::vector<double> sum(table.names[ligand].size()), count(sum.size());
  for (const MeasuredYield* reaction : training) {
    sum[static_cast<std::size_t>(reaction->component[ligand])] += reaction->yield;
    count[static_cast<std::size_t>(reaction->component[ligand])] += 1;
  }
  std::vector<double> predicted;
  for (const MeasuredYield* reaction : held_out) {
    const auto which = static_cast<std::size_t>(reaction->component[ligand]);
    predicted.push_back(count[which] > 0 ? sum[which] / count[which] : 0);
  }
  return predicted;
}

void append(Report& report, TextTable& table, const std::string& method, const std::string& prefix,
            const RegressionScore& result) {
  append_metrics(report.metrics, prefix, result, "%");
  table.add_row({method, fmt::format("{:.2f}", result.mae), fmt::format("{:.2f}", result.rmse),
                 fmt::format("{:.3f}", result.r2)});
}

void write_predictions(const std::filesystem::path& path, const YieldTable& table, const Reactions& reactions,
                       const std::vector<double>& kinetic, const std::vector<double>& regression) {
  data::CsvWriter file(
      path, {"ligand", "base", "solvent", "electrophile", "nucleophile", "yield", "kinetic", "regression"});
  for (std::size_t i = 0; i < reactions.size(); ++i) {
    for (std::size_t kind = 0; kind < component_kinds; ++kind)
      file.cell(table.names[kind][static_cast<std::size_t>(reactions[i]->component[kind])]);
    file.cell(reactions[i]->yield).cell(kinetic[i]).cell(regression[i]);
    file.end_row();
  }
  file.close();
}

Report run(const Request& request, const Options& options) {
  const YieldTable read = read_yields(request.input);
  Reactions training, held_out;
  for (const MeasuredYield& reaction : read.reactions) {
    const bool held = is_held_out(name_of_reaction(read, reaction), 10) ||
                      is_held_out("second " + name_of_reaction(read, reaction), 5);
    (held ? held_out : training).push_back(&reaction);  // about 70 to 30
  }
  if (training.empty() || held_out.empty())
    throw Error(ErrorCode::bad_file, "too few reactions to fit and to hold some out", request.input.string());
  const Stopwatch watch;
  const KineticModel model = fit_kinetics(training, read, options.number("seconds", 1e-3, 1e7));
  const double fit_time = watch.seconds();
  std::vector<double> kinetic;
  for (const MeasuredYield* reaction : held_out) kinetic.push_back(model.predict(reaction->component));
  const std::vector<double> regression = pair_regression(training, held_out, read);
  const std::vector<double> forest = forest_regression(training, held_out, read, request.pool->threads());
  if (!request.output.empty()) write_predictions(request.output, read, held_out, kinetic, regression);
  Report report;
  TextTable table({"method", "MAE %", "RMSE %", "R2"});
  const std::vector<double> measured = yields_of(held_out);
  append(report, table, "mean of the ligand", "floor_",
         score(measured, ligand_means(training, held_out, read)));
  append(report, table, "ridge on components and pairs", "regression_", score(measured, regression));
  append(report, table, "random forest", "forest_", score(measured, forest));
  append(report, table, "kinetic model", "", score(measured, kinetic));
  report.metrics.push_back({"fit_time", fit_time, "s"});
  report.text = table.to_string();
  return report;
}

}  // namespace

YieldTable read_yields(const std::filesystem::path& path) {
  return data::is_text(path, {".csv", ".tsv", ".tab", ".txt"}) ? read_table(path) : read_hdf5(path);
}

double KineticModel::predict(const std::array<int, component_kinds>& component) const {
  const auto at = [&](const std::vector<double>& parameters, Kind kind) {
    return &parameters[static_cast<std::size_t>(component[kind])];
  };
  double yield = 0;
  YieldResidual{0, seconds}(at(oxidative_ligand, ligand), at(oxidative_electrophile, electrophile),
                            at(transmetalation_base, base), at(transmetalation_solvent, solvent),
                            at(transmetalation_nucleophile, nucleophile), at(elimination_ligand, ligand),
                            at(side_base, base), at(side_solvent, solvent), at(side_nucleophile, nucleophile),
                            at(death_ligand, ligand), &yield);
  return yield;
}

KineticModel fit_kinetics(const std::vector<const MeasuredYield*>& reactions, const YieldTable& table,
                          double seconds) {
  KineticModel model;
  model.seconds = seconds;
  const KineticResiduals residuals(reactions, table, seconds);
  Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(residuals.start().data(), residuals.NumParameters());
  // In square per cents of yield, summed over the reactions.
  minimise_squares(residuals, x, {.most_iterations = 100, .smallest_change = 1e-3}, "the rates");
  residuals.give(x, model);
  return model;
}

Entry yieldgnn_baseline() {
  return {"yieldgnn",
          "kinetic model with rates as products over components; ridge on pairs of components; random forest",
          {{"seconds", "60", "time of the reactions, s"}},
          run};
}

}  // namespace superstep::baseline
