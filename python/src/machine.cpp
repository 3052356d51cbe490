// The bulk-synchronous machine: graphs, programs, engines. superstep/bsp.py is what users see.
#include <dlfcn.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <sstream>

#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/watch.h"
#include "superstep/bsp.h"

namespace superstep::python {
namespace {

namespace nb = nanobind;
namespace bsp = superstep::bsp;
using namespace nb::literals;

using Extents = std::vector<std::int64_t>;
using Mapping = std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>;

bsp::Type device_type(const std::string& name) {
  const std::optional<ElementType> type = element_type_from_name(name);
  if (!type || !bsp::is_device_type(*type))
    throw Error(ErrorCode::invalid_argument, "is no element type of a tile", "'" + name + "'",
                "f32, f16, i8 to i64, u8 to u64, bool");
  return *type;
}

nb::tuple extents_of(const Shape& shape) {
  nb::list extents;
  for (const std::int64_t extent : shape) extents.append(extent);
  return nb::tuple(extents);
}

// An array of whatever shape, as a tensor with its own elements.
superstep::Tensor values_of(nb::handle array, bsp::Type type, const Shape& shape, const std::string& name) {
  const Port port{name, type, shape};
  const Given given(array, port);
  return given.tensor().clone();
}

void bind_tensors(nb::module_& module) {
  nb::class_<bsp::Tensor>(module, "Tensor", "Elements of variables (superstep.bsp.Tensor).")
      .def_prop_ro("shape", [](const bsp::Tensor& t) { return extents_of(t.shape()); })
      .def_prop_ro("element",
                   [](const bsp::Tensor& t) { return std::string(superstep::name_of(t.element_type())); })
      .def_prop_ro("name", &bsp::Tensor::name)
      .def(
          "index", [](const bsp::Tensor& t, std::int64_t i) { return t[i]; }, "index"_a)
      .def(
          "slice",
          [](const bsp::Tensor& t, std::int64_t begin, std::int64_t end, int axis) {
            return t.slice(begin, end, axis);
          },
          "begin"_a, "end"_a, "axis"_a = 0)
      .def(
          "reshape", [](const bsp::Tensor& t, const Extents& shape) { return t.reshape(Shape(shape)); },
          "shape"_a)
      .def("flatten", [](const bsp::Tensor& t) { return t.flatten(); })
      .def(
          "dim_shuffle", [](const bsp::Tensor& t, const std::vector<int>& p) { return t.dim_shuffle(p); },
          "permutation"_a)
      .def("transpose", &bsp::Tensor::transpose)
      .def("broadcast", &bsp::Tensor::broadcast, "times"_a, "axis"_a)
      .def(
          "expand", [](const bsp::Tensor& t, const std::vector<int>& axes) { return t.expand(axes); },
          "axes"_a)
      .def("squeeze", [](const bsp::Tensor& t) { return t.squeeze(); })
      .def("sub_sample", &bsp::Tensor::sub_sample, "step"_a, "axis"_a)
      .def("reverse", &bsp::Tensor::reverse, "axis"_a)
      .def_prop_ro("is_contiguous", &bsp::Tensor::is_contiguous);
  module.def(
      "concat", [](const std::vector<bsp::Tensor>& tensors, int axis) { return bsp::concat(tensors, axis); },
      "tensors"_a, "axis"_a = 0);
}

// A library of vertex classes: its function superstep_codelets() fills a list.
void load_codelets(bsp::Graph& graph, const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // for ever: vertices call into it
  if (!handle) throw Error(ErrorCode::bad_file, dlerror(), library);
  using List = void (*)(std::vector<bsp::VertexClass>&);
  const auto list = reinterpret_cast<List>(dlsym(handle, "superstep_codelets"));
  if (!list) throw Error(ErrorCode::bad_file, "has no superstep_codelets()", library);
  std::vector<bsp::VertexClass> classes;
  list(classes);
  graph.add_codelets(classes);
}

bsp::VertexRef add_vertex(bsp::Graph& graph, bsp::ComputeSet set, const std::string& name, nb::dict fields,
                          nb::dict state, std::int64_t tile) {
  const bsp::VertexRef vertex = graph.add_vertex(set, name);
  for (const auto& [field, value] : fields) {
    const bsp::FieldRef place = bsp::field(vertex, nb::cast<std::string>(field));
    if (nb::isinstance<bsp::Tensor>(value))
      graph.connect(place, nb::cast<bsp::Tensor>(value));
    else
      graph.connect(place, nb::cast<std::vector<bsp::Tensor>>(value));
  }
  for (const auto& [field, value] : state)
    graph.set_initial_value(bsp::field(vertex, nb::cast<std::string>(field)), nb::cast<double>(value));
  if (tile >= 0) graph.set_tile_mapping(vertex, static_cast<std::uint32_t>(tile));
  return vertex;
}

void map_tensor(bsp::Graph& graph, const bsp::Tensor& tensor, const Mapping& mapping) {
  bsp::TileMapping tiles;
  for (const auto& intervals : mapping) {
    tiles.emplace_back();
    for (const auto& [begin, end] : intervals) tiles.back().push_back({begin, end});
  }
  graph.set_tile_mapping(tensor, tiles);
}

Mapping mapping_of(const bsp::Graph& graph, const bsp::Tensor& tensor) {
  Mapping result;
  for (const auto& intervals : graph.tile_mapping(tensor)) {
    result.emplace_back();
    for (const bsp::Interval& interval : intervals) result.back().emplace_back(interval.begin, interval.end);
  }
  return result;
}

void bind_graphs(nb::module_& module) {
  nb::class_<bsp::ComputeSet>(module, "ComputeSet");
  nb::class_<bsp::VertexRef>(module, "Vertex");
  nb::class_<bsp::Function>(module, "Function");
  nb::class_<bsp::Program>(module, "Program");
  nb::class_<bsp::Graph>(module, "Graph", "A device graph (superstep.bsp.Graph).")
      .def(
          "__init__",
          [](bsp::Graph* graph, const std::string& device, std::uint32_t ipus, std::uint32_t replication) {
            new (graph) bsp::Graph(bsp::find_device(device, ipus), replication);
          },
          "device"_a, "ipus"_a, "replication"_a)
      .def_prop_ro("num_tiles", &bsp::Graph::num_tiles)
      .def_prop_ro("workers", [](const bsp::Graph& graph) { return graph.device().workers; })
      .def_prop_ro("clock_hz", [](const bsp::Graph& graph) { return graph.device().clock_hz; })
      .def(
          "add_variable",
          [](bsp::Graph& graph, const std::string& type, const Extents& shape, const std::string& name) {
            return graph.add_variable(device_type(type), Shape(shape), name);
          },
          "type"_a, "shape"_a, "name"_a)
      .def(
          "add_constant",
          [](bsp::Graph& graph, nb::handle array, const std::string& type, const Extents& shape,
             const std::string& name) {
            return graph.add_constant(values_of(array, device_type(type), Shape(shape), name), name);
          },
          "array"_a, "type"_a, "shape"_a, "name"_a)
      .def(
          "set_initial_value",
          [](bsp::Graph& graph, const bsp::Tensor& tensor, nb::handle array) {
            graph.set_initial_value(tensor,
                                    values_of(array, tensor.element_type(), tensor.shape(), tensor.name()));
          },
          "tensor"_a, "array"_a)
      .def(
          "set_tile",
          [](bsp::Graph& graph, const bsp::Tensor& tensor, std::uint32_t tile) {
            graph.set_tile_mapping(tensor, tile);
          },
          "tensor"_a, "tile"_a)
      .def("set_tile_mapping", map_tensor, "tensor"_a, "mapping"_a)
      .def("map_linearly", &bsp::Graph::map_linearly, "tensor"_a, "minimum"_a, "grain"_a)
      .def("tile_mapping", mapping_of, "tensor"_a)
      .def("load_codelets", load_codelets, "library"_a)
      .def("add_compute_set", &bsp::Graph::add_compute_set, "name"_a)
      .def("add_vertex", add_vertex, "compute_set"_a, "codelet"_a, "fields"_a, "state"_a, "tile"_a)
      .def(
          "set_perf_estimate",
          [](bsp::Graph& graph, bsp::VertexRef vertex, std::uint64_t cycles, std::uint64_t flops) {
            graph.set_perf_estimate(vertex, cycles, flops);
          },
          "vertex"_a, "cycles"_a, "flops"_a)
      .def("create_host_write", &bsp::Graph::create_host_write, "handle"_a, "tensor"_a)
      .def("create_host_read", &bsp::Graph::create_host_read, "handle"_a, "tensor"_a)
      .def("add_function", &bsp::Graph::add_function, "program"_a);
}

bsp::Program sequence(const std::vector<bsp::Program>& programs, const std::string& name) {
  bsp::Sequence all(name);
  for (const bsp::Program& program : programs) all.add(program);
  return all;
}

void bind_programs(nb::module_& module) {
  using bsp::Program;
  using bsp::Tensor;
  module.def("sequence", sequence, "programs"_a, "name"_a);
  module.def(
      "execute", [](bsp::ComputeSet set) -> Program { return bsp::Execute(set); }, "compute_set"_a);
  module.def(
      "copy", [](const Tensor& from, const Tensor& to) -> Program { return bsp::Copy(from, to); }, "source"_a,
      "destination"_a);
  module.def(
      "repeat", [](std::uint64_t count, const Program& body) -> Program { return bsp::Repeat(count, body); },
      "count"_a, "body"_a);
  module.def(
      "repeat_while",
      [](const Program& condition, const Tensor& predicate, const Program& body, bool wanted) -> Program {
        if (wanted) return bsp::RepeatWhileTrue(condition, predicate, body);
        return bsp::RepeatWhileFalse(condition, predicate, body);
      },
      "condition"_a, "predicate"_a, "body"_a, "wanted"_a);
  module.def(
      "branch",
      [](const Tensor& predicate, const Program& when_true, const Program& when_false) -> Program {
        return bsp::If(predicate, when_true, when_false);
      },
      "predicate"_a, "when_true"_a, "when_false"_a);
  module.def(
      "switch_case",
      [](const Tensor& control, std::vector<std::pair<std::int64_t, Program>> cases,
         const Program& otherwise) -> Program { return bsp::Switch(control, std::move(cases), otherwise); },
      "control"_a, "cases"_a, "otherwise"_a);
  module.def(
      "call", [](bsp::Function function) -> Program { return bsp::Call(function); }, "function"_a);
  module.def(
      "sync",
      [](bool external) -> Program {
        return bsp::Sync(external ? bsp::SyncType::external : bsp::SyncType::internal);
      },
      "external"_a);
  module.def(
      "write_undef", [](const Tensor& tensor) -> Program { return bsp::WriteUndef(tensor); }, "tensor"_a);
  module.def(
      "abort_on_condition",
      [](const Tensor& predicate, const std::string& message) -> Program {
        return bsp::AbortOnCondition(predicate, message);
      },
      "predicate"_a, "message"_a);
}

bsp::Engine* compile(const bsp::Graph& graph, const std::vector<bsp::Program>& programs, int threads,
                     bool timing_only, bool allow_out_of_memory) {
  bsp::EngineOptions options;
  options.threads = threads;
  options.timing_only = timing_only;
  bsp::CompileOptions compile_options;
  compile_options.timing_only = timing_only;
  compile_options.allow_out_of_memory = allow_out_of_memory;
  return new bsp::Engine(
      Watch().call([&] { return bsp::Engine(graph, programs, options, compile_options); }));
}

void write(bsp::Engine& engine, const std::string& handle, nb::handle array, const std::string& type,
           const Extents& shape) {
  const Port port{handle, device_type(type), Shape(shape)};
  const Given given(array, port);
  engine.write_tensor(handle, given.tensor().bytes(), given.tensor().byte_count());
}

nb::object read(const bsp::Engine& engine, const std::string& handle, const std::string& type,
                const Extents& shape) {
  superstep::Tensor values(device_type(type), Shape(shape));
  engine.read_tensor(handle, values.bytes(), values.byte_count());
  return array_of(values, handle);
}

std::string summary(const bsp::Engine& engine) {
  std::ostringstream text;
  engine.print_profile_summary(text);
  return text.str();
}

void bind_engines(nb::module_& module) {
  nb::class_<bsp::Engine>(module, "Engine", "Compiled programs (superstep.bsp.Engine).")
      .def(
          "run", [](bsp::Engine& engine, int program) { Watch().call([&] { engine.run(program); }); },
          "program"_a)
      .def("write", write, "handle"_a, "array"_a, "type"_a, "shape"_a)
      .def("read", read, "handle"_a, "type"_a, "shape"_a)
      .def("cycles", [](const bsp::Engine& engine) { return engine.profile().total_cycles(); })
      .def("profile_json", [](const bsp::Engine& engine) { return bsp::profile_to_json(engine.profile()); })
      .def("profile_html", [](const bsp::Engine& engine) { return bsp::profile_to_html(engine.profile()); })
      .def("summary", summary);
  module.def("compile", compile, "graph"_a, "programs"_a, "threads"_a, "timing_only"_a,
             "allow_out_of_memory"_a);
}

}  // namespace

void bind_machine(nb::module_& module) {
  nb::module_ machine = module.def_submodule("bsp", "The bulk-synchronous machine (superstep.bsp).");
  bind_tensors(machine);
  bind_graphs(machine);
  bind_programs(machine);
  bind_engines(machine);
  machine.def("device_names", bsp::device_names);
}

}  // namespace superstep::python
