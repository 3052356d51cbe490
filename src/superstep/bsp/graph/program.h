// Programs: a tree of control flow over compute sets and copies, fixed when the graph is compiled.
//
//     Sequence main;
//     main.add(Copy(input_stream, x));
//     main.add(Repeat(10, Execute(step)));
//     main.add(Copy(x, output_stream));
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "superstep/base/id.h"
#include "superstep/bsp/graph/tensor.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

enum class ReplicatedStreamMode { replicate, broadcast };  // a buffer a replica, or one for all

using ComputeSetId = Id<struct ComputeSetTag>;
using VertexId = Id<struct VertexTag>;
using StreamId = Id<struct StreamTag>;
using RemoteBufferId = Id<struct RemoteBufferTag>;
using FunctionId = Id<struct FunctionTag>;

struct ComputeSet {
  ComputeSetId id;
};
struct DataStream {
  StreamId id;
};
struct RemoteBuffer {
  RemoteBufferId id;
};
struct Function {
  FunctionId id;
};

enum class ProgramKind : std::uint8_t {
  sequence,
  execute,
  copy,          // tensor to tensor
  stream_in,     // host to tensor
  stream_out,    // tensor to host
  remote_read,   // remote buffer to tensor
  remote_write,  // tensor to remote buffer
  repeat,
  repeat_while,  // condition program, then predicate, then body
  branch,        // If
  switch_case,
  call,
  sync,
  write_undef,
  cross_replica_copy,
  print_tensor,
  abort_on_condition,
  error,
  assume_equal,
  count_cycles,  // begins a count of cycles in a tensor, or ends it
};
const char* name_of(ProgramKind kind);

// Writes a tensor's elements, row-major, as a program wants them shown.
using TensorPrinter = std::function<void(std::ostream& out, const std::string& title, Type type,
                                         const Shape& shape, const std::byte* elements)>;

enum class SyncType : std::uint8_t { internal, external };  // of one chip's tiles; of all chips

struct ProgramNode {
  ProgramKind kind = ProgramKind::sequence;
  std::string name;                        // for messages and profiles
  std::vector<class Program> children;     // of a branch: true, false; of a switch: cases, then default
  std::vector<Tensor> tensors;             // source, destination; or the predicate, the offset, the status
  std::vector<std::int64_t> cases;         // values of a switch
  std::vector<std::uint32_t> replica_map;  // of a cross-replica copy: the replica to take from
  std::uint64_t count = 0;                 // of a repeat
  bool wanted = true;                      // of a repeat_while: goes on while the predicate is this
                                           // of a count_cycles: begins
  SyncType sync = SyncType::internal;
  ComputeSetId compute_set;
  StreamId stream;
  RemoteBufferId buffer;
  FunctionId function;
  std::string message;
  TensorPrinter printer;  // of a print_tensor; empty: print_tensor() of graph/print_tensor.h
};

class Program {
 public:
  Program();  // an empty sequence
  const ProgramNode& node() const { return *node_; }
  bool empty() const { return node_->kind == ProgramKind::sequence && node_->children.empty(); }

 protected:
  explicit Program(ProgramNode node) : node_(std::make_shared<ProgramNode>(std::move(node))) {}
  ProgramNode& edit();  // own copy when shared
  std::shared_ptr<ProgramNode> node_;
};

class Sequence : public Program {
 public:
  Sequence() : Sequence(std::string()) {}
  explicit Sequence(std::string name);
  Sequence(std::initializer_list<Program> programs, std::string name = {});
  void add(const Program& program);
};

class Execute : public Program {
 public:
  explicit Execute(ComputeSet set, std::string name = {});
  // `status` (one bool or integer element) becomes true where every vertex has said so (VertexClass::status).
  Execute(ComputeSet set, const Tensor& status, std::string name = {});
};

class Copy : public Program {
 public:
  Copy(const Tensor& source, const Tensor& destination, std::string name = {});
  Copy(DataStream stream, const Tensor& destination, std::string name = {});
  Copy(const Tensor& source, DataStream stream, std::string name = {});
  // Rows of a remote buffer, chosen by an offset tensor (one unsigned or int element a row), or row 0.
  Copy(RemoteBuffer buffer, const Tensor& destination, std::string name = {});
  Copy(RemoteBuffer buffer, const Tensor& destination, const Tensor& offset, std::string name = {});
  Copy(const Tensor& source, RemoteBuffer buffer, std::string name = {});
  Copy(const Tensor& source, RemoteBuffer buffer, const Tensor& offset, std::string name = {});
};

class Repeat : public Program {
 public:
  Repeat(std::uint64_t count, const Program& body, std::string name = {});
};

// Runs `condition`, reads the predicate, and while it is true (false) runs `body` and begins again.
class RepeatWhileTrue : public Program {
 public:
  RepeatWhileTrue(const Program& condition, const Tensor& predicate, const Program& body,
                  std::string name = {});
};
class RepeatWhileFalse : public Program {
 public:
  RepeatWhileFalse(const Program& condition, const Tensor& predicate, const Program& body,
                   std::string name = {});
};

class If : public Program {
 public:
  If(const Tensor& predicate, const Program& when_true, const Program& when_false = Sequence(),
     std::string name = {});
};

class Switch : public Program {
 public:
  Switch(const Tensor& control, std::vector<std::pair<std::int64_t, Program>> cases,
         const Program& otherwise = Sequence(), std::string name = {});
};

class Call : public Program {
 public:
  explicit Call(Function function, std::string name = {});
};

class Sync : public Program {
 public:
  explicit Sync(SyncType type, std::string name = {});
};

class WriteUndef : public Program {  // ends the life of the tensor's values
 public:
  explicit WriteUndef(const Tensor& tensor, std::string name = {});
};

// destination of replica r takes source of replica map[r].
class CrossReplicaCopy : public Program {
 public:
  CrossReplicaCopy(const Tensor& source, const Tensor& destination, std::vector<std::uint32_t> map,
                   std::string name = {});
};

class PrintTensor : public Program {
 public:
  // `form` goes with the printer, as its message: what one like it can be made of.
  explicit PrintTensor(const Tensor& tensor, std::string title = {}, TensorPrinter printer = {},
                       std::string form = {});
};

class AbortOnCondition : public Program {
 public:
  AbortOnCondition(const Tensor& predicate, std::string message, std::string name = {});
};

class ErrorProgram : public Program {  // stops the engine and shows the tensor
 public:
  ErrorProgram(std::string message, const Tensor& debug, std::string name = {});
  explicit ErrorProgram(std::string message, std::string name = {});  // shows nothing
};

// Says that replicas hold equal values; the engine checks it and stops, naming the element, when they do not.
class AssumeEqualAcrossReplicas : public Program {
 public:
  explicit AssumeEqualAcrossReplicas(const Tensor& tensor, std::string name = {});
  // So many replicas that are one after the other in the tensor.
  AssumeEqualAcrossReplicas(const Tensor& tensor, std::uint64_t replicas, std::string name);
};

// Cycles between the one that begins and the one that ends, as a 64-bit number in two unsigned elements, the
// lower half first.
class CountCycles : public Program {
 public:
  CountCycles(const Tensor& count, bool begins, std::string name = {});
};

}  // namespace superstep::bsp

#pragma GCC visibility pop
