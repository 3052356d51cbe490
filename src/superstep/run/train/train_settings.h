// What a training run is: written to its folder's config.json, and read back to resume it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/file/source/scaled_source.h"
#include "superstep/run/train/until.h"

namespace superstep::run {

struct TrainSettings {
  std::string workload;  // of the zoo, or a model file (.onnx)
  std::string target = "cpu";
  std::string precision = "f32";           // f32, bf16, f16
  std::string loss_scale;                  // of f16: transform::loss_scale_from_text; empty: dynamic
  std::string recipe;                      // quick, published; empty: the workload's own choice
  std::vector<std::string> model_options;  // name=value
  std::vector<std::string> shapes;         // of a model file: extents that it leaves open (user_model.h)
  std::vector<std::string> keep;           // of a model file: values that are outputs, too (user_model.h)
  std::vector<std::string> bounds;  // of a model file: how long results may be whose length the data say
  std::vector<std::string> train, freeze;  // of a model file: initialisers, * and ? in them (user_model.h)
  std::string loss;                        // of a model file; empty: mean squared error
  std::string metrics;                     // of a model file: run/user/metrics.h; empty: those of its loss
  std::filesystem::path weights;           // a run whose model this one begins with; empty: as it is built
  std::filesystem::path data;
  std::filesystem::path validation;        // samples that validate, all of them; empty: a part of `data`
  bool allow_nan = false;                  // of a model file: in the arrays that it is trained on
  bool skip_broken = false;                // samples that cannot be read are left out
  bool crop = false;                       // of larger pictures than the model takes the middle is taken
  std::vector<std::string> scale, offset;  // of arrays of the data: data::scalings_from_text()
  std::vector<std::string> may_lack = {};  // of the arrays that are scaled; no part of a run's record
  std::vector<std::string> augmentation;   // of a model file: run/user/augmentation.h
  std::filesystem::path tokenizer;  // that makes tokens of the data, which are texts; empty: they are none
  std::int64_t samples = 0;
  int folds = 0, fold = 0;       // of a cross validation (TaskSettings); 0: none. A run of all has fold 0
  std::int64_t batch = 0;        // 0: the workload's own
  std::int64_t micro_batch = 0;  // 0: the target chooses
  int replicas = 1;              // threads, each with a replica
  // Of targets whose devices lie behind a plug-in: so many share each batch, and `divide_parameters` leaves a
  // part of the parameters and moments with each.
  int devices = 1;
  bool divide_parameters = false;
  std::int64_t memory_limit = 0;  // bytes of the plan; 0: none
  double epochs = 0;       // 0: the workload's own; of the schedule, even if `steps` or `until` stop earlier
  std::int64_t steps = 0;  // stop after so many; 0: after the epochs
  double stop_after = 0;   // stop after so many epochs of the schedule; 0: at its end
  std::optional<Until> until;
  std::string optimizer;             // transform::optimizer_from_text; empty: the workload's own
  double learning_rate = 0;          // peak; 0: the workload's own
  std::string schedule;              // run/train/schedule_text.h; empty: the workload's own
  int patience = 0;                  // epochs without a gain after which it ends; 0: the workload's own
  std::string monitor;               // the metric that schedule and patience watch; empty: the workload's own
  double average = 0;                // decay of averaged weights; 0: the workload's own
  std::string gradient = "reverse";  // transform/training/gradient_mode.h
  bool gradient_norms = false;       // the log has the lengths of gradients
  bool augment = true;               // where the data allow it
  std::uint64_t seed = 1;
  int batch_norm_span = 1;  // neighbouring ranks whose batches a normalisation's statistics are taken of
};
// Throws Error where several devices, or divided parameters, are asked of a target that has none
// (unsupported), or parameters are to be divided over one (invalid_argument).
void require_devices(const TrainSettings& settings);

// f32, bf16 or f16. Throws Error (invalid_argument) with the nearest name.
ElementType element_of_precision(const std::string& name);

// What their `scale` and `offset` say. Throws what data::scalings_from_text() throws.
std::vector<data::Scaling> scalings_of(const TrainSettings& settings);
// Scales data other than those of a run as its own were: `scale` and `offset` are for this time and come
// before those of the run for the same array. Arrays that only the run names need not be there.
void scale_other_data(TrainSettings& of_run, std::vector<std::string> scale, std::vector<std::string> offset);

nlohmann::json to_json(const TrainSettings& settings);
// Of values that make no sense whatever the workload is. Throws Error (invalid_argument), which names the
// option.
void require_sound(const TrainSettings& settings);
TrainSettings train_settings_from_json(const nlohmann::json& json);  // throws Error (bad_file)

}  // namespace superstep::run
