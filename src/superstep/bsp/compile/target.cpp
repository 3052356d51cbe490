// Numbers and their sources, as collected for the machine models. Kinds: VC vendor code, DS datasheet, DE
// derived by arithmetic, ME measured by a third party, GU guess.
#include "superstep/bsp/compile/target.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::bsp {
namespace {

// Common to the three chips.
Target common_target() {
  Target target;
  target.workers = 6;                   // VC: tutorial 6's check value needs exactly this
  target.exchange_bytes_per_cycle = 4;  // VC: the same
  target.memcpy_bytes_per_cycle = 8;    // VC: PopLibs, MIT licence
  target.data_path_bytes = 8;           // DE: 24 B/cycle a tile are two 64-bit loads and a store
  target.link_bytes_per_second = 0.85 * 128 * 1073741824.0 / 8;  // VC: 128 x 2^30 bit/s, 0.85 efficient
  target.streaming_bytes_per_second = 20e9;                      // GU: 5 to 25 GB/s
  target.host_bytes_per_second = 16e9;  // DE: PCIe 4.0 x8 from the gateway to each chip
  // The open constants: value, low, high. Units, kinds and sources are in open_constants().
  target.constants = {
      .exchange_setup_cycles = {600, 100, 1000},     // cycles
      .exchange_fragment_cycles = {4, 1, 160},       // cycles
      .sync_cycles = {100, 50, 150},                 // cycles
      .local_copy_call_cycles = {288, 20, 600},      // cycles
      .local_copy_run_cycles = {16, 4, 40},          // cycles
      .control_cycles = {40, 10, 200},               // cycles
      .host_latency_seconds = {10e-6, 5e-6, 20e-6},  // s
      .vertex_code_bytes = {512, 128, 4096},         // B
      .exchange_code_bytes = {24, 8, 64},            // B
      .control_code_bytes = {32, 8, 128},            // B
      .runtime_bytes = {12288, 4096, 24576},         // B
  };
  return target;
}

std::string pod_name(const std::string& chip, std::uint32_t ipus) {
  return ipus == 1 ? chip : fmt::format("{} x {}", ipus, chip);
}

Target sized(Target target, std::uint32_t ipus) {
  target.name = pod_name(target.name, ipus);
  target.ipus = ipus;
  check_target(target);
  return target;
}

struct NamedTarget {
  const char* name;
  Target (*make)(std::uint32_t);
  std::uint32_t ipus;
};
constexpr std::array<NamedTarget, 10> named_targets{{
    {"gc2", gc2_target, 1},
    {"gc200", gc200_target, 1},
    {"bow", bow_target, 1},
    {"ipu1", gc2_target, 1},
    {"ipu2", gc200_target, 1},
    {"ipu-m2000", gc200_target, 4},
    {"ipu-pod16", gc200_target, 16},
    {"ipu-pod64", gc200_target, 64},
    {"bow-pod16", bow_target, 16},
    {"bow-pod64", bow_target, 64},
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
      {"exchange_code_bytes", "B", "GU", "a few instructions a fragment", &C::exchange_code_bytes},
      {"control_code_bytes", "B", "GU", "a few supervisor instructions a step", &C::control_code_bytes},
      {"runtime_bytes", "B", "GU", "run-time library, one supervisor and six worker stacks",
       &C::runtime_bytes},
  }};
  return table;
}

Target gc2_target(std::uint32_t ipus) {
  Target target = common_target();
  target.name = "gc2";
  target.tiles_per_ipu = 1216;            // VC
  target.bytes_per_tile = 256 * 1024;     // DS: Jia et al. 2019
  target.interleaved_start = 128 * 1024;  // DE: plateau of simulator rows
  target.memory_element_bytes = 16 * 1024;
  target.clock_hz = 1.6e9;              // DE: cycles against microseconds of a published profile
  target.half_in_half_out_units = 8;    // DE: 32 MAC/cycle, 124.5 TFLOPS
  target.half_in_float_out_units = 8;   // DE: the 124.5 TFLOPS are for FP32 accumulation
  target.float_in_float_out_units = 4;  // DE: 8 MAC/cycle, 31.1 TFLOPS
  target.coefficient_load_bytes_per_cycle = 16;
  return sized(target, ipus);
}

Target gc200_target(std::uint32_t ipus) {
  Target target = common_target();
  target.name = "gc200";
  target.tiles_per_ipu = 1472;              // VC, DS
  target.bytes_per_tile = 638976;           // DS: 624 KiB
  target.interleaved_start = 212992;        // DE, VC: 208 KiB
  target.memory_element_bytes = 16 * 1024;  // VC
  target.clock_hz = 1.325e9;                // DS: 250 TFLOPS
  target.half_in_half_out_units = 16;       // DE: 64 MAC/cycle, 249.6 TFLOPS
  target.half_in_float_out_units = 8;       // VC: PopLibs
  target.float_in_float_out_units = 8;      // DE: 16 MAC/cycle, 62.4 TFLOPS
  target.streaming_bytes = 64000000000ull;  // DS: 256 GB for four chips
  return sized(target, ipus);
}

Target bow_target(std::uint32_t ipus) {
  Target target = gc200_target(1);
  target.name = "bow";
  target.clock_hz = 1.85e9;  // DS: 350 TFLOPS
  return sized(target, ipus);
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const NamedTarget& named : named_targets) names.emplace_back(named.name);
  return names;
}

Target find_target(std::string_view name, std::uint32_t ipus) {
  for (const NamedTarget& named : named_targets)
    if (named.name == name) return named.make(named.ipus * ipus);
  const std::vector<std::string> names = target_names();
  throw Error(ErrorCode::invalid_argument, "there is no such bulk-synchronous machine", std::string(name),
              unknown_name_hint(name, names));
}

void check_target(const Target& target) {
  const auto require = [&](bool right, const std::string& what) {
    if (!right) throw Error(ErrorCode::invalid_argument, what, "target " + target.name);
  };
  require(target.ipus >= 1, "a target needs a chip");
  require(target.ipus == 1 || target.ipus % 2 == 0,
          fmt::format("{} chips: links join pairs, take an even number", target.ipus));
  require(target.tiles_per_ipu >= 1, "tiles_per_ipu must be at least 1");
  require(std::uint64_t{target.ipus} * target.tiles_per_ipu < (1u << 24), "more than 16,777,215 tiles");
  require(target.workers >= 1 && target.workers <= 64, "workers must be 1 to 64");
  require(target.bytes_per_tile >= 1, "bytes_per_tile must be at least 1");
  require(target.exchange_bytes_per_cycle >= 1, "exchange_bytes_per_cycle must be at least 1");
  require(target.memcpy_bytes_per_cycle >= 1, "memcpy_bytes_per_cycle must be at least 1");
  require(target.data_path_bytes >= 1, "data_path_bytes must be at least 1");
  require(std::isfinite(target.clock_hz) && target.clock_hz > 0, "clock_hz must be above 0");
  require(target.ipus == 1 || target.link_bytes_per_second > 0, "link_bytes_per_second must be above 0");
  for (const OpenConstantInfo& info : open_constants())
    require((target.constants.*info.member).value >= 0, fmt::format("{} must not be negative", info.name));
}

std::uint32_t Target::vector_width(Type type) const {
  return std::max<std::uint32_t>(1, data_path_bytes / static_cast<std::uint32_t>(size_in_bytes(type)));
}

double Target::amp_macs_per_cycle(Type input, Type partials) const {
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

double Target::peak_flops(Type input, Type partials) const {
  return 2 * amp_macs_per_cycle(input, partials) * num_tiles() * clock_hz;
}

double Target::memory_bytes_per_second() const {
  constexpr double accesses_a_cycle = 3;  // DE: two loads and a store, as data_path_bytes
  return accesses_a_cycle * data_path_bytes * num_tiles() * clock_hz;
}

std::uint64_t sync_cycles(const Target& target, std::uint32_t ipus) {
  const auto inside = static_cast<std::uint64_t>(std::llround(target.constants.sync_cycles.value));
  if (ipus <= 1) return inside;
  const std::uint32_t hops = 1 + (ipus / 2) / 2;
  return inside + static_cast<std::uint64_t>(std::ceil(target.sync_hop_seconds * target.clock_hz * hops * 2));
}

}  // namespace superstep::bsp
