#include "superstep/run/user/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/run/user/metric_families.h"

namespace superstep::run {
namespace {

using transform::LossKind;

enum class Family : std::uint8_t { numbers, shares, classes, distributions, directions, triplets, sequences };

Family family_of(LossKind kind) {
  switch (kind) {
    case LossKind::bce:
    case LossKind::bce_with_logits:
    case LossKind::focal:
    case LossKind::dice:
    case LossKind::tversky: return Family::shares;
    case LossKind::cross_entropy:
    case LossKind::token_cross_entropy:
    case LossKind::nll: return Family::classes;
    case LossKind::kl_div: return Family::distributions;
    case LossKind::cosine: return Family::directions;
    case LossKind::triplet_margin: return Family::triplets;
    case LossKind::ctc: return Family::sequences;
    default: return Family::numbers;
  }
}

struct Entry {
  const char* name;
  Family family;
  bool higher_is_better;
};

constexpr std::array entries = {
    Entry{"rmse", Family::numbers, false},
    Entry{"mae", Family::numbers, false},
    Entry{"r2", Family::numbers, true},
    Entry{"max_error", Family::numbers, false},
    Entry{"mape", Family::numbers, false},
    Entry{"pearson", Family::numbers, true},
    Entry{"bce", Family::shares, false},
    Entry{"accuracy", Family::shares, true},
    Entry{"precision", Family::shares, true},
    Entry{"recall", Family::shares, true},
    Entry{"f1", Family::shares, true},
    Entry{"iou", Family::shares, true},
    Entry{"auc", Family::shares, true},
    Entry{"cross_entropy", Family::classes, false},
    Entry{"accuracy", Family::classes, true},
    Entry{"balanced_accuracy", Family::classes, true},
    Entry{"precision", Family::classes, true},
    Entry{"recall", Family::classes, true},
    Entry{"f1", Family::classes, true},
    Entry{"iou", Family::classes, true},
    Entry{"auc", Family::classes, true},
    Entry{"top5", Family::classes, true},
    Entry{"kl_div", Family::distributions, false},
    Entry{"cosine_similarity", Family::directions, true},
    Entry{"triplet_margin", Family::triplets, false},
    Entry{"accuracy", Family::triplets, true},
    Entry{"label_error", Family::sequences, false},
    Entry{"accuracy", Family::sequences, true},
    Entry{"ctc", Family::sequences, false},
};
constexpr const char* likelihood = "nll";  // of gaussian_nll and poisson_nll alone

bool has_likelihood(LossKind kind) { return kind == LossKind::gaussian_nll || kind == LossKind::poisson_nll; }

}  // namespace

std::vector<std::string> metrics_for(LossKind kind) {
  std::vector<std::string> names;
  if (has_likelihood(kind)) names.emplace_back(likelihood);
  for (const Entry& entry : entries)
    if (entry.family == family_of(kind)) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> default_metrics(LossKind kind) {
  if (has_likelihood(kind)) return {likelihood, "rmse"};
  if (transform::is_of_whole_batch(kind)) return {"f1", "iou"};
  switch (family_of(kind)) {
    case Family::numbers: return {"rmse", "mae"};
    case Family::shares: return {"bce", "accuracy"};
    case Family::classes: return {"cross_entropy", "accuracy"};
    case Family::distributions: return {"kl_div"};
    case Family::directions: return {"cosine_similarity"};
    case Family::triplets: return {"triplet_margin", "accuracy"};
    case Family::sequences: return {"label_error", "accuracy"};
  }
  return {};
}

bool higher_is_better(std::string_view metric) {
  const auto found = std::ranges::find(entries, metric, [](const Entry& entry) { return entry.name; });
  return found != entries.end() && found->higher_is_better;
}

std::vector<MetricChoice> metrics_from_text(std::string_view text) {
  std::vector<MetricChoice> choices;
  if (text.empty()) return choices;
  std::vector<std::string> known{likelihood};
  for (const Entry& entry : entries)
    if (std::ranges::find(known, entry.name) == known.end()) known.emplace_back(entry.name);
  for (const std::string& part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    MetricChoice choice{.name = part.substr(0, colon),
                        .output = colon == std::string::npos ? "" : part.substr(colon + 1)};
    if (std::ranges::find(known, choice.name) == known.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("there is no metric '{}'", choice.name),
                  fmt::format("--metrics {}", text), unknown_name_hint(choice.name, known));
    if (colon != std::string::npos && choice.output.empty())
      throw Error(ErrorCode::invalid_argument, "a metric of an output names it",
                  fmt::format("--metrics {}", text), fmt::format("{}:OUTPUT", choice.name));
    choices.push_back(std::move(choice));
  }
  return choices;
}

std::vector<double> measure(std::span<const std::string> names, const Compared& compared) {
  switch (family_of(compared.term.kind)) {
    case Family::numbers: return measure_numbers(names, compared);
    case Family::shares: return measure_shares(names, compared);
    case Family::classes: return measure_classes(names, compared);
    case Family::distributions: return {kl_divergence(compared)};
    case Family::directions: return {cosine_similarity(compared)};
    case Family::triplets: return measure_triplets(names, compared);
    case Family::sequences: return measure_sequences(names, compared);
  }
  return {};
}

}  // namespace superstep::run
