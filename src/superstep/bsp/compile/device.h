// The machine that a bulk-synchronous program is compiled for, as a struct of named numbers.
//
// Sources: the datasheets and published codes named beside each number in device.cpp; a number marked GU
// there is a guess. The constants that nobody has published are in OpenConstants, each with a range, so that
// a prediction can say how much of it rests on them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/bsp/graph/type.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

// A number that is not published: a value to compute with, and the range it may lie in.
struct OpenConstant {
  double value = 0, low = 0, high = 0;
};

// The few open constants of the timing and memory model. `open_constants` lists them with unit and source.
struct OpenConstants {
  OpenConstant exchange_setup_cycles;     // of one exchange phase, whatever it moves
  OpenConstant exchange_fragment_cycles;  // of each non-contiguous piece a tile sends or receives
  OpenConstant sync_cycles;               // of a barrier inside one chip, waiting not included
  OpenConstant local_copy_call_cycles;    // of starting an on-tile copy
  OpenConstant local_copy_run_cycles;     // of each contiguous run of an on-tile copy
  OpenConstant control_cycles;            // of a branch or a loop iteration
  OpenConstant host_latency_seconds;      // of one host transfer
  OpenConstant vertex_code_bytes;         // of one vertex class on a tile that uses it
  OpenConstant exchange_code_bytes;       // of each fragment, on its tile
  OpenConstant control_code_bytes;        // of each program step, on every tile
  OpenConstant runtime_bytes;             // run-time library and stacks of a tile
};

struct OpenConstantInfo {
  std::string_view name, unit, kind, source;
  OpenConstant OpenConstants::*member;
};
std::span<const OpenConstantInfo> open_constants();

struct Device {
  std::string name;        // "gc200"
  std::uint32_t ipus = 1;  // chips
  std::uint32_t tiles_per_ipu = 0;
  std::uint32_t workers = 6;  // contexts a tile; a worker issues every `workers` cycles
  std::uint64_t bytes_per_tile = 0;
  std::uint64_t interleaved_start = 0;  // bytes from the foot of a tile's memory; code lies below it
  std::uint64_t memory_element_bytes = 0;
  double clock_hz = 0;

  std::uint32_t exchange_bytes_per_cycle = 4;  // a tile, in and out each
  std::uint32_t memcpy_bytes_per_cycle = 8;    // on a tile
  std::uint32_t data_path_bytes = 8;           // one load or store

  // Matrix unit: units that work side by side, by types of inputs and partial sums, and what a unit holds.
  std::uint32_t half_in_half_out_units = 0, half_in_float_out_units = 0, float_in_float_out_units = 0;
  std::uint32_t half_weights_per_unit = 16, float_weights_per_unit = 8;
  std::uint32_t half_cycles_per_vector = 4,
                float_cycles_per_vector = 8;  // of one input vector through a unit
  std::uint32_t unit_pipeline_depth = 4;
  std::uint32_t coefficient_load_bytes_per_cycle = 16;  // 128-bit loads from interleaved memory
  std::uint32_t repeat_count_max = 4095;

  // Links between chips: chips 2k and 2k+1 form a rung of a ladder.
  double link_bytes_per_second = 0;  // one link, one way, efficiency included
  std::uint32_t links_in_rung = 4;   // between the two chips of a rung
  std::uint32_t links_across = 2;    // of a rung, for routed traffic
  std::uint32_t links_along = 2;     // to the next rung, each way, each side
  double sync_hop_seconds = 15e-9;   // one way

  double host_bytes_per_second = 0;       // a chip, one way
  double streaming_bytes_per_second = 0;  // a chip, one way: remote buffers
  std::uint64_t streaming_bytes = 0;      // capacity a chip

  OpenConstants constants;

  std::uint32_t num_tiles() const { return ipus * tiles_per_ipu; }
  std::uint32_t ipu_of(std::uint32_t tile) const { return tile / tiles_per_ipu; }
  std::uint32_t vector_width(Type type) const;  // elements of one 64-bit instruction
  double seconds(double cycles) const { return cycles / clock_hz; }

  // Multiply-accumulates of one tile and cycle in the matrix unit, for inputs and partial sums of these
  // types; 0 when the unit does not take them.
  double amp_macs_per_cycle(Type input, Type partials) const;
  double peak_flops(Type input, Type partials) const;  // of all chips
  double memory_bytes_per_second() const;              // of all chips: two loads and a store a cycle
};

// Each with any number of chips; throws Error (invalid_argument) for none, or an odd number above one (links
// join pairs).
Device gc2_device(std::uint32_t ipus = 1);
Device gc200_device(std::uint32_t ipus = 1);
Device bow_device(std::uint32_t ipus = 1);

// By name ("gc2", "gc200", "bow"; also "ipu1", "ipu2", and pods as "bow-pod64"); throws Error
// (invalid_argument) with the nearest name.
Device find_device(std::string_view name, std::uint32_t ipus = 1);
std::vector<std::string> device_names();

// Throws Error (invalid_argument) naming the number of a user's own device that cannot be right.
void check_device(const Device& device);

// Cycles of a barrier over this many chips, waiting for the slowest not included: inside a chip the open
// constant, over several ceil(15 ns x clock x hops x 2) more, hops = 1 + (ipus / 2) / 2.
std::uint64_t sync_cycles(const Device& device, std::uint32_t ipus);

// Bytes to move from chip to chip; seconds until the fullest link has passed its share. Routing: across the
// rung when the parity of source and destination differs, then along the ladder one rung at a time.
struct ChipFlow {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;
};
double link_seconds(const Device& device, std::span<const ChipFlow> flows);

}  // namespace superstep::bsp

#pragma GCC visibility pop
