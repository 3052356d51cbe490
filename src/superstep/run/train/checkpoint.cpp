#include "superstep/run/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "superstep/base/file.h"
#include "superstep/file/safetensors.h"

namespace superstep::run {
namespace {

constexpr const char* format_name = "superstep-checkpoint/1";
constexpr std::size_t kept_checkpoints = 2;

// The files of a folder, newest (largest step) first.
std::vector<std::filesystem::path> checkpoint_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".safetensors")) files.push_back(entry.path());
  }
  // Names are padded to eight digits, longer ones are of later steps.
  std::ranges::sort(files, std::greater<>(), [](const std::filesystem::path& file) {
    const std::string name = file.filename().string();
    return std::pair(name.size(), name);
  });
  return files;
}

const std::string& metadata(const data::SafetensorsFile& file, const std::string& key,
                            const std::string& where) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end())
    throw Error(ErrorCode::bad_file, fmt::format("is not a checkpoint: '{}' is missing", key), where);
  return found->second;
}

template <class T>
T parse_number(const std::string& text, const std::string& where) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size())
    throw Error(ErrorCode::bad_file, fmt::format("is not a checkpoint: '{}' is not a number", text), where);
  return value;
}

}  // namespace

std::string state_signature(const std::map<std::string, Tensor>& states) {
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const auto& [name, tensor] : states) {
    const std::string line =
        fmt::format("{}:{}{};", name, superstep::name_of(tensor.type()), to_string(tensor.shape()));
    for (const char c : line) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return fmt::format("{:016x}", hash);
}

std::map<std::string, Tensor> states_of(const target::Executable& executable) {
  std::map<std::string, Tensor> states;
  for (const std::string& name : executable.state_names())
    states.emplace(name, executable.state_in_place(name));
  return states;
}

std::map<std::string, Tensor> served(std::map<std::string, Tensor> states) {
  constexpr std::string_view prefix = "average/";
  std::map<std::string, Tensor> averages;
  for (const auto& [name, tensor] : states)
    if (name.starts_with(prefix)) averages.emplace(name.substr(prefix.size()), tensor);
  for (auto& [name, tensor] : averages) {
    states.erase(std::string(prefix) + name);
    if (const auto found = states.find(name); found != states.end()) found->second = std::move(tensor);
  }
  return states;
}

void write_checkpoint_file(const std::filesystem::path& file, const Checkpoint& checkpoint) {
  data::SafetensorsFile content{checkpoint.states, checkpoint.notes};
  content.metadata["format"] = format_name;
  content.metadata["workload"] = checkpoint.workload;
  content.metadata["signature"] = checkpoint.signature;
  content.metadata["step"] = std::to_string(checkpoint.step);
  content.metadata["seconds"] = fmt::format("{}", checkpoint.seconds);
  content.metadata[data::digest_entry] = data::digest_of(content);
  data::write_safetensors(file, content);
}

void write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint) {
  make_folder(folder);
  write_checkpoint_file(folder / fmt::format("step-{:08}.safetensors", checkpoint.step), checkpoint);
  const auto files = checkpoint_files(folder);
  std::error_code ignored;
  for (std::size_t i = kept_checkpoints; i < files.size(); ++i) std::filesystem::remove(files[i], ignored);
}

Checkpoint read_checkpoint(const std::filesystem::path& file) {
  data::SafetensorsFile content = data::read_safetensors(file);
  const std::string where = file.string();
  const bool has_digest = content.metadata.contains(data::digest_entry);
  if (has_digest && content.metadata[data::digest_entry] != data::digest_of(content))
    throw Error(ErrorCode::bad_file, "is not what was written: it has another SHA-256 than it says", where,
                "the file is damaged, or somebody changed it; take a copy, or an earlier checkpoint");
  content.metadata.erase(data::digest_entry);
  if (metadata(content, "format", where) != format_name)
    throw Error(ErrorCode::bad_file,
                fmt::format("is of format '{}', not {}", content.metadata["format"], format_name), where,
                "it was written by another version");
  Checkpoint checkpoint{.workload = metadata(content, "workload", where),
                        .signature = metadata(content, "signature", where),
                        .step = parse_number<std::int64_t>(metadata(content, "step", where), where),
                        .seconds = parse_number<double>(metadata(content, "seconds", where), where),
                        .states = std::move(content.tensors),
                        .has_digest = has_digest,
                        .notes = std::move(content.metadata)};
  if (state_signature(checkpoint.states) != checkpoint.signature)
    throw Error(ErrorCode::bad_file, "the states do not match their signature", where, "the file is damaged");
  return checkpoint;
}

std::optional<Checkpoint> read_newest_checkpoint(const std::filesystem::path& folder) {
  std::optional<Error> first_error;
  for (const auto& file : checkpoint_files(folder)) {
    try {
      Checkpoint checkpoint = read_checkpoint(file);
      if (first_error) checkpoint.passed_over = first_error->what();
      return checkpoint;
    } catch (const Error& error) {
      if (!first_error) first_error = error;
    }
  }
  if (first_error) throw *first_error;
  return std::nullopt;
}

std::optional<double> number_in_notes(const Checkpoint& checkpoint, const std::string& name,
                                      const std::string& where) {
  const auto found = checkpoint.notes.find(name);
  if (found == checkpoint.notes.end()) return std::nullopt;
  return parse_number<double>(found->second, where);
}

void restore(target::Executable& executable, const Checkpoint& checkpoint, const std::string& where) {
  const auto own = states_of(executable);
  for (const auto& [name, tensor] : own) {
    const auto found = checkpoint.states.find(name);
    const bool fits = found != checkpoint.states.end() && found->second.type() == tensor.type() &&
                      found->second.shape() == tensor.shape();
    if (!fits)
      throw Error(
          ErrorCode::bad_file,
          fmt::format("is a checkpoint of another model: state {} {}", name,
                      found == checkpoint.states.end()
                          ? "is missing"
                          : fmt::format("is {}{}, not {}{}", superstep::name_of(found->second.type()),
                                        to_string(found->second.shape()), superstep::name_of(tensor.type()),
                                        to_string(tensor.shape()))),
          where, fmt::format("it was made by '{}'", checkpoint.workload));
  }
  for (const auto& [name, tensor] : checkpoint.states)
    if (!own.contains(name))
      throw Error(ErrorCode::bad_file,
                  fmt::format("is a checkpoint of another model: it has a state {}", name), where,
                  fmt::format("it was made by '{}'", checkpoint.workload));
  for (const auto& [name, tensor] : checkpoint.states) executable.set_state(name, tensor);
}

}  // namespace superstep::run
