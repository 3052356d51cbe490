// What each file of this folder adds to the module superstep._core. The classes there are handles: what users
// see is superstep/*.py, with the words for them.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "python/src/arrays.h"
#include "superstep/superstep.h"

namespace superstep::python {

void bind_sessions(nanobind::module_& module);
void bind_trainers(nanobind::module_& module);
void bind_models(nanobind::module_& module);
void bind_training(nanobind::module_& module);
void bind_force_fields(nanobind::module_& module);
void bind_machine(nanobind::module_& module);

// Forks of this process until now, counted in the child: threads of the parent are not there.
int forks();
// Throws Error (unsupported) in a child of the process that made `what`, whose threads it would wait for.
void require_same_process(int forks_then, const char* what);

// What sessions and trainers have in common.
struct Shared {
  std::mutex mutex;  // one call at a time; taken without the interpreter's lock
  const int made_after_forks = forks();
};

struct HeldSession : Shared {
  explicit HeldSession(superstep::Session given);

  superstep::Session session;
  std::vector<Maker> makers;  // of outputs
  bool takes_long;            // a call: Ctrl-C is listened for
};

struct HeldTrainer : Shared {
  explicit HeldTrainer(superstep::Trainer given) : trainer(std::move(given)) {}

  superstep::Trainer trainer;
};

// Arrays by place, then by name, in the order of the ports. Throws Error (invalid_argument) naming a port
// without a value, or a value without a port.
std::vector<Given> given_for(const std::vector<Port>& ports, nanobind::tuple arrays, nanobind::dict named);
// Warns of those that had to be copied.
void tell_of_copies(const std::vector<Port>& ports, const std::vector<Given>& given);
std::vector<Tensor> tensors_of(const std::vector<Given>& given);
Tensor tensor_given(nanobind::handle array, const std::string& name, const Tensor& like);

nanobind::dict facts(const PlanFacts& plan);

}  // namespace superstep::python
