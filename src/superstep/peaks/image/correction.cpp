#include "superstep/peaks/image/correction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/file/source/forms.h"
#include "superstep/peaks/image/frame_stack.h"

namespace superstep::peaks {
namespace {

// The mean of the frames of a file; NaN where a frame has no data.
std::vector<float> mean_frame(const std::filesystem::path& path, int height, int width) {
  const FrameStack stack(path);
  if (stack.height() != height || stack.width() != width)
    throw Error(ErrorCode::bad_file,
                fmt::format("its frames have {} x {} pixels, and those to correct {} x {}", stack.height(),
                            stack.width(), height, width),
                stack.where());
  const Correction none{.height = height, .width = width};
  std::vector<double> sums(none.pixels());
  std::vector<float> values(none.pixels());
  std::vector<std::byte> pixels(stack.frame_bytes());
  for (std::int64_t i = 0; i < stack.frames(); ++i) {
    stack.read(i, pixels.data());
    Frame(stack.type(), pixels.data(), none).values(0, values);
    for (std::size_t p = 0; p < sums.size(); ++p) sums[p] += double{values[p]};
  }
  for (std::size_t p = 0; p < sums.size(); ++p)
    values[p] = static_cast<float>(sums[p] / static_cast<double>(stack.frames()));
  return values;
}

void mark_bad(Correction& correction, std::size_t pixel) {
  if (correction.bad.empty()) correction.bad.resize(correction.pixels());
  correction.bad[pixel] = 1;
}

void take_dark(Correction& correction, std::vector<float> dark) {
  for (std::size_t i = 0; i < dark.size(); ++i)
    if (!std::isfinite(dark[i])) mark_bad(correction, i), dark[i] = 0;
  correction.dark = std::move(dark);
}

void take_flat(Correction& correction, std::vector<float> flat, const std::string& where) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (!correction.dark.empty()) flat[i] -= correction.dark[i];
    if (!(flat[i] > 0)) mark_bad(correction, i);
    if (correction.bad.empty() || !correction.bad[i]) sum += double{flat[i]}, ++count;
  }
  if (count == 0) throw Error(ErrorCode::bad_file, "no pixel of the flat field is above the dark", where);
  const double mean = sum / count;
  for (float& value : flat) value = value > 0 ? static_cast<float>(mean / double{value}) : 1;
  correction.gain = std::move(flat);
}

void take_mask(Correction& correction, const std::vector<float>& mask) {
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i] != 0) mark_bad(correction, i);  // NaN, too
}

}  // namespace

Correction read_correction(const CorrectionFiles& files, int height, int width) {
  Correction correction{.height = height, .width = width};
  if (!files.dark.empty()) take_dark(correction, mean_frame(files.dark, height, width));
  if (!files.mask.empty()) take_mask(correction, mean_frame(files.mask, height, width));
  if (!files.flat.empty()) take_flat(correction, mean_frame(files.flat, height, width), files.flat.string());
  if (!correction.bad.empty() && std::ranges::find(correction.bad, 0) == correction.bad.end())
    throw Error(ErrorCode::invalid_argument, "no pixel is left",
                (files.mask.empty() ? files.flat : files.mask).string(),
                "in a mask 0 stands for a pixel that is good");
  return correction;
}

void Frame::values(std::size_t first, std::span<float> to) const {
  const Correction& by = *correction_;
  for_pixels(type_, [&]<class T>() {
    const T* from = reinterpret_cast<const T*>(pixels_) + first;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::size_t p = first + i;
      float value = static_cast<float>(from[i]);
      if (!by.dark.empty()) value -= by.dark[p];
      if (!by.gain.empty()) value *= by.gain[p];
      const bool none = is_no_data(from[i]) || (!by.bad.empty() && by.bad[p] != 0);
      to[i] = none ? std::numeric_limits<float>::quiet_NaN() : value;
    }
  });
}

void require_pixels(ElementType type, const std::string& where) {
  using enum ElementType;
  for (const ElementType known : {u8, i8, u16, i16, u32, i32, f32, f64})
    if (type == known) return;
  throw Error(ErrorCode::unsupported, fmt::format("pixels of type {} are not looked at", name_of(type)),
              where, "give whole numbers of 8 to 32 bits, or f32 or f64");
}

}  // namespace superstep::peaks
