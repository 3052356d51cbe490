// What is served, before it is compiled: a model with its parameters, at any batch, under a name that its
// content gives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/shape.h"
#include "superstep/file/source/scaled_source.h"
#include "superstep/run/serve/self_test.h"
#include "superstep/run/train/input_ranges.h"
#include "superstep/target/target.h"

namespace superstep::edge {

// An input or output of a model. `shape` is that of one row where the model takes batches, else the whole.
struct ServedPort {
  std::string name;
  ElementType element = ElementType::f32;
  Shape shape;

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(shape.element_count()) * size_in_bytes(element);
  }
  friend bool operator==(const ServedPort&, const ServedPort&) = default;
};

struct ServedPorts {
  // Takes any number of rows, along a first axis that `shape` does not show. Where not, a call is one row:
  // its inputs and outputs have the extents of the model.
  bool batched = true;
  std::vector<ServedPort> inputs, outputs;

  std::size_t input_bytes() const;  // of a row
  std::size_t output_bytes() const;
  friend bool operator==(const ServedPorts&, const ServedPorts&) = default;
};

struct ModelSource {
  std::string what;  // a workload, a model file (.onnx), the folder of a training run
  std::string precision = "f32";
  std::vector<std::string> shapes;  // of a model file: extents that it leaves open
  std::string
      verify_key;  // a public key whose signature the model must have (model/signature.h); empty: none
};

struct Blueprint {
  std::string digest;      // SHA-256 of its content: the model's form and its parameters
  std::string version;     // the first 16 figures of it
  bool trained = true;     // a workload without a run has its first weights
  bool has_digest = true;  // false: a run of an older version, whose weights nobody can hold against one
  ServedPorts ports;
  std::vector<run::InputRange> ranges;  // of inputs in the training, where the run has kept them
  // What each input's rows are scaled by before the model, as those of the training were; none: by nothing.
  std::vector<std::optional<data::Scaling>> scalings;
  // Of a workload's run whose data were scaled: how; its requests are what the network takes. Empty: none
  // were.
  std::string scaled_before;
  std::optional<run::SelfTest> self_test;  // where the run has one of these weights
  std::string precision = "f32";           // of the source: that it is computed in
  std::int64_t call_rows = 1;       // rows of the graph's batch that a call has, where it is not batched
  std::size_t parameter_bytes = 0;  // of one copy
  target::GraphAtBatch graph;       // with the parameters
  bool reads_file = false;  // graph() reads the model's file, which somebody may write over once it is served
};

// Throws Error: not_found, bad_file, unsupported, invalid_argument.
Blueprint read_blueprint(const ModelSource& source, const target::Target& target);

}  // namespace superstep::edge
