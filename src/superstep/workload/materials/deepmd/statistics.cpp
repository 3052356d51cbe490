// What is counted on the training frames before the first step: how neighbours are weighted in the mean, and
// the energy of an atom by least squares.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/workload/materials/deepmd/deepmd.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t most_frames = 256;  // chosen: millions of neighbours say enough of their mean
constexpr double least_deviation = 1e-2;   // of what does not vary: it is not blown up

// Sums over the neighbours of one centre type, those that are missing too.
struct Sums {
  double count = 0, radial = 0, radial_squares = 0, angular_squares = 0;
};

class Statistics {
 public:
  explicit Statistics(const DeepmdSizes& sizes) : sizes_(sizes), sums_(sizes.elements.size()) {}

  // Of the five inputs of one frame.
  void add(const std::vector<Tensor>& in) {
    const std::int64_t atoms = sizes_.all_atoms(), room = sizes_.all_near();
    for (std::int64_t i = 0; i < atoms; ++i) {
      if (in[1].at(i) < 0) continue;
      Sums& sums = sums_[static_cast<std::size_t>(in[1].at(i))];
      sums.count += static_cast<double>(room);
      for (std::int64_t k = i * room; k < (i + 1) * room; ++k)
        if (in[3].at(k) >= 0) add_neighbour(sums, distance(in, i, k));
    }
  }

  // A state of one number for each type.
  template <class Of>
  Tensor state(Of of) const {
    Tensor tensor(sizes_.outer, {static_cast<std::int64_t>(sums_.size())});
    for (std::size_t t = 0; t < sums_.size(); ++t) tensor.set(static_cast<std::int64_t>(t), of(sums_[t]));
    return tensor;
  }

 private:
  static double distance(const std::vector<Tensor>& in, std::int64_t atom, std::int64_t k) {
    const auto other = static_cast<std::int64_t>(in[3].at(k));
    double squares = 0;
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      double apart = in[0].at(3 * other + axis) - in[0].at(3 * atom + axis);
      for (std::int64_t edge = 0; edge < 3; ++edge)
        apart += in[4].at(3 * k + edge) * in[2].at(3 * edge + axis);
      squares += apart * apart;
    }
    return std::sqrt(squares);
  }

  // In the mean over directions a component of s x/r has a third of the square of s.
  void add_neighbour(Sums& sums, double r) const {
    const double s = switched_inverse(r, sizes_.smooth, sizes_.cutoff);
    sums.radial += s;
    sums.radial_squares += s * s;
    sums.angular_squares += s * s / 3;
  }

  const DeepmdSizes& sizes_;
  std::vector<Sums> sums_;
};

// Energies of atoms by type that come nearest to those of the frames; of several such, the shortest.
Eigen::VectorXd atom_energies(const std::vector<std::vector<double>>& counts,
                              const std::vector<double>& energies) {
  Eigen::MatrixXd a(static_cast<Eigen::Index>(counts.size()), static_cast<Eigen::Index>(counts.at(0).size()));
  for (Eigen::Index i = 0; i < a.rows(); ++i)
    for (Eigen::Index t = 0; t < a.cols(); ++t)
      a(i, t) = counts[static_cast<std::size_t>(i)][static_cast<std::size_t>(t)];
  const Eigen::Map<const Eigen::VectorXd> b(energies.data(), a.rows());
  return a.completeOrthogonalDecomposition().solve(b);
}

double deviation(double squares, double sum, double count) {
  const double mean = sum / std::max(1.0, count);
  return std::max(least_deviation, std::sqrt(std::max(0.0, squares / std::max(1.0, count) - mean * mean)));
}

}  // namespace

std::map<std::string, Tensor> counted_statistics(const Task& task, const Options& model, ThreadPool&) {
  const DeepmdSizes sizes = deepmd_sizes(model);
  const std::int64_t atoms = sizes.all_atoms(), room = sizes.all_near();
  const auto f = sizes.outer;
  std::vector<Tensor> tensors{Tensor(f, {1, atoms, 3}),
                              Tensor(ElementType::i64, {1, atoms}),
                              Tensor(f, {1, 3, 3}),
                              Tensor(ElementType::i64, {1, atoms, room}),
                              Tensor(f, {1, atoms, room, 3}),
                              Tensor(f, {1, 1}),
                              Tensor(f, {1, 1}),
                              Tensor(f, {1, atoms, 3}),
                              Tensor(f, {1, 1}),
                              Tensor(f, {1, 3, 3}),
                              Tensor(f, {1, 1})};
  Statistics statistics(sizes);
  std::vector<std::vector<double>> counts;
  std::vector<double> energies;
  const std::int64_t stride = std::max<std::int64_t>(1, task.training_count() / most_frames);
  for (std::int64_t sample = 0; sample < task.training_count(); sample += stride) {
    task.fill(std::span(&sample, 1), 0, false, tensors);
    statistics.add(tensors);
    auto& types = counts.emplace_back(sizes.elements.size(), 0.0);
    for (std::int64_t i = 0; i < atoms; ++i)
      if (tensors[1].at(i) >= 0) types[static_cast<std::size_t>(tensors[1].at(i))] += 1;
    energies.push_back(tensors[5].at(0));
  }
  std::map<std::string, Tensor> states{
      {radial_mean, statistics.state([](const Sums& s) { return s.radial / std::max(1.0, s.count); })},
      {radial_deviation,
       statistics.state([](const Sums& s) { return deviation(s.radial_squares, s.radial, s.count); })},
      {angular_deviation,
       statistics.state([](const Sums& s) { return deviation(s.angular_squares, 0, s.count); })}};
  if (counts.empty()) return states;
  const Eigen::VectorXd found = atom_energies(counts, energies);
  for (std::size_t t = 0; t < sizes.elements.size(); ++t)
    states.emplace(energy_bias_name(sizes.elements[t]),
                   Tensor::full(sizes.inner, {1}, found(static_cast<Eigen::Index>(t))));
  return states;
}

}  // namespace superstep::workload
