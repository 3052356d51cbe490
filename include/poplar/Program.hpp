// Programs: what a device does, fixed when the graph is compiled.
#ifndef poplar_Program_hpp
#define poplar_Program_hpp

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <poplar/ArrayRef.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/Tensor.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

class Graph;  // sources name it beside programs

namespace core {
struct ProgramData;
}

enum class FloatFormat {
  Auto,  // Scientific where the largest or the smallest number would lose its digits, else Fixed
  Fixed,
  Scientific,
  None  // as short as it comes
};

// How PrintTensor writes. Tensors of more than `summariseThreshold` elements show `edgeItems` at either end
// of each dimension; `digits` counts those of a number, before and after the point; 0: numbers are not
// brought to one width.
struct PrintTensorFmt {
  unsigned summariseThreshold, edgeItems, maxLineWidth, digits;
  FloatFormat floatFormat;
  char separator, openBracket, closeBracket;
  PrintTensorFmt(unsigned threshold = 1000, unsigned edges = 3, unsigned width = 75, unsigned digitCount = 8,
                 FloatFormat format = FloatFormat::Auto, char between = ' ', char open = '[',
                 char close = ']')
      : summariseThreshold(threshold),
        edgeItems(edges),
        maxLineWidth(width),
        digits(digitCount),
        floatFormat(format),
        separator(between),
        openBracket(open),
        closeBracket(close) {}
};

namespace program {

// A value: what is added to a program is copied, and later changes to it do not show there.
class Program {
 public:
  Program();  // an empty sequence
  ~Program();
  Program(const Program&);
  Program(Program&&) noexcept;
  Program& operator=(const Program&);
  Program& operator=(Program&&) noexcept;
  bool isEmpty() const;

  const core::ProgramData& data() const { return *data_; }  // of the library

 protected:
  explicit Program(std::shared_ptr<core::ProgramData> data);
  std::shared_ptr<core::ProgramData> data_;
};

class Sequence : public Program {
 public:
  Sequence(const DebugContext& debugContext = {});
  Sequence(std::initializer_list<Program> programs, const DebugContext& debugContext = {});
  Sequence(const Program& program, const DebugContext& debugContext = {});  // of one
  explicit Sequence(ArrayRef<Program> programs, const DebugContext& debugContext = {});
  // Of two or more, one after the other.
  template <class Second, class... More,
            class = typename std::enable_if<std::is_base_of<Program, Second>::value>::type>
  Sequence(const Program& first, const Second& second, const More&... more)
      : Sequence(std::initializer_list<Program>{first, second, more...}) {}
  void add(const Program& program);
};

class Execute : public Program {
 public:
  explicit Execute(ComputeSet computeSet, const DebugContext& debugContext = {});
  // The tensor (one BOOL, INT or UNSIGNED_INT) becomes true where every vertex's compute() has returned true,
  // else false.
  Execute(ComputeSet computeSet, Tensor predicate, const DebugContext& debugContext = {});
};

// Source and destination have as many elements of the same type, in any shapes: row-major order tells which
// goes where. Where they overlap all is read before anything is written.
class Copy : public Program {
 public:
  Copy(Tensor source, Tensor destination, bool dontOutline = false, const DebugContext& debugContext = {});
  Copy(const DataStream& stream, Tensor destination, bool optimiseMemory = false,
       const DebugContext& debugContext = {});
  Copy(Tensor source, const DataStream& stream, bool optimiseMemory = false,
       const DebugContext& debugContext = {});
  Copy(const RemoteBuffer& buffer, Tensor destination, const DebugContext& debugContext = {});
  Copy(const RemoteBuffer& buffer, Tensor destination, Tensor offset, const DebugContext& debugContext = {});
  Copy(Tensor source, const RemoteBuffer& buffer, const DebugContext& debugContext = {});
  Copy(Tensor source, const RemoteBuffer& buffer, Tensor offset, const DebugContext& debugContext = {});
};

class Repeat : public Program {
 public:
  Repeat(unsigned count, const Program& body, const DebugContext& debugContext = {});
};

// Runs `condition`, then looks at the predicate: while it is true (false) runs `body` and begins again.
// Predicates are one BOOL, INT or UNSIGNED_INT; what is not zero is true.
class RepeatWhileTrue : public Program {
 public:
  RepeatWhileTrue(const Program& condition, Tensor predicate, const Program& body,
                  const DebugContext& debugContext = {});
};
class RepeatWhileFalse : public Program {
 public:
  RepeatWhileFalse(const Program& condition, Tensor predicate, const Program& body,
                   const DebugContext& debugContext = {});
};

class If : public Program {
 public:
  If(Tensor predicate, const Program& trueBody, const DebugContext& debugContext = {});
  If(Tensor predicate, const Program& trueBody, const Program& falseBody,
     const DebugContext& debugContext = {});
};

// The case whose number is in `control` (one INT or UNSIGNED_INT); the default where there is none.
class Switch : public Program {
 public:
  explicit Switch(Tensor control, const DebugContext& debugContext = {});
  Switch(Tensor control, const std::vector<std::pair<std::int32_t, Program>>& cases,
         const DebugContext& debugContext = {});
  Switch(Tensor control, const Program& defaultCaseBody, const DebugContext& debugContext = {});
  Switch(Tensor control, const std::vector<std::pair<std::int32_t, Program>>& cases,
         const Program& defaultCaseBody, const DebugContext& debugContext = {});
  Switch& add(std::int32_t caseValue, const Program& body);
  // A value that is no case stops the engine.
  static Switch switchWithBoundsChecking(Tensor control,
                                         const std::vector<std::pair<std::int32_t, Program>>& cases = {},
                                         const DebugContext& debugContext = {});
  // A value that is no case does nothing.
  static Switch switchWithUnreachableDefault(Tensor control, const DebugContext& debugContext = {});
};

class Call : public Program {
 public:
  explicit Call(Function function, const DebugContext& debugContext = {});
  // Of the host: every tensor is of the type and the size that the function was added with.
  Call(const HostFunction& function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs,
       const DebugContext& debugContext = {});
};

class Sync : public Program {
 public:
  explicit Sync(SyncType type, const DebugContext& debugContext = {});
};

class WriteUndef : public Program {
 public:
  explicit WriteUndef(Tensor tensor, const DebugContext& debugContext = {});
};

// `destination` of replica r takes `source` of replica map.at(r).
class CrossReplicaCopy : public Program {
 public:
  CrossReplicaCopy(Tensor source, Tensor destination, const std::map<unsigned, unsigned>& replicaMap,
                   const DebugContext& debugContext = {});
};

// To standard error, or Engine::setPrintStream.
class PrintTensor : public Program {
 public:
  explicit PrintTensor(Tensor tensor, const DebugContext& debugContext = {});
  PrintTensor(Tensor tensor, const PrintTensorFmt& format, const DebugContext& debugContext = {});
  PrintTensor(StringRef title, Tensor tensor, const DebugContext& debugContext = {});
  PrintTensor(StringRef title, Tensor tensor, const PrintTensorFmt& format,
              const DebugContext& debugContext = {});
};

// Stops the engine with an application_runtime_error that shows the tensor.
class ErrorProgram : public Program {
 public:
  ErrorProgram(StringRef message, Tensor debugTensor, const DebugContext& debugContext = {});
};

// Stops the engine with an application_runtime_error.
class Abort : public Program {
 public:
  explicit Abort(const DebugContext& debugContext = {});
  explicit Abort(const std::string& message, const DebugContext& debugContext = {});
  explicit Abort(const char* message, const DebugContext& debugContext = {})
      : Abort(std::string(message), debugContext) {}
};

// What it holds is one part of the program under one name.
class Block : public Program {
 public:
  explicit Block(const Program& body, const DebugContext& debugContext = {});
};

class AbortOnCondition : public Program {
 public:
  explicit AbortOnCondition(Tensor predicate, const DebugContext& debugContext = {});
  AbortOnCondition(Tensor predicate, const std::string& message, const DebugContext& debugContext = {});
  AbortOnCondition(Tensor predicate, const char* message, const DebugContext& debugContext = {})
      : AbortOnCondition(predicate, std::string(message), debugContext) {}
};

class AssumeEqualAcrossReplicas : public Program {
 public:
  explicit AssumeEqualAcrossReplicas(Tensor tensor, const DebugContext& debugContext = {});
};

}  // namespace program
}  // namespace poplar

#pragma GCC visibility pop

#endif
