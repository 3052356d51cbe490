// An ONNX model as `show` sees it: its parameters as arrays, and a section that says what it computes.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/page/page.h"
#include "superstep/show/array_file.h"

namespace superstep::show {

bool is_shown_as_model(const std::filesystem::path& path);  // by its name

// What is trained of a model (onnx/parameters.h), and running statistics, by name; none of a model that
// cannot be imported. Throws Error where the file cannot be opened.
std::unique_ptr<ArrayFile> open_model_parameters(const std::filesystem::path& path);

// Inputs, outputs, operators, metadata and the nodes in the order in which they run.
void add_model(page::Page& page, const std::filesystem::path& path);

}  // namespace superstep::show
