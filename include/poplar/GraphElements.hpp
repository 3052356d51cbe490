// Things that a graph has made, as values to refer to them by.
#ifndef poplar_GraphElements_hpp
#define poplar_GraphElements_hpp

#include <cstddef>
#include <cstdint>
#include <functional>
#include <poplar/Interval.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/Type.hpp>
#include <string>
#include <utility>
#include <vector>

namespace poplar {

namespace core {
constexpr std::uint32_t NO_ELEMENT = 0xffffffffu;
}

class FieldRef;

class VertexRef {
 public:
  VertexRef() : id_(core::NO_ELEMENT) {}
  explicit VertexRef(std::uint32_t id) : id_(id) {}
  std::uint32_t getId() const { return id_; }
  inline FieldRef operator[](StringRef fieldName) const;
  friend bool operator==(const VertexRef& a, const VertexRef& b) { return a.id_ == b.id_; }
  friend bool operator<(const VertexRef& a, const VertexRef& b) { return a.id_ < b.id_; }

 private:
  std::uint32_t id_;
};

// A field of a vertex, or one element or vector of it.
class FieldRef {
 public:
  FieldRef() : vertex_(), name_(), index_(0), indexed_(false) {}
  FieldRef(VertexRef vertex, StringRef fieldName)
      : vertex_(vertex), name_(fieldName), index_(0), indexed_(false) {}
  FieldRef(FieldRef field, std::size_t index)
      : vertex_(field.vertex_), name_(field.name_), index_(index), indexed_(true) {}
  FieldRef operator[](std::size_t index) const { return FieldRef(*this, index); }

  VertexRef getVertex() const { return vertex_; }
  const std::string& getName() const { return name_; }
  bool isIndexed() const { return indexed_; }
  std::size_t getIndex() const { return index_; }

 private:
  VertexRef vertex_;
  std::string name_;
  std::size_t index_;
  bool indexed_;
};

inline FieldRef VertexRef::operator[](StringRef fieldName) const { return FieldRef(*this, fieldName); }

// Vertices that run side by side.
class ComputeSet {
 public:
  ComputeSet() : id_(core::NO_ELEMENT) {}
  explicit ComputeSet(std::uint32_t id) : id_(id) {}
  std::uint32_t getId() const { return id_; }

 private:
  std::uint32_t id_;
};

class Function {
 public:
  Function() : id_(core::NO_ELEMENT) {}
  explicit Function(std::uint32_t id) : id_(id) {}
  std::uint32_t getId() const { return id_; }

 private:
  std::uint32_t id_;
};

// A function of the host that programs call.
class HostFunction {
 public:
  using Argument = std::pair<Type, std::size_t>;  // element type, number of elements
  HostFunction() : handle_(), inputs_(), outputs_() {}
  HostFunction(StringRef handleName, std::vector<std::uint32_t> inputs, std::vector<std::uint32_t> outputs)
      : handle_(handleName), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}
  const std::string& handle() const { return handle_; }
  const std::vector<std::uint32_t>& inputs() const { return inputs_; }  // streams, of the library
  const std::vector<std::uint32_t>& outputs() const { return outputs_; }

 private:
  std::string handle_;
  std::vector<std::uint32_t> inputs_, outputs_;
};

class DataStream {
 public:
  DataStream() : id_(core::NO_ELEMENT), handle_() {}
  DataStream(std::uint32_t id, StringRef handleName) : id_(id), handle_(handleName) {}
  std::uint32_t getId() const { return id_; }
  std::string handle() const { return handle_; }

 private:
  std::uint32_t id_;
  std::string handle_;
};

class RemoteBuffer {
 public:
  RemoteBuffer() : id_(core::NO_ELEMENT), handle_(), elements_(0), repeats_(0) {}
  RemoteBuffer(std::uint32_t id, StringRef handleName, std::size_t elements, std::size_t repeats)
      : id_(id), handle_(handleName), elements_(elements), repeats_(repeats) {}
  std::uint32_t getId() const { return id_; }
  std::string handle() const { return handle_; }
  std::size_t numElements() const { return elements_; }
  std::size_t getRepeats() const { return repeats_; }

 private:
  std::uint32_t id_;
  std::string handle_;
  std::size_t elements_, repeats_;
};

class VariableRef {
 public:
  VariableRef() : id_(core::NO_ELEMENT) {}
  explicit VariableRef(std::uint32_t id) : id_(id) {}
  std::uint32_t getId() const { return id_; }
  std::size_t hash() const { return id_; }
  friend bool operator==(const VariableRef& a, const VariableRef& b) { return a.id_ == b.id_; }
  friend bool operator!=(const VariableRef& a, const VariableRef& b) { return a.id_ != b.id_; }
  friend bool operator<(const VariableRef& a, const VariableRef& b) { return a.id_ < b.id_; }

 private:
  std::uint32_t id_;
};

struct VariableInterval {
  VariableRef var;
  Interval interval;
  VariableInterval() : var(), interval() {}
  VariableInterval(VariableRef variable, Interval range) : var(variable), interval(range) {}
  friend bool operator==(const VariableInterval& a, const VariableInterval& b) {
    return a.var == b.var && a.interval == b.interval;
  }
  friend bool operator<(const VariableInterval& a, const VariableInterval& b) {
    return a.var == b.var ? a.interval < b.interval : a.var < b.var;
  }
};

enum class ReplicatedStreamMode {
  REPLICATE,  // data of its own for every replica
  BROADCAST   // the same for all
};

enum class UpsampleMethod { REPEAT };

enum class SyncType { INTERNAL, EXTERNAL, GLOBAL };

// How many copies of the graph share the chips of a device.
class replication_factor {
 public:
  explicit replication_factor(unsigned count) : count_(count) {}
  operator unsigned() const { return count_; }

 private:
  unsigned count_;
};

}  // namespace poplar

namespace std {
template <>
struct hash<poplar::VariableRef> {
  std::size_t operator()(const poplar::VariableRef& variable) const { return variable.hash(); }
};
}  // namespace std

#endif
