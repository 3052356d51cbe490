#include "superstep/run/serve/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/file/safetensors.h"

namespace superstep::run {
namespace {

constexpr const char* format_name = "superstep-selftest/1";
constexpr std::string_view of_input = "input/", of_output = "output/";

// Two plans of one model add in other orders, and types of 16 bits round each of their steps: so much of the
// largest output (chosen: ten times what the zoo's models differ by between targets and instruction sets;
// bf16 has steps of 1/256).
double tolerance(const std::string& one, const std::string& other) {
  constexpr double of_f32 = 1e-3, of_16_bits = 0.1;
  return one == "f32" && other == "f32" ? of_f32 : of_16_bits;
}

std::string weights_digest(const std::map<std::string, Tensor>& states) {
  return data::digest_of({.tensors = states, .metadata = {}});
}

double largest(const Tensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) most = std::max(most, std::abs(tensor.at(i)));
  return most;
}

}  // namespace

void write_self_test(const std::filesystem::path& folder, const std::map<std::string, Tensor>& states,
                     const SelfTest& test) {
  data::SafetensorsFile file;
  for (const auto& [name, tensor] : test.inputs) file.tensors.emplace(std::string(of_input) + name, tensor);
  for (const auto& [name, tensor] : test.outputs) file.tensors.emplace(std::string(of_output) + name, tensor);
  file.metadata = {
      {"format", format_name}, {"weights", weights_digest(states)}, {"precision", test.precision}};
  file.metadata[data::digest_entry] = data::digest_of(file);
  data::write_safetensors(folder / "selftest.safetensors", file);
}

std::optional<SelfTest> read_self_test(const std::filesystem::path& folder,
                                       const std::map<std::string, Tensor>& states) {
  const std::filesystem::path path = folder / "selftest.safetensors";
  if (!std::filesystem::is_regular_file(path)) return std::nullopt;
  data::SafetensorsFile file = data::read_safetensors(path);
  const auto entry = [&](const char* key) {
    const auto found = file.metadata.find(key);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  if (entry("format") != format_name || entry(data::digest_entry) != data::digest_of(file))
    throw Error(ErrorCode::bad_file, "is no self-test as it was written", path.string(),
                "remove it: the model is then served without one");
  if (entry("weights") != weights_digest(states)) return std::nullopt;
  SelfTest test{.precision = entry("precision")};
  for (auto& [name, tensor] : file.tensors) {
    if (name.starts_with(of_input)) test.inputs.emplace(name.substr(of_input.size()), std::move(tensor));
    if (name.starts_with(of_output)) test.outputs.emplace(name.substr(of_output.size()), std::move(tensor));
  }
  return test;
}

std::string difference_from(const SelfTest& test, const std::map<std::string, Tensor>& outputs,
                            const std::string& precision) {
  for (const auto& [name, wanted] : test.outputs) {
    const auto found = outputs.find(name);
    if (found == outputs.end() || found->second.shape() != wanted.shape())
      return fmt::format("output '{}' is missing, or of another shape", name);
    const double allowed = tolerance(precision, test.precision) * std::max(largest(wanted), 1e-6);
    for (std::int64_t i = 0; i < wanted.element_count(); ++i) {
      const double difference = std::abs(found->second.at(i) - wanted.at(i));
      if (!(difference <= allowed))
        return fmt::format("output '{}' has {:g} where it had {:g}", name, found->second.at(i), wanted.at(i));
    }
  }
  return {};
}

}  // namespace superstep::run
