// The edge between C and C++: no exception passes it, and what went wrong is kept for superstep_last_error().
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "superstep/c_api.h"
#include "superstep/superstep.h"

namespace superstep::api {

superstep_status keep_error(const Error& error);  // of this thread; gives its status
superstep_status keep_current_exception();

template <class Body>
superstep_status guarded(Body&& body) noexcept {
  try {
    body();
    return SUPERSTEP_OK;
  } catch (...) {
    return keep_current_exception();
  }
}

// Throws Error (invalid_argument) naming the argument.
void require(const void* argument, const char* name);
inline std::string text_or_empty(const char* text) { return text ? text : ""; }

// Ports as C sees them; names and shapes lie in the ports themselves, which must stay where they are.
class PortList {
 public:
  void set(std::vector<Port> ports);
  void give(const superstep_port** ports, std::size_t* count) const;

 private:
  std::vector<Port> ports_;
  std::vector<superstep_port> views_;
};

// --- tensors of the caller

bool is_row_major(const superstep_tensor& tensor);
// The caller's memory as it is, where that is row-major; else a row-major copy. Throws Error
// (invalid_argument).
Tensor input_from(const superstep_tensor& tensor);
// Memory to write an output to: the caller's where it is row-major, else new; finish_output() copies that
// out.
Tensor output_over(const superstep_tensor& tensor);
void finish_output(const Tensor& written, const superstep_tensor& tensor);
// Copies into the caller's memory, whose type and shape must be the value's.
void copy_out(const Tensor& value, const superstep_tensor& into, const std::string& name);

// The caller's tensors in the order of the ports, by name, or by place where they have none: places[i] is the
// tensor of port i, or null where there is none. Throws Error (invalid_argument): unknown, twice.
std::vector<const superstep_tensor*> by_port(const std::vector<Port>& ports, const superstep_tensor* tensors,
                                             std::size_t count, const char* kind);
std::vector<Tensor> all_inputs(const std::vector<Port>& ports, const superstep_tensor* tensors,
                               std::size_t count);

// --- settings: fields beyond the caller's size keep their defaults

CompileSettings settings_from(const superstep_compile_settings* settings, const std::vector<Port>& inputs);

}  // namespace superstep::api

struct superstep_model {
  superstep::Model model;
  superstep::api::PortList inputs, outputs, targets, parameters;
};
struct superstep_session {
  superstep::Session session;
  superstep::api::PortList inputs, outputs;
};
struct superstep_trainer {
  superstep::Trainer trainer;
  superstep::api::PortList inputs;
};

namespace superstep::api {

// --- what models, sessions and trainers have alike: `inner` is the member of the handle, `kind` what it is
// called

template <class Handle>
superstep_status give_list(const Handle* handle, const char* kind, PortList Handle::*list,
                           const superstep_port** ports, std::size_t* count) {
  return guarded([&] {
    require(handle, kind);
    (handle->*list).give(ports, count);
  });
}

template <class Handle, class Inner>
superstep_status get_parameter(const Handle* handle, const char* kind, Inner Handle::*inner, const char* name,
                               const superstep_tensor* into) {
  return guarded([&] {
    require(handle, kind);
    require(name, "name");
    require(into, "into");
    copy_out((handle->*inner).parameter(name), *into, name);
  });
}

template <class Handle, class Inner>
superstep_status set_parameter(Handle* handle, const char* kind, Inner Handle::*inner, const char* name,
                               const superstep_tensor* from) {
  return guarded([&] {
    require(handle, kind);
    require(name, "name");
    require(from, "from");
    (handle->*inner).set_parameter(name, input_from(*from));
  });
}

}  // namespace superstep::api
