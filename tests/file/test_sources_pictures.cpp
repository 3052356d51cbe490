// Folders and tables of pictures as sources of samples, written by Pillow.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/forms.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

// Twelve pictures of three classes in sizes and forms of their own, and what they are in 40 x 40 pixels.
constexpr const char* writes_classes = R"(
import os
import numpy as np
from PIL import Image
expected = {}
def fitting(image, side):
    short = min(image.size)
    image = image.resize(tuple(side if s == short else side * s // short for s in image.size), Image.Resampling.BILINEAR)
    left, top = (int(round((s - side) / 2.0)) for s in image.size)
    return np.asarray(image.crop((left, top, left + side, top + side)).convert('RGB')).transpose(2, 0, 1)
forms = ['a.png', 'b.jpg', 'c.webp', 'd.tif']
for part in ['', 'split/train/', 'split/val/']:
    for k, kind in enumerate(['cat', 'dog', 'eel']):
        for i, name in enumerate(forms):
            path = f'{part or "plain/"}{kind}/{name}'
            os.makedirs(os.path.dirname(path), exist_ok=True)
            y, x = np.mgrid[0:50 + 7 * i, 0:90 - 9 * i]
            image = np.stack([128 + 100 * np.sin(x / (5 + k) + y / (9 + i) + c) for c in range(3)], -1)
            Image.fromarray(image.astype(np.uint8)).save(path, quality=90, lossless=True)
            with Image.open(path) as written:
                expected[path] = fitting(written.convert('RGB'), 40)
np.savez('expected.npz', **expected)
)";

constexpr const char* writes_pairs = R"(
import os
import numpy as np
from PIL import Image
rng = np.random.default_rng(3)
expected = {}
for patient in ['TCGA_CS_4941', 'TCGA_DU_5849', 'TCGA_HT_7473']:
    os.makedirs(f'kaggle_3m/{patient}')
    for number in range(1, 13):
        image = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        mask = np.where(rng.random((32, 32)) < 0.2, 255, 0).astype(np.uint8)
        Image.fromarray(image).save(f'kaggle_3m/{patient}/{patient}_{number}.tif')
        Image.fromarray(mask).save(f'kaggle_3m/{patient}/{patient}_{number}_mask.tif')
        expected[f'kaggle_3m/{patient}/{patient}_{number}.tif'] = np.concatenate([image.transpose(2, 0, 1), mask[None] // 255])
open('kaggle_3m/data.csv', 'w').write('Patient\n')
os.makedirs('two/train/images'); os.makedirs('two/train/masks'); os.makedirs('two/val/images'); os.makedirs('two/val/masks')
for i in range(4):
    part = 'train' if i < 3 else 'val'
    Image.fromarray(image).save(f'two/{part}/images/p{i}.jpg')
    Image.fromarray(mask).save(f'two/{part}/masks/p{i}_mask.png')
Image.fromarray(image).save('two/train/images/alone.jpg')
np.savez('expected.npz', **expected)
)";

SourceRequest wanted_pictures(std::int64_t side, bool skip_broken = false) {
  return {.wanted = {{.name = "image", .type = ElementType::u8, .row = Shape{3, side, side}},
                     {.name = "label", .type = ElementType::u8, .row = Shape{}}},
          .skip_broken = skip_broken};
}

class PictureSources : public testing::Test {
 protected:
  void write(const char* script) {
    const std::string python = python_with("numpy, PIL");
    if (python.empty()) GTEST_SKIP() << "Pillow is not installed: tools/setup-oracles installs it";
    ASSERT_TRUE(run_python(python, folder / ".", script));
  }
  std::string refusal_of(const std::string& name, const SourceRequest& request = wanted_pictures(40)) const {
    try {
      const auto source = open_source(folder / name, request);
      for (std::size_t i = 0; i < source->arrays().size(); ++i) read_whole(*source, i);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string below(const std::string& path) const {
    return fs::path(path).lexically_relative(folder / ".").generic_string();
  }
  const ScratchFolder folder;
};

std::int64_t number_at(const SampleSource& source, std::string_view name, std::int64_t row) {
  return static_cast<std::int64_t>(read_rows(source, find_array(source, name), std::span(&row, 1)).at(0));
}

void expect_pixels(const SampleSource& source, std::int64_t row, const Tensor& expected) {
  const Tensor found = read_rows(source, 0, std::span(&row, 1));
  ASSERT_EQ(found.element_count(), expected.element_count()) << source.place(0, row);
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < found.element_count(); ++i) different += found.at(i) != expected.at(i);
  EXPECT_EQ(different, 0) << source.place(0, row);
}

TEST_F(PictureSources, OfAFolderAClassAreThoseOfPillow) {
  ASSERT_NO_FATAL_FAILURE(write(writes_classes));
  if (IsSkipped()) return;
  const NamedTensors expected = read_npz(folder / "expected.npz");
  const auto source = open_source(folder / "plain", wanted_pictures(40));
  ASSERT_EQ(source->arrays().size(), 2u);
  ASSERT_EQ(source->arrays()[0].rows, 12);
  const std::size_t label = find_array(*source, "label");
  EXPECT_EQ(source->arrays()[label].classes, (std::vector<std::string>{"cat", "dog", "eel"}));
  std::map<std::int64_t, int> first_half;
  for (std::int64_t row = 0; row < 12; ++row) {
    const std::string path = below(source->place(0, row));
    expect_pixels(*source, row, expected.at(path));
    const std::int64_t class_number = number_at(*source, "label", row);
    EXPECT_EQ(fs::path(path).parent_path().filename(), source->arrays()[label].classes[class_number]);
    if (row < 6) ++first_half[class_number];
  }
  // The first samples show what all show: two of four pictures of every class.
  EXPECT_EQ(first_half, (std::map<std::int64_t, int>{{0, 2}, {1, 2}, {2, 2}}));
}

TEST_F(PictureSources, TrainAndValidateByTheFoldersThatSaySo) {
  ASSERT_NO_FATAL_FAILURE(write(writes_classes));
  if (IsSkipped()) return;
  const auto source = open_source(folder / "split", wanted_pictures(40));
  ASSERT_EQ(source->arrays()[0].rows, 24);
  for (std::int64_t row = 0; row < 24; ++row) {
    EXPECT_EQ(number_at(*source, "part", row), row < 12 ? 0 : 1);
    EXPECT_EQ(below(source->place(0, row)).starts_with("split/train"), row < 12);
  }
}

TEST_F(PictureSources, OfATableOfPaths) {
  ASSERT_NO_FATAL_FAILURE(write(writes_classes));
  if (IsSkipped()) return;
  write_file_atomically(folder / "table.csv",
                        std::string_view("path,label,split\nplain/dog/a.png,hund,train\n"
                                         "plain/cat/b.jpg,katze,val\n"
                                         "plain/eel/d.tif,aal,train\n"));
  const auto source = open_source(folder / "table.csv", wanted_pictures(40));
  const NamedTensors expected = read_npz(folder / "expected.npz");
  ASSERT_EQ(source->arrays()[0].rows, 3);
  EXPECT_EQ(source->arrays()[1].classes, (std::vector<std::string>{"aal", "hund", "katze"}));
  for (std::int64_t row = 0; row < 3; ++row)
    expect_pixels(*source, row, expected.at(below(source->place(0, row))));
  EXPECT_EQ(number_at(*source, "label", 2), 2);
  EXPECT_EQ(number_at(*source, "part", 2), 1);

  write_file_atomically(folder / "numbers.csv", std::string_view("file,class\nplain/dog/a.png,700\n"));
  EXPECT_EQ(number_at(*open_source(folder / "numbers.csv", wanted_pictures(40)), "label", 0), 700);
  write_file_atomically(folder / "out.csv", std::string_view("path,label\n../elsewhere.png,1\n"));
  EXPECT_NE(refusal_of("out.csv").find("line 2 names '../elsewhere.png'"), std::string::npos);
  write_file_atomically(folder / "root.csv", std::string_view("path,label\n/etc/a.png,1\n"));
  EXPECT_NE(refusal_of("root.csv").find("does not lie in the table's folder"), std::string::npos);
  write_file_atomically(folder / "gone.csv", std::string_view("path,label\nplain/dog/none.png,1\n"));
  EXPECT_NE(refusal_of("gone.csv").find("none.png: there is no such file"), std::string::npos);
}

TEST_F(PictureSources, BrokenPicturesAreNamedAndSkippedOnlyWhenAsked) {
  ASSERT_NO_FATAL_FAILURE(write(writes_classes));
  if (IsSkipped()) return;
  const std::string whole = read_text_file(folder / "plain/dog/b.jpg");
  write_file_atomically(folder / "plain/dog/b.jpg", std::string_view(whole).substr(0, whole.size() / 2));
  write_file_atomically(folder / "plain/eel/x.png", std::string_view("no picture"));
  write_file_atomically(folder / "plain/eel/notes.txt", std::string_view("no picture, and does not say so"));
  const std::string refusal = refusal_of("plain");
  EXPECT_NE(refusal.find("--skip-broken"), std::string::npos) << refusal;
  EXPECT_TRUE(refusal.find("b.jpg") != std::string::npos || refusal.find("x.png") != std::string::npos);
  const auto source = open_source(folder / "plain", wanted_pictures(40, true));
  EXPECT_EQ(source->arrays()[0].rows, 11);
  ASSERT_EQ(source->notes().size(), 2u);
  EXPECT_EQ(source->notes()[0], "1 file is no picture by its name, and left out");
  EXPECT_NE(source->notes()[1].find("2 of 13 pictures cannot be read"), std::string::npos)
      << source->notes()[1];
  EXPECT_NE(source->notes()[1].find("b.jpg is damaged"), std::string::npos) << source->notes()[1];
  EXPECT_EQ(read_whole(*source, 0).shape(), (Shape{11, 3, 40, 40}));
}

TEST_F(PictureSources, OfBytesOrAsSharesOfOne) {
  ASSERT_NO_FATAL_FAILURE(write(writes_classes));
  if (IsSkipped()) return;
  const auto bytes = open_source(folder / "plain", wanted_pictures(40));
  const auto shares = open_source(
      folder / "plain", {.wanted = {{.name = "x", .type = ElementType::f32, .row = Shape{3, 40, 40}},
                                    {.name = "y", .type = ElementType::i64, .row = Shape{}}}});
  EXPECT_EQ(shares->arrays()[0].name, "x");
  EXPECT_EQ(shares->arrays()[1].name, "y");
  const std::int64_t row = 5;
  const Tensor a = read_rows(*bytes, 0, std::span(&row, 1)), b = read_rows(*shares, 0, std::span(&row, 1));
  for (std::int64_t i = 0; i < a.element_count(); ++i)
    ASSERT_EQ(static_cast<float>(a.at(i)) / 255.0f, b.at(i));
  // Where nobody says how large they shall be, all are as the first.
  EXPECT_NE(refusal_of("plain", {}).find("pixels, the first picture"), std::string::npos)
      << refusal_of("plain", {});
  EXPECT_EQ(refusal_of("plain/cat/a.png", {}), "");
}

TEST_F(PictureSources, OfSlicesWithMasksByPatient) {
  ASSERT_NO_FATAL_FAILURE(write(writes_pairs));
  if (IsSkipped()) return;
  const SourceRequest request{.wanted = {{.name = "image", .type = ElementType::u8, .row = Shape{3, 32, 32}},
                                         {.name = "mask", .type = ElementType::u8, .row = Shape{32, 32}},
                                         {.name = "patient", .type = ElementType::i32, .row = Shape{}}}};
  const auto source = open_source(folder / "kaggle_3m", request);
  const NamedTensors expected = read_npz(folder / "expected.npz");
  ASSERT_EQ(source->arrays()[0].rows, 36);
  std::set<std::string> patients;
  for (std::int64_t row = 0; row < 36; ++row) {
    const std::string path = below(source->place(0, row));
    const Tensor& both = expected.at(path);
    const Tensor image = read_rows(*source, 0, std::span(&row, 1)),
                 mask = read_rows(*source, 1, std::span(&row, 1));
    for (std::int64_t i = 0; i < image.element_count(); ++i) ASSERT_EQ(image.at(i), both.at(i)) << path;
    for (std::int64_t i = 0; i < mask.element_count(); ++i)
      ASSERT_EQ(mask.at(i), both.at(image.element_count() + i)) << path;
    // Twelve slices a patient, 1 to 12 by their numbers.
    EXPECT_EQ(number_at(*source, "patient", row), row / 12);
    EXPECT_TRUE(path.ends_with("_" + std::to_string(row % 12 + 1) + ".tif")) << path;
    patients.insert(fs::path(path).parent_path().string());
    EXPECT_EQ(static_cast<std::int64_t>(patients.size()), row / 12 + 1);
  }
}

TEST_F(PictureSources, OfTwoFoldersWithTheSameNames) {
  ASSERT_NO_FATAL_FAILURE(write(writes_pairs));
  if (IsSkipped()) return;
  const auto source = open_source(folder / "two", {});
  ASSERT_EQ(source->arrays().size(), 4u);
  EXPECT_EQ(source->arrays()[1].shape(), (Shape{4, 1, 32, 32}));
  ASSERT_EQ(source->notes().size(), 1u);
  EXPECT_EQ(source->notes()[0], "1 picture has no mask, and left out: alone.jpg");
  for (std::int64_t row = 0; row < 4; ++row) EXPECT_EQ(number_at(*source, "part", row), row < 3 ? 0 : 1);
  const Tensor masks = read_whole(*source, 1);
  for (std::int64_t i = 0; i < masks.element_count(); ++i) ASSERT_LE(masks.at(i), 1);
}

TEST_F(PictureSources, FoldersThatAreNoneAreRefused) {
  ASSERT_NO_FATAL_FAILURE(write(writes_classes));
  if (IsSkipped()) return;
  fs::create_directories(folder / "plain/empty class");
  EXPECT_NE(refusal_of("plain").find("the folder of class 'empty class' holds no pictures"),
            std::string::npos);
  fs::remove(folder / "plain/empty class");
  fs::create_directory_symlink(folder / "plain", folder / "plain/cat/loop");
  EXPECT_EQ(refusal_of("plain"), "");
  fs::path deep = folder / "plain/dog";
  for (int i = 0; i < 12; ++i) deep /= "deeper";
  fs::create_directories(deep);
  EXPECT_NE(refusal_of("plain").find("levels deep"), std::string::npos) << refusal_of("plain");
  fs::create_directory(folder / "nothing");
  EXPECT_NE(refusal_of("nothing"), "");
  fs::remove_all(folder / "plain/dog/deeper");
  ASSERT_EQ(::mkfifo((folder / "plain/dog/pipe.png").c_str(), 0600), 0);
  EXPECT_NE(refusal_of("plain").find("pipe.png"), std::string::npos);
}

}  // namespace
}  // namespace superstep::data
