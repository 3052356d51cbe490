// What can be profiled, by the name a user types.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/lab/profile/profile.h"

namespace superstep::lab {

struct ProfileRequest {
  std::string model;                       // a workload, or a model file (.onnx)
  std::string mode = "train";              // train, infer
  std::string precision = "f32";           // f32, bf16; infer: int8 as well
  std::vector<std::string> model_options;  // name=value
  std::vector<std::string> shapes;         // of a model file: extents that it leaves open
  std::vector<std::string> bounds;         // of a model file: how long results may be
  std::filesystem::path data;              // empty: generated; of a model file: random, and only to serve
  std::int64_t batch = 0;                  // 0: the workload's own
  std::uint64_t seed = 1;
};

// The model with real data of the workload. `batch` of the request is filled in. Throws Error
// (invalid_argument) naming an unknown workload, mode, precision or option. `on`: the target it is in the
// form of (run/model.h); null: as the workload says.
ProfiledModel open_profiled_model(ProfileRequest& request, const target::Target* on = nullptr);

}  // namespace superstep::lab
