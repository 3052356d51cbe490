// Files of other programs' models: told from weights, whatever they are called.
#include <gtest/gtest.h>

#include <string_view>

#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npz.h"
#include "superstep/file/weights/foreign_model.h"
#include "superstep/file/weights/weight_file.h"
#include "superstep/file/zip.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

using namespace std::string_view_literals;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

void write_archive(const std::filesystem::path& path,
                   std::initializer_list<std::pair<const char*, std::string_view>> entries) {
  ZipEntries all;
  for (const auto& [name, text] : entries) all[name] = bytes_of(text);
  write_zip(path, all);
}

void expect_model(const std::filesystem::path& path, const std::string& what, const std::string& cure) {
  const auto found = foreign_model(path);
  ASSERT_TRUE(found) << path;
  EXPECT_NE(found->what.find(what), std::string::npos) << found->what;
  EXPECT_NE(found->cure.find(cure), std::string::npos) << found->cure;
}

// As torch.save writes them, protocol 2: a module, a state dictionary, a dictionary.
constexpr std::string_view module =
    "\x80\x02"
    "c__main__\nNet\nq\0)\x81q\1}q\2."sv;
constexpr std::string_view state =
    "\x80\x02"
    "ccollections\nOrderedDict\nq\0)Rq\1."sv;
constexpr std::string_view dictionary = "\x80\x02}q\0."sv;

TEST(ForeignModel, OfPyTorchIsNamedWithItsExport) {
  const ScratchFolder folder;
  write_archive(folder / "net.pt", {{"net/data.pkl", module}, {"net/version", "3\n"}});
  expect_model(folder / "net.pt", "class '__main__.Net'", "torch.load");
  write_archive(folder / "script.pt", {{"s/data.pkl", module}, {"s/constants.pkl", dictionary}});
  expect_model(folder / "script.pt", "TorchScript", "torch.jit.load");
  write_archive(folder / "program.bin", {{"p/archive_format", "pt2"}, {"p/models/model.json", "{}"}});
  expect_model(folder / "program.bin", "torch.export", "program.pt2");
  write_archive(folder / "older.pt2", {{"serialized_exported_program.json", "{}"}, {"version", "5.3"}});
  expect_model(folder / "older.pt2", "an older form", "torch.export.load");
  write_file_atomically(folder / "old.pt", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.}."sv);
  expect_model(folder / "old.pt", "before PyTorch 1.6", "torch.save");
  expect_error(ErrorCode::unsupported, {"net.pt", "__main__.Net", "net.onnx"},
               [&] { WeightFile::open(folder / "net.pt"); });
}

TEST(ForeignModel, OfOthersIsNamedWithItsExport) {
  const ScratchFolder folder;
  write_archive(folder / "net.keras", {{"config.json", "{}"}, {"model.weights.h5", ""}});
  expect_model(folder / "net.keras", "Keras", "keras.saving.load_model");
  {
    Hdf5Writer writer(folder / "net.h5");
    writer.write("x", Tensor(ElementType::f32, {1}));
    writer.set_attribute("", "model_config", std::string("{}"));
    writer.close();
  }
  expect_model(folder / "net.h5", "Keras", "net.onnx");
  make_folder(folder / "saved");
  write_file_atomically(folder / "saved" / "saved_model.pb", "\x08\x01"sv);
  expect_model(folder / "saved", "SavedModel", "--saved-model");
  write_file_atomically(folder / "net.tflite", "\x1c\0\0\0TFL3\0\0\0\0"sv);
  expect_model(folder / "net.tflite", "TensorFlow Lite", "--tflite");
  write_file_atomically(
      folder / "forest.pkl",
      "\x80\x04\x95\x40\0\0\0\0\0\0\0\x8c\x18sklearn.ensemble._forest\x94\x8c\x15RandomForestRegressor\x94\x93\x94)\x81."sv);
  expect_model(folder / "forest.pkl", "sklearn.ensemble._forest.RandomForestRegressor", "skl2onnx");
}

TEST(ForeignModel, IsNoneOfWhatIsReadHere) {
  const ScratchFolder folder;
  write_archive(folder / "state.pt", {{"s/data.pkl", state}});
  write_archive(folder / "checkpoint.pt", {{"s/data.pkl", dictionary}});
  write_npz(folder / "x.npz", {{"x", Tensor(ElementType::f32, {2})}});
  // What is called may be any function: the reader of weights refuses it by name.
  write_archive(folder / "called.pt", {{"s/data.pkl",
                                        "\x80\x02"
                                        "cos\nsystem\nX\x04\0\0\0true\x85R."sv}});
  write_file_atomically(folder / "cut.pkl", "\x80\x04\x95\x40\0\0"sv);
  write_file_atomically(folder / "long.pkl",
                        "\x80\x04\x8c\xff"
                        "abc"sv);
  write_file_atomically(folder / "line.pkl",
                        "\x80\x02"
                        "cabc"sv);
  write_file_atomically(folder / "empty", ""sv);
  for (const char* name : {"state.pt", "checkpoint.pt", "called.pt", "x.npz", "cut.pkl", "long.pkl",
                           "line.pkl", "empty", "absent.pt"})
    EXPECT_FALSE(foreign_model(folder / name)) << name;
}

TEST(ForeignModel, QuotesNamesForPythonAndTheShell) {
  const ScratchFolder folder;
  write_archive(folder / "it's $5.pt", {{"n/data.pkl", module}});
  expect_model(folder / "it's $5.pt", "Net", "it\\'s \\$5.pt'");
}

}  // namespace
}  // namespace superstep::data
