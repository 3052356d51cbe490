// `superstep onnx export`, a subcommand of `superstep onnx` (cli/onnx.cpp).
#pragma once

#include <CLI/CLI.hpp>

namespace superstep::cli {

void declare_onnx_export(CLI::App& command);

}  // namespace superstep::cli
