#include "superstep/cli/shared/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/cli/command.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/task.h"
#include "superstep/run/user/user_model.h"

namespace superstep::cli {
namespace {

double value_of(const std::vector<Metric>& metrics, const char* name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? 0 : found->value;
}

std::string in_figures(double value, const std::string& unit) {
  return unit.empty() ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, unit);
}

}  // namespace

std::optional<run::Quality> judge_training(const std::string& name, const run::TrainReport& report,
                                           const std::filesystem::path& folder) {
  // Of a user's own model nobody else knows how good it could be.
  if (!report.data || run::is_model_file(name) || run::launched_rank() > 0) return std::nullopt;
  const workload::Workload& workload = workload::find_workload(name);
  if (workload.metrics.empty()) return std::nullopt;
  const auto found = std::ranges::find(report.metrics, workload.metrics[0].name, &Metric::name);
  if (found == report.metrics.end()) return std::nullopt;
  const run::Task& task = *report.data;
  // The same samples that the model was judged on.
  std::vector<std::int64_t> unseen(static_cast<std::size_t>(report.validated));
  std::iota(unseen.begin(), unseen.end(), task.training_count());
  ThreadPool pool(thread_count());
  const double trained = value_of(report.metrics, "step_time") * static_cast<double>(report.steps);
  auto quality = run::judge(task, workload, {*found}, unseen, pool, trained);
  if (quality && !folder.empty())
    write_file_atomically(folder / run::quality_file, run::to_json(*quality).dump(2) + "\n");
  return quality;
}

void print_quality(const std::optional<run::Quality>& quality) {
  if (!quality) return;
  const run::Quality& q = *quality;
  TextTable table({q.metric, "of", q.higher_is_better ? "higher is better" : "lower is better"});
  const auto add = [&](const std::string& value, const char* of, const std::string& method) {
    table.add_row({value, of, method});
  };
  add(in_figures(q.reached, q.unit), "the model",
      fmt::format("on {} samples that the training did not see",
                  format_count(static_cast<double>(q.samples))));
  if (q.target) add(in_figures(*q.target, q.unit), "the target", "");
  const auto& others = q.references;
  for (const auto& [reference, of] :
       {std::pair(&others.floor, "the floor"), std::pair(&others.conventional, "the conventional method"),
        std::pair(&others.limit, "the limit")})
    if (*reference) add(in_figures((*reference)->value, q.unit), of, (*reference)->method);
  fmt::print("\n{}", table.to_string());
  if (!others.floor)
    fmt::print(
        "what others reach is left out: it takes longer than this training did, or the data lack what it "
        "needs\n");
  fmt::print("verdict: {}\n", run::verdict(q));
}

}  // namespace superstep::cli
