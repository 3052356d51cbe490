// How a queue becomes a program: storage of arrays, operands of launches, reductions, transfers.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "superstep/openmp/lower.h"

namespace superstep::openmp {

// A launch with its arrays: the same vertices each time it runs.
using Binding = std::pair<int, std::vector<DeviceArray*>>;

// What a launch does with one of its arrays: on the array's own boxes, or on boxes received for it.
struct Operand {
  bool used = false, direct = false;
  int signature = -1;                // of the boxes that must be there before the body runs
  std::vector<bsp::Tensor> tensors;  // a part
  std::vector<Box> boxes;            // what they hold
  std::optional<bsp::Program> refresh, write_back;
};

struct Bound {
  std::vector<Operand> operands;
  std::optional<bsp::Program> compute;  // and reductions
};

class Lowering {
 public:
  Lowering(const bsp::Device& device, std::span<const Command> commands,
           std::span<const std::shared_ptr<const Plan>> plans, const LowerOptions& options)
      : graph_(device), device_(device), commands_(commands), plans_(plans), options_(options) {}

  LoweredQueue run() {
    make_storage();
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      const Command& command = commands_[i];
      if (command.kind == CommandKind::launch)
        add_launch(i);
      else
        add_transfer(i);
    }
    return finish();
  }

 private:
  void make_storage();
  void widen(const Command& command, std::map<DeviceArray*, Halo>& halos) const;
  bool fits_directly(const Plan& plan, std::size_t slot, const Storage& storage) const;
  int signature_of(const DeviceArray* array, bool direct, const Plan& plan, const std::vector<Box>& boxes);
  Operand make_operand(const Plan& plan, std::size_t slot, const Storage& storage);
  void make_direct(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand);
  void make_received(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand);
  void make_gathered(const Plan& plan, std::size_t slot, const Storage& storage, Operand& operand);
  const std::vector<bsp::Tensor>& received(const Plan& plan, std::size_t slot, int signature,
                                           const std::vector<std::int64_t>& sizes);
  void withhold(std::vector<bsp::Tensor>& from, std::vector<bsp::Tensor>& to) const;
  Bound& bound(const Command& command);
  bsp::Program make_compute(const Binding& binding, const std::vector<Operand>& operands, bool scalars_vary);
  std::vector<bsp::Tensor> add_partials(const Plan& plan, std::size_t reduction);
  struct Slice;
  static std::vector<Slice> slices_of(Slice whole, std::size_t element_bytes);
  void combine_groups(Operator op, ElementType type, std::size_t group, const std::string& what,
                      std::vector<Slice>& slices, bsp::Sequence& program);
  void add_combining(const Binding& binding, std::size_t reduction, const bsp::Tensor& partials,
                     bsp::Sequence& program);
  const bsp::Tensor& scalars_of(const Plan& plan, int number);
  void send_scalars(std::size_t index);
  void add_launch(std::size_t index);
  void add_transfer(std::size_t index);
  void add_step(const std::string& key, const bsp::Program& program);
  bsp::VertexRef combining_vertex(bsp::ComputeSet set, Operator op, ElementType type, bool onto,
                                  const bsp::Tensor& in, const bsp::Tensor& out, std::uint32_t tile);
  LoweredQueue finish();

  std::string name(const Plan& plan, const std::string& what) const {
    return fmt::format("{} {}", to_string(plan.region.place), what);
  }

  bsp::Graph graph_;
  bsp::Device device_;
  std::span<const Command> commands_;
  std::span<const std::shared_ptr<const Plan>> plans_;
  LowerOptions options_;
  std::map<DeviceArray*, std::unique_ptr<Storage>> storage_;
  std::map<Binding, Bound> bound_;
  std::map<std::tuple<const DeviceArray*, bool, std::vector<std::uint32_t>, std::vector<Box>>, int>
      signatures_;
  std::map<int, std::vector<bsp::Tensor>> received_;   // by signature
  std::map<int, bsp::Tensor> scalars_;                 // by plan, those that vary
  std::map<int, bsp::Program> sends_;                  // by plan: how they come from the host
  std::map<const DeviceArray*, std::set<int>> fresh_;  // signatures whose boxes hold the array's values
  std::map<std::string, int> step_numbers_;
  std::vector<bsp::Program> steps_;
  std::vector<int> row_;
  LoweredQueue result_;
};

}  // namespace superstep::openmp
