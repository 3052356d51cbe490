// Texts, and questions about texts, as a workload's samples: a tokenizer makes the tokens that it is trained
// on.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/source/request.h"

namespace superstep::workload {

// Blocks of `tokens`, or windows of `input_ids` behind questions, as long as `request` wants them. Throws
// Error (invalid_argument) where no tokens are wanted, or others than the data have; what opening either
// throws.
std::unique_ptr<data::SampleSource> open_texts(const std::filesystem::path& path,
                                               const std::filesystem::path& tokenizer,
                                               const data::SourceRequest& request);

}  // namespace superstep::workload
