#include "superstep/run/task/tasks.h"

#include "superstep/base/error.h"

namespace superstep::run {
namespace {

using Open = std::unique_ptr<Task> (*)(const TaskSettings& settings, const Options& model);

// Tasks whose data are of one size, whatever the model's options.
template <std::unique_ptr<Task> (*open)(const TaskSettings&)>
std::unique_ptr<Task> of_one_size(const TaskSettings& settings, const Options&) {
  return open(settings);
}

struct Entry {
  std::string_view workload;
  Open open;
};

constexpr Entry entries[] = {
    {"braggnn", of_one_size<open_bragg_task>},
    {"ptychonn-64", open_ptychonn_64_task},
    {"ptychonn-128", open_ptychonn_128_task},
    {"uno", open_uno_task},
    {"unet-256", open_unet_task},
    {"unet-64", open_unet_task},
    {"cifar10-cnn", of_one_size<open_cifar10_task>},
    {"resnet50", open_classifier_task},
    {"efficientnet-b0", open_classifier_task},
    {"efficientnet-b4", open_classifier_task},
    {"mobilenet-v3-small", open_classifier_task},
    {"mobilenet-v3-large", open_classifier_task},
    {"bert-small", open_language_task},
    {"distilbert", open_language_task},
    {"lstm", open_oscillation_task},
    {"rnn-k1", open_random_sequence_task},
    {"rnn-k2", open_random_sequence_task},
    {"rnn-k3", open_random_sequence_task},
    {"rnn-k4", open_random_sequence_task},
    {"mlp", of_one_size<open_mlp_task>},
};

}  // namespace

std::optional<Quality> judge(const Task& task, const workload::Workload& workload,
                             const std::vector<Metric>& found, std::span<const std::int64_t> indices,
                             ThreadPool& pool, double seconds) {
  if (found.empty()) return std::nullopt;
  const auto samples = static_cast<std::int64_t>(indices.size());
  try {
    if (task.reference_seconds() <= seconds)
      return judge(workload, found[0], samples, task.references(indices, pool));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted) throw;
  }
  return judge(workload, found[0], samples, {});
}

std::unique_ptr<Task> open_task(const workload::Workload& workload, const TaskSettings& settings) {
  for (const Entry& entry : entries)
    if (entry.workload == workload.name)
      return entry.open(settings, Options(workload.options, settings.model_options));
  throw Error(ErrorCode::unsupported, "there are no data to train this workload on yet",
              std::string(workload.name));
}

}  // namespace superstep::run
