// The names that nodes of one graph of a file can see.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "superstep/graph/attributes.h"
#include "superstep/onnx/file.h"
#include "superstep/op/core/builder.h"

namespace superstep::onnx {

// What a name stands for. Initialisers become values when a node first reads them. `failed`: what should have
// given the value is among the findings; `absent`: its node is here, but does not give this output.
struct Entry {
  enum class Kind : std::uint8_t {
    value,
    failed,
    absent,
    initializer,
    sparse_initializer
  } kind = Kind::value;
  op::Var value;
  Bytes initializer;

  static Entry of(op::Var value) { return {.kind = Kind::value, .value = value, .initializer = {}}; }
  static Entry absence() { return {.kind = Kind::absent, .value = {}, .initializer = {}}; }
  static Entry failure() { return {.kind = Kind::failed, .value = {}, .initializer = {}}; }
};

// The attributes a function was called with: values, and graphs as their bytes.
struct CallAttributes {
  graph::Attributes values;
  std::map<std::string, Bytes, std::less<>> graphs;
};

class Scope {
 public:
  // Of a graph: sees the names of `outer` too (null for the model's own graph).
  Scope(const Scope* outer, const Opsets& opsets, std::string prefix = {})
      : outer_(outer),
        opsets_(opsets),
        call_(outer ? outer->call_ : nullptr),
        prefix_(std::move(prefix)),
        depth_(outer ? outer->depth_ + 1 : 0) {}
  // Of a function called from `caller`: sees nothing of it.
  static Scope of_function(const Scope& caller, const Opsets& opsets, const CallAttributes& call,
                           std::string prefix) {
    Scope scope(nullptr, opsets, std::move(prefix));
    scope.call_ = &call;
    scope.depth_ = caller.depth_ + 1;
    return scope;
  }

  void set(std::string_view name, Entry entry) { entries_.insert_or_assign(name, entry); }
  // Of this graph or, from the inside out, of those around it; null when nobody has the name.
  Entry* find(std::string_view name) {
    const auto found = entries_.find(name);
    if (found != entries_.end()) return &found->second;
    return outer_ ? const_cast<Scope*>(outer_)->find(name) : nullptr;
  }

  const Opsets& opsets() const { return opsets_; }
  const CallAttributes* call() const { return call_; }
  const std::string& prefix() const { return prefix_; }  // of the names of its values
  int depth() const { return depth_; }

 private:
  const Scope* outer_;
  const Opsets& opsets_;
  const CallAttributes* call_ = nullptr;
  std::string prefix_;
  int depth_ = 0;
  std::map<std::string_view, Entry> entries_;
};

}  // namespace superstep::onnx
