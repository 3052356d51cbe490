// ONNX Runtime as a program that obeys commands (bench/peers/README.md).
#pragma once

#include <filesystem>
#include <string>

#include "tests/oracles/folder.h"

namespace superstep {

// How a shell starts it, with the library of tools/setup-oracles where that is there, else with that of the
// benchmarks; the program says "absent" where there is none.
inline std::string onnxruntime_peer() {
  const std::string library = std::string(oracles_folder()) + "/libonnxruntime.so";
  const std::string chosen =
      std::filesystem::exists(library) ? "SUPERSTEP_ONNXRUNTIME='" + library + "' " : "";
  return chosen + SUPERSTEP_ONNXRUNTIME_PEER;
}

}  // namespace superstep
