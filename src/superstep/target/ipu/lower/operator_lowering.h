// One operator of a graph as compute sets: its parts, turn after turn, and the combination of partial
// results.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "superstep/target/ipu/cut/choose.h"
#include "superstep/target/ipu/lower/lowering.h"
#include "superstep/target/ipu/place/values.h"

namespace superstep::target::ipu {

class OperatorLowering {
 public:
  // `prefix` tells the vertex classes of several lowerings onto one device graph apart.
  OperatorLowering(const graph::Graph& graph, const machine::ipu::Hardware& hardware, bsp::Graph& device,
                   Values& values, std::string prefix = {})
      : graph_(graph), hardware_(hardware), device_(device), values_(values), prefix_(std::move(prefix)) {}

  // Appends to `program` and gives the step for reports; `name` is unique in the program.
  LoweredStep lower(const graph::Node& node, const Operation& operation, const std::string& name,
                    bsp::Sequence& program);

 private:
  // A part made ready: where it stands, its shapes, its tile.
  struct Placed {
    Part part;
    PartShape shape;
    std::uint32_t tile = 0;
  };
  // What is being lowered.
  struct Work {
    const graph::Node& node;
    const op::Definition& definition;
    const Operation& operation;  // as its cuts see it
    const FlatOperation& flat;
    const Choice& choice;
    std::vector<Placed> parts;
    std::vector<bsp::Tensor> inputs, results, partials;  // as the operation sees them
    std::vector<bool> in_place;                          // results that are written over a state
    std::vector<double> weights;                         // of the partial results, elements behind each
    std::string name;
    double flops = 0;
  };

  std::optional<std::vector<Placed>> parts_of(const op::Definition& definition, const Operation& operation,
                                              const Choice& choice) const;
  std::uint32_t tile_of(const Partition& partition, const Part& part, std::int64_t number) const;
  void emit(Work& work, bsp::Sequence& program, LoweredStep& step);
  void place_inputs(Work& work);
  void place_input(Work& work, std::size_t i);
  // Operands of a product that all tiles put in order first, as copies that parts read instead.
  void order_inputs(Work& work, bsp::Sequence& program, LoweredStep& step);
  void order_input(Work& work, std::size_t i, std::int64_t atom, bsp::ComputeSet set);
  void make_outputs(Work& work);
  // The state whose place output i takes; none where a part reads more of the state than it writes.
  std::optional<graph::ValueId> replaced_state(const Work& work, std::size_t i);
  void make_output(Work& work, std::size_t i, const std::vector<std::uint32_t>& tiles);
  void add_part(const Work& work, const Placed& placed, bsp::ComputeSet set);
  const std::string& class_of(const Work& work, const Placed& placed,
                              const std::vector<std::int64_t>& groups);
  // A variable for so many partial results of output i.
  bsp::Tensor stacked(const Work& work, std::size_t i, std::int64_t count, const std::string& name);
  // Partial results of neighbours into fewer, which take their place.
  bsp::ComputeSet combine_groups(Work& work, const std::string& name);
  bsp::ComputeSet combine(Work& work, const std::string& name);
  // One vertex a box of the spread: some partial results of output i into `result`, of its shape; where they
  // are pairs, `second` is the result of output 1.
  void combine_output(Work& work, bsp::ComputeSet set, std::size_t i, bsp::Interval partials,
                      const Spread& spread, const bsp::Tensor& result, const bsp::Tensor& second);
  Spread combined_spread(const Work& work, std::size_t i, bsp::Interval partials) const;
  std::vector<std::uint32_t> tiles_of(const Work& work) const;
  static std::vector<std::string> refusals(const Work& work);

  const graph::Graph& graph_;
  const machine::ipu::Hardware& hardware_;
  bsp::Graph& device_;
  Values& values_;
  std::string prefix_;
  std::map<std::vector<std::int64_t>, std::string> classes_;  // of the node at hand, by shapes
  std::size_t class_count_ = 0;
};

}  // namespace superstep::target::ipu
