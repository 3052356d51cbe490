// Pictures beside Pillow, which writes them and says what is in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/npz.h"
#include "superstep/file/pictures/picture.h"
#include "superstep/file/pictures/resample.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

// A picture of smooth waves, so that JPEG changes it little, with no symmetry.
constexpr const char* writes_pictures = R"(
import numpy as np
from PIL import Image, ImageOps
y, x = np.mgrid[0:61, 0:97]
wave = lambda a, b, c: 127 + 100 * np.sin(x / a + y / b + c)
rgb = np.stack([wave(9, 14, 0), wave(21, 7, 1), wave(13, 30, 2)], -1).astype(np.uint8)
color, gray = Image.fromarray(rgb), Image.fromarray(rgb[..., 0])
expected = {}
def keep(name, image, as_is=None, **options):
    image.save(name, **options)
    with Image.open(name) as opened:
        upright = ImageOps.exif_transpose(opened)
        expected[name] = np.asarray(as_is if as_is is not None else upright.convert('RGB'))
keep('rgb.jpg', color, quality=92)
keep('gray.jpg', gray, quality=92)
keep('progressive.jpg', color, quality=80, progressive=True)
keep('full.jpg', color, quality=95, subsampling=0)
keep('cmyk.jpg', color.convert('CMYK'), quality=95)
keep('cmyk.tif', color.convert('CMYK'))
keep('rgb.png', color)
keep('gray.png', gray)
keep('palette.png', color.quantize(32))
keep('bits.png', gray.convert('1'))
keep('alpha.png', Image.fromarray(np.dstack([rgb, rgb[..., :1]])))
keep('gray_alpha.png', Image.merge('LA', (gray, gray)))
deep = (rgb[..., 0].astype(np.uint16) << 8) + 200
keep('deep.png', Image.fromarray(deep), np.dstack([deep >> 8] * 3).astype(np.uint8))
keep('lossless.webp', color, lossless=True)
keep('lossy.webp', color, quality=90)
keep('rgb.tif', color, compression='tiff_lzw')
keep('gray.tif', gray)
keep('palette.tif', color.quantize(32))
for turn in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = turn
    keep(f'turn{turn}.jpg', color, quality=95, exif=exif)
    keep(f'turn{turn}.png', color, exif=exif)
    keep(f'turn{turn}.webp', color, lossless=True, exif=exif)
    keep(f'turn{turn}.tif', color, tiffinfo=exif)
np.savez('expected.npz', **expected)

resized = {}
for w, h in [(97, 61), (32, 32), (10, 200), (50, 130), (1, 1), (96, 60)]:
    resized[f'{w}x{h}'] = np.asarray(color.resize((w, h), Image.Resampling.BILINEAR))
for side in [16, 33, 64, 128]:
    long = side * 97 // 61
    left = int(round((long - side) / 2.0))
    resized[f'square{side}'] = np.asarray(color.resize((long, side), Image.Resampling.BILINEAR))[:, left:left + side]
tall = color.transpose(Image.Transpose.ROTATE_90)
for side in [16, 50, 128]:
    long = side * 97 // 61
    top = int(round((long - side) / 2.0))
    resized[f'tall{side}'] = np.asarray(tall.resize((side, long), Image.Resampling.BILINEAR))[top:top + side]
tall.save('tall.png')
np.savez('resized.npz', **resized)
np.savez('gray.npz', gray=np.asarray(color.convert('L')))
)";

Picture in(const ScratchFolder& folder, const std::string& name) {
  return in_color(read_picture(folder / name));
}

// The largest difference and the mean one.
std::pair<double, double> differences(const Picture& found, const Tensor& expected) {
  if (expected.shape() != Shape{found.height, found.width, found.channels}) return {1000, 1000};
  double most = 0, sum = 0;
  for (std::size_t i = 0; i < found.pixels.size(); ++i) {
    const double difference = std::abs(found.pixels[i] - expected.at(static_cast<std::int64_t>(i)));
    most = std::max(most, difference), sum += difference;
  }
  return {most, sum / static_cast<double>(found.pixels.size())};
}

std::string refusal_of(const std::filesystem::path& path) {
  try {
    read_picture(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Pictures : public testing::Test {
 protected:
  void SetUp() override {
    const std::string python = python_with("numpy, PIL");
    if (python.empty()) GTEST_SKIP() << "Pillow is not installed: tools/setup-oracles installs it";
    ASSERT_TRUE(run_python(python, folder / ".", writes_pictures));
  }
  const ScratchFolder folder;
};

TEST_F(Pictures, AreThoseThatPillowReads) {
  for (const auto& [name, expected] : read_npz(folder / "expected.npz")) {
    const auto [most, mean] = differences(in(folder, name), expected);
    EXPECT_EQ(most, 0) << name << ", mean " << mean;
  }
}

TEST_F(Pictures, InAnotherSizeAreThoseOfPillow) {
  const Picture picture = in(folder, "rgb.png"), tall = in(folder, "tall.png");
  for (const auto& [name, expected] : read_npz(folder / "resized.npz")) {
    const int height = static_cast<int>(expected.shape()[0]), width = static_cast<int>(expected.shape()[1]);
    const Picture found = name.starts_with("square") ? covering(picture, width, height)
                          : name.starts_with("tall") ? covering(tall, width, height)
                                                     : resized(picture, width, height);
    EXPECT_EQ(differences(found, expected).first, 0) << name;
  }
  const Tensor gray = read_npz(folder / "gray.npz").at("gray");
  EXPECT_EQ(differences(in_gray(picture), gray.reshaped({61, 97, 1})).first, 0);
}

TEST_F(Pictures, CutAnywhereAreRefusedOrWhole) {
  for (const char* name :
       {"rgb.jpg", "progressive.jpg", "rgb.png", "lossless.webp", "lossy.webp", "rgb.tif", "gray.tif"}) {
    const std::string whole = read_text_file(folder / name);
    for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 37) {
      write_file_atomically(folder / "cut", std::string_view(whole).substr(0, length));
      const std::string refusal = refusal_of(folder / "cut");
      EXPECT_NE(refusal.find("cut"), std::string::npos) << name << " cut at " << length << ": " << refusal;
    }
  }
}

TEST(PictureRefusals, SayWhatTheFileIs) {
  const ScratchFolder folder;
  const auto refused = [&](std::string_view bytes, const std::string& expected) {
    write_file_atomically(folder / "p.jpg", bytes);
    const std::string message = refusal_of(folder / "p.jpg");
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_NE(message.find("p.jpg"), std::string::npos) << message;
  };
  refused("", "is empty");
  refused("hello, I am a text", "is no picture");
  refused("GIF89a and so on", "is a GIF");
  refused("\xff\xd8\xff\xe0 and nothing else", "is damaged");
  refused(std::string_view("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16), "is damaged");
  refused(std::string_view("II*\0\x08\0\0\0\0\0\0\0", 12), "is damaged");
  refused(std::string_view("RIFF\x10\0\0\0WEBPVP8 xxxxxxxx", 24), "is damaged");
  EXPECT_NE(refusal_of(folder / "none.jpg").find("no such file"), std::string::npos);
  std::filesystem::create_directory(folder / "folder.jpg");
  EXPECT_NE(refusal_of(folder / "folder.jpg"), "");
}

// 65,000 x 65,000 pixels in the header of a small file.
TEST(PictureRefusals, MorePixelsThanThereCanBe) {
  const ScratchFolder folder;
  const std::string python = python_with("numpy, PIL");
  if (python.empty()) GTEST_SKIP() << "Pillow is not installed: tools/setup-oracles installs it";
  ASSERT_TRUE(run_python(python, folder / ".", R"(
import struct, zlib
def chunk(name, data): return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
head = struct.pack('>IIBBBBB', 65000, 65000, 8, 2, 0, 0, 0)
open('bomb.png', 'wb').write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(bytes(9))) + chunk(b'IEND', b''))
)"));
  EXPECT_NE(refusal_of(folder / "bomb.png").find("claims 65000 x 65000 pixels"), std::string::npos)
      << refusal_of(folder / "bomb.png");
}

}  // namespace
}  // namespace superstep::data
