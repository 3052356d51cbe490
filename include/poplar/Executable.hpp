// A compiled graph: what engines need of it.
#ifndef poplar_Executable_hpp
#define poplar_Executable_hpp

#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <poplar/ArrayRef.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

#pragma GCC visibility push(default)

namespace poplar {

namespace core {
struct ExecutableData;
}

using ProgressFunc = std::function<void(int done, int all)>;

class Executable {
 public:
  Executable();
  ~Executable();
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // To a file and back, with the codelets' code in it: an engine of it needs neither graph nor sources. The
  // same graph and programs give the same bytes. What is damaged, or was written by another version, is a
  // graph_object_load_error. Loading runs code of the file: load what you trust.
  void serialize(std::ostream& out) const;
  static Executable deserialize(std::istream& in);

  explicit Executable(std::shared_ptr<const core::ExecutableData> data);  // of the library
  std::shared_ptr<const core::ExecutableData> data() const;

 private:
  std::shared_ptr<const core::ExecutableData> data_;
};

// Throws invalid_tile_mapping (an element or a vertex on no tile), graph_connection_error (a field without an
// edge, two vertices of a compute set that write one element, one that writes what another reads),
// control_program_error, graph_memory_allocation_error, invalid_option.
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> programs,
                        const OptionFlags& options = {}, ProgressFunc progress = ProgressFunc(),
                        const DebugContext& debugContext = {});

}  // namespace poplar

#pragma GCC visibility pop

#endif
