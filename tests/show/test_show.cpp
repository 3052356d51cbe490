#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "superstep/base/file.h"
#include "superstep/base/printable.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/show/layout.h"
#include "superstep/show/plane.h"
#include "superstep/show/show.h"
#include "superstep/show/tensor_arrays.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::show {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Tensor ramp(Shape shape, ElementType type = ElementType::f32) {
  Tensor tensor(type, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, static_cast<double>(i % 251));
  return tensor;
}

std::optional<PictureLayout> layout(Shape shape, ElementType type = ElementType::f32, bool complex = false) {
  return picture_layout(shape, type, complex);
}

TEST(PictureLayout, ReadsTheUsualShapes) {
  EXPECT_EQ(layout({480, 640})->column, 1);
  EXPECT_EQ(layout({100, 11, 11})->sample, 0);
  EXPECT_EQ(layout({100, 1, 11, 11})->row, 2);
  EXPECT_TRUE(layout({100, 3, 32, 32})->color);
  EXPECT_TRUE(layout({32, 32, 3}, ElementType::u8)->color);
  EXPECT_TRUE(layout({10, 32, 32, 3}, ElementType::u8)->color);
  EXPECT_EQ(layout({10, 2, 64, 64})->channel, 1);
  EXPECT_EQ(layout({32, 32, 32})->depth, 0);
  EXPECT_EQ(picture_layout({32, 32, 32}, ElementType::f32, false, true)->sample, 0);
  EXPECT_EQ(layout({10, 32, 32, 32})->depth, 1);
  EXPECT_EQ(layout({10, 2, 32, 32, 32})->depth, 2);
  EXPECT_TRUE(layout({64, 64, 2})->complex_pairs);
  EXPECT_TRUE(layout({4, 8, 8, 2}, ElementType::f32, true)->complex_pairs);
}

TEST(PictureLayout, LeavesTablesAndCoordinatesAlone) {
  EXPECT_FALSE(layout({1000}));
  EXPECT_FALSE(layout({1000, 2}));
  EXPECT_FALSE(layout({1000, 16}));
  EXPECT_FALSE(layout({50, 7, 3}));
  EXPECT_FALSE(layout({500, 96, 3}));                   // positions of atoms
  EXPECT_FALSE(layout({20, 8, 2}));                     // too small to be taken for complex pairs
  EXPECT_FALSE(layout({20, 30, 2}, ElementType::i32));  // integers are no complex numbers
  EXPECT_FALSE(layout({0, 11, 11}));
  EXPECT_FALSE(layout({2, 3, 4, 5, 6, 7}));
}

TEST(SampleBlocks, CoverSmallShapesAndStayWithinLargeOnes) {
  ASSERT_EQ(sample_blocks({10, 20}, 1000).size(), 1u);
  EXPECT_EQ(sample_blocks({10, 20}, 1000)[0].count, (std::vector<std::int64_t>{10, 20}));
  EXPECT_EQ(sample_blocks(Shape{}, 1000).size(), 1u);
  EXPECT_TRUE(sample_blocks({0, 4}, 1000).empty());
  for (const Shape& shape :
       {Shape{1000000, 11, 11}, {3, 5000, 7000}, {1, 1, 1, 90000}, {100000000}, {65, 70, 80, 90}}) {
    std::int64_t total = 0;
    for (const Block& block : sample_blocks(shape, 4096)) {
      std::int64_t size = 1;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        const auto a = static_cast<std::size_t>(axis);
        EXPECT_GE(block.first[a], 0);
        EXPECT_LE(block.first[a] + block.count[a], shape[axis]);
        size *= block.count[a];
      }
      total += size;
    }
    EXPECT_LE(total, 4096) << to_string(shape);
    EXPECT_GE(total, 1000) << to_string(shape);
  }
}

TEST(TensorArrays, CutBlocksLikeAnIndexLoop) {
  const Tensor tensor = ramp({4, 5, 6}, ElementType::i32);
  const std::vector<std::int64_t> first = {1, 2, 3}, size = {2, 3, 2};
  const Tensor block = block_of(tensor, ElementType::f64, first, size);
  ASSERT_EQ(block.shape(), (Shape{2, 3, 2}));
  for (std::int64_t z = 0, i = 0; z < 2; ++z)
    for (std::int64_t y = 0; y < 3; ++y)
      for (std::int64_t x = 0; x < 2; ++x, ++i)
        EXPECT_EQ(block.at(i), static_cast<double>(((z + 1) * 5 + y + 2) * 6 + x + 3));
}

TEST(Statistics, MatchTheClosedForm) {
  Tensor tensor = ramp({100}, ElementType::f64);  // 0 .. 99
  tensor.set(7, NAN);
  tensor.set(9, INFINITY);
  const TensorArrays file({{"x", tensor}});
  const Statistics s = look_at(file, file.data_sets()[0]);
  EXPECT_EQ(s.looked_at, 100);
  EXPECT_EQ(s.not_finite, 2);
  EXPECT_EQ(s.low, 0);
  EXPECT_EQ(s.high, 99);
  EXPECT_NEAR(s.mean, (4950.0 - 16) / 98, 1e-12);
  const double squares = 328350.0 - 49 - 81;
  EXPECT_NEAR(s.deviation, std::sqrt(squares / 98 - s.mean * s.mean), 1e-10);
  EXPECT_FALSE(s.sampled);
}

TEST(Plane, ReducesByMeansAndSplitsComplexNumbers) {
  const Plane small = reduced({3, 2, {1, 3, 5, 3, 5, NAN}}, 2);
  EXPECT_EQ(small.width, 2);
  EXPECT_EQ(small.values, (std::vector<float>{3, 5}));
  const ComplexPlane plane = complex_plane_of(Tensor::from<float>({1, 2, 2}, {3, 4, -1, 0}));
  EXPECT_EQ(plane.amplitude.values, (std::vector<float>{5, 1}));
  EXPECT_FLOAT_EQ(plane.phase.values[1], std::numbers::pi_v<float>);
  EXPECT_EQ(logarithm({3, 1, {0, 1, 100}}).values, (std::vector<float>{-2, 0, 2}));
}

// A file with one of everything that a page draws.
void write_sample(const std::filesystem::path& path) {
  data::Hdf5Writer file(path);
  file.write("patch", ramp({6, 11, 11}));
  file.set_attribute("patch", "meaning", std::string("counts <around> a peak"));
  file.set_attribute("patch", "unit", std::string("counts"));
  file.set_attribute("patch", "threshold", 2.5);
  file.write("ploc", Tensor::full(ElementType::f32, {6, 2}, 0.5));
  file.write("eta", Tensor::from<double>({6}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}));
  file.write("loss", Tensor::from<float>({4}, {4, 3, 2, 1}));
  file.write("volume", ramp({8, 8, 8}));
  file.write("empty", Tensor(ElementType::f32, {0, 3}));
  file.write("scalar", Tensor::scalar(3.5));
  const std::vector<std::string> names = {"alpha", "<beta>"};
  file.write_strings("names", names);
  file.set_attribute("", "generator", std::string("test"));
  file.set_attribute("", "parameters", std::string(R"({"peak": {"width": [1, 2]}, "name": "<x>"})"));
  file.close();
}

TEST(Show, DrawsEveryKindOfDataSet) {
  const ScratchFolder folder;
  write_sample(folder / "a.h5");
  const Shown shown = show_file(folder / "a.h5", {});
  EXPECT_TRUE(shown.failures.empty());
  EXPECT_EQ(shown.data_sets.size(), 8u);
  const std::string html = shown.page.to_html();
  for (const char* part : {"counts &lt;around&gt; a peak", "threshold = 2.5", "generator = test",
                           "parameters.peak.width = [1,2]", "parameters.name = &lt;x&gt;", "[6,11,11]",
                           "z = 4: ", "&lt;beta&gt;", "Values of eta", "loss in order", "ploc[1]", "3.5"})
    EXPECT_TRUE(contains(html, part)) << part;
  EXPECT_FALSE(contains(html, "<beta>"));
  EXPECT_EQ(count(html, "class=\"picture\""), 6u + 3u);
}

// The centre of an 11 x 11 patch, (0.5, 0.5) patch sizes, is (5.5, 5.5) from the centre of the first pixel:
// the corner of four pixels. Enlarged 11 times it lies at 66.
TEST(Show, MarksCentresOfPeaks) {
  const ScratchFolder folder;
  write_sample(folder / "a.h5");
  const std::string html = show_file(folder / "a.h5", {}).page.to_html();
  // Three pixels around it are framed, 49.5 to 82.5, and drawn large beside the patch, the mark in the
  // middle. The frame is a light line over a dark one.
  EXPECT_EQ(count(html, "<rect class=\"halo\" x=\"49.50\" y=\"49.50\" width=\"33.00\""), 6u);
  EXPECT_EQ(count(html, "<rect class=\"frame\" x=\"49.50\" y=\"49.50\" width=\"33.00\""), 6u);
  EXPECT_EQ(count(html, "translate(60.50 60.50)"), 6u);
  EXPECT_TRUE(contains(html, "</svg>ploc</span>"));
}

// A cube beside columns of as many rows is a stack of pictures, alone it is a volume.
TEST(Show, TellsStacksFromVolumesByTheTablesBesideThem) {
  const ScratchFolder folder;
  data::write_npz(folder / "alone.npz", {{"cube", ramp({8, 8, 8})}});
  data::write_npz(folder / "stack.npz", {{"cube", ramp({8, 8, 8})}, {"dose", ramp({8})}});
  EXPECT_EQ(count(show_file(folder / "alone.npz", {}).page.to_html(), "class=\"picture\""), 3u);
  EXPECT_EQ(count(show_file(folder / "stack.npz", {}).page.to_html(), "class=\"picture\""), 8u);
}

TEST(Show, MarksPeaksOfReducedFramesWhereTheyAre) {
  const ScratchFolder folder;
  data::Hdf5Writer file(folder / "f.h5");
  file.write("frames", ramp({2, 600, 800}));
  file.write("peak_row", Tensor::from<float>({2}, {10.5f, 20.5f}));
  file.write("peak_col", Tensor::from<float>({2}, {30.5f, 40.5f}));
  file.write("peak_fidx", Tensor::from<std::uint32_t>({2}, {1, 7}));
  file.close();
  const std::string html = show_file(folder / "f.h5", {}).page.to_html();
  EXPECT_TRUE(contains(html, "the mean of 2 x 2"));
  EXPECT_EQ(count(html, "<g transform"), 1u);  // frame 7 does not exist
  EXPECT_TRUE(contains(html, "translate(15.50 5.50)"));
}

TEST(Show, DrawsOnlyWhatIsAskedForAndKnowsTheNearestName) {
  const ScratchFolder folder;
  write_sample(folder / "a.h5");
  EXPECT_EQ(show_file(folder / "a.h5", {12, {"eta"}}).data_sets.size(), 1u);
  EXPECT_EQ(count(show_file(folder / "a.h5", {2, {"patch"}}).page.to_html(), "class=\"picture\""), 2u);
  expect_error(ErrorCode::invalid_argument, {"a.h5", "no data set 'etta'", "did you mean 'eta'"}, [&] {
    show_file(folder / "a.h5", {12, {"etta"}});
  });
}

TEST(Show, ReadsNpyAndNpz) {
  const ScratchFolder folder;
  data::write_npy(folder / "image.npy", ramp({40, 50}));
  const Shown one = show_file(folder / "image.npy", {});
  EXPECT_EQ(one.data_sets[0].info.name, "image");
  EXPECT_EQ(count(one.page.to_html(), "class=\"picture\""), 1u);
  data::write_npz(folder / "both.npz", {{"a", ramp({40, 50})}, {"b", ramp({7})}});
  EXPECT_EQ(show_file(folder / "both.npz", {}).data_sets.size(), 2u);
}

// Folders, patterns and tables as they would be read for a training.
TEST(Show, DrawsWhateverIsReadAsSamples) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "parts");
  for (const char* name : {"parts/a.npz", "parts/b.npz"})
    data::write_npz(folder / name, {{"image", ramp({6, 40, 50})}, {"y", ramp({6})}});
  for (const char* given : {"parts", "parts/*.npz", "parts/{a,b}.npz"}) {
    const Shown shown = show_file(folder / given, {});
    ASSERT_EQ(shown.data_sets.size(), 2u) << given;
    EXPECT_EQ(shown.data_sets[0].info.shape, (Shape{12, 40, 50})) << given;
    EXPECT_GT(count(shown.page.to_html(), "class=\"picture\""), 0u) << given;
  }
  write_file_atomically(folder / "a.csv", std::string_view("t,name,p\n1,a,2\n3,b,5\n"));
  const Shown table = show_file(folder / "a.csv", {});
  ASSERT_EQ(table.data_sets.size(), 2u);
  EXPECT_EQ(table.data_sets[1].info.name, "t");
  EXPECT_EQ(table.data_sets[1].statistics.high, 3);
  EXPECT_TRUE(contains(table.summary, "not read as numbers: 'name' (text)"));
  std::filesystem::create_directory(folder / "none");
  expect_error(ErrorCode::bad_file, {"none", "this is a folder, and no file in it"},
               [&] { show_file(folder / "none", {}); });
}

TEST(Show, RefusesFilesThatAreNotOrAreCutShort) {
  const ScratchFolder folder;
  write_file_atomically(folder / "text.h5", std::string_view("hello"));
  expect_error(ErrorCode::bad_file, {"text.h5", "not an HDF5 file"},
               [&] { show_file(folder / "text.h5", {}); });
  expect_error(ErrorCode::not_found, {"none.h5"}, [&] { show_file(folder / "none.h5", {}); });
  data::write_npy(folder / "a.npy", ramp({40, 50}));
  std::filesystem::resize_file(folder / "a.npy", 300);
  expect_error(ErrorCode::bad_file, {"a.npy"}, [&] { show_file(folder / "a.npy", {}); });
}

page::Image image_of(std::uint8_t value) {
  page::Image image;
  image.width = 20, image.height = 16;
  image.rgb.assign(std::size_t{3} * 20 * 16, value);
  return image;
}

TEST(Show, ReadsSamplesOfAnyForm) {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 5000; ++i)
    lines += fmt::format("{{\"x\": [{}, 0.5], \"label\": {}, \"word\": \"a\"}}\n", i, i % 3);
  write_file_atomically(folder / "samples.jsonl", std::string_view(lines));
  const Shown shown = show_file(folder / "samples.jsonl", {});
  ASSERT_EQ(shown.data_sets.size(), 2u);
  EXPECT_EQ(shown.data_sets[1].info.shape, (Shape{5000, 2}));
  EXPECT_EQ(range_text(shown.data_sets[0]), "0 to 2");
  ASSERT_TRUE(shown.samples);
  EXPECT_EQ(shown.samples->form, "json-lines");
  EXPECT_EQ(shown.samples->samples, 5000);
  EXPECT_EQ(shown.samples->sample_bytes, 24);
  EXPECT_EQ(shown.samples->others.size(), 1u);
  EXPECT_TRUE(contains(shown.summary, "an object of JSON a line: 5,000 samples of 24 B")) << shown.summary;
  EXPECT_TRUE(contains(shown.page.to_html(), "not read as numbers"));
  // What must be decoded is looked at in part, from the first sample to the last.
  EXPECT_LT(shown.data_sets[1].statistics.looked_at, 2500);
  EXPECT_EQ(shown.data_sets[1].statistics.low, 0);
  EXPECT_EQ(shown.data_sets[1].statistics.high, 4999);
}

TEST(Show, CountsTheClassesOfAFolderOfPictures) {
  const ScratchFolder folder;
  for (const char* name : {"train/cat/a", "train/cat/b", "train/dog/c", "val/dog/d"}) {
    std::filesystem::create_directories((folder / name).parent_path());
    write_file_atomically(folder / (std::string(name) + ".png"), page::encode_png(image_of(77)));
  }
  const Shown shown = show_file(folder / ".", {});
  ASSERT_TRUE(shown.samples);
  EXPECT_EQ(shown.samples->training, 3);
  ASSERT_EQ(shown.samples->classes.size(), 2u);
  EXPECT_EQ(shown.samples->classes[0].name, "cat");
  EXPECT_EQ(shown.samples->classes[0].samples, 2);
  EXPECT_EQ(shown.samples->classes[1].samples, 2);
  EXPECT_EQ(shown.samples->classes[1].training, 1);
  EXPECT_TRUE(contains(shown.summary, "3 to train and 1 to validate")) << shown.summary;
  EXPECT_EQ(count(shown.page.to_html(), "class=\"picture\""), 4u);
  // One that is broken is told with its name, or counted and left out.
  write_file_atomically(folder / "train/cat/a.png", std::string_view("no picture"));
  const Shown broken = show_file(folder / ".", {12, {"image"}, {.skip_broken = true}});
  EXPECT_EQ(broken.samples->samples, 3);
  ASSERT_EQ(broken.samples->notes.size(), 1u);
  EXPECT_TRUE(contains(broken.samples->notes[0], "a.png")) << broken.samples->notes[0];
  const data::SourceArray wanted{.name = "image", .type = ElementType::u8, .row = Shape{3, 8, 8}};
  // The first picture says the size; a later one that is broken is a failure of its array.
  write_file_atomically(folder / "train/cat/a.png", page::encode_png(image_of(77)));
  write_file_atomically(folder / "train/dog/c.png", std::string_view("no picture"));
  const Shown failed = show_file(folder / "train", {});
  ASSERT_EQ(failed.failures.size(), 1u);
  EXPECT_TRUE(contains(failed.failures[0].what(), "c.png")) << failed.failures[0].what();
  EXPECT_EQ(show_file(folder / "val", {12, {}, {.wanted = {wanted}}}).data_sets[0].info.shape,
            (Shape{1, 3, 8, 8}));
}

TEST(Show, SeveralFilesAreOneSource) {
  const ScratchFolder folder;
  for (const char* name : {"a-0.npz", "a-1.npz"}) data::write_npz(folder / name, {{"x", ramp({40, 50})}});
  const Shown shown = show_file(folder / "a-{0..1}.npz", {});
  EXPECT_EQ(shown.data_sets[0].info.shape, (Shape{80, 50}));
  EXPECT_EQ(shown.samples->files, 2);
  expect_error(ErrorCode::not_found, {"b-*.npz"}, [&] { show_file(folder / "b-*.npz", {}); });
}

// One damaged data set is named, and the others are drawn all the same.
TEST(Show, NamesTheDamagedDataSetAndDrawsTheOthers) {
  const ScratchFolder folder;
  data::Hdf5Writer writer(folder / "a.h5");
  writer.write("good", ramp({6, 11, 11}));
  writer.write("torn", ramp({50, 11, 11}), {false, 10, 5});
  writer.close();
  // The deflated chunks of "torn" begin with zlib's header, 0x78 0x5e at level 5; spoil what follows it.
  std::string bytes = read_text_file(folder / "a.h5");
  const std::size_t chunk = bytes.find("\x78\x5e");
  ASSERT_NE(chunk, std::string::npos);
  for (std::size_t i = 2; i < 40; ++i) bytes[chunk + i] ^= 0x55;
  write_file_atomically(folder / "a.h5", bytes);
  const Shown shown = show_file(folder / "a.h5", {});
  ASSERT_EQ(shown.failures.size(), 1u);
  EXPECT_EQ(shown.failures[0].code(), ErrorCode::bad_file);
  EXPECT_TRUE(contains(shown.failures[0].what(), "torn"));
  ASSERT_EQ(shown.data_sets.size(), 1u);
  EXPECT_EQ(shown.data_sets[0].info.name, "good");
  EXPECT_TRUE(contains(shown.page.to_html(), "What could not be read"));
}

TEST(Printable, KeepsTextAndStopsControlCharacters) {
  EXPECT_EQ(printable("µ patch\x1b[31m\n\x7f"), "µ patch?[31m??");
}

TEST(Show, RowsOfLettersAreTexts) {
  const ScratchFolder folder;
  Tensor texts(ElementType::u8, {3, 20}), numbers(ElementType::u8, {3, 20});
  const char* smiles[] = {"*CC(*)c1ccccc1", "*CO*", "*CC(*)Cl"};
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t k = 0; k < 20; ++k) {
      const auto letters = std::string(smiles[row]);
      texts.set(20 * row + k, k < std::ssize(letters) ? letters[static_cast<std::size_t>(k)] : 0);
      numbers.set(20 * row + k, static_cast<double>(k + 40 * row));
    }
  data::write_npz(folder / "a.npz", {{"smiles", texts}, {"numbers", numbers}});
  const std::string html = show_file(folder / "a.npz", {}).page.to_html();
  EXPECT_TRUE(contains(html, "<td>*CC(*)c1ccccc1</td>"));
  EXPECT_EQ(count(html, "<h2>smiles</h2>"), 1u);
  EXPECT_TRUE(contains(html, "<h2>numbers</h2>"));
  EXPECT_FALSE(contains(html, "P Q R"));
}

}  // namespace
}  // namespace superstep::show
