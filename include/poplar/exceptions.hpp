// What the library throws: everything is a poplar_error.
#ifndef poplar_exceptions_hpp
#define poplar_exceptions_hpp

#include <poplar/ProfileValue.hpp>
#include <stdexcept>
#include <string>

#pragma GCC visibility push(default)

namespace poplar {

struct poplar_error : public std::runtime_error {
  explicit poplar_error(const std::string& text);
  explicit poplar_error(const char* text);
  ~poplar_error() override;
};

#define POPLAR_ERROR(name, base)            \
  struct name : public base {               \
    explicit name(const std::string& text); \
    explicit name(const char* text);        \
    ~name() override;                       \
  };

// Building a graph.
POPLAR_ERROR(graph_object_creation_error, poplar_error)
POPLAR_ERROR(graph_object_load_error, poplar_error)
POPLAR_ERROR(graph_program_compilation_error, poplar_error)  // a codelet does not compile
POPLAR_ERROR(graph_connection_error, poplar_error)           // a field without an edge
POPLAR_ERROR(graph_cycle_error, poplar_error)                // two writers of an element in one compute set
POPLAR_ERROR(graph_recursion_error, poplar_error)
POPLAR_ERROR(graph_replication_error, poplar_error)
POPLAR_ERROR(control_program_error, poplar_error)  // a program that cannot be: a copy into a constant
POPLAR_ERROR(unknown_vertex_type, poplar_error)
POPLAR_ERROR(unknown_field, poplar_error)
POPLAR_ERROR(no_size_specified, poplar_error)
POPLAR_ERROR(type_error, poplar_error)
POPLAR_ERROR(index_error, poplar_error)  // an index or a dimension out of range
POPLAR_ERROR(overflow_error, poplar_error)
POPLAR_ERROR(tensor_creation_error, poplar_error)
POPLAR_ERROR(tensor_io_state_error, poplar_error)
POPLAR_ERROR(invalid_tile_mapping,
             poplar_error)  // an element or a vertex on no tile, or on one that is not there
POPLAR_ERROR(invalid_machine_model, poplar_error)
POPLAR_ERROR(invalid_option, poplar_error)
POPLAR_ERROR(missing_perf_estimate, poplar_error)
POPLAR_ERROR(memory_elem_constraints_error, poplar_error)
POPLAR_ERROR(link_error, poplar_error)
POPLAR_ERROR(symbol_error, poplar_error)
POPLAR_ERROR(file_load_error, poplar_error)
POPLAR_ERROR(parse_error, poplar_error)

// Compiling, loading and running.
struct graph_memory_allocation_error : public poplar_error {  // a tile is too full
  explicit graph_memory_allocation_error(const std::string& text);
  explicit graph_memory_allocation_error(const char* text);
  ~graph_memory_allocation_error() override;
  ProfileValue graphProfile;  // of the graph that does not fit
};
POPLAR_ERROR(stream_connection_error, poplar_error)
POPLAR_ERROR(stream_memory_allocation_error, poplar_error)
POPLAR_ERROR(profiling_disabled, poplar_error)
POPLAR_ERROR(runtime_error, poplar_error)
POPLAR_ERROR(application_runtime_error, runtime_error)  // the program is used wrongly
POPLAR_ERROR(system_runtime_error, runtime_error)
POPLAR_ERROR(recoverable_runtime_error, system_runtime_error)
POPLAR_ERROR(unrecoverable_runtime_error, system_runtime_error)
POPLAR_ERROR(unknown_runtime_error, system_runtime_error)

#undef POPLAR_ERROR

}  // namespace poplar

#pragma GCC visibility pop

#endif
