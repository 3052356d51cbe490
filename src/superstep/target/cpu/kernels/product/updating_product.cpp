#include "superstep/target/cpu/kernels/product/updating_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"

namespace superstep::kernels {

namespace {

// Of gradients.
std::int64_t block_bytes() { return second_level_cache() / 8; }

struct Plan {
  Matmul product;
  std::size_t states;
  std::int64_t rows_a_block, blocks;
  std::array<KernelPointer, 2> products, rules;  // of whole blocks and of the last one
  std::size_t gradient_bytes;                    // of a block, in scratch
};

class UpdatingProductKernel final : public Kernel {
 public:
  UpdatingProductKernel(KernelInfo info, Plan plan) : Kernel(std::move(info)), p_(std::move(plan)) {
    info_.parts = std::clamp<std::int64_t>(p_.blocks, 1, most_parts);
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t block = 0; block < p_.blocks; ++block) run_block(arguments, block);
  }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const PartRange blocks = part_range(p_.blocks, part, info_.parts);
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) run_block(arguments, block);
  }

 private:
  void run_block(const Arguments& arguments, std::int64_t block) const {
    const std::size_t kind = block + 1 == p_.blocks;
    const std::int64_t first = block * p_.rows_a_block;
    void* gradient = arguments.scratch;
    const std::int64_t a_bytes =
        first * p_.product.a.row * static_cast<std::int64_t>(size_in_bytes(p_.product.a.type));
    const std::array<const void*, 2> operands{static_cast<const std::byte*>(arguments.inputs[1]) + a_bytes,
                                              arguments.inputs[2]};
    p_.products[kind]->run(
        {operands, {&gradient, 1}, static_cast<std::byte*>(arguments.scratch) + p_.gradient_bytes});
    const std::array<const void*, 2> gradients{arguments.inputs[0], gradient};
    std::array<void*, 3> updated{};
    for (std::size_t i = 0; i <= p_.states; ++i)
      updated[i] = static_cast<float*>(arguments.outputs[i]) + first * p_.product.columns;
    p_.rules[kind]->run({gradients, {updated.data(), p_.states + 1}, nullptr});
  }

  Plan p_;
};

std::string fault_of(const UpdatingProduct& u) {
  const Matmul& m = u.product;
  if (m.batch[0] != 1 || m.batch[1] != 1) return "a batch of products";
  if (m.accumulate || !m.epilogue.steps.empty()) return "the gradient is more than the product";
  if (m.c.type != ElementType::f32) return "the gradient is not f32";
  if (u.rule.count != m.rows * m.columns || u.rule.gradient_buffers != 1 || u.rule.bf16_copy)
    return "the rule is not of one gradient";
  return {};
}

// Kernels of a block of so many rows; the reason where one cannot be made.
std::optional<Refusal> add_block(Plan& plan, const UpdatingProduct& u, std::size_t kind, std::int64_t rows) {
  Matmul product = u.product;
  product.rows = rows;
  product.c.row = product.columns;
  product.c.column = 1;
  Prepared made = matmul().prepare(product);
  if (!made) return made.error();
  Optimizer rule = u.rule;
  rule.count = rows * product.columns;
  Prepared updating = prepare(rule);
  if (!updating) return updating.error();
  plan.products[kind] = std::move(*made);
  plan.rules[kind] = std::move(*updating);
  return std::nullopt;
}

KernelInfo describe(const Plan& plan, const UpdatingProduct& u) {
  const Matmul& m = u.product;
  const auto rows = static_cast<double>(m.rows), columns = static_cast<double>(m.columns),
             inner = static_cast<double>(m.inner), parameters = rows * columns;
  const auto states = static_cast<double>(plan.states);
  KernelInfo info;
  info.name = fmt::format("{}, then {}, {} rows at a time", plan.products[0]->info().name,
                          plan.rules[0]->info().name, plan.rows_a_block);
  info.flops = 2 * parameters * inner + parameters * (3 + 6 * states);
  info.bytes =
      parameters * 8 * (1 + states) + (rows + columns) * inner * static_cast<double>(size_in_bytes(m.a.type));
  info.arithmetic = multiplied_as(m.a.type);
  info.inputs = 3;
  info.outputs = 1 + plan.states;
  info.scratch_bytes = plan.gradient_bytes + std::max(plan.products[0]->info().scratch_bytes,
                                                      plan.products[1]->info().scratch_bytes);
  return info;
}

}  // namespace

Prepared prepare(const UpdatingProduct& u) {
  if (std::string fault = fault_of(u); !fault.empty()) return refuse("updating product", fault);
  Plan plan{.product = u.product, .states = state_arrays(u.rule)};
  const std::int64_t row_bytes = u.product.columns * static_cast<std::int64_t>(sizeof(float));
  plan.rows_a_block = std::clamp<std::int64_t>(block_bytes() / row_bytes, 1, u.product.rows);
  plan.blocks = (u.product.rows + plan.rows_a_block - 1) / plan.rows_a_block;
  plan.gradient_bytes = static_cast<std::size_t>((plan.rows_a_block * row_bytes + 63) / 64 * 64);
  if (auto fault = add_block(plan, u, 0, plan.rows_a_block)) return std::unexpected(*fault);
  if (auto fault = add_block(plan, u, 1, u.product.rows - (plan.blocks - 1) * plan.rows_a_block))
    return std::unexpected(*fault);
  KernelInfo info = describe(plan, u);
  return std::make_unique<UpdatingProductKernel>(std::move(info), std::move(plan));
}

}  // namespace superstep::kernels
