#include "superstep/target/cpu/plan/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::target::cpu {
namespace {

// More groups share the work more evenly when a core is busy, and among more threads.
constexpr std::size_t most_groups = 64;
constexpr std::size_t largest_grouped_bytes = std::size_t{4} << 20;

// A group costs its sum: zeroed, added to another. It has so many operations for each byte of that, which is
// a hundredth of its time at most.
constexpr double flops_a_summed_byte = 800;

// Element-wise operators and products of few operations first; then a third of the step again, which is about
// the whole forward pass, a stretch of it at a time.
constexpr Recomputation recomputations[] = {{0.02, 1}, {0.1, 1}, {0.1, 4}, {0.35, 4}};

std::string describe(const LimitedChoice& choice) {
  std::string text = fmt::format("micro-batch {}", choice.micro_batch);
  if (choice.recomputation.share > 0)
    text += fmt::format(", up to {:.0f} % of the operations done twice", 100 * choice.recomputation.share);
  return text;
}

// A power of two, for numbers of threads mostly are.
std::size_t groups_that_pay(const Plan& plan, std::size_t micro_batches) {
  double flops = 0;
  for (const Step& step : plan.body) flops += step.info.flops * static_cast<double>(micro_batches);
  const double paid = flops / flops_a_summed_byte / static_cast<double>(plan.accumulator_bytes);
  const std::size_t in_memory = usual_groups * largest_grouped_bytes / plan.accumulator_bytes;
  const std::size_t most =
      std::min({most_groups, in_memory, static_cast<std::size_t>(std::min<double>(paid, most_groups))});
  if (micro_batches <= most) return micro_batches;
  return std::max(usual_groups, std::bit_floor(most));
}

}  // namespace

bool sums_in_groups(std::size_t gradient_bytes) { return gradient_bytes <= largest_grouped_bytes; }

std::size_t gradient_groups(const Plan& plan, const CompileOptions& options) {
  const auto count = static_cast<std::size_t>(options.batch / options.micro_batch);
  if (plan.accumulator_bytes == 0) return count;
  if (!sums_in_groups(plan.accumulator_bytes))
    return std::min({count, usual_groups, static_cast<std::size_t>(options.threads)});
  const std::size_t most = plan.in_step ? usual_groups : groups_that_pay(plan, count);
  return std::min(count, most);
}

std::size_t gradient_buffers(const Plan& plan, const CompileOptions& options) {
  const std::size_t groups = gradient_groups(plan, options);
  const bool in_order = options.threads == 1 && !options.parts.exchange && !plan.in_step;
  return in_order ? std::min<std::size_t>(groups, 3) : groups;
}

std::size_t arena_count(const Plan& plan, const CompileOptions& options) {
  if (plan.in_step) return static_cast<std::size_t>(options.batch / options.micro_batch);
  return std::min(gradient_groups(plan, options), static_cast<std::size_t>(options.threads));
}

std::size_t plan_bytes(const Plan& plan, const CompileOptions& options) {
  const auto threads = static_cast<std::size_t>(options.threads);
  const std::size_t arenas = arena_count(plan, options);
  return arenas * plan.arena_bytes + threads * plan.scratch_bytes + plan.shared_bytes + plan.update_bytes +
         gradient_buffers(plan, options) * plan.accumulator_bytes;
}

LimitedChoice choose_below(
    std::size_t limit, std::int64_t batch, std::int64_t largest, bool splits,
    FunctionRef<std::size_t(std::int64_t micro_batch, const Recomputation& recomputation)> bytes_of) {
  LimitedChoice smallest{.bytes = ~std::size_t{0}};
  const auto fits = [&](std::int64_t micro_batch, const Recomputation& recomputation) {
    const LimitedChoice choice{micro_batch, recomputation, bytes_of(micro_batch, recomputation)};
    if (choice.bytes < smallest.bytes) smallest = choice;
    return choice.bytes <= limit;
  };
  for (std::int64_t micro_batch = largest; micro_batch >= 1; --micro_batch) {
    if (batch % micro_batch != 0) continue;
    if (fits(micro_batch, {})) return smallest;
    if (!splits) break;
  }
  if (splits && largest != batch && fits(batch, {})) return smallest;
  const std::int64_t least = smallest.micro_batch;
  for (const Recomputation& recomputation : recomputations)
    if (fits(least, recomputation)) return smallest;
  throw Error(
      ErrorCode::out_of_memory,
      fmt::format("the smallest plan takes {} ({}), more than the limit of {}",
                  format_bytes(static_cast<double>(smallest.bytes)), describe(smallest),
                  format_bytes(static_cast<double>(limit))),
      "--memory-limit",
      splits ? "fewer threads keep fewer activations" : "a smaller --batch: this model cannot be split");
}

}  // namespace superstep::target::cpu
