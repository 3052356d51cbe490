#include "superstep/baseline/materials/coulomb_ridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/atoms/clusters.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/materials/water.h"

namespace superstep::baseline {
namespace {

using Descriptors = std::vector<std::vector<float>>;

std::vector<LabelledCluster> read_xyz_clusters(const std::filesystem::path& path) {
  std::vector<LabelledCluster> clusters;
  data::XyzReader reader(path);
  for (data::XyzFrame frame; reader.next(frame);) {
    std::string place = fmt::format("{}, frame {}", path.string(), clusters.size() + 1);
    data::require_cluster(frame.configuration, place);
    data::require_energy(frame.labels.energy, place);
    clusters.push_back({std::move(frame.configuration), *frame.labels.energy, std::move(place)});
  }
  return clusters;
}

std::vector<LabelledCluster> read_hdf5_clusters(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const Tensor energy = file.read("energy", ElementType::f64);
  const std::int64_t count = energy.element_count(), any[] = {count, -1};
  const Tensor z = file.read("z", ElementType::i32, any);
  const std::int64_t atoms = z.shape()[1], positions[] = {count, atoms, 3};
  const Tensor pos = file.read("pos", ElementType::f64, positions);
  std::vector<LabelledCluster> clusters(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    LabelledCluster& cluster = clusters[static_cast<std::size_t>(i)];
    cluster.energy = energy.at(i);
    for (std::int64_t a = i * atoms; a < (i + 1) * atoms && z.at(a) != 0; ++a) {
      cluster.configuration.elements.push_back(static_cast<int>(z.at(a)));
      cluster.configuration.positions.push_back({pos.at(3 * a), pos.at(3 * a + 1), pos.at(3 * a + 2)});
    }
    cluster.place = fmt::format("{}, cluster {}", path.string(), i + 1);
    data::require_cluster(cluster.configuration, cluster.place);
    data::require_energy(cluster.energy, cluster.place);
  }
  return clusters;
}

Eigen::VectorXd energies(const std::vector<LabelledCluster>& clusters) {
  Eigen::VectorXd y(static_cast<Eigen::Index>(clusters.size()));
  for (std::size_t i = 0; i < clusters.size(); ++i) y[static_cast<Eigen::Index>(i)] = clusters[i].energy;
  return y;
}

double molecules(const LabelledCluster& cluster) {
  return static_cast<double>(std::ranges::count(cluster.configuration.elements, 8));
}

// The floor: energy linear in the number of molecules.
Eigen::MatrixXd molecule_counts(const std::vector<LabelledCluster>& clusters) {
  Eigen::MatrixXd counts(static_cast<Eigen::Index>(clusters.size()), 1);
  for (std::size_t i = 0; i < clusters.size(); ++i)
    counts(static_cast<Eigen::Index>(i), 0) = molecules(clusters[i]);
  return counts;
}

Descriptors describe(const std::vector<LabelledCluster>& clusters, int most_atoms, ThreadPool& pool) {
  Descriptors made(clusters.size());
  pool.parallel_for(static_cast<std::int64_t>(clusters.size()), [&](std::int64_t i, int) {
    made[static_cast<std::size_t>(i)] =
        sorted_coulomb_matrix(clusters[static_cast<std::size_t>(i)].configuration, most_atoms);
  });
  return made;
}

Eigen::MatrixXd kernel(const Eigen::MatrixXd& distances, double width) {
  return (-distances.array() / width).exp().matrix();
}

Eigen::VectorXd solve(const Eigen::MatrixXd& distances, const Eigen::VectorXd& y, double width,
                      double ridge) {
  Eigen::MatrixXd k = kernel(distances, width);
  k.diagonal().array() += ridge;
  return k.ldlt().solve(y);
}

struct Choice {
  double width = 0, ridge = 0, error = INFINITY;
};

// Width and ridge with the least error on the last quarter of the training part.
Choice choose(const Eigen::MatrixXd& distances, const Eigen::VectorXd& y) {
  const Eigen::Index rows = distances.rows(), fit = rows - rows / 4, rest = rows - fit;
  const double scale = distances.mean();
  Choice best;
  for (const double width : {0.3 * scale, scale, 3 * scale, 10 * scale, 100 * scale})
    for (const double ridge : {1e-8, 1e-5, 1e-3}) {
      const Eigen::VectorXd weights = solve(distances.topLeftCorner(fit, fit), y.head(fit), width, ridge);
      const Eigen::VectorXd predicted = kernel(distances.bottomLeftCorner(rest, fit), width) * weights;
      const double error = (predicted - y.tail(rest)).cwiseAbs().mean();
      if (error < best.error) best = {width, ridge, error};
    }
  return best;
}

struct Parts {
  std::vector<LabelledCluster> training, held_out;
};

Parts split_clusters(std::vector<LabelledCluster> clusters, std::size_t most, const std::string& where) {
  Parts parts;
  for (std::size_t i = 0; i < clusters.size(); ++i)
    (is_held_out(std::to_string(i), 5) ? parts.held_out : parts.training).push_back(std::move(clusters[i]));
  parts.training.resize(std::min(parts.training.size(), most));
  if (parts.training.size() < 8 || parts.held_out.empty())
    throw Error(ErrorCode::bad_file, "too few clusters to fit and to hold some out", where);
  return parts;
}

// What the labels cost by the potential that made them, clusters a second on one core; and that it agrees.
double reference_rate(const std::vector<LabelledCluster>& clusters, double& largest_error) {
  const Stopwatch watch;
  largest_error = 0;
  for (const LabelledCluster& cluster : clusters) {
    std::vector<data::Cartesian> forces(cluster.configuration.positions.size());
    const double energy = data::evaluate_water({}, cluster.configuration.positions, forces);
    largest_error = std::max(largest_error, std::abs(energy - cluster.energy));
  }
  return static_cast<double>(clusters.size()) / std::max(watch.seconds(), 1e-9);
}

void write_energies(const std::filesystem::path& path, const std::vector<LabelledCluster>& clusters,
                    const Eigen::VectorXd& floor, const Eigen::VectorXd& ridge) {
  data::CsvWriter file(path, {"molecules", "energy_eV", "linear_eV", "kernel_ridge_eV"});
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    file.cell(molecules(clusters[i])).cell(clusters[i].energy).cell(floor[row]).cell(ridge[row]);
    file.end_row();
  }
  file.close();
}

void append_row(Report& report, TextTable& table, const std::string& method, const std::string& prefix,
                const std::vector<LabelledCluster>& clusters, const Eigen::VectorXd& predicted) {
  const double mae = (predicted - energies(clusters)).cwiseAbs().mean();
  const double each = mean_error_a_molecule(clusters, predicted);
  report.metrics.push_back({prefix + "mae", mae, "eV"});
  report.metrics.push_back({prefix + "mae_per_molecule", each, "eV"});
  table.add_row({method, fmt::format("{:.1f}", 1e3 * mae), fmt::format("{:.2f}", 1e3 * each)});
}

int most_atoms(const Parts& parts) {
  std::size_t most = 0;
  for (const auto* part : {&parts.training, &parts.held_out})
    for (const LabelledCluster& cluster : *part) most = std::max(most, cluster.configuration.elements.size());
  return static_cast<int>(most);
}

Report run(const Request& request, const Options& options) {
  const Parts parts =
      split_clusters(read_clusters(request.input),
                     static_cast<std::size_t>(options.integer("training", 8, 20000)), request.input.string());
  const Stopwatch watch;
  const CoulombRidge model(parts.training, most_atoms(parts), *request.pool);
  const double fit_time = watch.seconds();
  const Stopwatch predicting;
  const Eigen::VectorXd floor = model.line(parts.held_out),
                        ridge = model.predict(parts.held_out, *request.pool);
  const double prediction_time = predicting.seconds();
  if (!request.output.empty()) write_energies(request.output, parts.held_out, floor, ridge);
  Report report;
  TextTable table({"method", "MAE meV/cluster", "MAE meV/molecule"});
  append_row(report, table, "linear in the number of molecules", "floor_", parts.held_out, floor);
  append_row(report, table, "kernel ridge, sorted Coulomb matrices", "", parts.held_out, ridge);
  double reference_error = 0;
  const double rate = reference_rate(parts.held_out, reference_error);
  report.metrics.push_back({"reference_error", reference_error, "eV"});
  report.metrics.push_back({"reference_throughput", rate, "samples/s"});
  report.metrics.push_back(
      {"throughput", static_cast<double>(parts.held_out.size()) / prediction_time, "samples/s"});
  report.metrics.push_back({"fit_time", fit_time, "s"});
  report.text = table.to_string();
  return report;
}

}  // namespace

std::vector<LabelledCluster> read_clusters(const std::filesystem::path& path) {
  std::vector<LabelledCluster> clusters =
      data::is_text(path, {".xyz", ".extxyz"}) ? read_xyz_clusters(path) : read_hdf5_clusters(path);
  for (const LabelledCluster& cluster : clusters) {
    const auto& elements = cluster.configuration.elements;
    if (elements != data::water_elements(static_cast<int>(elements.size() / 3)))
      throw Error(ErrorCode::bad_file, "not a water cluster with its atoms as O H H of each molecule",
                  cluster.place);
  }
  return clusters;
}

std::vector<float> sorted_coulomb_matrix(const data::Configuration& configuration, int most_atoms) {
  const auto atoms = static_cast<Eigen::Index>(configuration.elements.size());
  Eigen::MatrixXd matrix(atoms, atoms);
  for (Eigen::Index i = 0; i < atoms; ++i) {
    const double z = configuration.elements[static_cast<std::size_t>(i)];
    matrix(i, i) = 0.5 * std::pow(z, 2.4);
    for (Eigen::Index j = 0; j < i; ++j) {
      const data::Cartesian r = configuration.positions[static_cast<std::size_t>(i)] -
                                configuration.positions[static_cast<std::size_t>(j)];
      matrix(i, j) = matrix(j, i) = z * configuration.elements[static_cast<std::size_t>(j)] / data::norm(r);
    }
  }
  std::vector<Eigen::Index> order(static_cast<std::size_t>(atoms));
  std::iota(order.begin(), order.end(), 0);
  const Eigen::VectorXd norms = matrix.rowwise().norm();
  std::ranges::stable_sort(order, [&](Eigen::Index a, Eigen::Index b) { return norms[a] > norms[b]; });
  const auto width = static_cast<std::size_t>(most_atoms);
  std::vector<float> descriptor(width * (width + 1) / 2, 0.0f);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      descriptor[i * (i + 1) / 2 + j] = static_cast<float>(matrix(order[i], order[j]));
  return descriptor;
}

Eigen::MatrixXd l1_distances(const Descriptors& a, const Descriptors& b, ThreadPool& pool) {
  Eigen::MatrixXd distances(static_cast<Eigen::Index>(a.size()), static_cast<Eigen::Index>(b.size()));
  pool.parallel_for(static_cast<std::int64_t>(a.size()), [&](std::int64_t row, int) {
    const auto& left = a[static_cast<std::size_t>(row)];
    const Eigen::Map<const Eigen::ArrayXf> x(left.data(), static_cast<Eigen::Index>(left.size()));
    for (std::size_t column = 0; column < b.size(); ++column) {
      const Eigen::Map<const Eigen::ArrayXf> y(b[column].data(), static_cast<Eigen::Index>(b[column].size()));
      distances(row, static_cast<Eigen::Index>(column)) = (x - y).abs().sum();
    }
  });
  return distances;
}

CoulombRidge::CoulombRidge(const std::vector<LabelledCluster>& training, int most_atoms, ThreadPool& pool)
    : most_atoms_(most_atoms) {
  if (training.size() < 8)
    throw Error(ErrorCode::invalid_argument, "too few clusters to learn from", "kernel ridge regression");
  line_ = fit_ridge(molecule_counts(training), energies(training), 0);
  known_ = describe(training, most_atoms_, pool);
  const Eigen::MatrixXd distances = l1_distances(known_, known_, pool);
  const Eigen::VectorXd rest = energies(training) - line(training);
  const Choice best = choose(distances, rest);
  width_ = best.width;
  weights_ = solve(distances, rest, best.width, best.ridge);
}

Eigen::VectorXd CoulombRidge::line(const std::vector<LabelledCluster>& clusters) const {
  return line_.predict_all(molecule_counts(clusters));
}

Eigen::VectorXd CoulombRidge::predict(const std::vector<LabelledCluster>& clusters, ThreadPool& pool) const {
  const Descriptors described = describe(clusters, most_atoms_, pool);
  return line(clusters) + kernel(l1_distances(described, known_, pool), width_) * weights_;
}

double mean_error_a_molecule(const std::vector<LabelledCluster>& clusters, const Eigen::VectorXd& predicted) {
  double sum = 0;
  for (std::size_t i = 0; i < clusters.size(); ++i)
    sum += std::abs(predicted[static_cast<Eigen::Index>(i)] - clusters[i].energy) / molecules(clusters[i]);
  return sum / static_cast<double>(clusters.size());
}

Entry schnet_baseline() {
  return {"schnet",
          "kernel ridge regression on sorted Coulomb matrices; the reference potential itself",
          {{"training", "1000", "at most so many clusters are fitted to"}},
          run};
}

}  // namespace superstep::baseline
