// A machine: its style and its constants, as its file has them.
//
// Files are TOML:
//
//     id = "bow"
//     name = "Graphcore Bow IPU"
//     style = "bulk-synchronous"
//     based_on = "gc200"             optional: constants and sources that this file does not have come from
//     there [sources]                      tags and what they stand for L24 = "Le 2024, ..." [constants]
//     clock = { value = 1.85e9, unit = "Hz", kind = "DS", source = "L24", range = [1.8e9, 1.9e9] }
//     [stacks.poptorch]              the software that drives it (machine/stack.h)
//     host_call = { value = 2e-4, unit = "s", kind = "GU", source = "", range = [1e-4, 1e-3] }
//
// Its arithmetic is in [numerics.MODE] (machine/numerics.h), `numerics_default` naming the usual mode.
//
// Files that `superstep machine measure` writes have [kernels] too: what the engine's kernels took there.
//
// `stacks_of = "a100-40gb"` takes over the stacks of another machine, whatever else differs.
// kind is ME (measured), VC (vendor code), DS (data sheet), DE (derived) or GU (guess); `range`, `note` and
// `open` are optional. Files are treated as hostile: every key is checked against the style's table.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/machine/constant.h"
#include "superstep/machine/numerics.h"
#include "superstep/machine/processor/kernel_times.h"
#include "superstep/machine/stack.h"
#include "superstep/machine/style.h"

namespace superstep::machine {

struct NetworkByLaw;

class Machine {
 public:
  Machine(std::string id, std::string name, Style style, std::vector<Constant> constants)
      : id_(std::move(id)), name_(std::move(name)), style_(style), constants_(std::move(constants)) {}

  const std::string& id() const { return id_; }
  const std::string& name() const { return name_; }
  Style style() const { return style_; }
  const std::vector<Constant>& constants() const { return constants_; }  // in the order of the style's table

  // Throws Error (internal) when the style has no such constant.
  const Constant& constant(std::string_view name) const;
  double value(std::string_view name) const { return constant(name).value; }
  // The same machine with one number changed; `file()` stays what it was. A number of the stack that drives
  // the machine goes before one of the style. Throws Error (internal) when there is no such number.
  Machine with(std::string_view name, double value) const;

  // The software that there are numbers for, and the one that drives the machine now; null: the best library,
  // or the machine's own program, which adds nothing.
  const std::vector<Stack>& stacks() const { return stacks_; }
  const Stack* stack() const { return driven_by_ == none ? nullptr : &stacks_[driven_by_]; }
  // Driven by this stack; throws Error (invalid_argument), naming those that there are.
  Machine driven_by(std::string_view stack_name) const;
  bool has_stack(std::string_view stack_name) const;
  void set_stacks(std::vector<Stack> stacks) { stacks_ = std::move(stacks); }

  // Of a processor that the engine's kernels were timed on; none: it was not measured.
  const std::optional<ProcessorTimes>& processor() const { return processor_; }
  void set_processor(ProcessorTimes times) { processor_ = std::move(times); }

  // Names of the precisions that its units compute in (precision.h); empty: its file does not say.
  const std::vector<std::string>& precisions() const { return precisions_; }
  bool computes_in(std::string_view precision) const;
  void set_precisions(std::vector<std::string> names) { precisions_ = std::move(names); }

  // Its arithmetic, the usual mode first; empty: nothing is known of it.
  const std::vector<NumericsMode>& numerics() const { return numerics_; }
  void set_numerics(std::vector<NumericsMode> modes) { numerics_ = std::move(modes); }

  // The network that is asked about, where the law of networks is nearer than the model of the style
  // (rates/network_by_law.h); null: the model answers.
  const NetworkByLaw* by_law() const { return by_law_.get(); }
  void set_by_law(std::shared_ptr<const NetworkByLaw> network) { by_law_ = std::move(network); }

  const std::string& file() const { return file_; }  // where it came from
  std::string digest() const;                        // of every name and value, in 16 hexadecimal digits
  void set_file(std::string file) { file_ = std::move(file); }

 private:
  std::string id_, name_, file_;
  Style style_;
  std::vector<Constant> constants_;
  std::vector<Stack> stacks_;
  std::vector<std::string> precisions_;
  std::vector<NumericsMode> numerics_;
  std::optional<ProcessorTimes> processor_;
  std::shared_ptr<const NetworkByLaw> by_law_;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t driven_by_ = none;
};

// The built-in machines, in the order `superstep list machines` shows them; they are machines/*.toml as they
// were when the program was built.
const std::vector<Machine>& machines();

// A built-in machine by its id, else one of which a data sheet is known (rates/sheet_machine.h), or the
// machine of a file (a name with '/' or ending in ".toml"). Throws Error (invalid_argument) with the nearest
// name, (not_found, bad_file) for files.
Machine find_machine(const std::string& name_or_path);

// The machine that `text` describes; `where` stands in messages. Throws Error (bad_file), naming the key.
Machine parse_machine(std::string_view text, const std::string& where);

}  // namespace superstep::machine
