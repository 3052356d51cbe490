#include "superstep/edge/model/version.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"

namespace superstep::edge {
namespace {

// Beyond it seven copies a worker are more than the few microseconds of fitting sizes are worth (chosen).
constexpr std::size_t many_parameter_bytes = std::size_t{8} << 20;

std::vector<Tensor> tensors_of(std::span<const target::Executable::Port> ports) {
  std::vector<Tensor> tensors;
  for (const auto& port : ports) tensors.emplace_back(port.type.element, port.type.shape);
  return tensors;
}

// Of one call: the least of several, since what other programs of the machine add is not the plan's. Long
// calls are made less often.
double seconds_of(target::Executable& executable, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  constexpr int most_calls = 7;
  constexpr double long_enough = 0.05;  // of all calls, seconds
  double least = std::numeric_limits<double>::infinity();
  executable.run(inputs, outputs);  // touches its memory
  const Stopwatch all;
  for (int call = 0; call < most_calls && (call == 0 || all.seconds() < long_enough); ++call) {
    const Stopwatch watch;
    executable.run(inputs, outputs);
    least = std::min(least, watch.seconds());
  }
  return least;
}

}  // namespace

std::vector<std::int64_t> plan_sizes(const Blueprint& blueprint, const VersionSettings& settings) {
  if (!blueprint.ports.batched || settings.row_by_row) return {1};
  const std::int64_t factor = blueprint.parameter_bytes > many_parameter_bytes ? 4 : 2;
  std::vector<std::int64_t> sizes;
  for (std::int64_t rows = 1; rows < settings.max_batch; rows *= factor) sizes.push_back(rows);
  sizes.push_back(settings.max_batch);
  return sizes;
}

std::shared_ptr<Version::Plan> Version::compiled(const Blueprint& blueprint, const target::Target& target,
                                                 std::int64_t rows) {
  const std::int64_t batch = ports_.batched ? rows : blueprint.call_rows;
  target::CompileOptions options{.batch = batch, .threads = settings_.threads};
  if (!ports_.batched) options.micro_batch = batch;
  auto plan = std::make_shared<Plan>();
  plan->executable = target.compile(blueprint.graph, options);
  plan->inputs = tensors_of(plan->executable->inputs());
  plan->outputs = tensors_of(plan->executable->outputs());
  plan_bytes_ += plan->executable->summary().bytes_in_all();
  return plan;
}

Version::Version(const Blueprint& blueprint, const target::Target& target, const VersionSettings& settings)
    : id_(blueprint.version),
      digest_(blueprint.digest),
      ports_(blueprint.ports),
      ranges_(blueprint.ranges),
      scalings_(blueprint.scalings),
      scaled_before_(blueprint.scaled_before),
      trained_(blueprint.trained),
      has_digest_(blueprint.has_digest),
      settings_(settings),
      max_batch_(blueprint.ports.batched ? settings.max_batch : 1) {
  scalings_.resize(ports_.inputs.size());
  auto none = std::make_shared<Widths>();
  none->workers.resize(static_cast<std::size_t>(settings.workers));
  widths_ = std::move(none);
  add(blueprint, target, 1);
}

std::shared_ptr<const Version::Widths> Version::widths() const {
  const std::scoped_lock lock(mutex_);
  return widths_;
}

// Plans of so many rows beside those that are there.
void Version::add(const Blueprint& blueprint, const target::Target& target, std::int64_t rows) {
  auto next = std::make_shared<Widths>(*widths());
  for (auto& plans : next->workers) plans.push_back(compiled(blueprint, target, rows));
  Plan& first = *next->workers[0].back();
  next->sizes.push_back({rows, seconds_of(*first.executable, first.inputs, first.outputs)});
  next->splits = cheapest_splits(next->sizes, max_batch_);
  const std::scoped_lock lock(mutex_);
  widths_ = std::move(next);
}

void Version::widen(const Blueprint& blueprint, const target::Target& target) {
  const std::int64_t widest = widths()->sizes.back().rows;
  for (const std::int64_t rows : plan_sizes(blueprint, settings_)) {
    if (rows <= widest) continue;
    if (interrupted()) throw Error(ErrorCode::interrupted, "while plans of more rows were made");
    add(blueprint, target, rows);
  }
}

// Rows [first, first + count) of all ranges, one behind the other, into a plan's inputs or out of its
// outputs.
void Version::copy_rows(std::span<const RowRange> ranges, std::int64_t first, std::int64_t count, Plan& plan,
                        bool in) const {
  const std::vector<ServedPort>& ports = in ? ports_.inputs : ports_.outputs;
  std::int64_t begin = 0;  // of a range, in all rows
  for (const RowRange& range : ranges) {
    const std::int64_t from = std::max(first, begin), to = std::min(first + count, begin + range.count);
    for (std::size_t port = 0; port < ports.size() && from < to; ++port) {
      const std::size_t row = ports[port].row_bytes(), bytes = static_cast<std::size_t>(to - from) * row;
      const std::size_t of_range = static_cast<std::size_t>(range.first + from - begin) * row;
      const std::size_t of_plan = static_cast<std::size_t>(from - first) * row;
      if (bytes == 0) continue;
      if (in) {
        std::memcpy(plan.inputs[port].bytes() + of_plan, range.inputs[port].bytes() + of_range, bytes);
        if (scalings_[port] && !range.scaled)
          scale_rows(port, plan.inputs[port].bytes() + of_plan, to - from);
      } else
        std::memcpy(range.outputs[port].bytes() + of_range, plan.outputs[port].bytes() + of_plan, bytes);
    }
    begin += range.count;
  }
}

// In f64 and rounded once, as rows of files are.
void Version::scale_rows(std::size_t port, std::byte* rows, std::int64_t count) const {
  const auto elements = static_cast<std::size_t>(ports_.inputs[port].shape.element_count());
  std::vector<double> row(elements);
  auto* values = reinterpret_cast<float*>(rows);
  for (std::int64_t i = 0; i < count; ++i, values += elements) {
    std::copy_n(values, elements, row.begin());
    data::scale_row(*scalings_[port], row);
    std::ranges::transform(row, values, [](double value) { return static_cast<float>(value); });
  }
}

void Version::run(int worker, std::span<const RowRange> ranges) {
  const std::shared_ptr<const Widths> now = widths();
  const auto& plans = now->workers[static_cast<std::size_t>(worker)];
  std::int64_t rows = 0, done = 0;
  for (const RowRange& range : ranges) rows += range.count;
  for (const std::int64_t size : now->splits.at(static_cast<std::size_t>(rows))) {
    const auto at = std::ranges::find(now->sizes, size, &TimedSize::rows) - now->sizes.begin();
    Plan& plan = *plans[static_cast<std::size_t>(at)];
    const std::int64_t count = std::min(size, rows - done);
    copy_rows(ranges, done, count, plan, true);
    plan.executable->run(plan.inputs, plan.outputs);
    copy_rows(ranges, done, count, plan, false);
    done += count;
  }
}

}  // namespace superstep::edge
