// Files that torch.save writes of a state dictionary: a zip archive of a pickle and of the elements.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/weights/weight.h"

namespace superstep::data {

// Whether the archive holds what torch.save writes (npz files are zip archives, too).
bool is_torch_archive(std::span<const std::byte> bytes, const std::string& where);

// Dictionaries in the dictionary give names with dots: "model.conv1.weight". Other values than tensors are
// left out. Elements are read from the archive when they are asked for; `bytes` are kept by `owner`. Throws
// what unpickle() throws, and bad_file naming the tensor whose storage is missing or too short.
std::vector<Weight> parse_torch_file(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                     const std::string& where);

}  // namespace superstep::data
