// A graph in the arithmetic of a machine: products and sums emulated, all else in f32 by the cpu target and
// rounded to what the machine keeps results in.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "superstep/numerics/arithmetic.h"
#include "superstep/target/ports.h"
#include "superstep/target/target.h"

namespace superstep::target::numerics {

using superstep::numerics::Arithmetic;

// How a node is computed.
enum class Way : std::uint8_t {
  emulated,  // products and sums, one by one as the machine adds them
  rounded,   // in f32 by the cpu target, then rounded
  moved,     // nothing is computed: elements in another place
  updated,   // in the update of a training step
};
const char* name_of(Way way);

struct EmulationOptions {
  // By node of the prepared graph: what it is computed in.
  std::function<Arithmetic(const graph::Node& node)> arithmetic_of;
  Arithmetic base;  // of what is no node's: updates and their states
  std::string name = "numerics";
};

class Emulation : public Executable {
 public:
  // Throws Error: unsupported (types that the graph has of its own, naming the value).
  Emulation(const GraphAtBatch& model, const CompileOptions& options, EmulationOptions emulation);
  ~Emulation() override;

  std::span<const Port> inputs() const override;
  std::span<const Port> outputs() const override;
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override;
  std::vector<std::string> state_names() const override;
  Tensor state(std::string_view name) const override;
  void set_state(std::string_view name, const Tensor& value) override;
  PlanSummary summary() const override;

  // The prepared graph, and how each of its nodes is computed.
  const graph::Graph& graph() const;
  Way way_of(graph::NodeId node) const;
  const Arithmetic& arithmetic_of(graph::NodeId node) const;
  void set_arithmetic(graph::NodeId node, const Arithmetic& arithmetic);
  // Called with every f32 result as it is kept, from the next run on; none: nobody watches.
  using Watch = std::function<void(graph::NodeId node, std::size_t output, const Tensor& value)>;
  void watch(Watch watch);
  // Number of the next run, of which random words depend.
  void set_run(std::uint32_t number);

 private:
  class Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace superstep::target::numerics
