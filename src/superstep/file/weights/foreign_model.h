// Models in the files of other programs: what such a file is, and the command that makes an ONNX file of it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "superstep/base/error.h"

namespace superstep::data {

struct ForeignModel {
  std::string what;  // "a module of PyTorch, pickled (class '__main__.Net')"
  std::string cure;  // a command of its own program, as it can be typed but for what only its maker knows
};

// None where there is no such file, or it is something else: weights of PyTorch among them. By the first
// bytes and the names in an archive: nothing of the file is run.
std::optional<ForeignModel> foreign_model(const std::filesystem::path& path);

// Throws Error (unsupported) with what it is and the cure, where it is one.
void refuse_foreign_model(const std::filesystem::path& path);

}  // namespace superstep::data
