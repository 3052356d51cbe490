// Compiled models: calls on arrays.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "python/src/bindings.h"
#include "python/src/watch.h"

namespace superstep::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

std::atomic<int> forks_seen{0};

// Operations of a call that takes a tenth of a second or so: a shorter one is over before Ctrl-C is missed.
constexpr double long_call = 1e9;

std::size_t place_of(const std::vector<Port>& ports, const std::string& name) {
  const auto found = std::ranges::find(ports, name, &Port::name);
  if (found == ports.end()) {
    std::string names;
    for (const Port& port : ports) names += (names.empty() ? "" : ", ") + port.name;
    throw Error(ErrorCode::invalid_argument, "there is no input of this name", name, "there are: " + names);
  }
  return static_cast<std::size_t>(found - ports.begin());
}

std::vector<Tensor> make_outputs(const HeldSession& held, nb::handle out, std::vector<nb::object>& arrays) {
  const std::vector<Port>& ports = held.session.outputs();
  std::vector<Tensor> tensors;
  tensors.reserve(ports.size());
  if (!out.is_none()) {
    arrays = nb::cast<std::vector<nb::object>>(out);
    if (arrays.size() != ports.size())
      throw Error(ErrorCode::invalid_argument,
                  "arrays for " + std::to_string(ports.size()) + " outputs are needed, " +
                      std::to_string(arrays.size()) + " are given",
                  "out");
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (out.is_none()) arrays.push_back(held.makers[i].make());
    tensors.push_back(Maker::over(arrays[i], ports[i]));
  }
  return tensors;
}

void run(HeldSession& held, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  const auto work = [&] {
    const std::lock_guard lock(held.mutex);
    held.session.run(inputs, outputs);
  };
  if (held.takes_long) return Watch().call(work);
  nb::gil_scoped_release free;
  work();
}

// As the first array that is not NumPy's: a tensor of PyTorch for tensors of PyTorch.
nb::object like_given(nb::object array, nb::tuple arrays, nb::dict named, const Port& port) {
  static const auto like = [] { return nb::module_::import_("superstep.arrays").attr("like"); };
  return like()(array, arrays, named, std::string(name_of(port.element)));
}

nb::object call(HeldSession& held, nb::tuple arrays, nb::dict named, nb::handle out) {
  require_same_process(held.made_after_forks, "session");
  const std::vector<Port>& ports = held.session.inputs();
  const std::vector<Given> given = given_for(ports, arrays, named);
  std::vector<nb::object> results;
  std::vector<Tensor> outputs = make_outputs(held, out, results);
  run(held, tensors_of(given), outputs);
  tell_of_copies(ports, given);
  if (out.is_none() && std::ranges::any_of(given, &Given::foreign))
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i] = like_given(results[i], arrays, named, held.session.outputs()[i]);
  if (results.size() == 1) return results[0];
  nb::list all;
  for (nb::object& result : results) all.append(result);
  return nb::tuple(all);
}

// Seconds of each of `calls` calls on the same arrays, without Python between them.
std::vector<double> time_calls(HeldSession& held, nb::tuple arrays, nb::dict named, int calls) {
  require_same_process(held.made_after_forks, "session");
  const std::vector<Given> given = given_for(held.session.inputs(), arrays, named);
  const std::vector<Tensor> inputs = tensors_of(given);
  std::vector<nb::object> results;
  std::vector<Tensor> outputs = make_outputs(held, nb::none(), results);
  return Watch().call([&] {
    using Clock = std::chrono::steady_clock;
    const std::lock_guard lock(held.mutex);
    std::vector<double> seconds;
    for (int i = 0; i < calls; ++i) {
      const Clock::time_point begin = Clock::now();
      held.session.run(inputs, outputs);
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return seconds;
  });
}

}  // namespace

int forks() {
  static const int counting = pthread_atfork(nullptr, nullptr, [] { ++forks_seen; });
  return counting + forks_seen.load(std::memory_order_relaxed);
}

void require_same_process(int forks_then, const char* what) {
  if (forks_then != forks_seen.load(std::memory_order_relaxed))
    throw Error(
        ErrorCode::unsupported,
        std::string("this ") + what + " was made before the process was forked, and its threads are not here",
        what, "make it in the child, or start processes by 'spawn' or 'forkserver'");
}

HeldSession::HeldSession(superstep::Session given)
    : session(std::move(given)), takes_long(session.plan().flops > long_call) {
  for (const Port& port : session.outputs()) makers.emplace_back(port);
}

std::vector<Given> given_for(const std::vector<Port>& ports, nb::tuple arrays, nb::dict named) {
  std::vector<nb::handle> values(ports.size());
  if (arrays.size() > ports.size())
    throw Error(ErrorCode::invalid_argument, std::to_string(ports.size()) + " inputs are needed, " +
                                                 std::to_string(arrays.size()) + " are given");
  for (std::size_t i = 0; i < arrays.size(); ++i) values[i] = arrays[i];
  for (const auto& [name, value] : named) {
    const std::size_t place = place_of(ports, nb::cast<std::string>(name));
    if (values[place].is_valid())
      throw Error(ErrorCode::invalid_argument, "is given twice", "'" + ports[place].name + "'");
    values[place] = value;
  }
  std::vector<Given> given;
  given.reserve(ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!values[i].is_valid())
      throw Error(ErrorCode::invalid_argument, "no value is given", "input '" + ports[i].name + "'",
                  std::string("it is ") + name_of(ports[i].element) + to_string(ports[i].shape));
    given.emplace_back(values[i], ports[i]);
  }
  return given;
}

void tell_of_copies(const std::vector<Port>& ports, const std::vector<Given>& given) {
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (given[i].copied()) nb::module_::import_("superstep.arrays").attr("tell_of_copy")(ports[i].name);
}

std::vector<Tensor> tensors_of(const std::vector<Given>& given) {
  std::vector<Tensor> tensors;
  tensors.reserve(given.size());
  for (const Given& one : given) tensors.push_back(one.tensor());
  return tensors;
}

Tensor tensor_given(nb::handle array, const std::string& name, const Tensor& like) {
  const Port port{name, like.type(), like.shape()};
  const Given given(array, port);
  return given.tensor().clone();
}

nb::dict facts(const PlanFacts& plan) {
  nb::dict result;
  result["batch"] = plan.batch;
  result["micro_batch"] = plan.micro_batch;
  result["threads"] = plan.threads;
  result["flops"] = plan.flops;
  result["plan_bytes"] = plan.plan_bytes;
  result["compile_seconds"] = plan.compile_seconds;
  return result;
}

void bind_sessions(nb::module_& module) {
  nb::class_<HeldSession>(module, "Session", "A compiled model (superstep.Session).")
      .def("run", call, "arrays"_a, "named"_a, "out"_a.none(), "Outputs for inputs by place and by name.")
      .def("time", time_calls, "arrays"_a, "named"_a, "calls"_a)
      .def("inputs", [](const HeldSession& held) { return described(held.session.inputs()); })
      .def("outputs", [](const HeldSession& held) { return described(held.session.outputs()); })
      .def("parameter_names", [](const HeldSession& held) { return held.session.parameter_names(); })
      .def(
          "parameter",
          [](HeldSession& held, const std::string& name) {
            return array_of(held.session.parameter(name), name);
          },
          "name"_a)
      .def(
          "set_parameter",
          [](HeldSession& held, const std::string& name, nb::handle value) {
            const std::lock_guard lock(held.mutex);
            held.session.set_parameter(name, tensor_given(value, name, held.session.parameter(name)));
          },
          "name"_a, "value"_a)
      .def("plan", [](const HeldSession& held) { return facts(held.session.plan()); });
}

}  // namespace superstep::python
