// superstep md POTENTIAL: molecular dynamics with a classical potential or a trained model.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/settings.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/md/forces/potentials.h"
#include "superstep/md/study/page.h"
#include "superstep/md/trained/trained.h"
#include "superstep/physics/materials/atomic_units.h"
#include "superstep/record/environment.h"
#include "superstep/record/result_json.h"
#include "superstep/workload/atom_model.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string potential, out, resume;
  std::vector<std::string> settings;
  std::string structure, lattice;
  std::int64_t frame = 0, water = 0, water_cluster = 0;
  double density = 0.997;  // g/cm^3, of water at 298 K and 1 bar
  std::string ensemble = "nve", bath = "rescaling";
  double timestep = 0, kelvin = 300, velocities = -1, bath_time = 100;
  double pressure = 1.01325, pressure_time = 1000, compressibility = 0;  // bar, fs, 1/bar
  bool own_velocities = false, list = false, options = false;
  double relax = 0, skin = 1, checkpoint_seconds = 60;
  std::int64_t steps = 0, thermo_every = 0, frame_every = 0, equilibration = -1;
  std::uint64_t seed = 1;
};

constexpr const char* examples =
    "Units: A, fs, K, bar, eV. Without --temperature velocities of 300 K are drawn; nvt and npt keep it.\n"
    "Examples:\n"
    "  superstep md --list                                          potentials there are\n"
    "  superstep md lennard-jones --lattice fcc:Ar:5.26:6 --temperature 90 --out argon/\n"
    "  superstep md sutton-chen --lattice fcc:Ni0.5Cu0.5:3.57:5x5x5 --ensemble nvt --temperature 800 --out "
    "alloy/\n"
    "  superstep md spc-fw --water 216 --relax 0.5 --ensemble npt --temperature 300 --out water/\n"
    "  superstep md spc-fw --structure water/last.xyz --own-velocities --steps 20000 --out on/\n"
    "  superstep md RUN/ --structure cluster.xyz --temperature 150 --out cluster/       a trained model\n"
    "  superstep md --resume water/ --steps 50000                   after Ctrl-C, or for longer: the same "
    "bits\n"
    "The folder gets trajectory.xyz (extended XYZ: positions not wrapped into the box, velocities in A/fs), "
    "thermo.csv,\n"
    "rdf.csv, displacement.csv, speeds.csv, last.xyz, result.json and a page, index.html.";

void list_potentials() {
  TextTable table({"potential", "what it is", "elements"});
  for (const md::Potential& each : md::potentials()) table.add_row({each.name, each.summary, each.elements});
  fmt::print("{}trained models: the folder of a training run of {}\n", table.to_string(),
             workload::atom_workloads());
}

md::Structure structure_of(const Arguments& a, std::string& words) {
  const int given = !a.structure.empty() + !a.lattice.empty() + (a.water > 0) + (a.water_cluster > 0);
  if (given != 1)
    throw Error(ErrorCode::invalid_argument, given == 0 ? "which atoms?" : "more than one structure is given",
                "md", "give one of --structure FILE, --lattice fcc:Cu:3.61:5, --water N, --water-cluster N");
  if (!a.structure.empty()) {
    words = a.structure;
    return md::read_structure(a.structure, a.frame);
  }
  if (!a.lattice.empty()) {
    words = a.lattice;
    return md::make_lattice(a.lattice, a.seed);
  }
  if (a.water > 0) {
    words = fmt::format("{} molecules of water at {} g/cm^3", a.water, a.density);
    return md::make_water_box(a.water, a.density, a.seed);
  }
  words = fmt::format("{} molecules of water in open space", a.water_cluster);
  return md::make_water_cluster(a.water_cluster, a.seed);
}

md::Settings settings_of(const Arguments& a, const md::Structure& start) {
  const md::Potential* known = md::find_potential(a.potential);
  md::Settings s;
  s.potential = std::filesystem::is_directory(a.potential) && !known
                    ? std::filesystem::absolute(a.potential).string()
                    : a.potential;
  s.potential_settings = a.settings;
  md::Protocol& p = s.protocol;
  p.ensemble = a.ensemble == "nve"   ? md::Ensemble::nve
               : a.ensemble == "nvt" ? md::Ensemble::nvt
                                     : md::Ensemble::npt;
  p.bath = a.bath == "langevin" ? md::Bath::langevin : md::Bath::rescaling;
  constexpr double usual_timestep = 0.5;  // fs, of trained models: some have hydrogen
  p.timestep = a.timestep > 0 ? a.timestep : known ? known->timestep : usual_timestep;
  p.kelvin = a.kelvin;
  p.bath_time = a.bath_time;
  const double bar = data::bar_per_ev_per_cubic_angstrom;
  p.pressure = a.pressure / bar;
  p.pressure_time = a.pressure_time;
  constexpr double usual_compressibility = 5e-5;  // 1/bar, of water
  p.compressibility = (a.compressibility > 0 ? a.compressibility
                       : known               ? known->compressibility
                                             : usual_compressibility) *
                      bar;
  p.seed = a.seed;
  if (a.own_velocities && start.velocities.empty())
    throw Error(ErrorCode::invalid_argument, "has no velocities (column velo)",
                a.structure.empty() ? "md" : a.structure, "leave --own-velocities away, and they are drawn");
  s.velocity_kelvin = a.own_velocities ? -1 : a.velocities >= 0 ? a.velocities : a.kelvin;
  s.relaxed_to = a.relax;
  s.skin = a.skin;
  s.steps = a.steps > 0 ? a.steps : 10000;
  s.thermo_every = a.thermo_every > 0 ? a.thermo_every : std::max<std::int64_t>(1, s.steps / 1000);
  s.frame_every = a.frame_every > 0 ? a.frame_every : std::max<std::int64_t>(1, s.steps / 100);
  s.equilibration = a.equilibration >= 0 ? a.equilibration : s.steps / 5;
  return s;
}

record::Result result_of(const md::RunFolder& folder, const md::Analysis& analysis,
                         const md::Sitting& sitting) {
  const md::Settings& settings = folder.settings();
  nlohmann::json config = md::to_json(settings);
  config["threads"] = thread_count();
  config["atoms"] = sitting.atoms;
  config["pairs_listed"] = sitting.pairs;
  config["list_builds"] = sitting.list_builds;
  config["force_field"] = parse_json_or_throw(sitting.parameters_text);
  record::Result result =
      command_result("md", settings.potential, config, md::metrics_of(settings, analysis, sitting));
  result.folder = folder.path().string();
  result.environment = record::environment_record(thread_count());
  result.program = record::program_record();
  result.created = record::iso_time();
  return result;
}

md::RunFolder folder_of(const Arguments& a) {
  if (!a.resume.empty()) {
    md::RunFolder folder = md::RunFolder::open(a.resume);
    if (a.steps > 0) folder.change_steps(a.steps);
    return folder;
  }
  if (a.potential.empty())
    throw Error(ErrorCode::invalid_argument, "which potential?", "md",
                "superstep md --list shows what there is");
  if (a.out.empty()) throw Error(ErrorCode::invalid_argument, "into which folder? give --out DIR", "md");
  md::RunFolder::refuse_existing(a.out);
  std::string words;
  md::Structure start = structure_of(a, words);
  md::Settings settings = settings_of(a, start);
  settings.start = words;
  // What is wrong with atoms or options is said before there is a folder.
  md::make_force_field(settings, start.atoms, thread_count());
  ThreadPool pool(thread_count());
  md::require_apart(start.atoms.positions, start.atoms.cell, pool);
  return md::RunFolder::create(a.out, settings, start);
}

void run(const Arguments& a) {
  if (a.list) return list_potentials();
  if (a.options) {
    const md::Potential* known = md::find_potential(a.potential);
    if (!known)
      throw Error(ErrorCode::invalid_argument, "options of which potential?", "md", "superstep md --list");
    fmt::print("{}: {}\n\n", known->name, known->summary);
    return print_options(known->options);
  }
  md::RunFolder folder = folder_of(a);
  const md::Sitting sitting =
      md::simulate(folder, {.threads = thread_count(), .checkpoint_seconds = a.checkpoint_seconds});
  ThreadPool pool(thread_count());
  const md::Analysis analysis = md::analyse(folder, pool);
  md::write_tables(analysis, folder.path());
  md::page_of(folder.settings(), analysis, sitting).write(folder.path() / "index.html");
  record::Result result = result_of(folder, analysis, sitting);
  write_file_atomically(folder.path() / "result.json", record::write_results({result}));
  if (!is_quiet())
    fmt::print("{}written: {}\n", md::summary_of(folder.settings(), analysis, sitting),
               (folder.path() / "index.html").string());
  keep_and_write_result(std::move(result));
}

// What a simulation began with it goes on with.
void require_as_begun(const CLI::App& command) {
  constexpr std::array<std::string_view, 7> free{
      "--resume", "--steps", "--checkpoint-seconds", "--json", "--quiet", "--progress", "--threads"};
  for (const CLI::Option* const option : command.get_options())
    if (option->count() > 0 && std::ranges::find(free, std::string_view(option->get_name())) == free.end())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot be given: it goes on as it began", option->get_name()), "--resume",
                  "a new simulation may begin from its last.xyz: --structure, --own-velocities");
}

void declare_structure(CLI::App& command, Arguments& a) {
  command.add_option("--structure", a.structure, "extended XYZ: its last frame")->type_name("FILE");
  command.add_option("--frame", a.frame, "another frame of it, from 1")
      ->type_name("N")
      ->check(whole_number_from(1));
  command.add_option("--lattice", a.lattice, "a crystal: LATTICE:ATOMS:CONSTANT:CELLS, as fcc:Cu:3.61:5x5x5")
      ->type_name("TEXT");
  command.add_option("--water", a.water, "a box of so many molecules")
      ->type_name("N")
      ->check(whole_number_from(1, 1000000));
  command.add_option("--density", a.density, "density of that box, g/cm^3")
      ->type_name("NUMBER")
      ->check(number_from(1e-6, 10))
      ->capture_default_str();
  command.add_option("--water-cluster", a.water_cluster, "so many molecules in open space")
      ->type_name("N")
      ->check(whole_number_from(1, 10000));
  command.add_flag("--own-velocities", a.own_velocities,
                   "those of the structure's file, in place of drawn ones");
  command.add_option("--relax", a.relax, "first move downhill until no force is above this, eV/A")
      ->type_name("FORCE")
      ->check(positive());
}

void declare_rules(CLI::App& command, Arguments& a) {
  command
      .add_option("--ensemble", a.ensemble,
                  "what is kept: nve (energy), nvt (temperature), npt (pressure too)")
      ->check(CLI::IsMember({"nve", "nvt", "npt"}))
      ->capture_default_str();
  command
      .add_option("--temperature", a.kelvin,
                  "temperature of the bath, and of the velocities drawn at the start, K")
      ->type_name("K")
      ->check(number_from(0, 1e6))
      ->capture_default_str();
  command
      .add_option("--start-temperature", a.velocities,
                  "temperature of the velocities drawn, if not the bath's, K")
      ->type_name("K")
      ->check(number_from(0, 1e6));
  command.add_option("--bath", a.bath, "rescaling (stochastic, of all velocities together) or langevin")
      ->check(CLI::IsMember({"rescaling", "langevin"}))
      ->capture_default_str();
  command.add_option("--bath-time", a.bath_time, "in which the bath acts, fs")
      ->type_name("FS")
      ->check(number_from(1e-3, 1e9))
      ->capture_default_str();
  command.add_option("--pressure", a.pressure, "pressure for npt, bar")
      ->type_name("BAR")
      ->check(number_from(-1e8, 1e8))
      ->capture_default_str();
  command.add_option("--pressure-time", a.pressure_time, "in which the box follows, fs")
      ->type_name("FS")
      ->check(number_from(1, 1e9))
      ->capture_default_str();
  command
      .add_option("--compressibility", a.compressibility,
                  "that the box is taken to have, 1/bar: scales that time (default: the potential's)")
      ->type_name("NUMBER")
      ->check(number_from(1e-12, 10));
}

void declare_length(CLI::App& command, Arguments& a) {
  command.add_option("--steps", a.steps, "in all (default: 10000); with --resume: go on to")
      ->type_name("N")
      ->check(whole_number_from(1, 1000000000000));
  command.add_option("--timestep", a.timestep, "fs (default: the potential's)")
      ->type_name("FS")
      ->check(number_from(1e-6, 1000));
  command
      .add_option("--thermo-every", a.thermo_every,
                  "steps between rows of thermo.csv (default: a thousand rows)")
      ->type_name("N")
      ->check(whole_number_from(1));
  command.add_option("--frame-every", a.frame_every, "steps between frames (default: a hundred frames)")
      ->type_name("N")
      ->check(whole_number_from(1));
  command.add_option("--equilibration", a.equilibration, "steps that means leave out (default: a fifth)")
      ->type_name("N")
      ->check(whole_number_from(0));
  command
      .add_option("--skin", a.skin,
                  "skin of neighbor lists, A: they are renewed when an atom has moved by half of it")
      ->type_name("A")
      ->check(number_from(0.01, 20))
      ->capture_default_str();
  command.add_option("--seed", a.seed, "seed of velocities, baths, alloys and orientations")
      ->type_name("N")
      ->check(whole_number_from(0, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  command.add_option("--checkpoint-seconds", a.checkpoint_seconds, "between states kept, and when it ends")
      ->type_name("S")
      ->check(number_from(0.01, 1e6))
      ->capture_default_str();
}

// Options of other ensembles, structures and lists than those that are asked for.
void refuse_ignored(const CLI::App& command, const Arguments& a) {
  const auto unless = [](bool heeded, const char* reason) { return std::string_view(heeded ? "" : reason); };
  refuse_given(command, unless(!a.list && !a.options, "means nothing beside --list and --options"),
               {"--out", "--resume", "--structure", "--lattice", "--water", "--water-cluster", "--steps"});
  if (a.list || a.options || !a.resume.empty()) return;
  refuse_given(command, unless(a.ensemble != "nve", "is of a bath, and --ensemble nve has none"),
               {"--bath", "--bath-time"});
  refuse_given(command, unless(a.ensemble == "npt", "is of a constant pressure: --ensemble npt"),
               {"--pressure", "--pressure-time", "--compressibility"});
  refuse_given(command, unless(!a.structure.empty(), "is of --structure FILE"),
               {"--frame", "--own-velocities"});
  refuse_given(command, unless(a.water > 0, "is of --water N"), {"--density"});
  refuse_given(command, unless(!a.own_velocities, "is of velocities that are drawn, not of --own-velocities"),
               {"--start-temperature"});
}

}  // namespace

void declare_md(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  command.add_option("potential", a->potential, "a potential (--list), or the folder of a training run");
  command.add_option("--out", a->out, "the folder of a new simulation")->type_name("DIR");
  command.add_option("--resume", a->resume, "go on with the simulation of this folder")->type_name("DIR");
  command.add_option("--set", a->settings, "name=value of an option of the potential; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  declare_structure(command, *a);
  declare_rules(command, *a);
  declare_length(command, *a);
  command.add_flag("--list", a->list, "list the potentials");
  command.add_flag("--options", a->options, "list the options of the potential");
  command.footer(examples);
  command.callback([a, &command] {
    refuse_ignored(command, *a);
    if (!a->resume.empty()) require_as_begun(command);
    run(*a);
  });
}

}  // namespace superstep::cli
