// What a machine needs for one primitive, asked for by its name: a product, a convolution, a layer, or an
// all-reduce between several devices. The same graphs and cost models as rows of published primitives have
// (lab/validate/).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/graph/graph.h"
#include "superstep/lab/bench/configurations.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/predict.h"

namespace superstep::lab {

struct PrimitiveQuestion {
  std::string
      name;  // "gemm_k4", "gemm_1760x16x1760", "conv_k1", "relu_k2", "rnn_k3", "gru_k1", "allreduce-64.5M"
  Passes passes = Passes::forward;
  std::string precision;   // empty: f16; of an all-reduce f32
  std::int64_t batch = 0;  // of a convolution or a layer; 0: the published one
  int units = 0;           // of an all-reduce; 0: not said
};

// Whether a workload's name means a primitive: by its kind, whether or not there is one of that shape.
bool names_primitive(const std::string& name);
bool names_collective(const std::string& name);

struct PrimitivePrediction {
  std::string precision, shape;
  machine::Prediction prediction;
};

// Throws Error (invalid_argument) for a shape that there is none of, or an option that it does not have;
// (unsupported) where the machine has no cost model of it.
PrimitivePrediction predict_primitive(const machine::Machine& machine, const PrimitiveQuestion& question);

// Values that a forward primitive reads and writes; 0: no shape of this name is known.
double operand_values(const std::string& name);

// A primitive of which all that it reads and writes, in elements of so many bytes, is more than a unit's
// memory does not fit: models of memory count what lives from one kernel to the next, and of a primitive
// there is none.
void hold_against_memory(machine::Prediction& prediction, const graph::Graph& primitive,
                         std::size_t element_bytes);

// How much faster and slower than predicted a collective may be. It has no source: chosen.
struct CollectiveInterval {
  double slower = 0.6, faster = 1.6;
};
inline constexpr CollectiveInterval collective_interval;

struct CollectivePrediction {
  std::string precision;
  int units = 0;
  double bytes = 0;  // that each device holds
  double seconds = 0, low = 0, high = 0;
  // What each device sends per second where as little as possible is sent: 2 (n - 1) / n of its bytes.
  double bus_rate() const { return bytes / seconds * 2 * (units - 1) / units; }
  std::vector<Metric> metrics() const;
};

// Throws Error (invalid_argument) for a size that is none, or fewer than two devices.
CollectivePrediction predict_collective(const machine::Machine& machine, const PrimitiveQuestion& question);

// "allreduce-64.5M" or "allreduce-16777216": values of the message; 0 where it is not one.
double values_of_message(const std::string& name);

// Seconds of an all-reduce of so many bytes, without an interval.
double all_reduce_seconds(const machine::Machine& machine, double bytes, int units);

}  // namespace superstep::lab
