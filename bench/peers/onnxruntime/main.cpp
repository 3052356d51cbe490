// ONNX Runtime as a peer: runs an ONNX file on command (../README.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "../../protocol.h"
#include "api.h"
#include "superstep/base/random.h"

namespace superstep::bench::onnxruntime {
namespace {

struct Arguments {
  std::string model, library, precision = "f32";
  std::int64_t batch = 1;
  int threads = 1;
  std::uint64_t seed = 1;
  std::vector<std::string> entries;  // KEY=VALUE
  bool keep_open = false;
};

struct ElementInfo {
  const char* name;
  std::size_t bytes;
};

ElementInfo info_of(Element type) {
  switch (type) {
    case Element::f32: return {"f32", 4};
    case Element::f64: return {"f64", 8};
    case Element::f16: return {"f16", 2};
    case Element::bf16: return {"bf16", 2};
    case Element::i64: return {"i64", 8};
    case Element::i32: return {"i32", 4};
    case Element::i8: return {"i8", 1};
    case Element::u8: return {"u8", 1};
    case Element::boolean: return {"bool", 1};
  }
  throw std::runtime_error(fmt::format("element type {} is not one the peer knows", static_cast<int>(type)));
}

// An input or output with its memory.
struct Array {
  Api::Signature signature;
  std::vector<std::int64_t> shape;  // with the batch in place of what the model leaves open
  std::vector<std::byte> bytes;
  Value* value = nullptr;

  std::size_t elements() const {
    std::size_t count = 1;
    for (std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    return count;
  }
  Port port() {
    const std::string extents = shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, ","));
    return {signature.name, fmt::format("{}:{}", info_of(signature.type).name, extents), bytes.data(),
            bytes.size()};
  }
};

// Libraries of the Python package in `peers`/venv, whatever the versions of Python and of the package.
std::vector<std::string> packaged(const std::filesystem::path& peers) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& python : std::filesystem::directory_iterator(peers / "venv/lib", ignored))
    for (const auto& file :
         std::filesystem::directory_iterator(python.path() / "site-packages/onnxruntime/capi", ignored))
      if (file.path().filename().string().starts_with("libonnxruntime.so")) found.push_back(file.path());
  return found;
}

// Where tools/setup-peers puts the library, seen from this program, and where a distribution would.
std::vector<std::string> places(const Arguments& arguments) {
  if (!arguments.library.empty()) return {arguments.library};
  if (const char* path = std::getenv("SUPERSTEP_ONNXRUNTIME"); path && *path) return {path};
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto build = program.parent_path().parent_path();  // from bench/ in the build tree
  std::vector<std::string> all = packaged(build / "peers");
  all.insert(all.end(), {"libonnxruntime.so.1", "libonnxruntime.so"});
  return all;
}

Api find_library(const Arguments& arguments) {
  std::string reasons;
  for (const std::string& path : places(arguments)) {
    try {
      return Api(path);
    } catch (const std::exception& error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  absent("ONNX Runtime is not installed (tools/setup-peers does that): " + reasons);
}

std::vector<std::pair<std::string, std::string>> split_entries(const std::vector<std::string>& entries) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& entry : entries) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos) fail("--set takes KEY=VALUE, not '" + entry + "'");
    pairs.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return pairs;
}

// Uniform numbers in [0, 1), small integers, ones for booleans.
void fill(Array& array, std::uint64_t seed) {
  RandomStream random(seed);
  for (std::size_t i = 0; i < array.elements(); ++i) {
    std::byte* const at = &array.bytes[i * info_of(array.signature.type).bytes];
    switch (array.signature.type) {
      case Element::f32: *reinterpret_cast<float*>(at) = static_cast<float>(random.uniform()); break;
      case Element::f64: *reinterpret_cast<double*>(at) = random.uniform(); break;
      case Element::i64:
        *reinterpret_cast<std::int64_t*>(at) = static_cast<std::int64_t>(random.below(2));
        break;
      case Element::i32:
        *reinterpret_cast<std::int32_t*>(at) = static_cast<std::int32_t>(random.below(2));
        break;
      case Element::boolean: *at = std::byte{1}; break;
      default: break;  // zeros
    }
  }
}

// A session with its arrays; lives until the program ends.
class Model {
 public:
  Model(const Api& api, const Arguments& arguments) : api_(api) {
    Environment* const environment = api_.make_environment();
    const auto entries = split_entries(arguments.entries);
    session_ = api_.make_session(environment, arguments.model, api_.make_options(arguments.threads, entries));
    if (!arguments.keep_open) session_ = with_fixed_batch(environment, entries, arguments);
    memory_ = api_.host_memory();
    inputs_ = arrays(api_.inputs(session_), arguments.batch);
    outputs_ = arrays(api_.outputs(session_), arguments.batch);
    for (std::size_t i = 0; i < inputs_.size(); ++i) fill(inputs_[i], arguments.seed + i);
    collect(inputs_, input_names_, input_values_);
    collect(outputs_, output_names_, output_values_);
    find_states();
  }

  // A training step takes what the last one left in its outputs NAME.next as the states NAME; the first takes
  // the model's initialisers. Two sets of outputs take turns, so that nothing is copied.
  void step() {
    std::vector<Value*>& results =
        latest_ == &output_values_ && !states_.empty() ? other_values_ : output_values_;
    std::vector<const char*> names = input_names_;
    std::vector<Value*> values = input_values_;
    for (const State& state : states_)
      if (latest_) names.push_back(state.name.c_str()), values.push_back((*latest_)[state.output]);
    api_.run(session_, names, values, output_names_, results);
    latest_ = &results;
  }

  void reset() { latest_ = nullptr; }

  // What outputs() shows is the first set.
  void publish() {
    if (latest_ != &other_values_) return;
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      std::memcpy(outputs_[i].bytes.data(), other_[i].bytes.data(), outputs_[i].bytes.size());
  }

  bool trains() const { return !states_.empty(); }

  std::vector<Port> inputs() { return ports(inputs_); }
  std::vector<Port> outputs() { return ports(outputs_); }

 private:
  // Open extents fixed to the batch when the model is loaded: the library plans its memory for it.
  Session* with_fixed_batch(Environment* environment,
                            const std::vector<std::pair<std::string, std::string>>& entries,
                            const Arguments& arguments) {
    SessionOptions* const options = api_.make_options(arguments.threads, entries);
    for (const Api::Signature& input : api_.inputs(session_))
      for (std::size_t i = 0; i < input.shape.size(); ++i)
        if (input.shape[i] < 0 && !input.symbolic_names[i].empty())
          api_.fix_dimension(options, input.symbolic_names[i], arguments.batch);
    return api_.make_session(environment, arguments.model, options);
  }

  std::vector<Array> arrays(const std::vector<Api::Signature>& signatures, std::int64_t batch) const {
    std::vector<Array> all;
    for (const Api::Signature& signature : signatures) {
      Array array{signature, signature.shape, {}, nullptr};
      for (std::int64_t& extent : array.shape)
        if (extent < 0) extent = batch;
      array.bytes.resize(array.elements() * info_of(signature.type).bytes);
      all.push_back(std::move(array));
    }
    return all;
  }

  void collect(std::vector<Array>& arrays, std::vector<const char*>& names,
               std::vector<Value*>& values) const {
    for (Array& array : arrays) {
      array.value = api_.make_tensor(memory_, array.bytes.data(), array.bytes.size(), array.shape,
                                     array.signature.type);
      names.push_back(array.signature.name.c_str());
      values.push_back(array.value);
    }
  }

  struct State {
    std::string name;
    std::size_t output;  // that gives its next value
  };

  void find_states() {
    for (const Api::Signature& input : api_.initialized_inputs(session_))
      for (std::size_t i = 0; i < outputs_.size(); ++i)
        if (outputs_[i].signature.name == input.name + ".next") states_.push_back({input.name, i});
    if (states_.empty()) return;
    for (const Array& output : outputs_)
      other_.push_back({output.signature, output.shape, output.bytes, nullptr});
    std::vector<const char*> names;
    collect(other_, names, other_values_);
  }

  static std::vector<Port> ports(std::vector<Array>& arrays) {
    std::vector<Port> all;
    for (Array& array : arrays) all.push_back(array.port());
    return all;
  }

  const Api& api_;
  Session* session_ = nullptr;
  MemoryInfo* memory_ = nullptr;
  std::vector<Array> inputs_, outputs_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<Value*> input_values_, output_values_;
  std::vector<State> states_;
  std::vector<Array> other_;  // the second set of outputs, where there are states
  std::vector<Value*> other_values_;
  const std::vector<Value*>* latest_ = nullptr;  // the set that the last step wrote; null before the first
};

nlohmann::json describe(const Api& api, const Arguments& arguments, bool trains) {
  nlohmann::json settings = {{"graph_optimization", "all"},
                             {"execution", "sequential"},
                             {"inter_op_threads", 1},
                             {"batch_fixed", !arguments.keep_open},
                             {"outputs", "preallocated"}};
  for (const auto& [key, value] : split_entries(arguments.entries)) settings[key] = value;
  const std::string precision = arguments.precision == "f32" ? "" : " " + arguments.precision;
  return {{"contender", "ONNX Runtime " + api.version() + precision},
          {"model", std::filesystem::path(arguments.model).stem().string()},
          {"mode", trains ? "train" : "infer"},
          {"batch", arguments.batch},
          {"threads", arguments.threads},
          {"seed", arguments.seed},
          {"settings", settings},
          {"versions", {{"onnxruntime", api.version()}}}};
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  CLI::App program("Runs an ONNX file in ONNX Runtime and times it on command: see peers/README.md.");
  program.add_option("MODEL", arguments.model, "the ONNX file")->required();
  program.add_option("--batch", arguments.batch, "samples a step, where the model leaves the number open")
      ->check(CLI::PositiveNumber);
  program.add_option("--threads", arguments.threads, "threads within an operator")
      ->check(CLI::PositiveNumber);
  program.add_option("--seed", arguments.seed, "of the random inputs");
  program.add_option("--precision", arguments.precision, "a name alone: what the file computes in");
  program.add_option("--library", arguments.library, "libonnxruntime.so to open");
  program.add_option("--set", arguments.entries, "a session configuration entry, KEY=VALUE")
      ->allow_extra_args(false);
  program.add_flag("--keep-open", arguments.keep_open, "do not fix the batch when the model is loaded");
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(program.exit(error));
  }
  return arguments;
}

void run(const Arguments& arguments) {
  const Api api = find_library(arguments);
  if (!std::filesystem::exists(arguments.model)) fail("there is no file " + arguments.model);
  std::optional<Model> model;
  try {
    model.emplace(api, arguments);
    model->step();
    model->reset();
  } catch (const std::exception& error) {
    fail(error.what());
  }
  Contender contender{describe(api, arguments, model->trains()), [&] { model->step(); }, model->inputs(),
                      model->outputs(), [&] { model->publish(); }};
  serve(contender);
}

}  // namespace
}  // namespace superstep::bench::onnxruntime

int main(int argc, char** argv) {
  using namespace superstep::bench;
  onnxruntime::run(onnxruntime::parse(argc, argv));
  // The library's own threads and handlers are left to the system: nothing is to be saved.
  std::_Exit(0);
}
