#include "superstep/run/train/train_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/run/user/user_model.h"
#include "superstep/transform/training/gradient_mode.h"
#include "superstep/workload/workload.h"

namespace superstep::run {
namespace {

// Options of `superstep train`, and the members of config.json that keep them.
constexpr auto kept_options = std::to_array<std::pair<std::string_view, const char*>>({
    {"--weights", "weights"},
    {"--data", "data"},
    {"--validation", "validation"},
    {"--allow-nan", "allow_nan"},
    {"--skip-broken", "skip_broken"},
    {"--crop", "crop"},
    {"--scale", "scale"},
    {"--offset", "offset"},
    {"--augment", "augmentation"},
    {"--tokenizer", "tokenizer"},
    {"--samples", "samples"},
    {"--folds", "folds"},
    {"--batch", "batch"},
    {"--micro-batch", "micro_batch"},
    {"--memory-limit", "memory_limit"},
    {"--shard", "shard"},
    {"--on", "backend"},
    {"--numerics", "backend"},
    {"--numerics-of", "backend"},
    {"--precision", "precision"},
    {"--loss-scale", "loss_scale"},
    {"--recipe", "recipe"},
    {"--optimizer", "optimizer"},
    {"--loss", "loss"},
    {"--metrics", "metrics"},
    {"--shape", "shapes"},
    {"--bound", "bounds"},
    {"--train", "train"},
    {"--freeze", "freeze"},
    {"--learning-rate", "learning_rate"},
    {"--schedule", "schedule"},
    {"--patience", "patience"},
    {"--monitor", "monitor"},
    {"--ema", "average"},
    {"--gradient", "gradient"},
    {"--gradient-norms", "gradient_norms"},
    {"--seed", "seed"},
    {"--set", "model_options"},
    {"--batch-norm-span", "batch_norm_span"},
    {"--no-augment", "augment"},
});

std::string words(const nlohmann::json& value) {
  return value.is_string() ? fmt::format("'{}'", value.get<std::string>()) : value.dump();
}

}  // namespace

bool is_kept(std::string_view option) {
  return std::ranges::find(kept_options, option, [](const auto& kept) { return kept.first; }) !=
         kept_options.end();
}

TrainSettings extended(TrainSettings kept, const Extension& extension) {
  if (extension.epochs) {
    kept.epochs = *extension.epochs;
    kept.steps = 0;
  }
  if (extension.steps) kept.steps = *extension.steps;
  kept.stop_after = extension.stop_after;
  if (extension.until) kept.until = extension.until;
  if (extension.replicas) kept.replicas = *extension.replicas;
  if (extension.devices) kept.devices = *extension.devices;
  return kept;
}

void refuse_changes(const TrainSettings& kept, const TrainSettings& asked, std::span<const std::string> given,
                    const std::string& folder) {
  const nlohmann::json before = to_json(kept);
  nlohmann::json now = to_json(asked);
  now["gradient"] = transform::to_string(transform::gradient_mode_from_text(asked.gradient));
  // A run's file has the options of its recipe beside those that were given.
  if (!is_model_file(kept.workload))
    now["model_options"] = workload::with_options_of(
        workload::find_recipe(workload::find_workload(kept.workload), kept.recipe), asked.model_options);
  for (const auto& [option, member] : kept_options) {
    if (std::ranges::find(given, option) == given.end() || before[member] == now[member]) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the run in {} was begun with {}, not {}: that cannot change", folder,
                            words(before[member]), words(now[member])),
                std::string(option),
                "leave it away, or begin a new run with --out; what can change is --epochs, --steps, "
                "--stop-after, --until, --threads, --replicas and --checkpoint-seconds");
  }
}

}  // namespace superstep::run
