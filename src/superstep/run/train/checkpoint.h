// Checkpoints: everything a run needs to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "superstep/base/tensor.h"
#include "superstep/target/target.h"

namespace superstep::run {

struct Checkpoint {
  std::string workload;                      // whose states these are
  std::string signature;                     // of the states: names, types and shapes (state_signature)
  std::int64_t step = 0;                     // steps done
  double seconds = 0;                        // of training so far, over all sittings
  std::map<std::string, Tensor> states;      // parameters, moments, counters
  std::string passed_over;                   // why the one after it was not read; empty: there is none
  bool has_digest = true;                    // false: of an older version, which wrote none
  std::map<std::string, std::string> notes;  // best metric and the like
};

// A short text that differs when any state's name, type or shape does.
std::string state_signature(const std::map<std::string, Tensor>& states);

// The states where they lie: to be used before the executable runs again.
std::map<std::string, Tensor> states_of(const target::Executable& executable);

// With the averages of parameters in the place of the parameters, where they are kept: what is validated,
// exported and served.
std::map<std::string, Tensor> served(std::map<std::string, Tensor> states);

// Writes FOLDER/step-00000042.safetensors atomically, then removes all but the newest two. Throws Error (io).
void write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);
void write_checkpoint_file(const std::filesystem::path& file, const Checkpoint& checkpoint);

// The newest checkpoint that can be read; a damaged one is passed over for the one before it. Nothing when
// there is none. Throws Error (bad_file) when all there are are damaged.
std::optional<Checkpoint> read_newest_checkpoint(const std::filesystem::path& folder);
Checkpoint read_checkpoint(const std::filesystem::path& file);

// A note that is a number; nothing where there is none of the name. Throws Error (bad_file) naming `where`.
std::optional<double> number_in_notes(const Checkpoint& checkpoint, const std::string& name,
                                      const std::string& where);

// Puts the states into the executable. Throws Error (bad_file) naming the first state that is missing, too
// many or of another shape: the checkpoint of another model.
void restore(target::Executable& executable, const Checkpoint& checkpoint, const std::string& where);

}  // namespace superstep::run
