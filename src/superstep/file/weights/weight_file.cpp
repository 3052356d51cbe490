#include "superstep/file/weights/weight_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/mapped_file.h"
#include "superstep/base/text.h"
#include "superstep/file/form.h"
#include "superstep/file/safetensors.h"
#include "superstep/file/weights/foreign_model.h"
#include "superstep/file/weights/gguf.h"
#include "superstep/file/weights/torch_file.h"

namespace superstep::data {
namespace {

constexpr std::size_t piece_bytes = 1 << 24;

// Copies what the file holds, by reading: a file that was cut short since is an error, not a signal.
Tensor::Fill copy_of(std::shared_ptr<const MappedFile> file, std::span<const std::byte> bytes,
                     std::string where) {
  return [file = std::move(file), bytes, where = std::move(where)](std::byte* elements) {
    InterruptCheck stop;
    for (std::size_t done = 0; done < bytes.size(); stop.throw_if_due(where)) {
      const std::size_t piece = std::min(piece_bytes, bytes.size() - done);
      file->read(bytes.subspan(done, piece), elements + done);
      done += piece;
    }
  };
}

Tensor::Fill unpacking_of(std::shared_ptr<const MappedFile> file, const Weight& weight, std::string where) {
  return [file = std::move(file), bytes = weight.bytes, format = weight.blocks,
          where = std::move(where)](std::byte* elements) {
    const BlockSize size = block_size(format);
    const std::size_t blocks = bytes.size() / size.bytes, at_a_time = piece_bytes / size.bytes;
    std::vector<std::byte> piece;
    InterruptCheck stop;
    for (std::size_t done = 0; done < blocks; stop.throw_if_due(where)) {
      const std::size_t count = std::min(at_a_time, blocks - done);
      piece.resize(count * size.bytes);
      file->read(bytes.subspan(done * size.bytes, piece.size()), piece.data());
      const auto values = static_cast<std::size_t>(size.values);
      unpack_blocks(format, piece, {reinterpret_cast<float*>(elements) + done * values, count * values});
      done += count;
    }
  };
}

// Of one that is of use to nobody here; the file's others are.
Tensor::Fill refusal_of(const Weight& weight, const std::string& where) {
  return [place = fmt::format("{}: array '{}'", where, printable(weight.name)),
          type = weight.unread](std::byte*) {
    throw Error(ErrorCode::unsupported, fmt::format("elements of type {} are not read", type), place);
  };
}

// A byte of a boolean that is neither 0 nor 1 stands for true.
Tensor::Fill as_booleans(Tensor::Fill fill, std::size_t count) {
  return [fill = std::move(fill), count](std::byte* elements) {
    fill(elements);
    for (std::byte& each : std::span(elements, count)) each = std::byte{each != std::byte{0}};
  };
}

std::vector<Weight> safetensors_weights(const std::shared_ptr<const MappedFile>& file,
                                        const std::string& where, WeightNotes& notes) {
  std::vector<Weight> weights;
  SafetensorsLayout layout = safetensors_layout(file->bytes(), where);
  for (SafetensorsPlace& place : layout.places) {
    Weight weight{.name = place.name,
                  .shape = place.shape,
                  .element = place.type,
                  .blocks = place.blocks,
                  .bytes = place.bytes,
                  .owner = file,
                  .fill = {},
                  .unread = place.unread};
    if (!place.unread.empty())
      weight.bytes = {}, weight.fill = refusal_of(weight, where);
    else
      weight.fill = place.blocks == BlockFormat::none ? copy_of(file, place.bytes, where)
                                                      : unpacking_of(file, weight, where);
    weights.push_back(std::move(weight));
  }
  for (auto& [key, value] : layout.metadata) notes.insert_or_assign(key, std::move(value));
  return weights;
}

std::vector<Weight> gguf_weights(const std::shared_ptr<const MappedFile>& file, const std::string& where,
                                 WeightNotes& notes) {
  GgufFile parsed = parse_gguf(file->bytes(), file, where);
  for (Weight& weight : parsed.weights)
    weight.fill = weight.blocks == BlockFormat::none ? copy_of(file, weight.bytes, where)
                                                     : unpacking_of(file, weight, where);
  for (auto& [key, value] : parsed.notes) notes.insert_or_assign(key, std::move(value));
  return std::move(parsed.weights);
}

constexpr const char* names_in_folders[] = {"model.safetensors.index.json", "model.safetensors",
                                            "pytorch_model.bin.index.json", "pytorch_model.bin"};

// The file in a folder that holds its weights or names their shards.
std::filesystem::path weights_in(const std::filesystem::path& folder) {
  for (const char* name : names_in_folders)
    if (std::filesystem::exists(folder / name)) return folder / name;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (ends_in(entry.path(), {".gguf"})) found.push_back(entry.path());
  if (found.size() == 1) return found.front();
  throw Error(ErrorCode::not_found,
              found.empty() ? std::string("the folder has no weights in it")
                            : fmt::format("the folder has {} .gguf files in it", found.size()),
              folder.string(),
              found.empty() ? "model.safetensors, its index, pytorch_model.bin and *.gguf are looked for"
                            : "name one of them");
}

std::map<std::string, std::vector<std::string>> shards_of(const std::filesystem::path& index) {
  const auto parsed = parse_json(read_text_file(index));
  if (!parsed.is_object() || !parsed.contains("weight_map") || !parsed["weight_map"].is_object())
    throw Error(ErrorCode::bad_file, "this is no index of shards: it has no weight_map", index.string());
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [name, shard] : parsed["weight_map"].items()) {
    if (!shard.is_string() || shard.get<std::string>().empty() ||
        shard.get<std::string>().find('/') != std::string::npos)
      throw Error(ErrorCode::bad_file,
                  fmt::format("weight_map says of '{}' no file beside it", printable(name)), index.string());
    shards[shard.get<std::string>()].push_back(name);
  }
  return shards;
}

std::string some_of(const std::vector<std::string>& names) {
  return names.size() == 1 ? fmt::format("'{}'", printable(names[0]))
                           : fmt::format("'{}' and {} more", printable(names[0]), names.size() - 1);
}

}  // namespace

std::string Weight::type_name() const {
  if (!unread.empty()) return unread;
  return blocks == BlockFormat::none ? superstep::name_of(element) : name_of(blocks);
}

void WeightFile::add_file(const std::filesystem::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  const std::string where = path.string();
  const std::string_view begin(reinterpret_cast<const char*>(file->bytes().data()),
                               std::min<std::size_t>(4, file->bytes().size()));
  if (begin.starts_with("PK") || begin.starts_with("\x80")) refuse_foreign_model(path);
  std::vector<Weight> found;
  if (begin == "GGUF" || ends_in(path, {".gguf"})) {
    format_ = "GGUF";
    found = gguf_weights(file, where, notes_);
  } else if (begin.starts_with("PK")) {
    format_ = "PyTorch";
    found = parse_torch_file(file->bytes(), file, where);
  } else if (form_of(path) == FileForm::safetensors || ends_in(path, {".safetensors"})) {
    format_ = "safetensors";
    found = safetensors_weights(file, where, notes_);
  } else {
    const FileForm form = form_of(path);
    throw Error(ErrorCode::bad_file,
                form == FileForm::other ? "this is no file of weights"
                                        : fmt::format("this is no file of weights but {}", name_of(form)),
                where,
                begin.starts_with("\x80")
                    ? "it was written by torch.save before PyTorch 1.6: load and save it again"
                    : "safetensors, PyTorch's zip archives and GGUF are read");
  }
  ++files_;
  for (Weight& weight : found)
    if (weight.element == ElementType::boolean)
      weight.fill =
          as_booleans(std::move(weight.fill), static_cast<std::size_t>(weight.shape.element_count()));
  std::ranges::move(found, std::back_inserter(weights_));
}

void WeightFile::add_shards(const std::filesystem::path& index) {
  for (const auto& [shard, names] : shards_of(index)) {
    const std::filesystem::path path = index.parent_path() / shard;
    if (!std::filesystem::exists(path))
      throw Error(ErrorCode::not_found, fmt::format("a shard is missing: it holds {}", some_of(names)),
                  path.string(), "put it beside " + index.filename().string());
    const std::size_t before = weights_.size();
    add_file(path);
    std::vector<std::string> missing;
    for (const std::string& name : names)
      if (std::ranges::find(weights_.begin() + static_cast<std::ptrdiff_t>(before), weights_.end(), name,
                            &Weight::name) == weights_.end())
        missing.push_back(name);
    if (!missing.empty())
      throw Error(ErrorCode::bad_file,
                  fmt::format("the shard lacks {}, which the index says it holds", some_of(missing)),
                  path.string(), "the shards and the index are of different models");
  }
}

WeightFile WeightFile::open(const std::filesystem::path& path) {
  WeightFile file;
  file.path_ = std::filesystem::is_directory(path) ? weights_in(path) : path;
  if (file.path_.extension() == ".json")
    file.add_shards(file.path_);
  else
    file.add_file(file.path_);
  std::ranges::sort(file.weights_, {}, &Weight::name);
  const auto twice = std::ranges::adjacent_find(file.weights_, {}, &Weight::name);
  if (twice != file.weights_.end())
    throw Error(ErrorCode::bad_file, fmt::format("'{}' is in two shards", printable(twice->name)),
                file.path_.string());
  return file;
}

const Weight* WeightFile::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(weights_, name, {}, &Weight::name);
  return found == weights_.end() || found->name != name ? nullptr : &*found;
}

bool is_named_as_weights(const std::filesystem::path& path) {
  const std::string name = path.filename().string(), extension = path.extension().string();
  return extension == ".safetensors" || extension == ".gguf" || extension == ".bin" || extension == ".pt" ||
         extension == ".pth" || name.ends_with(".index.json");
}

bool holds_weights(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) return false;
  if (std::ranges::any_of(names_in_folders,
                          [&](const char* name) { return std::filesystem::exists(folder / name); }))
    return true;
  return std::ranges::any_of(std::filesystem::directory_iterator(folder),
                             [](const auto& entry) { return ends_in(entry.path(), {".gguf"}); });
}

}  // namespace superstep::data
