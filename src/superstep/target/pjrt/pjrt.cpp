#include "superstep/target/pjrt/pjrt.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/target/pjrt/client/profiler.h"
#include "superstep/target/pjrt/executable.h"
#include "superstep/target/pjrt/plugins.h"
#include "superstep/target/pjrt/rank_executable.h"
#include "superstep/transform/pipeline.h"

namespace superstep::target::pjrt {
namespace {

Place place_of(const std::filesystem::path& plugin, std::size_t device, const std::string& name) {
  const Client& client = Client::of(Library::open(plugin));
  if (device >= client.devices().size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("there is no device {}; it has {}, counted from 0", device, client.devices().size()),
        name, "superstep list devices");
  return {.client = &client, .first = device};
}

// Of "pjrt" without a path: the first plug-in that has a device. One that is installed without its device is
// passed over.
Place first_place(const Choice& choice, const std::string& name) {
  std::optional<Error> trouble;
  for (const Kind& kind : kinds()) {
    const auto plugin = find_plugin(kind);
    if (!plugin) continue;
    try {
      return place_of(*plugin, choice.device, name);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::invalid_argument) throw;
      if (!trouble) trouble = error;
    }
  }
  if (trouble) throw *trouble;
  return place_of(plugin_of(choice), choice.device, name);  // says what to install
}

bool is_open(const Choice& choice) {
  return !choice.kind && choice.path.empty() && !std::getenv("SUPERSTEP_PJRT_PLUGIN");
}

class DeviceTarget : public Target {
 public:
  DeviceTarget(std::string name, Choice choice) : name_(std::move(name)), choice_(std::move(choice)) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override {
    return "a device behind a PJRT plug-in; by kind: cuda, rocm, oneapi, tpu, tt, metal (superstep list "
           "devices)";
  }
  PassTable passes() const override {
    return {.of_models = nullptr, .of_graphs = [](const PassUse&) { return stablehlo::program_passes(); }};
  }
  Place used() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }
  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    refuse_stages(options);
    if (options.parts.count > 1) return share_of_rank(model, options);
    BatchedPorts ports = batched_ports(model, options.batch, options.batch);
    graph::Graph graph = transform::run_passes(model(options.batch), stablehlo::program_passes());
    const Place place = shared_by(options.chips.replicas);
    remember(place);
    return std::make_unique<DeviceExecutable>(std::move(graph), std::move(ports), options, place);
  }

 private:
  void refuse_stages(const CompileOptions& options) const {
    const Chips& chips = options.chips;
    if (chips.stages > 1 || chips.pipeline.size() > 1 || chips.accumulate > 1)
      throw Error(ErrorCode::unsupported, "devices behind a plug-in share a batch, but no model's layers",
                  name_, "leave --pipeline, --units and --accumulate away, or use --on gc200, bow or gc2");
  }

  // Ranks of a host have a device each, in turn.
  std::unique_ptr<Executable> share_of_rank(const GraphAtBatch& model, const CompileOptions& options) const {
    Place found = place();
    found.first =
        (found.first + static_cast<std::size_t>(options.parts.index)) % found.client->devices().size();
    remember(found);
    return std::make_unique<RankExecutable>(model, options, found);
  }

  // The first devices that there are, as many as there are replicas.
  Place shared_by(int replicas) const {
    Place found = place();
    if (replicas <= 1) return found;
    if (found.first > 0)
      throw Error(ErrorCode::invalid_argument, "several replicas are on the first devices, not on one", name_,
                  fmt::format("leave :{} away", found.first));
    found.count = static_cast<std::size_t>(replicas);
    if (const std::size_t there = found.client->devices().size(); found.count > there)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} replicas take a device each, and there {} {}", replicas,
                              there == 1 ? "is" : "are", there),
                  name_, "give fewer --replicas; superstep list devices");
    return found;
  }

  Place place() const {
    return is_open(choice_) ? first_place(choice_, name_)
                            : place_of(plugin_of(choice_), choice_.device, name_);
  }

  void remember(const Place& place) const {
    const std::lock_guard lock(mutex_);
    if (place.count >= used_.count || place.client != used_.client) used_ = place;
  }

  std::string name_;
  Choice choice_;
  mutable std::mutex mutex_;
  mutable Place used_;  // behind mutex_: what was compiled for last, or for more devices before
};

// What a plug-in says of itself; nothing where it does not, which must not end a run.
template <class Ask>
std::string said(Ask&& ask) {
  try {
    return ask();
  } catch (const Error&) {
    return {};
  }
}

std::string versions_of(const Library& library) {
  std::string text = fmt::format("PJRT {}.{}", library.major(), library.minor());
  if (const std::string stablehlo = library.attribute("stablehlo_current_version"); !stablehlo.empty())
    text += ", StableHLO " + stablehlo;
  return text;
}

DeviceEntry::Device device_of(const Client& client, const std::string& kind, std::size_t device) {
  std::string what = client.device_kind(device);
  if (const auto memory = client.device_memory(device); memory && memory->limit)
    what += ", " + format_bytes(static_cast<double>(*memory->limit));
  return {fmt::format("{}:{}", kind, device), what};
}

DeviceEntry entry_of(const Kind& kind) {
  DeviceEntry entry{.kind = std::string(kind.name), .kind_of_devices = std::string(kind.devices)};
  const auto plugin = find_plugin(kind);
  if (!plugin) {
    entry.trouble = std::string(kind.packages);
    return entry;
  }
  entry.plugin = plugin->string();
  try {
    const Library& library = Library::open(*plugin);
    entry.versions = versions_of(library);
    const Client& client = Client::of(library);
    for (std::size_t i = 0; i < client.devices().size(); ++i)
      entry.devices.push_back(device_of(client, entry.kind, i));
  } catch (const Error& error) {
    entry.trouble = error.message();
  }
  return entry;
}

}  // namespace

std::vector<DeviceFacts> devices_in_use(std::string_view target) {
  const Target* const found = find_device_target(target);
  const Place place = found ? static_cast<const DeviceTarget*>(found)->used() : Place{};
  std::vector<DeviceFacts> devices;
  if (!place.client) return devices;
  const Client& client = *place.client;
  for (std::size_t i = place.first; i < place.first + place.count; ++i) {
    const auto memory = client.device_memory(i);
    devices.push_back({.name = fmt::format("{}:{}", target.substr(0, target.find(':')), i),
                       .kind = said([&] { return client.device_kind(i); }),
                       .memory_bytes = memory ? memory->limit.value_or(0) : 0,
                       .plugin = client.library().file().filename().string(),
                       .versions = versions_of(client.library()),
                       .platform = said([&] { return client.platform(); }),
                       .platform_version = said([&] { return client.platform_version(); })});
  }
  return devices;
}

const Target* find_device_target(std::string_view name) {
  static std::mutex mutex;
  static auto& targets = *new std::map<std::string, DeviceTarget, std::less<>>;
  const auto choice = parse_choice(name);
  if (!choice) return nullptr;
  const std::lock_guard lock(mutex);
  return &targets.try_emplace(std::string(name), std::string(name), *choice).first->second;
}

namespace {

const DeviceExecutable& on_device(const Executable& executable) {
  if (const auto* const found = dynamic_cast<const DeviceExecutable*>(&executable)) return *found;
  throw Error(ErrorCode::unsupported, "is no program of one process behind a plug-in", "executable");
}

}  // namespace

ProgramFacts program_facts(const Executable& executable) {
  const DeviceExecutable& program = on_device(executable);
  const MemoryNeed& memory = program.memory();
  ProgramFacts facts{.costs = {},
                     .argument_bytes = memory.arguments,
                     .result_bytes = memory.results - memory.aliased,
                     .temporary_bytes = memory.temporaries,
                     .code_bytes = memory.code,
                     .has_profiler = DeviceTrace::is_offered(program.place().client->library())};
  for (const Property& property : program.costs()) facts.costs.push_back({property.name, property.value});
  return facts;
}

std::string device_trace(const Executable& executable, FunctionRef<void()> body) {
  DeviceTrace trace(on_device(executable).place().client->library());
  body();
  return trace.stop();
}

std::vector<std::string_view> device_target_names() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

std::vector<DeviceEntry> list_devices() {
  std::vector<DeviceEntry> entries;
  for (const Kind& kind : kinds()) entries.push_back(entry_of(kind));
  return entries;
}

}  // namespace superstep::target::pjrt

namespace superstep::target {

const Target& pjrt_target() { return *pjrt::find_device_target("pjrt"); }

}  // namespace superstep::target
