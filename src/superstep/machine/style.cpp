#include "superstep/machine/style.h"

#include <array>

namespace superstep::machine {
namespace {

constexpr std::array style_names{"bulk-synchronous", "kernel-by-kernel", "spatial-pipeline", "static-stream"};

// A framework's loader, as PyTorch 1.13's does it with one process (docs/machines.md): a sample's own time,
// and the rate at which samples are gathered, joined and handed over.
constexpr ConstantSpec host_sample{"host_sample", "s",  "a loader's time for a sample, beside its bytes",
                                   3e-6,          1e-6, 10e-6};
constexpr ConstantSpec host_feed_rate{
    "host_feed_rate", "B/s", "of a loader that gathers samples into batches", 2e9, 0.8e9, 6.4e9};
constexpr ConstantSpec host_call(double seconds) {
  return {"host_call", "s",         "a framework's call of the program, the machine idle",
          seconds,     seconds / 3, seconds * 3};
}

// Between groups of units that links join: hosts, or pods. Guesses, as below.
constexpr ConstantSpec group_units{"group_units", "", "units that links join: a host's or a pod's; 0: all",
                                   0};
constexpr ConstantSpec network_rate{"network_rate", "B/s", "between groups, a unit's share, one way", 6e9,
                                    1.5e9,          25e9};
constexpr ConstantSpec network_latency{
    "network_latency", "s", "of a step between groups", 10e-6, 3e-6, 30e-6};

// Defaults of numbers that a machine file leaves out are guesses without a source, but where it is said;
// every list shows them as defaults, and their range is half to one and a half times as large.
constexpr ConstantSpec bulk_synchronous[] = {
    {"tiles", "", "processors with their own memory"},
    {"workers", "", "hardware threads of a tile, which issue in turn"},
    {"clock", "Hz", "of a tile"},
    {"tile_memory", "B", "of one tile, for everything"},
    {"interleaved_start", "B", "where the memory begins that is read 128 bits per cycle"},
    {"memory_element", "B", "two accesses to one element in a cycle collide"},
    {"exchange_rate", "B/cycle", "a tile's, in and out at the same time"},
    {"load_rate", "B/cycle", "from a tile's memory"},
    {"store_rate", "B/cycle", "to a tile's memory"},
    {"memcpy_rate", "B/cycle", "copies within a tile"},
    {"conv_units_f16", "", "matrix units with f16 partial sums"},
    {"conv_units_f16_f32", "", "matrix units, f16 inputs and f32 partial sums"},
    {"conv_units_f32", "", "matrix units, f32"},
    {"mac_f16", "MAC/cycle", "a tile's, f16 partial sums"},
    {"mac_f16_f32", "MAC/cycle", "a tile's, f32 partial sums"},
    {"mac_f32", "MAC/cycle", "a tile's, f32"},
    {"coefficient_load_rate", "B/cycle", "weights into the matrix unit"},
    {"vector_f32", "", "elements of a vector instruction"},
    {"vector_f16", "", "elements of a vector instruction"},
    {"memory_proportion", "", "share of a tile that a plan's temporaries may take", 0.6},  // PopLibs' default
    {"link_rate", "B/s", "one link between chips, one way"},
    {"links", "", "links of a chip"},
    {"allreduce_links", "", "links of a chip that an all-reduce uses", 4},
    {"link_latency", "s", "of a message between chips", 2e-6},
    {"host_rate", "B/s", "to and from the host, a chip's share", 6e9},
    {"host_latency", "s", "of a transfer", 10e-6},
    host_call(300e-6),
    host_sample,
    host_feed_rate,
    group_units,
    network_rate,
    network_latency,
    {"compile_time", "s", "until a program is compiled and loaded", 300, 100, 1800},
    {"streaming_rate", "B/s", "to memory beside the chip", 20e9},
    {"streaming_memory", "B", "a chip's share", 0},
    {"power", "W", "one chip's design power", 0},
    {"sync_cycles", "cycles", "a barrier of all tiles"},
    {"exchange_setup", "cycles", "an exchange phase, beside its bytes"},
    {"exchange_share", "", "of the exchange rate, reached over a phase"},
    {"program_cycles", "cycles", "an operator's control code"},
    {"rearrange_base", "cycles", "a rearranging copy"},
    {"rearrange_rate", "cycles/B", "a byte of a tile, rearranged"},
    {"step_cycles", "cycles", "one turn of a program's loop"},
    {"product_bytes", "B", "of a tile for one product: vertices' state, exchange code, control code"},
};

// Defaults: guesses, as above.
constexpr ConstantSpec kernel_by_kernel[] = {
    {"processors", "", "that run a kernel's blocks"},
    {"engines_overlap", "", "1 where matrix and vector engines run at the same time", 0},
    {"clock", "Hz", "under load"},
    {"peak_f32", "FLOP/s", "vector units"},
    {"peak_tf32", "FLOP/s", "f32 data on matrix units, rounded; 0: none", 0},
    {"peak_f16", "FLOP/s", "matrix units, f32 sums"},
    {"peak_i8", "FLOP/s", "matrix units", 0},
    {"matrix_efficiency", "", "of the peak, reached by the best products"},
    {"matrix_half_flops", "FLOP", "a product of this size reaches half of the best rate", 2e9},
    {"memory", "B", "of one chip"},
    {"memory_rate", "B/s", "peak"},
    {"memory_efficiency", "", "of the peak, reached by long streams", 0.85},
    {"cache", "B", "last level", 0},
    {"cache_rate", "B/s", "last level", 0},
    {"launch_overhead", "s", "an operator's, framework included", 20e-6},
    {"link_rate", "B/s", "between chips, all links of one, one way"},
    {"link_efficiency", "", "of the link rate, reached", 0.65},
    {"link_latency", "s", "a step of a collective", 10e-6},
    {"host_rate", "B/s", "to and from the host"},
    {"host_latency", "s", "of a transfer", 10e-6},
    host_call(0),
    host_sample,
    host_feed_rate,
    group_units,
    network_rate,
    network_latency,
    {"power", "W", "one chip's design power", 0},
};

// Defaults: guesses, as above.
constexpr ConstantSpec spatial_pipeline[] = {
    {"compute_units", "", "that a graph is laid out over"},
    {"usable_units", "", "of them; 0: all", 0},
    {"clock", "Hz", "of a unit"},
    {"peak_f16", "FLOP/s", "all units"},
    {"peak_f32", "FLOP/s", "all units"},
    {"compute_efficiency", "", "of a stage's units, while it works", 0.4},
    {"chip_memory", "B", "on the chip"},
    {"chip_memory_rate", "B/s", "on the chip"},
    {"memory", "B", "beside the chip; 0: none", 0},
    {"memory_rate", "B/s", "to memory beside the chip, or of streamed weights"},
    {"section_switch", "s", "to lay out the next part of a graph that does not fit", 300e-6},
    {"stage_limit", "", "operators that are laid out at the same time", 1000},
    {"link_rate", "B/s", "between chips"},
    {"link_latency", "s", "between chips", 5e-6},
    {"host_rate", "B/s", "to and from the host"},
    {"host_latency", "s", "of a transfer", 10e-6},
    host_call(300e-6),
    host_sample,
    host_feed_rate,
    group_units,
    network_rate,
    network_latency,
    {"power", "W", "design power", 0},
};

// Defaults: guesses, as above.
constexpr ConstantSpec static_stream[] = {
    {"clock", "Hz", "of the core"},
    {"planes", "", "of multipliers for i8; a product in f16 takes all of them", 4},
    {"plane_width", "", "rows and columns of a plane"},
    {"peak_f16", "FLOP/s", "matrix planes"},
    {"peak_i8", "FLOP/s", "matrix planes", 0},
    {"vector_lanes", "", "vector ALUs"},
    {"chip_memory", "B", "all there is"},
    {"chip_memory_rate", "B/s", "on the chip"},
    {"stream_rate", "B/s", "of streams through the chip"},
    {"weight_load_cycles", "cycles", "to install weights in a plane", 20},
    {"operator_cycles", "cycles", "an operator's latency beside its streaming", 250},
    {"link_rate", "B/s", "one link, one way"},
    {"host_rate", "B/s", "to and from the host"},
    {"host_latency", "s", "each way", 10e-6},
    host_call(300e-6),
    host_sample,
    host_feed_rate,
    group_units,
    network_rate,
    network_latency,
    {"power", "W", "design power", 0},
};

}  // namespace

const char* name_of(Style style) { return style_names[static_cast<std::size_t>(style)]; }

std::optional<Style> style_from_name(std::string_view name) {
  for (std::size_t i = 0; i < style_names.size(); ++i)
    if (name == style_names[i]) return static_cast<Style>(i);
  return std::nullopt;
}

std::span<const ConstantSpec> constants_of(Style style) {
  switch (style) {
    case Style::bulk_synchronous: return bulk_synchronous;
    case Style::kernel_by_kernel: return kernel_by_kernel;
    case Style::spatial_pipeline: return spatial_pipeline;
    case Style::static_stream: return static_stream;
  }
  return {};
}

}  // namespace superstep::machine
