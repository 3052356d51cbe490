#include "superstep/lab/validate/tables/choices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "superstep/base/thread_pool.h"
#include "superstep/lab/validate/application_rows.h"

namespace superstep::lab {
namespace {

struct Compared {
  std::size_t rows = 0;
  double law = 0, model = 0;  // sums of |log error|
};
using ByStyle = std::map<std::pair<std::string, bool>, Compared>;

const machine::Machine* with_file(const std::string& id) {
  for (const machine::Machine& machine : machine::machines())
    if (machine.id() == id) return &machine;
  return nullptr;
}

// Whole networks, of a machine with a file, that the law knows with the model and with the machine left out.
bool comparable(const FoldedCall& call) {
  const bool network = call.of->understood() && call.of->family.starts_with("networks");
  return network && with_file(call.of->machine) && std::isfinite(call.error(Fold::model)) &&
         std::isfinite(call.error(Fold::machine));
}

void compare_table(const PublishedTable& table, const FoldedCall* calls, ThreadPool& pool, ByStyle& found) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (comparable(calls[row])) rows.push_back(row);
  ApplicationRows models(table);
  std::vector<double> errors(rows.size(), -1);
  pool.parallel_for(static_cast<std::int64_t>(rows.size()), [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    const RowPrediction by_model = models.predict(rows[i]);
    if (by_model.value && *by_model.value > 0)
      errors[i] = std::abs(std::log(*by_model.value / calls[rows[i]].of->published));
  });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FoldedCall& call = calls[rows[i]];
    if (errors[i] < 0) continue;
    const bool training = call.of->family == "networks in training";
    Compared& sum = found[{name_of(with_file(call.of->machine)->style()), training}];
    ++sum.rows;
    sum.law += (std::abs(call.error(Fold::model)) + std::abs(call.error(Fold::machine))) / 2;
    sum.model += errors[i];
  }
}

}  // namespace

std::vector<machine::Choice> choices_of(const std::filesystem::path& folder, const Folded& folded,
                                        const std::vector<Fold>& folds, int threads) {
  for (const Fold fold : {Fold::model, Fold::machine})
    if (std::ranges::find(folds, fold) == folds.end()) return {};
  ThreadPool pool(threads);
  ByStyle found;
  const FoldedCall* next = folded.calls.data();
  for_each_table(folder, [&](const PublishedTable& table) {
    compare_table(table, next, pool, found);
    next += table.rows();
  });
  std::vector<machine::Choice> choices;
  for (const auto& [key, sum] : found) {
    const auto rows = static_cast<double>(sum.rows);
    choices.push_back({key.first, key.second, sum.rows, sum.law / rows, sum.model / rows});
  }
  return choices;
}

}  // namespace superstep::lab
