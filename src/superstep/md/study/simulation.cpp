#include "superstep/md/study/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/progress.h"
#include "superstep/base/random.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/file/atoms/element.h"
#include "superstep/md/forces/potentials.h"
#include "superstep/md/trained/trained.h"

namespace superstep::md {
namespace {

constexpr double seconds_per_day = 86400, fs_per_ns = 1e6;
constexpr int most_relax_steps = 20000;

std::string how_to_go_on(const std::filesystem::path& folder) {
  return fmt::format("go on with: superstep md --resume {}", folder.string());
}

// Box and cutoff that mean something else than one may think.
std::vector<std::string> notes_on(const data::Configuration& atoms, double cutoff) {
  if (!atoms.cell || cutoff <= 0) return {};
  const auto heights = heights_of(*atoms.cell);
  const double thinnest = std::ranges::min(heights);
  if (thinnest >= 2 * cutoff) return {};
  return {
      fmt::format("the box is {:.4g} A thick, less than {} the cutoff of {:.4g} A: atoms see several images "
                  "of each other, which "
                  "are all counted; the result is that of the periodic crystal, not of a large sample",
                  thinnest, thinnest < cutoff ? "once" : "twice", cutoff)};
}

void require_boundary(const ForceField& field, const Settings& settings, const data::Configuration& atoms) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::invalid_argument, why, settings.potential, hint);
  };
  if (atoms.cell && !field.takes_box())
    refuse("is for open space, the structure has a box", "leave its Lattice away");
  if (!atoms.cell && !field.takes_open_space()) refuse("is for a periodic box, the structure has none", "");
  if (settings.protocol.ensemble == Ensemble::npt && (!atoms.cell || !field.gives_virial()))
    refuse("there is no pressure to keep",
           "npt is for periodic boxes, and force fields that give the virial");
}

std::unique_ptr<ForceField> opened(const Settings& settings, data::Configuration& start, int threads) {
  if (const Potential* known = find_potential(settings.potential))
    return known->make(Options(known->options, settings.potential_settings), start);
  if (std::filesystem::is_directory(settings.potential)) {
    if (!settings.potential_settings.empty())
      throw Error(ErrorCode::invalid_argument, "a trained model has no options here", "--set");
    return open_trained(settings.potential, start, threads);
  }
  std::vector<std::string> names;
  for (const Potential& each : potentials()) names.push_back(each.name);
  throw Error(ErrorCode::invalid_argument, "there is no such potential, nor folder of a training run",
              settings.potential, unknown_name_hint(settings.potential, names));
}

// One simulation while it runs.
class Run {
 public:
  Run(RunFolder& folder, const SimulationOptions& options)
      : folder_(folder),
        settings_(folder.settings()),
        options_(options),
        pool_(options.threads),
        start_(folder.start()),
        field_(make_force_field(settings_, start_.atoms, options.threads)),
        dynamics_(*field_, settings_.protocol, settings_.skin, pool_) {
    begin_or_go_on();
  }

  Sitting finish() {
    const HoldEnd hold("a step is finished, and where it stands is kept");
    const StopNote note(how_to_go_on(folder_.path()));
    Sitting sitting{
        .from = state_.step, .atoms = start_.atoms.positions.size(), .timestep = settings_.protocol.timestep};
    const double forces = dynamics_.force_seconds(), searches = dynamics_.neighbour_seconds();
    writing_seconds_ = 0;
    const Stopwatch watch;
    take_steps(watch);
    sitting.seconds = watch.seconds();
    sitting.to = state_.step;
    sitting.force_seconds = dynamics_.force_seconds() - forces;
    sitting.neighbour_seconds = dynamics_.neighbour_seconds() - searches;
    sitting.writing_seconds = writing_seconds_;
    save();
    if (const Neighbours* lists = dynamics_.neighbours())
      sitting.list_builds = lists->builds(), sitting.pairs = lists->pairs_listed();
    sitting.parameters_text = field_->parameters().dump();
    sitting.notes = notes_on(start_.atoms, field_->cutoff());
    return sitting;
  }

 private:
  void begin_or_go_on() {
    std::vector<double> masses;
    for (const int element : start_.atoms.elements) masses.push_back(data::element_mass(element));
    if (std::optional<Checkpoint> kept = folder_.checkpoint(masses.size())) {
      state_ = std::move(kept->state);
      state_.motion.masses = std::move(masses);
      dynamics_.go_on(state_, std::move(kept->origin));
      open_files(kept->trajectory_bytes, kept->thermo_bytes);
      return;
    }
    begin(std::move(masses));
    open_files(0, 0);
    thermo_->write(thermo_header);
    record(true, true);
    save();
  }

  void open_files(std::uint64_t trajectory_bytes, std::uint64_t thermo_bytes) {
    trajectory_ = std::make_unique<data::AppendedFile>(folder_.trajectory(), trajectory_bytes);
    thermo_ = std::make_unique<data::AppendedFile>(folder_.thermo(), thermo_bytes);
  }

  void begin(std::vector<double> masses) {
    RandomStream random(settings_.protocol.seed, 0, purpose::velocities);
    const bool own = settings_.velocity_kelvin < 0;
    state_.motion =
        data::start_motion(std::move(masses), start_.atoms.positions, own ? 0 : settings_.velocity_kelvin,
                           random, [](auto, auto) { return 0.0; });
    state_.cell = start_.atoms.cell;
    dynamics_.begin(state_);
    if (settings_.relaxed_to > 0) relax();
    if (own) state_.motion.velocities = start_.velocities;
  }

  void relax() {
    const std::vector<Cartesian> velocities = state_.motion.velocities;
    dynamics_.relax(state_, settings_.relaxed_to, most_relax_steps);
    state_.motion.velocities = velocities;
    dynamics_.begin(state_);
  }

  bool is_due(std::int64_t every, std::int64_t step) const {
    return step % every == 0 || step == settings_.steps;
  }

  void record(bool thermo, bool frame) {
    const Stopwatch watch;
    const Reading reading = dynamics_.read(state_);
    if (thermo) thermo_->write(thermo_row(state_, reading, settings_.protocol.timestep));
    if (frame) trajectory_->write(frame_text(reading));
    writing_seconds_ += watch.seconds();
  }

  std::string frame_text(const Reading& reading) const {
    return data::format_xyz(frame_of(state_, start_.atoms.elements, reading, settings_.protocol.timestep));
  }

  // All that was written is on the disk before the state that says so.
  void save() {
    const Stopwatch watch;
    Checkpoint kept{.state = state_, .origin = {}};
    if (const Neighbours* lists = dynamics_.neighbours()) kept.origin = lists->origin();
    kept.trajectory_bytes = trajectory_->flush();
    kept.thermo_bytes = thermo_->flush();
    folder_.save(kept);
    write_file_atomically(folder_.last_frame(), frame_text(dynamics_.read(state_)));
    saved_ = Stopwatch();
    writing_seconds_ += watch.seconds();
  }

  void take_steps(const Stopwatch& watch) {
    const std::int64_t from = state_.step;
    Progress progress("md", static_cast<double>(settings_.steps), "steps", static_cast<double>(from));
    while (state_.step < settings_.steps) {
      if (interrupted()) {
        save();
        progress.finish();
        throw Error(ErrorCode::interrupted, fmt::format("after step {} of {}", state_.step, settings_.steps),
                    {}, how_to_go_on(folder_.path()));
      }
      one_step();
      if (state_.step % 16 == 0 || state_.step == settings_.steps)
        progress.update(static_cast<double>(state_.step), words_on(watch.seconds(), from));
      if (saved_.seconds() > options_.checkpoint_seconds) save();
    }
    progress.finish();
  }

  std::string words_on(double seconds, std::int64_t from) const {
    const double rate = static_cast<double>(state_.step - from) / seconds;
    return fmt::format("{:.4g} K, {:.3g} ns/day", dynamics_.read(state_).temperature,
                       rate * settings_.protocol.timestep * seconds_per_day / fs_per_ns);
  }

  void one_step() {
    const std::int64_t next = state_.step + 1;
    const bool thermo = is_due(settings_.thermo_every, next), frame = is_due(settings_.frame_every, next);
    before_ = state_;
    try {
      dynamics_.step(state_, thermo || frame);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::diverged && error.code() != ErrorCode::invalid_argument) throw;
      state_ = before_;
      if (!is_due(settings_.frame_every, state_.step)) record(false, true);
      save();
      throw Error(
          ErrorCode::diverged, error.message(), folder_.path().string(),
          fmt::format(
              "the last good frame, of step {}, is in last.xyz; a smaller --timestep, or --relax, may help",
              state_.step));
    }
    if (thermo || frame) record(thermo, frame);
  }

  RunFolder& folder_;
  const Settings& settings_;
  SimulationOptions options_;
  ThreadPool pool_;
  Structure start_;
  std::unique_ptr<ForceField> field_;
  Dynamics dynamics_;
  State state_, before_;
  std::unique_ptr<data::AppendedFile> trajectory_, thermo_;
  Stopwatch saved_;
  double writing_seconds_ = 0;
};

}  // namespace

double Sitting::ns_per_day() const { return steps_per_second() * timestep * seconds_per_day / fs_per_ns; }

nlohmann::json Sitting::parameters() const { return parse_json_or_throw(parameters_text); }

std::unique_ptr<ForceField> make_force_field(const Settings& settings, data::Configuration& start,
                                             int threads) {
  require_sound(start);
  std::unique_ptr<ForceField> field = opened(settings, start, threads);
  require_boundary(*field, settings, start);
  return field;
}

Sitting simulate(RunFolder& folder, const SimulationOptions& options) {
  return Run(folder, options).finish();
}

}  // namespace superstep::md
