// Frames of atoms as samples: inputs and targets of batches, errors of answers, files of answers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/baseline/materials/metal_fit.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/streamed_file.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/materials/deepmd/deepmd.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/training_curve.h"

namespace superstep::workload {
namespace {

// Our metrics, in thousandths, and what DeePMD-kit calls them.
constexpr std::pair<const char*, const char*> curve_columns[] = {
    {"energy_rmse", "rmse_e"}, {"force_rmse", "rmse_f"}, {"virial_rmse", "rmse_v"}};

constexpr std::size_t fitted_frames = 20;  // that potentials are fitted to: 2,000 force components and more

double atoms_of(const PlacedFrame& frame) { return static_cast<double>(frame.row.size()); }

double at_epoch(const Prefactor& prefactor, double halving, std::uint64_t epoch) {
  const double left = halving > 0 ? std::exp2(-static_cast<double>(epoch) / halving) : 0;
  return prefactor.limit + (prefactor.start - prefactor.limit) * left;
}

class FrameTask : public Task, public KeepsCurve {
 public:
  // The first `training` frames are learnt from; `place` says where each stood in the file.
  FrameTask(std::vector<PlacedFrame> frames, std::vector<std::size_t> place, std::size_t training,
            const DeepmdSizes& sizes, const TaskSettings& settings)
      : frames_(std::move(frames)),
        place_(std::move(place)),
        training_(training),
        sizes_(sizes),
        source_(settings.data.empty() ? generated_source(settings) : settings.data.string()) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(frames_.size()); }
  std::int64_t training_count() const override { return static_cast<std::int64_t>(training_); }
  bool heeds_folds() const override { return true; }
  bool has_labels() const override {
    return std::ranges::all_of(frames_,
                               [](const PlacedFrame& f) { return f.frame.labels.energy.has_value(); });
  }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool,
            std::span<Tensor> tensors) const override {
    for (std::size_t row = 0; row < indices.size(); ++row) {
      const PlacedFrame& frame = at(indices[row]);
      fill_frame(frame, sizes_, row, tensors);
      if (tensors.size() > 5) fill_targets(frame, row, epoch, tensors.subspan(5));
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool& pool) const override {
    pool.parallel_for(static_cast<std::int64_t>(indices.size()), [&](std::int64_t row, int) {
      fill_frame(at(indices[static_cast<std::size_t>(row)]), sizes_, static_cast<std::size_t>(row), inputs);
    });
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const FrameAnswers all = answers(indices, outputs);
    double energy = 0, force = 0, components = 0, virial = 0, virials = 0;
    for (std::size_t i = 0; i < all.frames.size(); ++i) {
      const data::Labels& known = all.frames[i]->frame.labels;
      energy += std::pow((all.energies[i] - known.energy.value_or(NAN)) / atoms_of(*all.frames[i]), 2);
      for (std::size_t k = 0; k < known.forces.size(); ++k) {
        const data::Cartesian apart = all.forces[i][k] - known.forces[k];
        force += dot(apart, apart), components += 3;
      }
      for (std::size_t k = 0; known.virial && k < 9; ++k, ++virials)
        virial += std::pow((all.virials[i][k] - (*known.virial)[k]) / atoms_of(*all.frames[i]), 2);
    }
    const auto root = [](double squares, double count) { return 1e3 * std::sqrt(squares / count); };
    std::vector<Metric> found{
        quality_metric("energy_rmse", root(energy, static_cast<double>(all.frames.size())), "meV/atom")};
    if (components > 0) found.push_back(quality_metric("force_rmse", root(force, components), "meV/A"));
    if (virials > 0) found.push_back(quality_metric("virial_rmse", root(virial, virials), "meV/atom"));
    return found;
  }

  double reference_seconds() const override { return 10; }

  // A pair and an embedded-atom potential; of what is no metal in a box, the energy of the composition alone.
  References references(std::span<const std::int64_t> indices, ThreadPool&) const override {
    if (indices.empty() || training_ == 0 || !has_labels()) return {};
    References found;
    if (is_metal()) {
      std::vector<const data::DeepmdFrame*> known, judged;
      const std::size_t stride = std::max<std::size_t>(1, training_ / fitted_frames);
      for (std::size_t i = 0; i < training_; i += stride) known.push_back(&frames_[i].frame);
      for (const std::int64_t i : indices) judged.push_back(&at(i).frame);
      const baseline::MetalErrors errors =
          baseline::energy_errors(baseline::fit_metal(known, sizes_.cutoff), judged);
      found.floor = Reference{"a fitted Lennard-Jones potential", 1e3 * errors.lennard_jones};
      found.conventional = Reference{"a fitted embedded-atom potential (Gupta)", 1e3 * errors.gupta};
    } else {
      found.floor = Reference{"the mean energy of an atom", mean_energy_error(indices)};
    }
    if (source_.starts_with("generated")) found.limit = Reference{"the potential that made the labels", 0};
    return found;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    return present_frames(answers(found.indices, found.outputs), page);
  }

  bool has_table() const override { return true; }
  bool writes_table(const std::filesystem::path& path) const override {
    return Task::writes_table(path) || is_xyz(path);
  }
  void write_table(const std::filesystem::path& path, std::span<const Tensor> outputs) const override {
    std::vector<std::int64_t> all(frames_.size());
    std::iota(all.begin(), all.end(), std::int64_t{0});
    const FrameAnswers found = answers(all, outputs);
    std::vector<std::size_t> order(frames_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[place_[i]] = i;
    is_xyz(path) ? write_frames(path, found, order) : write_rows(path, found, order);
  }

  // In eV and A, by DeePMD-kit's names: rmse is the root of the whole loss.
  nlohmann::json curve_point(std::span<const std::int64_t> indices, std::span<const Tensor> outputs,
                             std::uint64_t epoch) const override {
    nlohmann::json point{{"rmse", std::sqrt(loss_of(answers(indices, outputs), epoch))}};
    for (const Metric& metric : quality(indices, outputs))
      for (const auto& [ours, theirs] : curve_columns)
        if (metric.name == ours) point[theirs] = 1e-3 * metric.value;
    return point;
  }

  void write_curve(const std::filesystem::path& folder,
                   const std::vector<nlohmann::json>& log) const override {
    write_file_atomically(folder / "lcurve.out", deepmd_curve(log));
  }

  nlohmann::json describe() const override {
    const auto trajectories = [&](std::size_t first, std::size_t last) {
      std::set<std::int64_t> numbers;
      for (std::size_t i = first; i < last; ++i) numbers.insert(frames_[i].trajectory);
      return numbers.size();
    };
    return {{"source", source_},
            {"samples", size()},
            {"training", training_count()},
            {"trajectories", trajectories(0, frames_.size())},
            {"training_trajectories", trajectories(0, training_)}};
  }

 private:
  const PlacedFrame& at(std::int64_t index) const { return frames_[static_cast<std::size_t>(index)]; }
  static bool is_xyz(const std::filesystem::path& path) { return data::is_text(path, {".xyz", ".extxyz"}); }

  bool is_metal() const {
    return sizes_.elements.size() == 1 && std::ranges::all_of(frames_, [](const PlacedFrame& f) {
             return f.frame.configuration.cell.has_value() && !f.frame.labels.forces.empty();
           });
  }

  double mean_energy_error(std::span<const std::int64_t> indices) const {
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < training_; ++i)
      mean += *frames_[i].frame.labels.energy / atoms_of(frames_[i]) / static_cast<double>(training_);
    for (const std::int64_t i : indices)
      squares += std::pow(*at(i).frame.labels.energy / atoms_of(at(i)) - mean, 2);
    return 1e3 * std::sqrt(squares / static_cast<double>(indices.size()));
  }

  // The mean over frames of p_e dE^2 / N + p_f sum dF^2 / (3 N) + p_v sum dV^2 / (9 N).
  double loss_of(const FrameAnswers& all, std::uint64_t epoch) const {
    double loss = 0;
    for (std::size_t i = 0; i < all.frames.size(); ++i) {
      const data::Labels& known = all.frames[i]->frame.labels;
      const double atoms = atoms_of(*all.frames[i]);
      const auto weighed = [&](const Prefactor& prefactor, double numbers, double squares) {
        loss += at_epoch(prefactor, sizes_.halving, epoch) / numbers * squares;
      };
      if (known.energy) weighed(sizes_.energy, atoms, std::pow(all.energies[i] - *known.energy, 2));
      double force = 0, virial = 0;
      for (std::size_t k = 0; k < known.forces.size(); ++k) {
        const data::Cartesian apart = all.forces[i][k] - known.forces[k];
        force += dot(apart, apart);
      }
      weighed(sizes_.force, 3 * atoms, force);
      for (std::size_t k = 0; known.virial && k < 9; ++k)
        virial += std::pow(all.virials[i][k] - (*known.virial)[k], 2);
      weighed(sizes_.virial, 9 * atoms, virial);
    }
    return loss / static_cast<double>(std::max<std::size_t>(1, all.frames.size()));
  }

  // energy, its weight, force, its weight, virial, its weight.
  void fill_targets(const PlacedFrame& frame, std::size_t row, std::uint64_t epoch,
                    std::span<Tensor> targets) const {
    const data::Labels& known = frame.frame.labels;
    const auto first = static_cast<std::int64_t>(row);
    const auto put = [&](std::size_t which, const Prefactor& prefactor, double numbers, bool there) {
      const double weight = there ? at_epoch(prefactor, sizes_.halving, epoch) / numbers : 0;
      targets[which].set(first, weight);
    };
    targets[0].set(first, known.energy.value_or(0));
    put(1, sizes_.energy, atoms_of(frame), known.energy.has_value());
    const std::int64_t width = 3 * sizes_.all_atoms();
    for (std::int64_t k = 0; k < width; ++k) targets[2].set(first * width + k, 0);
    for (std::size_t i = 0; i < known.forces.size(); ++i) {
      const data::Cartesian& f = known.forces[i];
      const std::int64_t place = first * width + 3 * frame.row[i];
      targets[2].set(place, f.x), targets[2].set(place + 1, f.y), targets[2].set(place + 2, f.z);
    }
    put(3, sizes_.force, 3 * atoms_of(frame), !known.forces.empty());
    for (std::int64_t k = 0; k < 9; ++k)
      targets[4].set(9 * first + k, known.virial ? (*known.virial)[static_cast<std::size_t>(k)] : 0);
    put(5, sizes_.virial, 9 * atoms_of(frame), known.virial.has_value());
  }

  // `outputs`: energy, force, virial.
  FrameAnswers answers(std::span<const std::int64_t> indices, std::span<const Tensor> outputs) const {
    FrameAnswers all;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const PlacedFrame& frame = at(indices[i]);
      all.frames.push_back(&frame);
      all.samples.push_back(indices[i]);
      FrameAnswer found = answer_of(frame, sizes_, static_cast<std::int64_t>(i), outputs);
      all.energies.push_back(found.energy);
      all.forces.push_back(std::move(found.forces));
      all.virials.push_back(found.virial);
    }
    return all;
  }

  static void write_frames(const std::filesystem::path& path, const FrameAnswers& found,
                           std::span<const std::size_t> order) {
    data::StreamedFile file(path);
    for (const std::size_t i : order)
      file.write(data::format_xyz({.configuration = found.frames[i]->frame.configuration,
                                   .labels = {found.energies[i], found.forces[i], found.virials[i]},
                                   .info = {}}));
    file.close();
  }

  void write_rows(const std::filesystem::path& path, const FrameAnswers& found,
                  std::span<const std::size_t> order) const {
    std::vector<std::string> header{"frame", "atoms", "energy_eV", "largest_force_eV_per_A"};
    if (has_labels()) header.push_back("known_eV");
    data::CsvWriter table(path, header);
    double frame = 1;
    for (const std::size_t i : order) {
      double largest = 0;
      for (const data::Cartesian& force : found.forces[i]) largest = std::max(largest, data::norm(force));
      table.cell(frame++).cell(atoms_of(*found.frames[i])).cell(found.energies[i]).cell(largest);
      if (has_labels()) table.cell(*found.frames[i]->frame.labels.energy);
      table.end_row();
    }
    table.close();
  }

  std::vector<PlacedFrame> frames_;
  std::vector<std::size_t> place_;
  std::size_t training_;
  DeepmdSizes sizes_;
  std::string source_;
};

}  // namespace

// Frames that are learnt from first; every fifth trajectory, by a hash of its number, is held out.
std::unique_ptr<Task> open_frames(const TaskSettings& settings, const Options& model) {
  std::vector<PlacedFrame> read = read_frames(settings, model);
  const bool learns =
      std::ranges::all_of(read, [](const PlacedFrame& each) { return each.frame.labels.energy.has_value(); });
  std::vector<PlacedFrame> frames;
  std::vector<std::size_t> places;
  std::size_t training = 0;
  const int parts = settings.folds > 0 ? settings.folds : 5, part = std::max(0, settings.fold - 1);
  for (const bool held_out : {false, true}) {
    for (std::size_t i = 0; i < read.size(); ++i)
      if ((!learns || baseline::fold_of(std::to_string(read[i].trajectory), parts) == part) == held_out)
        frames.push_back(std::move(read[i])), places.push_back(i);
    if (!held_out) training = frames.size();
  }
  return std::make_unique<FrameTask>(std::move(frames), std::move(places), training, deepmd_sizes(model),
                                     settings);
}

}  // namespace superstep::workload
