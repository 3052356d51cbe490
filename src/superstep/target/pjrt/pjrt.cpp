#include "superstep/target/pjrt/pjrt.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/target/pjrt/executable.h"
#include "superstep/target/pjrt/plugins.h"
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
  return {&client, device};
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
  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    refuse_parts(options, name());
    refuse_chips(options, name());
    BatchedPorts ports = batched_ports(model, options.batch, options.batch);
    graph::Graph graph = transform::run_passes(model(options.batch), stablehlo::program_passes());
    return std::make_unique<DeviceExecutable>(std::move(graph), std::move(ports), options, place());
  }

 private:
  Place place() const {
    return is_open(choice_) ? first_place(choice_, name_)
                            : place_of(plugin_of(choice_), choice_.device, name_);
  }

  std::string name_;
  Choice choice_;
};

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

const Target* find_device_target(std::string_view name) {
  static std::mutex mutex;
  static auto& targets = *new std::map<std::string, DeviceTarget, std::less<>>;
  const auto choice = parse_choice(name);
  if (!choice) return nullptr;
  const std::lock_guard lock(mutex);
  return &targets.try_emplace(std::string(name), std::string(name), *choice).first->second;
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
