#include "superstep/file/weights/foreign_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "superstep/base/printable.h"
#include "superstep/base/system/mapped_file.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/zip.h"

namespace superstep::data {
namespace {

using namespace std::string_view_literals;
namespace fs = std::filesystem;

constexpr std::size_t looked_at = 4096;  // bytes of a pickle: the class of what it holds is named first

// As a text of Python, and in the double quotes of a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') result += '\\';
    if (c == '"' || c == '$' || c == '`') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string onnx_name(const fs::path& path) { return fs::path(path).replace_extension(".onnx").string(); }

// "x.onnx" of a file "x.pt", for a call of torch.onnx.export.
std::string exported_by_torch(const fs::path& path, std::string_view model, std::string_view example,
                              std::string_view exporter) {
  return fmt::format(
      "if you trust its maker, export it, with an example of its input: python3 -c \"import torch; "
      "torch.onnx.export({}, {}, "
      "{}, "
      "dynamo={})\"; then name {} here",
      model, example, quoted(onnx_name(path)), exporter, printable(onnx_name(path)));
}

ForeignModel pickled_module(const fs::path& path, const std::string& name) {
  return {
      fmt::format("a module of PyTorch, pickled (class '{}')", printable(name)),
      exported_by_torch(path, fmt::format("torch.load({}, weights_only=False).eval()", quoted(path.string())),
                        "(torch.zeros(1, 3, 224, 224),)", "True")};
}

ForeignModel torch_script(const fs::path& path) {
  return {"a model of TorchScript",
          exported_by_torch(path, fmt::format("torch.jit.load({}).eval()", quoted(path.string())),
                            "(torch.zeros(1, 3, 224, 224),)", "False")};
}

// Read under its own ending (onnx/exported/exported.h).
ForeignModel export_archive(const fs::path& path) {
  const std::string name = fs::path(path).replace_extension(".pt2").string();
  return {"an archive of torch.export",
          fmt::format("give it the ending of such archives, and it is read: mv {} {}",
                      printable(path.string()), printable(name))};
}

ForeignModel older_export_archive(const fs::path& path) {
  return {"an archive of torch.export in an older form",
          fmt::format(
              "export it first: python3 -c \"import torch; torch.onnx.export(torch.export.load({}), (), {}, "
              "dynamo=True)\"; then name {} here",
              quoted(path.string()), quoted(onnx_name(path)), printable(onnx_name(path)))};
}

ForeignModel keras(const fs::path& path) {
  return {"a model of Keras",
          fmt::format("export it first: python3 -c \"import keras; keras.saving.load_model({}).export({}, "
                      "format='onnx')\"; then name {} here",
                      quoted(path.string()), quoted(onnx_name(path)), printable(onnx_name(path)))};
}

ForeignModel by_tf2onnx(const fs::path& path, std::string what, std::string_view option) {
  return {
      std::move(what),
      fmt::format("export it first: python3 -m tf2onnx.convert --{} {} --output {}; then name {} here",
                  option, printable(path.string()), printable(onnx_name(path)), printable(onnx_name(path)))};
}

// A text of a pickle of protocol 4, with its MEMOIZE.
std::string short_text(std::string_view& bytes) {
  if (!bytes.starts_with('\x8c') || bytes.size() < 2) return "";
  const auto size = static_cast<unsigned char>(bytes[1]);
  if (bytes.size() < size + 3u) return "";
  const std::string text(bytes.substr(2, size));
  bytes.remove_prefix(size + 3u);
  return text;
}

// The class of the object that a pickle holds: "" of a dictionary, a list or a number, of state dictionaries,
// and of what is called rather than made (REDUCE), which may be anything.
std::string pickled_class(std::string_view bytes) {
  if (bytes.size() < 2 || bytes[0] != '\x80') return "";
  bytes.remove_prefix(2);
  if (bytes.starts_with('\x95')) bytes.remove_prefix(std::min<std::size_t>(9, bytes.size()));  // FRAME
  std::string module, name;
  if (bytes.starts_with('c')) {  // GLOBAL: two lines
    const std::size_t end = bytes.find('\n'), last = end == bytes.npos ? end : bytes.find('\n', end + 1);
    if (last == bytes.npos) return "";
    module = bytes.substr(1, end - 1);
    name = bytes.substr(end + 1, last - end - 1);
    bytes.remove_prefix(last + 1);
  } else {
    module = short_text(bytes);
    name = short_text(bytes);
    if (name.empty() || !bytes.starts_with('\x93')) return "";  // STACK_GLOBAL
    bytes.remove_prefix(1);
  }
  if (bytes.starts_with('q')) bytes.remove_prefix(std::min<std::size_t>(2, bytes.size()));  // BINPUT
  if (bytes.starts_with('\x94')) bytes.remove_prefix(1);                                    // MEMOIZE
  return bytes.starts_with(")\x81") ? module + "." + name : "";                             // (), NEWOBJ
}

std::string class_in(const ZipReader& archive, const ZipEntry& entry, const std::string& where) {
  if (entry.size > (1u << 30)) throw Error(ErrorCode::bad_file, "its pickle is larger than 1 GiB", where);
  std::string bytes(std::min<std::size_t>(looked_at, entry.size), '\0');
  ZipReader::Stream stream(archive, entry);
  stream.read(std::as_writable_bytes(std::span(bytes)));
  return pickled_class(bytes);
}

std::optional<ForeignModel> in_archive(const fs::path& path) {
  const MappedFile file(path);
  const ZipReader archive(file.bytes(), path.string());
  const auto holds = [&](std::string_view ending) {
    return std::ranges::find_if(archive.entries(), [&](const ZipEntry& entry) {
      return entry.name == ending || entry.name.ends_with("/" + std::string(ending));
    });
  };
  const auto none = archive.entries().end();
  if (holds("model.weights.h5") != none && holds("config.json") != none) return keras(path);
  if (holds("serialized_exported_program.json") != none) return older_export_archive(path);
  if (holds("archive_format") != none) return export_archive(path);
  const auto pickle = holds("data.pkl");
  if (pickle == none) return {};
  if (holds("constants.pkl") != none) return torch_script(path);
  const std::string name = class_in(archive, *pickle, path.string());
  return name.empty() ? std::nullopt : std::optional(pickled_module(path, name));
}

// The number that torch.save began its files with before version 1.6, as a pickle of protocol 2.
constexpr std::string_view legacy_torch = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;

ForeignModel before_1_6(const fs::path& path) {
  return {"what torch.save wrote before PyTorch 1.6",
          fmt::format("if you trust its maker, write it anew: python3 -c \"import torch; "
                      "torch.save(torch.load({0}, weights_only=False), {0})\"",
                      quoted(path.string()))};
}

std::optional<ForeignModel> pickled_object(const fs::path& path, std::string_view begin) {
  const std::string name = pickled_class(begin);
  if (name.empty()) return {};
  const bool of_sklearn = name.starts_with("sklearn.");
  return ForeignModel{
      fmt::format("an object of Python, pickled (class '{}')", printable(name)),
      of_sklearn
          ? fmt::format(
                "if you trust its maker, export it: python3 -c \"import joblib, skl2onnx; m = "
                "joblib.load({}); "
                "open({}, 'wb').write(skl2onnx.to_onnx(m, X[:1]).SerializeToString())\", X of numbers in f32",
                quoted(path.string()), quoted(onnx_name(path)))
          : "nothing of Python is run here: let its own program write an .onnx file, or its weights as "
            ".safetensors"};
}

bool is_keras_hdf5(const fs::path& path) {
  return ends_in(path, {".h5", ".hdf5", ".keras"}) && Hdf5File(path).attributes("").contains("model_config");
}

}  // namespace

std::optional<ForeignModel> foreign_model(const fs::path& path) {
  std::error_code none;
  if (fs::is_directory(path, none))
    return fs::is_regular_file(path / "saved_model.pb", none)
               ? std::optional(by_tf2onnx(path, "a SavedModel of TensorFlow", "saved-model"))
               : std::nullopt;
  switch (form_of(path)) {
    case FileForm::npz: return in_archive(path);
    case FileForm::hdf5: return is_keras_hdf5(path) ? std::optional(keras(path)) : std::nullopt;
    case FileForm::text:
    case FileForm::other: break;
    default: return {};
  }
  if (!fs::is_regular_file(path, none)) return {};
  std::string begin(looked_at, '\0');
  std::ifstream stream = open_regular_file(path);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (begin.starts_with(legacy_torch)) return before_1_6(path);
  if (begin.size() >= 8 && begin.substr(4, 4) == "TFL3")
    return by_tf2onnx(path, "a model of TensorFlow Lite", "tflite");
  return pickled_object(path, begin);
}

void refuse_foreign_model(const fs::path& path) {
  if (const auto found = foreign_model(path))
    throw Error(ErrorCode::unsupported, "this is " + found->what, path.string(), found->cure);
}

}  // namespace superstep::data
