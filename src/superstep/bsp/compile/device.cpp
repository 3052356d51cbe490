// Numbers and their sources, as collected for the machine models. Kinds: VC vendor code, DS datasheet, DE
// derived by arithmetic, ME measured by a third party, GU guess.
#include "superstep/bsp/compile/device.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::bsp {
namespace {

// Common to the three chips.
Device common_device() {
  Device device;
  device.workers = 6;                   // VC: tutorial 6's check value needs exactly this
  device.exchange_bytes_per_cycle = 4;  // VC: the same
  device.memcpy_bytes_per_cycle = 8;    // VC: PopLibs, MIT licence
  device.data_path_bytes = 8;           // DE: 24 B/cycle a tile are two 64-bit loads and a store
  device.link_bytes_per_second = 0.85 * 128 * 1073741824.0 / 8;  // VC: 128 x 2^30 bit/s, 0.85 efficient
  device.streaming_bytes_per_second = 20e9;                      // GU: 5 to 25 GB/s
  device.host_bytes_per_second = 16e9;  // DE: PCIe 4.0 x8 from the gateway to each chip
  // The open constants: value, low, high. Units, kinds and sources are in open_constants().
  device.constants = {
      .exchange_setup_cycles = {600, 100, 1000},     // cycles
      .exchange_fragment_cycles = {4, 1, 160},       // cycles
      .sync_cycles = {100, 50, 150},                 // cycles
      .local_copy_call_cycles = {288, 20, 600},      // cycles
      .local_copy_run_cycles = {16, 4, 40},          // cycles
      .control_cycles = {40, 10, 200},               // cycles
      .host_latency_seconds = {10e-6, 5e-6, 20e-6},  // s
      .vertex_code_bytes = {512, 128, 4096},         // B
      .exchange_code_bytes = {8, 4, 24},             // B
      .control_code_bytes = {32, 8, 128},            // B
      .runtime_bytes = {3168, 3168, 24576},          // B
  };
  return device;
}

std::string pod_name(const std::string& chip, std::uint32_t ipus) {
  return ipus == 1 ? chip : fmt::format("{} x {}", ipus, chip);
}

Device sized(Device device, std::uint32_t ipus) {
  device.name = pod_name(device.name, ipus);
  device.ipus = ipus;
  check_device(device);
  return device;
}

struct NamedDevice {
  const char* name;
  Device (*make)(std::uint32_t);
  std::uint32_t ipus;
};
constexpr std::array<NamedDevice, 10> named_devices{{
    {"gc2", gc2_device, 1},
    {"gc200", gc200_device, 1},
    {"bow", bow_device, 1},
    {"ipu1", gc2_device, 1},
    {"ipu2", gc200_device, 1},
    {"ipu-m2000", gc200_device, 4},
    {"ipu-pod16", gc200_device, 16},
    {"ipu-pod64", gc200_device, 64},
    {"bow-pod16", bow_device, 16},
    {"bow-pod64", bow_device, 64},
}};

}  // namespace

std::span<const OpenConstantInfo> open_constants() {
  using C = OpenConstants;
  static const std::array<OpenConstantInfo, 11> table{{
      {"exchange_setup_cycles", "cycles", "ME", "independent ipu21 tool-chain: about 600 charged a phase",
       &C::exchange_setup_cycles},
      {"exchange_fragment_cycles", "cycles", "GU",
       "the same measured about 160 with run-time routing; statically scheduled code takes a few "
       "instructions",
       &C::exchange_fragment_cycles},
      {"sync_cycles", "cycles", "GU", "not public; 50 to 150 quoted", &C::sync_cycles},
      {"local_copy_call_cycles", "cycles", "ME", "independent ipu21 tool-chain: 288 a call",
       &C::local_copy_call_cycles},
      {"local_copy_run_cycles", "cycles", "GU", "loop set-up of a run: pointers, count, repeat",
       &C::local_copy_run_cycles},
      {"control_cycles", "cycles", "GU", "a supervisor branch with its tile-wide agreement",
       &C::control_cycles},
      {"host_latency_seconds", "s", "GU", "not published; 5 to 20 us for a gateway round trip",
       &C::host_latency_seconds},
      {"vertex_code_bytes", "B", "GU", "sizes of compiled codelets", &C::vertex_code_bytes},
      {"exchange_code_bytes", "B", "VC",
       "PopLibs counts 4 bytes an exchange instruction (sdk-release-2.6); ipu21 tool-chain: a change of "
       "source and one of pointer, or a send and its delay, 4 bytes each",
       &C::exchange_code_bytes},
      {"control_code_bytes", "B", "GU", "a few supervisor instructions per step", &C::control_code_bytes},
      {"runtime_bytes", "B", "VC",
       "stacks of a supervisor and six workers: 3,168 B in a memory report of the documentation of the "
       "vendor's port of TensorFlow; vertices' code counts by itself",
       &C::runtime_bytes},
  }};
  return table;
}

Device gc2_device(std::uint32_t ipus) {
  Device device = common_device();
  device.name = "gc2";
  device.tiles_per_ipu = 1216;            // VC
  device.bytes_per_tile = 256 * 1024;     // DS: Jia et al. 2019
  device.interleaved_start = 128 * 1024;  // DE: plateau of simulator rows
  device.memory_element_bytes = 16 * 1024;
  device.clock_hz = 1.6e9;              // DE: cycles against microseconds of a published profile
  device.half_in_half_out_units = 8;    // DE: 32 MAC/cycle, 124.5 TFLOPS
  device.half_in_float_out_units = 8;   // DE: the 124.5 TFLOPS are for FP32 accumulation
  device.float_in_float_out_units = 4;  // DE: 8 MAC/cycle, 31.1 TFLOPS
  device.coefficient_load_bytes_per_cycle = 16;
  return sized(device, ipus);
}

Device gc200_device(std::uint32_t ipus) {
  Device device = common_device();
  device.name = "gc200";
  device.tiles_per_ipu = 1472;              // VC, DS
  device.bytes_per_tile = 638976;           // DS: 624 KiB
  device.interleaved_start = 212992;        // DE, VC: 208 KiB
  device.memory_element_bytes = 16 * 1024;  // VC
  device.clock_hz = 1.325e9;                // DS: 250 TFLOPS
  device.half_in_half_out_units = 16;       // DE: 64 MAC/cycle, 249.6 TFLOPS
  device.half_in_float_out_units = 8;       // VC: PopLibs
  device.float_in_float_out_units = 8;      // DE: 16 MAC/cycle, 62.4 TFLOPS
  device.streaming_bytes = 64000000000ull;  // DS: 256 GB for four chips
  return sized(device, ipus);
}

Device bow_device(std::uint32_t ipus) {
  Device device = gc200_device(1);
  device.name = "bow";
  device.clock_hz = 1.85e9;  // DS: 350 TFLOPS
  return sized(device, ipus);
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const NamedDevice& named : named_devices) names.emplace_back(named.name);
  return names;
}

Device find_device(std::string_view name, std::uint32_t ipus) {
  for (const NamedDevice& named : named_devices)
    if (named.name == name) return named.make(named.ipus * ipus);
  const std::vector<std::string> names = device_names();
  throw Error(ErrorCode::invalid_argument, "there is no such bulk-synchronous machine", std::string(name),
              unknown_name_hint(name, names));
}

void check_device(const Device& device) {
  const auto require = [&](bool right, const std::string& what) {
    if (!right) throw Error(ErrorCode::invalid_argument, what, "device " + device.name);
  };
  require(device.ipus >= 1, "a device needs a chip");
  require(device.ipus == 1 || device.ipus % 2 == 0,
          fmt::format("{} chips: links join pairs, take an even number", device.ipus));
  require(device.tiles_per_ipu >= 1, "tiles_per_ipu must be at least 1");
  require(std::uint64_t{device.ipus} * device.tiles_per_ipu < (1u << 24), "more than 16,777,215 tiles");
  require(device.workers >= 1 && device.workers <= 64, "workers must be 1 to 64");
  require(device.bytes_per_tile >= 1, "bytes_per_tile must be at least 1");
  require(device.exchange_bytes_per_cycle >= 1, "exchange_bytes_per_cycle must be at least 1");
  require(device.memcpy_bytes_per_cycle >= 1, "memcpy_bytes_per_cycle must be at least 1");
  require(device.data_path_bytes >= 1, "data_path_bytes must be at least 1");
  require(std::isfinite(device.clock_hz) && device.clock_hz > 0, "clock_hz must be above 0");
  require(device.ipus == 1 || device.link_bytes_per_second > 0, "link_bytes_per_second must be above 0");
  for (const OpenConstantInfo& info : open_constants())
    require((device.constants.*info.member).value >= 0, fmt::format("{} must not be negative", info.name));
}

std::uint32_t Device::vector_width(Type type) const {
  return std::max<std::uint32_t>(1, data_path_bytes / static_cast<std::uint32_t>(size_in_bytes(type)));
}

double Device::amp_macs_per_cycle(Type input, Type partials) const {
  // Units x weights a unit holds, an input vector every so many cycles; in FP32 a unit serves two output
  // channels.
  if (input == Type::f16 && partials == Type::f16)
    return 1.0 * half_in_half_out_units * half_weights_per_unit / half_cycles_per_vector;
  if (input == Type::f16 && partials == Type::f32)
    return 1.0 * half_in_float_out_units * half_weights_per_unit / half_cycles_per_vector;
  if (input == Type::f32 && partials == Type::f32)
    return 2.0 * float_in_float_out_units * float_weights_per_unit / float_cycles_per_vector;
  return 0;
}

double Device::peak_flops(Type input, Type partials) const {
  return 2 * amp_macs_per_cycle(input, partials) * num_tiles() * clock_hz;
}

double Device::memory_bytes_per_second() const {
  constexpr double accesses_a_cycle = 3;  // DE: two loads and a store, as data_path_bytes
  return accesses_a_cycle * data_path_bytes * num_tiles() * clock_hz;
}

std::uint64_t sync_cycles(const Device& device, std::uint32_t ipus) {
  const auto inside = static_cast<std::uint64_t>(std::llround(device.constants.sync_cycles.value));
  if (ipus <= 1) return inside;
  const std::uint32_t hops = 1 + (ipus / 2) / 2;
  return inside + static_cast<std::uint64_t>(std::ceil(device.sync_hop_seconds * device.clock_hz * hops * 2));
}

}  // namespace superstep::bsp
