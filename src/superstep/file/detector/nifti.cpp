// NIfTI-1 (R. W. Cox et al., nifti.nimh.nih.gov/nifti-1: nifti1.h): a header of 348 bytes, then numbers, the
// first axis innermost.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/file/check.h"
#include "superstep/file/detector/detector_forms.h"
#include "superstep/file/form.h"
#include "superstep/file/source/row_reader.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t header_bytes = 348;
using Header = std::array<std::byte, header_bytes>;

// gzip's files and plain ones alike.
class Unpacked {
 public:
  explicit Unpacked(const fs::path& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) throw Error(ErrorCode::io, "cannot be opened", path.string());
  }
  ~Unpacked() { gzclose(file_); }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  // How many of them there were.
  std::size_t read(std::span<std::byte> to) const {
    constexpr std::size_t most = 1 << 30;  // that zlib takes at once
    std::size_t done = 0;
    while (done < to.size()) {
      const int got =
          gzread(file_, to.data() + done, static_cast<unsigned>(std::min(most, to.size() - done)));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  void skip(std::uint64_t bytes) const {
    std::vector<std::byte> passed(std::min<std::uint64_t>(bytes, 1 << 16));
    for (; bytes > 0; bytes -= passed.size()) {
      passed.resize(std::min<std::uint64_t>(bytes, passed.size()));
      if (read(passed) < passed.size()) cut_short();
    }
  }
  [[noreturn]] void cut_short() const { throw Error(ErrorCode::bad_file, "is cut short", path_.string()); }

 private:
  fs::path path_;
  gzFile file_;
};

struct Layout {
  ElementType type = ElementType::i16;
  Shape shape;  // [time, depth, height, width]
  std::uint64_t begin = 0;
  bool swapped = false, packed = false;
  double slope = 1, intercept = 0;

  bool scaled() const { return slope != 1 || intercept != 0; }
  std::size_t bytes() const { return static_cast<std::size_t>(shape.element_count()) * size_in_bytes(type); }
};

template <class T>
T number(const Header& header, std::size_t at, bool swapped) {
  std::array<std::byte, sizeof(T)> bytes;
  std::copy_n(header.begin() + static_cast<std::ptrdiff_t>(at), sizeof(T), bytes.begin());
  if (swapped) std::ranges::reverse(bytes);
  return std::bit_cast<T>(bytes);
}

ElementType type_of(std::int16_t code, const fs::path& path) {
  switch (code) {
    case 2: return ElementType::u8;
    case 4: return ElementType::i16;
    case 8: return ElementType::i32;
    case 16: return ElementType::f32;
    case 64: return ElementType::f64;
    case 256: return ElementType::i8;
    case 512: return ElementType::u16;
    case 768: return ElementType::u32;
    case 1024: return ElementType::i64;
    case 1280: return ElementType::u64;
    default: break;
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("holds numbers of NIfTI's type {}, which is not read", code), path.string());
}

Shape shape_of(const Header& header, bool swapped, const fs::path& path) {
  const auto rank = number<std::int16_t>(header, 40, swapped);
  std::vector<std::int64_t> extents(4, 1);
  bool sound = rank >= 1 && rank <= 7;
  for (int axis = 0; sound && axis < rank; ++axis) {
    const auto extent = number<std::int16_t>(header, 42 + 2 * static_cast<std::size_t>(axis), swapped);
    sound = extent >= 1 && (axis < 4 || extent == 1);
    if (axis < 4) extents[static_cast<std::size_t>(3 - axis)] = extent;
  }
  if (!sound)
    throw Error(ErrorCode::bad_file, "says extents that are no volume's, nor a volume's in time",
                path.string());
  return Shape(extents);
}

Layout layout_of(const fs::path& path) {
  Header header;
  const Unpacked file(path);
  if (file.read(header) < header.size()) file.cut_short();
  Layout layout;
  layout.swapped = number<std::int32_t>(header, 0, false) != static_cast<std::int32_t>(header_bytes);
  if (std::memcmp(header.data() + 344, "n+1\0", 4) != 0)
    throw Error(ErrorCode::unsupported, "is a header without its numbers (.hdr, .img)", path.string(),
                "save the volume as one file: .nii or .nii.gz");
  layout.type = type_of(number<std::int16_t>(header, 70, layout.swapped), path);
  layout.shape = shape_of(header, layout.swapped, path);
  const auto offset = number<float>(header, 108, layout.swapped);
  if (!(offset >= static_cast<float>(header_bytes) && offset < 1e9F))
    throw Error(ErrorCode::bad_file, fmt::format("says that its numbers begin at byte {}", offset),
                path.string());
  layout.begin = static_cast<std::uint64_t>(offset);
  const auto slope = number<float>(header, 112, layout.swapped),
             add = number<float>(header, 116, layout.swapped);
  // A slope of 0 means that nothing is scaled (nifti1.h, "DATA SCALING").
  if (slope != 0 && slope == slope && add == add) layout.slope = slope, layout.intercept = add;
  std::error_code none;
  const auto size = static_cast<double>(fs::file_size(path, none));
  layout.packed = [&] {
    char mark[2] = {};
    open_regular_file(path).read(mark, sizeof mark);
    return mark[0] == '\x1f' && mark[1] == '\x8b';
  }();
  if (!layout.packed && static_cast<double>(layout.begin + layout.bytes()) > size) file.cut_short();
  if (layout.packed) require_plausible_ratio(static_cast<double>(layout.bytes()), size, path.string());
  return layout;
}

Tensor load(const fs::path& path, const Layout& layout) {
  require_memory(static_cast<double>(layout.bytes()) * (layout.scaled() ? 3 : 1), path.string());
  Tensor stored(layout.type, layout.shape);
  const Unpacked file(path);
  file.skip(layout.begin);
  const std::span<std::byte> bytes(stored.bytes(), stored.byte_count());
  if (file.read(bytes) < bytes.size()) file.cut_short();
  const std::size_t width = size_in_bytes(layout.type);
  for (std::size_t at = 0; layout.swapped && at < bytes.size(); at += width)
    std::ranges::reverse(bytes.subspan(at, width));
  if (!layout.scaled()) return stored;
  Tensor scaled(ElementType::f32, layout.shape);
  const auto to = scaled.as<float>();
  for (std::int64_t i = 0; i < stored.element_count(); ++i)
    to[static_cast<std::size_t>(i)] = static_cast<float>(layout.slope * stored.at(i) + layout.intercept);
  return scaled;
}

}  // namespace

bool is_nifti(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  if (!ends_in(path, {".nii", ".gz"}) || (ends_in(path, {".gz"}) && !ends_in(path.stem(), {".nii"})))
    return false;
  static_cast<void>(open_regular_file(path));
  Header header;
  const Unpacked file(path);
  if (file.read(header) < header.size()) return false;
  const auto mark = number<std::int32_t>(header, 0, false), other = number<std::int32_t>(header, 0, true);
  return (mark == 348 || other == 348) && std::memcmp(header.data() + 344, "n", 1) == 0;
}

std::unique_ptr<SampleSource> open_nifti(const fs::path& path, const SourceRequest& request) {
  const Layout layout = layout_of(path);
  auto source = std::make_unique<ArraySource>(path.string(), "array");
  SourceArray volume = array_of("volume", layout.scaled() ? ElementType::f32 : layout.type, layout.shape);
  for (const SourceArray& wanted : request.wanted)
    if (wanted.row.rank() > 2 && wanted.row.element_count() == volume.row.element_count()) {
      volume.name = wanted.name;
      volume.row = wanted.row;
      break;
    }
  if (layout.packed || layout.scaled()) {
    const std::size_t row_bytes = volume.row_bytes();
    source->add(std::move(volume), rows_of_tensor(row_bytes, [path, layout] { return load(path, layout); }));
  } else {
    const FileRows rows{.begin = layout.begin,
                        .row_bytes = volume.row_bytes(),
                        .swapped = layout.swapped ? size_in_bytes(layout.type) : 0};
    source->add(std::move(volume), rows_of_file(std::make_shared<const StableFile>(path), rows));
  }
  return source;
}

}  // namespace superstep::data
