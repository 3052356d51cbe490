#include "superstep/poplar/core/guard.h"

#include "superstep/bsp/graph/rule_error.h"

namespace poplar::core {
namespace {

using superstep::bsp::Rule;

void throw_by_rule(const superstep::Error& error) {
  if (error.code() == superstep::ErrorCode::out_of_memory) throw graph_memory_allocation_error(error.what());
  const auto* broken = dynamic_cast<const superstep::bsp::RuleError*>(&error);
  if (!broken) return;
  switch (broken->rule()) {
    case Rule::mapped: throw invalid_tile_mapping(error.what());
    case Rule::connected: throw graph_connection_error(error.what());
    case Rule::no_race: throw graph_cycle_error(error.what());  // as the SDK has it
    case Rule::written_first:
    case Rule::writeable:
    case Rule::transfer: throw control_program_error(error.what());
    case Rule::stream_connected: throw stream_connection_error(error.what());
  }
}

}  // namespace

void rethrow(const superstep::Error& error) {
  throw_by_rule(error);
  throw poplar_error(error.what());
}

void rethrow_running(const superstep::Error& error) {
  throw_by_rule(error);
  throw application_runtime_error(error.what());
}

}  // namespace poplar::core
