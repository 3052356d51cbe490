// What a style of machine answers about a graph: seconds of every kernel by part, and memory. One file a
// style.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/machine/borders.h"
#include "superstep/machine/collective.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/work.h"

namespace superstep::machine {

// Seconds, by what they are spent on.
struct Parts {
  double compute = 0, memory = 0, exchange = 0, sync = 0, host = 0, launch = 0, collective = 0, fill = 0,
         idle = 0;

  double total() const;
  Parts& operator+=(const Parts& other);
  friend Parts operator+(Parts a, const Parts& b) { return a += b; }
  friend Parts operator*(double factor, Parts parts);
  const char* largest() const;
};

struct OperatorCost {
  Work work;
  Parts parts;
  std::string how;              // "AMP 1x1: rows 46, outputs 32", "matrix units"
  double temporary_bytes = 0;   // while it runs, beside the values of the graph
  double code_bytes = 0;        // always there, on every tile
  double least_code_bytes = 0;  // where the program is compiled for memory
};

struct NamedBytes {
  std::string name;
  double bytes = 0;
};

// Bytes of one unit (a chip); `limit` is what it has.
struct Memory {
  double limit = 0;
  double parameters = 0, optimizer = 0, code = 0;  // always live
  double activations = 0, temporary = 0;           // at the fullest moment
  std::string fullest;                             // the kernel at that moment
  std::vector<NamedBytes> largest;                 // values alive then, largest first
  double fullest_tile = 0, tile_limit = 0;         // machines of tiles; else 0
  double recomputed = 0;                           // share of the forward pass that is run again
  double streamed = 0;                             // optimiser's state that waits beside the chip

  double total() const { return parameters + optimizer + code + activations + temporary; }
  bool fits() const { return total() <= limit && (tile_limit == 0 || fullest_tile <= tile_limit); }
};

struct MemoryOptions {
  std::size_t stage = 0, stages = 1;  // of a pipeline
  double in_flight = 0;               // micro-batches whose activations are kept; 0: by the stage
  bool recompute = false;             // keep checkpoints alone, and run the forward pass of a segment again
  bool accumulate = false;            // a buffer of gradients
  double optimizer_share = 1;         // of the optimiser's state, that this unit keeps
  bool optimizer_off_chip = false;
};

// What is reached at best: peak arithmetic, and arithmetic and memory at their peaks.
struct Bounds {
  double peak_flops = 0;   // FLOP/s in this precision
  double memory_rate = 0;  // B/s of the memory that a kernel streams from
};

// How far the measurements reach that a model's constants come from, or that it was held against; 0: no limit
// is known.
struct Calibrated {
  double kernel_flops = 0;  // of the largest kernel
  int units = 0;            // of the largest system
};

// The uncertainty of a model of published constants alone, nothing fitted, where it can be held against
// measurements: 80 % of 864 products and convolutions on a V100 lie within a factor of 1.82
// (docs/machines.md).
constexpr double model_of_published_constants = 0.6;  // of the logarithm

class CostModel {
 public:
  explicit CostModel(Machine machine) : machine_(std::move(machine)) {}
  virtual ~CostModel() = default;
  const Machine& machine() const { return machine_; }

  virtual WorkOptions work_options() const { return {}; }
  // A micro-batch's kernels on one unit.
  virtual std::vector<OperatorCost> operators(const graph::Graph& graph, const std::vector<Work>& works,
                                              const Precision& precision) const = 0;
  // Kernels one after the other, or, where a style overlaps them, the time they take together.
  virtual Parts together(std::span<const OperatorCost> costs) const;
  virtual Memory memory(const graph::Graph& graph, std::span<const OperatorCost> costs,
                        const Precision& precision, const MemoryOptions& options) const = 0;
  // What joins units: the style's links, and the file's group_units, network_rate and network_latency.
  virtual Fabric fabric(int units) const = 0;
  double all_reduce_seconds(double bytes, int units) const {
    return machine::all_reduce_seconds(bytes, units, fabric(units));
  }
  // What each gradient's own collective adds where they are summed one by one, beside its bytes.
  virtual double collective_call_seconds(int /*units*/) const { return 0; }
  // Whether gradients are summed over units while others are still computed.
  virtual bool overlaps_collectives() const { return false; }
  virtual double link_seconds(double bytes) const = 0;  // from one unit to the next
  // All stages of a pipeline hand on what the next ones need, at the same time.
  virtual double borders_seconds(std::span<const Border> borders) const;
  virtual double host_seconds(double bytes) const;  // from or to the host
  // Whether transfers from the host run while the machine computes.
  virtual bool overlaps_transfers() const { return true; }
  virtual double capacity() const = 0;  // bytes of one unit
  // Of memory beside the chip that a program moves state to and from by itself: bytes, and the seconds that a
  // step takes to fetch and to put back so many.
  virtual double streaming_capacity() const { return 0; }
  virtual double streaming_seconds(double /*bytes*/) const { return 0; }
  virtual Bounds bounds(const Precision& precision) const = 0;
  // The relative uncertainty (of a logarithm, 80 %) of a step beside that of the constants, and what it rests
  // on.
  virtual double model_uncertainty() const = 0;
  virtual const char* calibration() const = 0;
  virtual Calibrated calibrated() const { return {}; }

 protected:
  double value(const char* name) const { return machine_.value(name); }
  Fabric fabric_of(double rate, double latency) const {
    return {value("group_units"), rate, latency, value("network_rate"), value("network_latency")};
  }

 private:
  Machine machine_;
};

// The model of the machine's style.
std::unique_ptr<CostModel> cost_model(const Machine& machine);

}  // namespace superstep::machine
