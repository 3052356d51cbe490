// Every workload there is.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/workload/task.h"
#include "superstep/workload/workload.h"

// In the order `superstep list workloads` shows them: one line each, the function that a workload's own file
// defines. Its declaration and its place in the table are both made of this line.
#define SUPERSTEP_WORKLOADS(workload)                                                                        \
  workload(braggnn) workload(ptychonn_64) workload(ptychonn_128) workload(autophasenn) workload(cookienetae) \
      workload(pca_compress_128) workload(sobel_800) workload(uno) workload(polymer_gcn)                     \
          workload(polymer_mpnn) workload(gin) workload(schnet) workload(deepmd) workload(yieldgnn)          \
              workload(unet_256) workload(unet_64) workload(cifar10_cnn) workload(resnet50)                  \
                  workload(efficientnet_b0) workload(efficientnet_b4) workload(mobilenet_v3_small)           \
                      workload(mobilenet_v3_large) workload(vit_base) workload(resnext101)                   \
                          workload(image_autoencoder) workload(conductivity) workload(wallmodel)             \
                              workload(gravity_wave_drag) workload(bert_small) workload(distilbert)          \
                                  workload(bert_large) workload(bert_base_squad) workload(gpt2)              \
                                      workload(llama) workload(lstm) workload(rnn_k1) workload(rnn_k2)       \
                                          workload(rnn_k3) workload(rnn_k4) workload(mlp) workload(mcmc)

namespace superstep::workload {

#define SUPERSTEP_DECLARED(name) Workload name();
SUPERSTEP_WORKLOADS(SUPERSTEP_DECLARED)
#undef SUPERSTEP_DECLARED

std::span<const Workload> workloads() {
#define SUPERSTEP_LISTED(name) name(),
  static const std::vector<Workload> table = {SUPERSTEP_WORKLOADS(SUPERSTEP_LISTED)};
#undef SUPERSTEP_LISTED
  return table;
}

const Workload& find_workload(std::string_view name) {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return workload;
    names.push_back(workload.name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such workload", std::string(name),
              unknown_name_hint(name, names));
}

const Recipe& find_recipe(const Workload& workload, std::string_view name) {
  const RecipeName wanted = name.empty() ? workload.by_default : recipe_name_from_text(name);
  if (wanted == RecipeName::quick) return workload.training;
  if (workload.published) return *workload.published;
  throw Error(ErrorCode::invalid_argument, fmt::format("no recipe of '{}' was published", workload.name),
              "--recipe published", "leave it away, or choose among 'superstep list recipes'");
}

std::vector<std::string> with_options_of(const Recipe& recipe, std::span<const std::string> assignments) {
  std::vector<std::string> all;
  for (const std::string& own : recipe.model_options) {
    const std::string name = own.substr(0, own.find('=') + 1);
    if (std::ranges::none_of(assignments, [&](const std::string& given) { return given.starts_with(name); }))
      all.push_back(own);
  }
  all.insert(all.end(), assignments.begin(), assignments.end());
  return all;
}

graph::Graph build_model(const Workload& workload, std::int64_t batch,
                         std::span<const std::string> assignments, std::uint64_t seed) {
  if (batch < 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("a batch of {} samples cannot be built", batch),
                workload.name);
  return workload.build(batch, Options(workload.options, assignments), seed);
}

graph::Graph build_answer(const Workload& workload, std::span<const std::string> assignments) {
  if (!workload.answer)
    throw Error(ErrorCode::unsupported, "its loss needs labels, so that no answer can be refined by it",
                workload.name, "'autophasenn' is one that learns without");
  return workload.answer(Options(workload.options, assignments));
}

std::unique_ptr<Task> open_task(const Workload& workload, const TaskSettings& settings) {
  if (!workload.open)
    throw Error(ErrorCode::unsupported, "there are no data to train this workload on yet", workload.name);
  if (!settings.validation.empty() && settings.data.empty())
    throw Error(ErrorCode::invalid_argument, "generated samples are trained on, and come with their own",
                "--validation", "give --data, too, or leave it away");
  std::unique_ptr<Task> task = workload.open(settings, Options(workload.options, settings.model_options));
  if (!settings.validation.empty() && !task->takes_validation())
    throw Error(ErrorCode::unsupported,
                fmt::format("{} divides its samples itself, by what belongs together", workload.name),
                "--validation", "leave it away");
  return task;
}

std::int64_t count_parameters(const graph::Graph& model) {
  std::int64_t count = 0;
  for (graph::ValueId id : transform::trainable_states(model)) count += model.type(id).shape.element_count();
  return count;
}

}  // namespace superstep::workload

#undef SUPERSTEP_WORKLOADS
