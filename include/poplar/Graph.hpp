// A graph: variables with their tiles, compute sets of vertices, streams and handles of the host.
#ifndef poplar_Graph_hpp
#define poplar_Graph_hpp

#include <cstdint>
#include <istream>
#include <memory>
#include <ostream>
#include <poplar/ArrayRef.hpp>
#include <poplar/CodeletFileType.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/Device.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/PerfEstimateFunc.hpp>
#include <poplar/Program.hpp>
#include <poplar/SerializationFormat.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/TypeTraits.hpp>
#include <poplar/VariableMappingMethod.hpp>
#include <poplar/exceptions.hpp>
#include <string>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

namespace core {
struct GraphHandle;
class Replicas;
}  // namespace core

class Graph {
 public:
  // Intervals of the flattened tensor, a list a tile.
  using TileToTensorMapping = std::vector<std::vector<Interval>>;

  Graph();
  explicit Graph(const Target& target, replication_factor replicas = replication_factor(1));
  explicit Graph(const Device& device, replication_factor replicas = replication_factor(1));
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const Target& getTarget() const;
  unsigned getReplicationFactor() const;

  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape, const DebugContext& debugContext = {});
  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape, VariableMappingMethod mappingMethod,
                     const DebugContext& debugContext = {});
  // Values are converted to the element type: an integer that it cannot hold is an overflow_error.
  template <class T>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, ArrayRef<T> values,
                     const DebugContext& debugContext = {}) {
    checkNumberOfValues(shape, values.size());
    return addConstant(type, shape, static_cast<const void*>(values.data()), TypeTraits::make<T>(), false,
                       debugContext);
  }
  template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, T value,
                     const DebugContext& debugContext = {}) {
    return addConstant(type, shape, static_cast<const void*>(&value), TypeTraits::make<T>(), true,
                       debugContext);
  }
  template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const T* values,
                     const DebugContext& debugContext = {}) {
    return addConstant(type, shape, static_cast<const void*>(values), TypeTraits::make<T>(), false,
                       debugContext);
  }
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const void* values,
                     const TypeTraits& traits, bool broadcast, const DebugContext& debugContext = {});
  Tensor clone(const Type& type, const Tensor& tensor, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  Tensor clone(const Tensor& tensor, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* bits,
                         const DebugContext& debugContext = {});
  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, std::uint16_t bits,
                         const DebugContext& debugContext = {});
  // `n` clones in one tensor of one more, outermost dimension. By regions: what lies on a tile is laid down n
  // times, one after the other; a poplar_error where the method makes a new order.
  Tensor cloneN(
      const Type& type, const Tensor& tensor, unsigned n, const DebugContext& debugContext = {},
      TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
      TensorCloneDuplicationMethod duplication = TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION);
  Tensor cloneN(
      const Tensor& tensor, unsigned n, const DebugContext& debugContext = {},
      TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
      TensorCloneDuplicationMethod duplication = TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION) {
    return cloneN(tensor.elementType(), tensor, n, debugContext, method, duplication);
  }

  // What the elements are when the program is loaded.
  template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
  void setInitialValue(const Tensor& tensor, T value) {
    setInitialValue(tensor, static_cast<const void*>(&value), TypeTraits::make<T>(), true);
  }
  template <class T>
  void setInitialValue(const Tensor& tensor, ArrayRef<T> values) {
    checkNumberOfValues(ArrayRef<std::size_t>(tensor.numElements()), values.size());
    setInitialValue(tensor, static_cast<const void*>(values.data()), TypeTraits::make<T>(), false);
  }
  void setInitialValue(const Tensor& tensor, const void* values, const TypeTraits& traits, bool broadcast);

  // A later call takes the place of an earlier one. Throws invalid_tile_mapping for a tile that is not there.
  void setTileMapping(const Tensor& tensor, unsigned tile);
  void setTileMapping(const Tensor& tensor, const TileToTensorMapping& mapping);
  // A list for every tile of the graph; throws invalid_tile_mapping where an element has none and all must.
  TileToTensorMapping getTileMapping(const Tensor& tensor, bool requireComplete = true) const;
  TileToTensorMapping getTileMapping(const Tensor& tensor, bool* isComplete) const;

  void setInitialValueHalf(const Tensor& tensor, ArrayRef<std::uint16_t> bits);
  TileToTensorMapping getVariableTileMapping(const Tensor& tensor) const { return getTileMapping(tensor); }

  // The intervals of the flattened tensor, cut where memory does not go on, in the order of memory; what
  // follows one another there is one inner list. `aliases` has a number for each interval: the first place of
  // the same elements.
  std::vector<std::vector<Interval>> getSortedContiguousRegions(
      const Tensor& tensor, ArrayRef<Interval> regions, bool removeAliasedIntervals = false,
      std::vector<std::size_t>* aliases = nullptr) const;
  // Brings the elements of `tensor` (of one dimension) into an order in which it has few regions, and those
  // of `others`, which have as many elements, into the same. Where the simplest is not required, an order
  // that takes long may stay.
  void reorderToSimplify(Tensor* tensor, ArrayRef<Tensor*> others, bool requireSimplestOrder = true) const;
  TensorRearranger getSimplifyingRearranger(const Tensor& tensor) const;
  // The least part of each dimension that the tensor is a broadcast of.
  Tensor findUnbroadcastTensor(const Tensor& tensor) const;
  Tensor getVariable(VariableRef variable) const;  // all of it
  bool isConstant(VariableRef variable) const;

  void createHostWrite(StringRef handle, const Tensor& tensor, bool rearrangeOnHost = false);
  void createHostRead(StringRef handle, const Tensor& tensor, bool rearrangeOnHost = false);
  DataStream addHostToDeviceFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                 ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE,
                                 const OptionFlags& options = {});
  DataStream addDeviceToHostFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                 const OptionFlags& options = {});
  RemoteBuffer addRemoteBuffer(StringRef handle, const Type& elementType, std::size_t numElements,
                               std::size_t repeats = 1, bool rearrangeOnHost = false,
                               bool optimiseMemory = false);

  // Codelets: sources that popc compiles, or files that it has made (.gp). Names are relative to the working
  // folder; a file that was added before changes nothing. Throws graph_program_compilation_error with the
  // compiler's words, graph_object_load_error, graph_object_creation_error where two vertices of one name
  // differ.
  bool addCodelets(StringRef file, CodeletFileType type = CodeletFileType::Auto, StringRef flags = "",
                   StringRef targetName = "");
  bool addCodelets(const char* file, CodeletFileType type = CodeletFileType::Auto, StringRef flags = "",
                   StringRef targetName = "") {
    return addCodelets(StringRef(file), type, flags, targetName);
  }
  bool addCodelets(const std::string& file, CodeletFileType type = CodeletFileType::Auto,
                   StringRef flags = "", StringRef targetName = "") {
    return addCodelets(StringRef(file), type, flags, targetName);
  }
  bool addCodelets(ArrayRef<std::string> files, StringRef flags = "", StringRef targetName = "");
  bool addCodelets(std::initializer_list<std::string> files, StringRef flags = "",
                   StringRef targetName = "") {
    return addCodelets(ArrayRef<std::string>(files), flags, targetName);
  }
  void addCodelets(std::stringstream& source, StringRef flags = "",
                   CodeletFileType type = CodeletFileType::CppSource, StringRef targetName = "");
  bool hasCodelet(StringRef vertexType) const;

  // What a field of a new vertex is connected to: a tensor, tensors, or a number.
  struct ConnectionDesc {
    std::string field;
    std::vector<Tensor> tensors;
    bool isList = false, isValue = false;
    TypeTraits traits = {0, 0, false, false};
    alignas(16) unsigned char value[16] = {};

    ConnectionDesc(StringRef fieldName, const Tensor& tensor) : field(fieldName), tensors(1, tensor) {}
    ConnectionDesc(StringRef fieldName, ArrayRef<Tensor> list)
        : field(fieldName), tensors(list.begin(), list.end()), isList(true) {}
    template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
    ConnectionDesc(StringRef fieldName, T number)
        : field(fieldName), tensors(), isValue(true), traits(TypeTraits::make<T>()) {
      std::memcpy(value, &number, sizeof number);
    }
  };

  ComputeSet addComputeSet(const DebugContext& debugContext = {});
  VertexRef addVertex(ComputeSet computeSet, StringRef vertexType);  // throws unknown_vertex_type
  VertexRef addVertex(ComputeSet computeSet, StringRef vertexType, ArrayRef<ConnectionDesc> connections);
  unsigned getNumVertices() const;
  // The largest extent that a field's layout can count along a dimension (0 is the outer of two), and the
  // largest number that a whole-number field holds.
  std::size_t getMaxFieldDim(StringRef vertexType, StringRef field, unsigned dimension) const;
  std::uint64_t getMaxVertexFieldValue(StringRef vertexType, StringRef field) const;

  // Types must be the same (type_error). A tensor of any shape goes to a vector flattened; a list of vectors
  // takes a list of tensors or the rows of a matrix; a field of one element takes one. Throws unknown_field;
  // graph_connection_error for a field that has its edges already, and for an output that is constant or has
  // an element twice.
  void connect(FieldRef field, const Tensor& tensor);
  void connect(FieldRef field, ArrayRef<Tensor> tensors);
  template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
  void connect(FieldRef field, T value) {  // a constant on the vertex's tile
    connectValue(field, &value, TypeTraits::make<T>());
  }
  // Of a list at least as many vectors as it has: connecting one by its number makes the list that long.
  void setFieldSize(FieldRef field, std::size_t size);
  std::size_t getFieldSize(FieldRef field) const;

  // Of numbers and vectors that are a vertex's own; a number that the field cannot hold is an overflow_error.
  template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
  void setInitialValue(FieldRef field, T value) {
    setFieldValues(field, &value, 1, TypeTraits::make<T>(), false);
  }
  template <class T>
  void setInitialValue(FieldRef field, ArrayRef<T> values) {
    setFieldValues(field, values.data(), values.size(), TypeTraits::make<T>(), true);
  }
  template <class T>
  void setInitialValue(FieldRef field, const std::vector<T>& values) {
    setInitialValue(field, ArrayRef<T>(values));
  }
  template <class T>
  void setInitialValue(FieldRef field, std::initializer_list<T> values) {
    setInitialValue(field, ArrayRef<T>(values));
  }
  void setInitialValueHalf(FieldRef field, std::uint16_t bits);
  void setInitialValueHalf(FieldRef field, ArrayRef<std::uint16_t> bits);

  void setTileMapping(VertexRef vertex, unsigned tile);
  // Cycles of a worker's thread for a Vertex, of the tile for the others.
  void setPerfEstimate(const VertexRef& vertex, std::uint64_t cycles, std::uint64_t flops = 0);
  void setPerfEstimate(const VertexRef& vertex, const VertexPerfEstimate& estimate) {
    setPerfEstimate(vertex, estimate.cycles, estimate.flops);
  }
  // The older name.
  void setCycleEstimate(const VertexRef& vertex, std::uint64_t cycles) { setPerfEstimate(vertex, cycles); }
  std::uint64_t getCycleEstimate(const VertexRef& vertex) const { return getPerfEstimate(vertex).cycles; }
  // What was set, or what the estimator says; throws missing_perf_estimate where there is neither.
  VertexPerfEstimate getPerfEstimate(const VertexRef& vertex) const;
  // Of all vertices of a type that have no estimate of their own.
  void registerPerfEstimator(StringRef vertexType, PerfEstimateFunc estimator);

  Function addFunction(const program::Program& program);
  // Inputs and outputs by type and number of elements; Engine::connectHostFunction says what it does.
  HostFunction addHostFunction(StringRef handle, ArrayRef<HostFunction::Argument> inputs,
                               ArrayRef<HostFunction::Argument> outputs);

  // The same graph on some of its tiles; numbers of tiles count within it.
  Graph createVirtualGraph(unsigned tilesPerIPU) const;  // the first of every chip
  Graph createVirtualGraph(unsigned lowerTile, unsigned upperTile) const;
  Graph createVirtualGraph(const std::vector<unsigned>& perIPUTiles) const;
  Graph getTopLevelGraph() const;
  // Numbers of tiles of this graph in the device, and in the graph that all of its virtual graphs are made
  // of.
  unsigned convertVirtualTileToPhysicalTile(unsigned tile) const;
  unsigned convertPhysicalTileToVirtualTile(unsigned tile) const;
  unsigned convertTileToTopLevelGraphTile(unsigned tile) const {
    return convertVirtualTileToPhysicalTile(tile);
  }

  // A scalar constant, unsigned: the number of the replica that looks at it.
  Tensor addReplicationIndexConstant(const DebugContext& debugContext = {});
  // A graph on the first of `replicationFactor` equal shares of the tiles: what is added to it is added to
  // all of them, and what a program does with its tensors all of them do. Both graphs are one program:
  // tensors go from it to this graph by getNonReplicatedTensor. Throws graph_replication_error where the
  // chips, or the tiles of each, cannot be shared evenly, and where the graph is replicated already.
  Graph createReplicatedGraph(unsigned replicationFactor) const;
  // The tensor of all replicas in the graph around them: they are its outermost dimension.
  Tensor getNonReplicatedTensor(const Tensor& tensor) const;

  // Variables with their tiles, compute sets with their vertices: JSON of our own, whichever format is asked
  // for. It is to be looked at; nothing reads it back.
  void serialize(std::ostream& out, SerializationFormat format) const;
  // Tensors with their variables: types, tiles, values, how they lie. Read again each variable is a new one
  // of this graph. Only Binary, a format of our own. Throws graph_object_load_error for what is no such file.
  void serializeTensors(std::ostream& out, ArrayRef<Tensor> tensors, SerializationFormat format) const;
  std::vector<Tensor> deserializeTensors(std::istream& in, SerializationFormat format);

  // Calls `f`; the names are those of what it does.
  template <class F>
  auto trace(std::initializer_list<StringRef>, F&& f) -> decltype(f()) {
    return f();
  }
  template <class F>
  auto trace(ArrayRef<StringRef>, F&& f) -> decltype(f()) {
    return f();
  }
  // Graphs for Graphviz: which variables the compute sets (the vertices) of the programs read and write.
  void outputComputeGraph(std::ostream& out, ArrayRef<program::Program> programs) const;
  void outputVertexGraph(std::ostream& out, ArrayRef<program::Program> programs) const;

  core::GraphHandle& handle() const;  // of the library

 private:
  explicit Graph(std::unique_ptr<core::GraphHandle> handle);
  void connectValue(FieldRef field, const void* value, const TypeTraits& traits);
  void setFieldValues(FieldRef field, const void* values, std::size_t count, const TypeTraits& traits,
                      bool isList);
  Tensor constantOfBits(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* bits,
                        bool broadcast, const DebugContext& debugContext);
  friend class core::Replicas;
  static void checkNumberOfValues(ArrayRef<std::size_t> shape, std::size_t count);

  std::unique_ptr<core::GraphHandle> handle_;
};

}  // namespace poplar

#pragma GCC visibility pop

#endif
