// What is behind an executable and an engine.
#pragma once

#include <atomic>
#include <poplar/Engine.hpp>

#include "superstep/bsp/engine/engine.h"
#include "superstep/poplar/core/handles.h"

namespace poplar::core {

struct ExecutableData {
  bsp::Executable executable;
  Target target;
  OptionFlags options;  // that it was compiled with
};

struct EngineData {
  EngineData(std::shared_ptr<const ExecutableData> compiled, const OptionFlags& options);
  ~EngineData();
  EngineData(const EngineData&) = delete;
  EngineData& operator=(const EngineData&) = delete;
  void write_report() const;  // where one is wanted

  std::shared_ptr<const ExecutableData> executable;
  std::atomic<bool> stop = false;  // what runs has to end
  std::ostream print_stream;       // where PrintTensor writes: its buffer can be changed
  bsp::Engine engine;
  bool prepared = false, loaded = false;
  ProfileValue graph_profile, execution_profile;  // that were asked for last
  std::string report;                             // the file of the report; empty: none is wanted
};

// With those of the environment (POPLAR_ENGINE_OPTIONS, a JSON object), which take their place.
OptionFlags with_environment(OptionFlags options);
// The file of the report that the options ask for (autoReport.*), or nothing.
std::string report_file(const OptionFlags& options);
// What options of an engine say. Throws invalid_option, with the nearest name, for one that there is not.
bsp::CompileOptions compile_options(const OptionFlags& options);
bsp::SummaryOptions summary_options(const OptionFlags& options);

}  // namespace poplar::core
