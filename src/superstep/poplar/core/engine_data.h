// What is behind an executable and an engine.
#pragma once

#include <poplar/Engine.hpp>

#include "superstep/bsp/engine/engine.h"
#include "superstep/poplar/core/handles.h"

namespace poplar::core {

struct ExecutableData {
  bsp::Executable executable;
  Target target;
};

struct EngineData {
  EngineData(std::shared_ptr<const ExecutableData> compiled, const bsp::EngineOptions& options);

  std::shared_ptr<const ExecutableData> executable;
  std::ostream print_stream;  // where PrintTensor writes: its buffer can be changed
  bsp::Engine engine;
  bool prepared = false, loaded = false;
};

// What options of an engine say. Throws invalid_option, with the nearest name, for one that there is not.
bsp::CompileOptions compile_options(const OptionFlags& options);
bsp::SummaryOptions summary_options(const OptionFlags& options);

}  // namespace poplar::core
