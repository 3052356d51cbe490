#include "superstep/baseline/materials/metal_fit.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/least_squares.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"

namespace superstep::baseline {
namespace {

using data::DeepmdFrame;

constexpr double energy_weight = 1 / 0.001, force_weight = 1 / 0.03;  // per eV an atom, per eV/A
constexpr double smooth_part = 0.85;                                  // of the cutoff, where it begins to act

// Residuals of one frame: the energy an atom, then the force components.
template <class Model>
struct FrameResidual {
  const DeepmdFrame* frame;
  std::vector<FramePair> pairs;
  double r0;

  int count() const { return 1 + 3 * static_cast<int>(frame->configuration.positions.size()); }

  template <class T>
  bool operator()(const T* parameters, T* residuals) const {
    const auto atoms = frame->configuration.positions.size();
    std::vector<T> forces(3 * atoms);
    const T energy = evaluate_potential(Model::template make<T>(parameters, r0), pairs, forces);
    const auto scale = 1 / static_cast<double>(atoms);
    residuals[0] =
        energy_weight * ((energy - *frame->labels.energy) * scale + parameters[Model::parameters - 1]);
    const double each = force_weight / std::sqrt(3.0 * static_cast<double>(atoms));
    for (std::size_t i = 0; i < atoms; ++i) {
      const data::Cartesian& f = frame->labels.forces[i];
      const double known[3] = {f.x, f.y, f.z};
      for (std::size_t k = 0; k < 3; ++k) residuals[1 + 3 * i + k] = each * (forces[3 * i + k] - known[k]);
    }
    return true;
  }
};

// The parameters of each potential, the energy offset an atom last.
struct LennardJonesModel {
  static constexpr int parameters = 3;
  template <class T>
  static LennardJones<T> make(const T* p, double) {
    return {p[0], p[1]};
  }
  static std::vector<double> start(double r0) { return {0.4, r0 / std::pow(2.0, 1.0 / 6), 0}; }
};

// Positive quantities as logarithms, begun at values between those of the seven metals.
struct GuptaModel {
  static constexpr int parameters = 5;
  template <class T>
  static Gupta<T> make(const T* p, double r0) {
    using std::exp;
    return {exp(p[0]), exp(p[1]), exp(p[2]), exp(p[3]), r0};
  }
  static std::vector<double> start(double) {
    return {std::log(0.1), std::log(10.0), std::log(1.3), std::log(2.5), 0};
  }
};

// Residuals of all frames, one after another.
template <class Model>
struct AllResiduals {
  std::vector<FrameResidual<Model>> frames;

  int NumResiduals() const {
    int count = 0;
    for (const auto& each : frames) count += each.count();
    return count;
  }
  template <class T>
  bool operator()(const T* parameters, T* residuals) const {
    for (const auto& each : frames) {
      each(parameters, residuals);
      residuals += each.count();
    }
    return true;
  }
};

template <class Model>
std::vector<double> minimise(const std::vector<const DeepmdFrame*>& frames, const data::SmoothCutoff& cutoff,
                             double r0) {
  AllResiduals<Model> residuals;
  for (const DeepmdFrame* frame : frames)
    residuals.frames.push_back({frame, frame_pairs(frame->configuration, cutoff), r0});
  using Function = ceres::TinySolverAutoDiffFunction<AllResiduals<Model>, Eigen::Dynamic, Model::parameters>;
  std::vector<double> parameters = Model::start(r0);
  Eigen::Matrix<double, Model::parameters, 1> x = Eigen::Map<decltype(x)>(parameters.data());
  // Residuals have their weights as units: one meV an atom is 1.
  minimise_squares(Function(residuals), x, {.most_iterations = 200, .smallest_change = 1e-6},
                   "the potential");
  return {x.begin(), x.end()};
}

// Nearest-neighbour distance of an fcc crystal of the frames' mean density.
double nearest_distance(const std::vector<const DeepmdFrame*>& frames) {
  double volume = 0, atoms = 0;
  for (const DeepmdFrame* frame : frames) {
    volume += std::abs(frame->configuration.cell->volume());
    atoms += static_cast<double>(frame->configuration.positions.size());
  }
  return std::cbrt(4 * volume / atoms) / std::numbers::sqrt2;
}

struct FrameErrors {
  std::vector<double> measured_energy, energy, measured_force, force;
};

template <class Potential>
void predict(const Potential& potential, double offset, const data::SmoothCutoff& cutoff,
             const DeepmdFrame& frame, FrameErrors& errors) {
  const auto atoms = frame.configuration.positions.size();
  std::vector<double> forces(3 * atoms);
  const double energy = evaluate_potential(potential, frame_pairs(frame.configuration, cutoff), forces);
  errors.measured_energy.push_back(*frame.labels.energy / static_cast<double>(atoms));
  errors.energy.push_back(energy / static_cast<double>(atoms) + offset);
  for (const data::Cartesian& f : frame.labels.forces)
    errors.measured_force.insert(errors.measured_force.end(), {f.x, f.y, f.z});
  errors.force.insert(errors.force.end(), forces.begin(), forces.end());
}

void append_errors(Report& report, TextTable& table, const std::string& method, const std::string& prefix,
                   const FrameErrors& errors) {
  const RegressionScore energy = score(errors.measured_energy, errors.energy);
  const RegressionScore force = score(errors.measured_force, errors.force);
  report.metrics.push_back({prefix + "energy_rmse", energy.rmse, "eV"});
  report.metrics.push_back({prefix + "force_rmse", force.rmse, "eV/A"});
  report.metrics.push_back({prefix + "force_r2", force.r2, ""});
  table.add_row({method, fmt::format("{:.2f}", 1e3 * energy.rmse), fmt::format("{:.1f}", 1e3 * force.rmse),
                 fmt::format("{:.4f}", force.r2)});
}

void write_energies(const std::filesystem::path& path, const FrameErrors& pair, const FrameErrors& gupta) {
  data::CsvWriter file(path, {"energy_eV_per_atom", "lennard_jones_eV_per_atom", "gupta_eV_per_atom"});
  for (std::size_t i = 0; i < pair.energy.size(); ++i) {
    file.cell(pair.measured_energy[i]).cell(pair.energy[i]).cell(gupta.energy[i]);
    file.end_row();
  }
  file.close();
}

std::string parameters_text(const FittedPotentials& fitted) {
  const auto& [lj, gupta, lj_offset, gupta_offset, cutoff] = fitted;
  return fmt::format(
      "Lennard-Jones: epsilon {:.4f} eV, sigma {:.4f} A, offset {:.4f} eV an atom\n"
      "Gupta: A {:.5f} eV, p {:.3f}, xi {:.4f} eV, q {:.3f}, r0 {:.4f} A, offset {:.4f} eV an atom\n",
      lj.epsilon, lj.sigma, lj_offset, gupta.a, gupta.p, gupta.xi, gupta.q, gupta.r0, gupta_offset);
}

Report run(const Request& request, const Options& options) {
  const MetalFrames read = read_metal_frames(request.input);
  const auto most = static_cast<std::size_t>(options.integer("frames", 1, 1000000));
  std::vector<const DeepmdFrame*> training, held_out;
  for (std::size_t i = 0; i < read.frames.size(); ++i)
    (is_held_out(std::to_string(read.trajectory[i]), 5) ? held_out : training).push_back(&read.frames[i]);
  if (training.empty() || held_out.empty())
    throw Error(ErrorCode::bad_file, "too few frames to fit and to hold some out", request.input.string(),
                "generate frames of several trajectories");
  training.resize(std::min(training.size(), most));
  const Stopwatch watch;
  const FittedPotentials fitted = fit_metal(training, options.number("cutoff", 2, 20));
  const double fit_time = watch.seconds();
  FrameErrors pair, gupta;
  for (const DeepmdFrame* frame : held_out) {
    predict(fitted.lennard_jones, fitted.lennard_jones_offset, fitted.cutoff, *frame, pair);
    predict(fitted.gupta, fitted.gupta_offset, fitted.cutoff, *frame, gupta);
  }
  if (!request.output.empty()) write_energies(request.output, pair, gupta);
  Report report;
  TextTable table({"potential", "energy RMSE meV/atom", "force RMSE meV/A", "force R2"});
  append_errors(report, table, "Lennard-Jones (pair)", "floor_", pair);
  append_errors(report, table, "Gupta (embedded atom)", "", gupta);
  report.metrics.push_back({"fit_time", fit_time, "s"});
  report.text = table.to_string() + parameters_text(fitted);
  return report;
}

}  // namespace

FittedPotentials fit_metal(const std::vector<const DeepmdFrame*>& frames, double cutoff) {
  const data::SmoothCutoff smooth{smooth_part * cutoff, cutoff};
  const double r0 = nearest_distance(frames);
  const std::vector<double> pair = minimise<LennardJonesModel>(frames, smooth, r0);
  const std::vector<double> many = minimise<GuptaModel>(frames, smooth, r0);
  return {LennardJonesModel::make(pair.data(), r0), GuptaModel::make(many.data(), r0), pair.back(),
          many.back(), smooth};
}

MetalErrors energy_errors(const FittedPotentials& fitted, const std::vector<const DeepmdFrame*>& judged) {
  FrameErrors pair, gupta;
  for (const DeepmdFrame* frame : judged) {
    predict(fitted.lennard_jones, fitted.lennard_jones_offset, fitted.cutoff, *frame, pair);
    predict(fitted.gupta, fitted.gupta_offset, fitted.cutoff, *frame, gupta);
  }
  return {score(pair.measured_energy, pair.energy).rmse, score(gupta.measured_energy, gupta.energy).rmse};
}

Entry deepmd_baseline() {
  return {"deepmd",
          "Lennard-Jones and Gupta potentials fitted to energies and forces by Levenberg and Marquardt",
          {{"cutoff", "6", "cutoff of the fitted potentials, A"},
           {"frames", "40", "at most so many frames are fitted to"}},
          run};
}

}  // namespace superstep::baseline
