// What every prepared kernel of the CPU target is to the planner that calls it.
//
// A kernel is prepared once, when a graph is compiled: `prepare_...(specification)` checks the shapes and
// strides, dispatches or generates machine code, chooses the blocking and returns a small object. The object
// then runs many times. A run allocates nothing, takes no lock and starts no thread; one object may run in
// several threads at once as long as each has its own scratch and its own outputs. The bits it writes depend
// on its arguments alone (and on the instruction set in force when it was prepared), never on the thread,
// the time or the address.
//
// Specifications give extents and strides in elements; pointers arrive at run time, in the order that the
// specification's header names ("slots"). Pointers need the natural alignment of their element; 64-byte
// alignment of tensors and of row strides is faster. Kernels read and write exactly the elements the
// specification names, nothing between strided rows and nothing past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// Why an implementation does not serve a specification.
struct Refusal {
  std::string implementation;  // "libxsmm", "one channel", ...
  std::string reason;          // "the output's channels are not a unit-stride dimension"
};

std::string to_string(const Refusal& refusal);  // "libxsmm: the output's ..."

class Kernel;
using KernelPointer = std::unique_ptr<Kernel>;
using Prepared = std::expected<KernelPointer, Refusal>;

struct WeightTransfer;  // weights.h

// Weights as one kernel alone wants them: its file says how they are packed (winograd_weights.cpp is an
// example). They have the type of the kernel's arithmetic.
struct OwnWeights {
  const char* name;
  std::size_t (*packed_elements)(const WeightTransfer& transfer);
  Prepared (*prepare_pack)(const WeightTransfer& transfer);  // slots as those of weights.h
};

// How a convolution kernel wants its weights (see weights.h): in an order that several share, or its own.
// Channels along the contiguous dimension are cut into panels of panel_width, the last one as narrow as what
// is left; a panel is contiguous.
class WeightLayout {
 public:
  enum Shared {
    none,               // the kernel takes no packed weights
    taps_in_out,        // [groups][panel][kh][kw][in][out of the panel]: forward
    taps_out_in,        // [groups][panel][kh][kw][out][in of the panel]: gradient by the input
    taps_in_out_pairs,  // [groups][panel][kh][kw][in/2][out of the panel][2], bf16; odd `in` filled with
                        // zeros
    taps_out_in_pairs,  // [groups][panel][kh][kw][out/2][in of the panel][2], bf16, likewise
    taps_out_in_rows,   // [groups][kh][kw][out][in], no panels: forward with few outputs
    taps_in_out_rows,   // [groups][kh][kw][in][out], no panels: gradient by few inputs
    taps_channels,      // [kh][kw][channels]: depthwise, one input and one output channel a group
    taps_in_out_quads,  // [groups][panel][kh][kw][in/4][out of the panel][4], i8; `in` a multiple of 4
  };
  constexpr WeightLayout(Shared shared) : shared_(shared) {}
  constexpr WeightLayout(const OwnWeights& own) : own_(&own) {}

  Shared shared() const { return shared_; }       // none where it is the kernel's own
  const OwnWeights* own() const { return own_; }  // null where it is shared
  friend bool operator==(const WeightLayout&, const WeightLayout&) = default;

 private:
  Shared shared_ = none;
  const OwnWeights* own_ = nullptr;
};

inline constexpr std::int64_t panel_width = 64;

const char* name_of(WeightLayout layout);

struct KernelInfo {
  std::string name;                           // implementation and blocking, for --explain
  double flops = 0;                           // of one run; a multiply-add counts two; padding counts nothing
  double bytes = 0;                           // read and written once each: the compulsory traffic of one run
  std::size_t scratch_bytes = 0;              // what run() needs behind Arguments::scratch, 64-byte aligned
  std::size_t inputs = 0, outputs = 0;        // slots that run() reads from its arguments
  std::int64_t parts = 1;                     // what run_part() divides a run into
  int members = 1;                            // threads, at most, that can share a run by run_shared()
  WeightLayout weights = WeightLayout::none;  // of the packed weights, or of the weight gradient
  std::vector<Refusal> refused;               // faster implementations that said no, fastest first
  ElementType arithmetic = ElementType::f32;  // what is multiplied; sums are f32, of i8 i32
};

// The pointers of one run, in the order the specification documents.
struct Arguments {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  void* scratch = nullptr;
};

// Parts enough for a handful of threads to share evenly, few enough that claiming one costs nothing beside
// it.
inline constexpr std::int64_t most_parts = 32;

// The range of `total` equal items that is part `part` of `parts`.
struct PartRange {
  std::int64_t begin = 0, end = 0;
};
inline PartRange part_range(std::int64_t total, std::int64_t part, std::int64_t parts) {
  return {total * part / parts, total * (part + 1) / parts};
}

class Kernel {
 public:
  explicit Kernel(KernelInfo info) : info_(std::move(info)) {}
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const KernelInfo& info() const { return info_; }
  virtual void run(const Arguments& arguments) const = 0;
  // One of info().parts parts of a run. Parts may run at the same time, each with scratch of its own; all of
  // them together, in any order, write the bits that run() writes.
  virtual void run_part(const Arguments& arguments, std::int64_t) const { run(arguments); }
  // A run that threads share from inside, for what consists of many short phases (shared_phases.h):
  // begin_shared() once, then run_shared() once for each of up to info().members members, at the same time
  // or one after the other, in any order. All of them get the same arguments, scratch included, and each also
  // scratch of its own thread, which for one of them is the same. Together they write the bits that run()
  // writes.
  virtual void begin_shared(const Arguments&, int /*members*/) const {}
  virtual void run_shared(const Arguments& arguments, int /*member*/, void* /*own_scratch*/) const {
    run(arguments);
  }

 protected:
  KernelInfo info_;
  template <class Specification>
  friend class ImplementationList;
};

// One way of doing what a specification asks for. The file that has it defines it as
//   extern constinit const Implementation<Matmul> libxsmm_matmul{"libxsmm", prepare_libxsmm};
template <class Specification>
struct Implementation {
  const char* name;
  Prepared (*prepare)(const Specification&);
};

// The implementations of one operation, fastest first. prepare() returns the first that accepts, with the
// refusals of those before it in info().refused, or, when none accepts, one refusal that names them all.
template <class Specification>
class ImplementationList {
 public:
  explicit ImplementationList(std::vector<Implementation<Specification>> list) : list_(std::move(list)) {}

  std::span<const Implementation<Specification>> all() const { return list_; }
  Prepared prepare(const Specification& specification) const;
  // Only the implementation of that name; refuses an unknown one.
  Prepared prepare(const Specification& specification, const std::string& implementation) const;

 private:
  template <class>
  friend class AddedImplementation;
  mutable std::vector<Implementation<Specification>> list_;  // changed by AddedImplementation alone
};

// Defines `const ImplementationList<Specification>& LIST()`. What follows are the names of implementations,
// fastest first, each defined in a file of its own or of its neighbours: their declarations and their places
// in the list are both made of this one line.
#define SUPERSTEP_KERNELS(LIST, Specification, ...)                                \
  extern const Implementation<Specification> __VA_ARGS__;                          \
  const ImplementationList<Specification>& LIST() {                                \
    static const ImplementationList<Specification> implementations({__VA_ARGS__}); \
    return implementations;                                                        \
  }

// An implementation at the head of a list, for as long as this lives. For tests and trials, while nothing is
// prepared on another thread.
template <class Specification>
class AddedImplementation {
 public:
  AddedImplementation(const ImplementationList<Specification>& list, Implementation<Specification> added)
      : list_(list) {
    list_.list_.insert(list_.list_.begin(), added);
  }
  ~AddedImplementation() { list_.list_.erase(list_.list_.begin()); }
  AddedImplementation(const AddedImplementation&) = delete;
  AddedImplementation& operator=(const AddedImplementation&) = delete;

 private:
  const ImplementationList<Specification>& list_;
};

std::unexpected<Refusal> refuse(std::string implementation, std::string reason);
Refusal all_refused(const std::vector<Refusal>& refusals);

template <class Specification>
Prepared ImplementationList<Specification>::prepare(const Specification& specification) const {
  std::vector<Refusal> refusals;
  for (const auto& implementation : list_) {
    Prepared kernel = implementation.prepare(specification);
    if (!kernel) {
      refusals.push_back({implementation.name, kernel.error().reason});
      continue;
    }
    (*kernel)->info_.refused = std::move(refusals);
    return kernel;
  }
  return std::unexpected(all_refused(refusals));
}

template <class Specification>
Prepared ImplementationList<Specification>::prepare(const Specification& specification,
                                                    const std::string& wanted) const {
  for (const auto& implementation : list_)
    if (wanted == implementation.name) return implementation.prepare(specification);
  return refuse(wanted, "there is no such implementation");
}

}  // namespace superstep::kernels
