// Files of trained weights. tests/fuzz/seeds/gguf/all and tests/fuzz/seeds/torch_file/* were written by the
// packages gguf 0.19 and PyTorch 2.15; the values that are expected of them are what those packages read.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/file/safetensors.h"
#include "superstep/file/weights/blocks.h"
#include "superstep/file/weights/gguf.h"
#include "superstep/file/weights/torch_file.h"
#include "superstep/file/weights/weight_file.h"
#include "superstep/file/zip.h"
#include "tests/damage.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
using namespace std::string_literals;
namespace {

const std::filesystem::path seeds = std::filesystem::path(SUPERSTEP_SOURCE) / "tests/fuzz/seeds";

std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// A copy under a name that says what it is.
std::filesystem::path named(const ScratchFolder& folder, const std::filesystem::path& from,
                            const char* name) {
  std::filesystem::copy_file(from, folder / name);
  return folder / name;
}

struct Expected {
  const char* name;
  std::int64_t count;
  double sum;
  std::vector<std::pair<std::int64_t, double>> values;
};

void expect_values(const WeightFile& file, const Expected& expected) {
  const Weight* weight = file.find(expected.name);
  ASSERT_NE(weight, nullptr) << expected.name;
  const Tensor tensor = weight->tensor();
  ASSERT_EQ(tensor.element_count(), expected.count);
  double sum = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) sum += tensor.at(i);
  EXPECT_NEAR(sum, expected.sum, 1e-5 * std::abs(expected.sum)) << expected.name;
  for (const auto& [at, value] : expected.values)
    EXPECT_FLOAT_EQ(static_cast<float>(tensor.at(at)), static_cast<float>(value))
        << expected.name << " " << at;
}

TEST(Weights, GgufIsReadAsItsOwnPackageReadsIt) {
  const ScratchFolder folder;
  const WeightFile file = WeightFile::open(named(folder, seeds / "gguf/all", "all.gguf"));
  EXPECT_EQ(file.format(), "GGUF");
  ASSERT_EQ(file.weights().size(), 6u);
  expect_values(file, {"f32", 4, -3.9529411792755127, {{0, -1.0}, {1, -0.9921568632125854}}});
  expect_values(file, {"f16", 4, -3.953125, {{0, -1.0}, {1, -0.9921875}}});
  expect_values(
      file,
      {"q8_0",
       64,
       -48.16204071044922,
       {{0, -0.99993896484375}, {31, -0.755859375}, {32, -0.7489852905273438}, {63, -0.5071868896484375}}});
  expect_values(
      file,
      {"q4_0", 64, -48.036376953125, {{0, -1.0}, {31, -0.75}, {32, -0.7490234375}, {63, -0.4681396484375}}});
  expect_values(file, {"q4_k",
                       256,
                       488.5543441772461,
                       {{0, 0.5401153564453125},
                        {31, 0.6901473999023438},
                        {32, 4.270912170410156},
                        {63, 5.561187744140625},
                        {100, 2.4105148315429688},
                        {128, 6.4213714599609375},
                        {160, 1.2602691650390625},
                        {200, -0.9802093505859375},
                        {230, 3.720794677734375},
                        {255, 2.240478515625}}});
  expect_values(file, {"q6_k",
                       256,
                       136.17908477783203,
                       {{0, -22.32476806640625},
                        {1, -1.8603973388671875},
                        {31, -13.022781372070312},
                        {32, 3.92083740234375},
                        {100, 9.36199951171875},
                        {128, 6.601409912109375},
                        {160, -6.601409912109375},
                        {200, 12.742721557617188},
                        {230, 36.837867736816406},
                        {255, -4.3009185791015625}}});
  EXPECT_EQ(std::get<std::int64_t>(file.notes().at("llama.block_count")), 2);
  EXPECT_EQ(std::get<double>(file.notes().at("llama.rope.freq_base")), 1e4);
  EXPECT_EQ(std::get<std::vector<std::string>>(file.notes().at("tokenizer.ggml.tokens")),
            (std::vector<std::string>{"a", "b", "cc"}));
}

TEST(Weights, PackedBlocksCarryTheirBits) {
  std::vector<float> values(256);
  RandomStream(3, 0).fill_uniform(values, -2, 2);
  for (const auto& [format, steps] : {std::pair(BlockFormat::q8_0, 127.0), {BlockFormat::q4_0, 8.0}}) {
    const BlockSize size = block_size(format);
    std::vector<std::byte> blocks(values.size() / static_cast<std::size_t>(size.values) * size.bytes);
    pack_blocks(format, values, blocks);
    std::vector<float> back(values.size());
    unpack_blocks(format, blocks, back);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto block = static_cast<std::ptrdiff_t>(i / 32 * 32);
      float largest = 0;
      for (std::ptrdiff_t k = block; k < block + 32; ++k)
        largest = std::max(largest, std::abs(values[static_cast<std::size_t>(k)]));
      // Half a step, or a whole one where the range of q4_0 ends early; and the rounding of the scale to f16.
      EXPECT_NEAR(back[i], values[i], largest * (1.0 / steps + 1e-3)) << name_of(format) << " " << i;
    }
  }
}

TEST(Weights, TorchArchivesGiveTensorsViewsAndNames) {
  const ScratchFolder folder;
  const WeightFile small = WeightFile::open(named(folder, seeds / "torch_file/small", "small.bin"));
  ASSERT_EQ(small.weights().size(), 3u);
  EXPECT_EQ(small.find("w")->shape, (Shape{2, 3}));
  EXPECT_EQ(small.find("h")->element, ElementType::bf16);
  EXPECT_EQ(small.find("h")->tensor().at(2), 1);
  EXPECT_EQ(small.find("i")->tensor().at(0), 7);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(small.find("w")->tensor().at(i), static_cast<double>(i));

  const WeightFile views = WeightFile::open(named(folder, seeds / "torch_file/views", "views.pt"));
  const Tensor turned = views.find("model.t")->tensor(), part = views.find("model.part")->tensor();
  EXPECT_EQ(turned.shape(), (Shape{4, 3}));
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t c = 0; c < 3; ++c) EXPECT_EQ(turned.at(r * 3 + c), static_cast<double>(c * 4 + r));
  EXPECT_EQ(part.shape(), (Shape{2, 3}));
  for (std::int64_t r = 0; r < 2; ++r)
    for (std::int64_t c = 0; c < 3; ++c)
      EXPECT_EQ(part.at(r * 3 + c), static_cast<double>((r + 1) * 4 + c + 1));
  EXPECT_EQ(views.find("p")->shape, (Shape{2}));
  EXPECT_EQ(views.find("epoch"), nullptr);  // no tensor
}

// os.system is what a file that means harm would name.
TEST(Weights, OtherNamesOfPythonAreRefusedByName) {
  const ScratchFolder folder;
  const std::string pickle =
      "\x80\x02"
      "cos\nsystem\nX\x04\0\0\0true\x85R."s;
  std::vector<std::byte> bytes(pickle.size());
  std::memcpy(bytes.data(), pickle.data(), pickle.size());
  write_zip(folder / "harm.bin", {{"archive/data.pkl", bytes}});
  expect_error(ErrorCode::unsupported, {"harm.bin", "os.system", "state_dict"},
               [&] { WeightFile::open(folder / "harm.bin"); });
}

SafetensorsFile two_arrays(const char* first, const char* second, float value) {
  return {{{first, Tensor::full(ElementType::f32, {2, 3}, value)},
           {second, Tensor::full(ElementType::bf16, {4}, value + 1)}},
          {}};
}

TEST(Weights, ShardsAreOneFile) {
  const ScratchFolder folder;
  write_safetensors(folder / "model-00001-of-00002.safetensors", two_arrays("a", "b", 1));
  write_safetensors(folder / "model-00002-of-00002.safetensors", two_arrays("c", "d", 5));
  const std::string index = R"({"metadata":{},"weight_map":{"a":"model-00001-of-00002.safetensors",
    "b":"model-00001-of-00002.safetensors","c":"model-00002-of-00002.safetensors","d":"model-00002-of-00002.safetensors"}})";
  write_file_atomically(folder / "model.safetensors.index.json", index);
  const WeightFile file = WeightFile::open(folder / ".");
  EXPECT_EQ(file.files(), 2u);
  ASSERT_EQ(file.weights().size(), 4u);
  EXPECT_EQ(file.find("d")->tensor().at(0), 6);
  EXPECT_EQ(file.find("d")->type_name(), "bf16");

  std::filesystem::remove(folder / "model-00002-of-00002.safetensors");
  expect_error(ErrorCode::not_found, {"model-00002-of-00002", "shard is missing", "'c' and 1 more"},
               [&] { WeightFile::open(folder / "model.safetensors.index.json"); });
  write_safetensors(folder / "model-00002-of-00002.safetensors", two_arrays("c", "e", 5));
  expect_error(ErrorCode::bad_file, {"model-00002-of-00002", "lacks 'd'", "index"},
               [&] { WeightFile::open(folder / "model.safetensors.index.json"); });
  write_file_atomically(folder / "model.safetensors.index.json",
                        std::string_view(R"({"weight_map":{"a":"../model-00001-of-00002.safetensors"}})"));
  expect_error(ErrorCode::bad_file, {"'a'", "no file beside it"},
               [&] { WeightFile::open(folder / "model.safetensors.index.json"); });
}

TEST(Weights, BadFilesAreNamed) {
  const ScratchFolder folder;
  expect_error(ErrorCode::not_found, {"none.gguf"}, [&] { WeightFile::open(folder / "none.gguf"); });
  expect_error(ErrorCode::not_found, {"no weights"}, [&] { WeightFile::open(folder / "."); });
  std::vector<std::byte> gguf = bytes_of(seeds / "gguf/all");
  gguf.resize(gguf.size() - 40);
  write_file_atomically(folder / "cut.gguf", gguf);
  expect_error(ErrorCode::bad_file, {"cut.gguf", "cut short", "'q6_k'"},
               [&] { WeightFile::open(folder / "cut.gguf"); });
  write_file_atomically(folder / "text.bin", std::string_view("hello, world"));
  expect_error(ErrorCode::bad_file, {"text.bin", "no file of weights"},
               [&] { WeightFile::open(folder / "text.bin"); });
  write_file_atomically(folder / "old.pth", std::string_view("\x80\x02\x8a\x0alF\xfc"));
  expect_error(ErrorCode::bad_file, {"old.pth", "PyTorch 1.6"},
               [&] { WeightFile::open(folder / "old.pth"); });
  gguf = bytes_of(seeds / "gguf/all");
  gguf[4] = std::byte{9};
  write_file_atomically(folder / "new.gguf", gguf);
  expect_error(ErrorCode::unsupported, {"new.gguf", "version 9"},
               [&] { WeightFile::open(folder / "new.gguf"); });
}

// A file that is cut short after it was opened is an error when its elements are asked for.
TEST(Weights, FilesThatChangeAreNoticed) {
  const ScratchFolder folder;
  write_safetensors(folder / "m.safetensors", two_arrays("a", "b", 1));
  const WeightFile file = WeightFile::open(folder / "m.safetensors");
  std::filesystem::resize_file(folder / "m.safetensors", 64);
  EXPECT_THROW(file.find("a")->tensor().bytes(), Error);
}

TEST(Weights, DamagedGgufIsReadOrRefused) {
  const std::vector<std::byte> whole = bytes_of(seeds / "gguf/all");
  const Refusals refused =
      read_damaged(whole, [](std::span<const std::byte> bytes) { parse_gguf(bytes, nullptr, "g"); });
  constexpr int padding = 14;  // after the last array: its 210 bytes are filled up to a multiple of 32
  EXPECT_EQ(refused.truncations, static_cast<int>(whole.size()) - padding);
  EXPECT_GT(refused.flips, 100);
}

TEST(Weights, DamagedTorchFilesAreReadOrRefused) {
  const Refusals refused =
      read_damaged(bytes_of(seeds / "torch_file/small"), [](std::span<const std::byte> bytes) {
        for (const Weight& weight : parse_torch_file(bytes, nullptr, "t")) weight.tensor().bytes();
      });
  EXPECT_GT(refused.truncations, 1000);
  EXPECT_GT(refused.flips, 100);
}

}  // namespace
}  // namespace superstep::data
