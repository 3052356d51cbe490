// superstep machine: this machine as a machine file, and as the description that goes beside a log.
#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/formats/system_json.h"
#include "superstep/lab/machine/device_machine.h"
#include "superstep/lab/machine/host_machine.h"
#include "superstep/lab/processor/probes.h"
#include "superstep/record/environment.h"
#include "superstep/target/pjrt/pjrt.h"
#include "superstep/target/target.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string out = "cpu-local.toml", folder, description, target = "cpu";
  std::uint64_t probes = lab::probe_count;
  std::vector<std::string> given;
};

std::string format(const lab::HostQuantity& quantity, double value) {
  return quantity.unit == "s" ? format_seconds(value) : format_si(value, quantity.unit);
}

void print(const lab::HostMachine& machine) {
  TextTable table({"measured", "value", "range", "what"});
  for (const lab::HostQuantity& quantity : machine.measured)
    table.add_row({quantity.name, format(quantity, quantity.value),
                   fmt::format("[{}, {}]", format(quantity, quantity.low), format(quantity, quantity.high)),
                   quantity.note});
  fmt::print("{}: {}\n{}", machine.host, machine.name, table.to_string());
}

lab::HostMachine measured(const Arguments& arguments, const std::string& id) {
  const auto tell_what = [](const std::string& what) {
    if (!common().quiet) tell(fmt::format("measuring {}\n", what));
  };
  if (arguments.target != "cpu")
    return lab::measure_device({.id = id, .target = arguments.target, .progress = tell_what});
  return lab::measure_host({.id = id,
                            .threads = thread_count(),
                            .folder = arguments.folder,
                            .probes = arguments.probes,
                            .progress = tell_what});
}

// Other targets are models of machines, or definitions.
void require_measurable(const std::string& target) {
  target::find_target(target);
  if (target != "cpu" && !target::pjrt::find_device_target(target))
    throw Error(ErrorCode::invalid_argument, "is nothing that can be measured here", target,
                "use cpu, or a device of superstep list devices");
}

void measure(const Arguments& arguments) {
  require_measurable(arguments.target);
  require_writable(arguments.out);
  const record::HostLoad load;
  const std::string id = std::filesystem::path(arguments.out).stem().string();
  const lab::HostMachine machine = measured(arguments, id.empty() ? "cpu-local" : id);
  write_file_atomically(arguments.out, lab::to_toml(machine));
  std::vector<record::Result> results{lab::to_result(machine, thread_count())};
  results.front().machine = arguments.target;
  if (!common().quiet) print(machine);
  keep_results(results, load);
  if (!common().quiet) fmt::print("written to {}\n", arguments.out);
}

void describe(const Arguments& arguments) {
  std::map<std::string, std::string> given;
  for (const std::string& text : arguments.given) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not NAME=VALUE", text), "--set",
                  "for example --set submitter='Our laboratory'");
    given[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const std::string text = lab::write_system_json(record::environment_record(thread_count()), given);
  if (arguments.description.empty()) return fmt::print("{}", text);
  write_file_atomically(arguments.description, text);
  if (!common().quiet) fmt::print("written to {}\n", arguments.description);
}

}  // namespace

void declare_machine(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  command.require_subcommand(1);
  CLI::App* const measuring =
      command.add_subcommand("measure", "measure this machine: peaks, bandwidths, latencies, file speed");
  measuring
      ->add_option("--out", a->out,
                   "the machine file; its name is the machine's id (default: of a device device-local.toml)")
      ->type_name("FILE.toml")
      ->capture_default_str();
  measuring->add_option("--on", a->target, "what to measure: cpu, or a device: superstep list devices")
      ->type_name("TARGET")
      ->capture_default_str();
  measuring
      ->add_option("--folder", a->folder, "where file speed is measured (default: that of temporary files)")
      ->type_name("DIR");
  measuring
      ->add_option(
          "--probes", a->probes,
          "small networks by which the engine's kernels are timed, for predict --on FILE.toml; 0: none")
      ->type_name("N")
      ->check(whole_number_from(0, static_cast<std::int64_t>(lab::probe_count)))
      ->capture_default_str();
  measuring->fallthrough();  // --json and --quiet may stand at the end
  measuring->callback([a, measuring] {
    if (measuring->count("--out") == 0 && a->target != "cpu") a->out = "device-local.toml";
    refuse_given(*measuring, a->target == "cpu" ? "" : "is of this processor", {"--folder", "--probes"});
    measure(*a);
  });
  CLI::App* const describing = command.add_subcommand(
      "system", "describe this machine as a system JSON, which goes beside a log of :::MLLOG lines");
  describing->add_option("--out", a->description, "file for it (default: standard output)")
      ->type_name("FILE");
  describing
      ->add_option("--set", a->given,
                   "name=value of a member that a program cannot find out; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  describing->fallthrough();
  describing->callback([a] { describe(*a); });
  command.footer(
      "Examples:\n  superstep machine measure --out mybox.toml\n"
      "  superstep machine measure --on cuda --out mygpu.toml\n"
      "  superstep machine system --set host_networking=none --out system.json");
}

}  // namespace superstep::cli
