#include "superstep/file/tiff.h"

#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/file/check.h"

namespace superstep::data {
namespace {

constexpr std::uint64_t big_tiff_from = std::uint64_t{2} << 30;
constexpr std::uint64_t largest_page_bytes = std::uint64_t{1} << 30;  // beyond this a header is not believed

// A handle whose library messages are kept for our own errors instead of being printed.
struct Handle {
  Handle(const std::filesystem::path& path, const char* mode) {
    if (*mode == 'r') require_regular_file(path);
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, &Handle::keep, this);
    TIFFOpenOptionsSetWarningHandlerExtR(options, &Handle::ignore, nullptr);
    tiff = TIFFOpenExt(path.c_str(), mode, options);
    TIFFOpenOptionsFree(options);
  }
  ~Handle() { close(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  void close() {
    if (tiff) TIFFClose(tiff);
    tiff = nullptr;
  }
  static int keep(TIFF*, void* self, const char*, const char* format, va_list arguments) {
    char text[300];
    std::vsnprintf(text, sizeof text, format, arguments);
    static_cast<Handle*>(self)->message = text;
    return 1;
  }
  static int ignore(TIFF*, void*, const char*, const char*, va_list) { return 1; }

  TIFF* tiff = nullptr;
  std::string message;
};

struct PageFormat {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, channels = 1, sample_format = SAMPLEFORMAT_UINT;
  std::uint16_t planes = PLANARCONFIG_CONTIG, photometric = PHOTOMETRIC_MINISBLACK;
  bool operator==(const PageFormat&) const = default;
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path.string()), file_(path, "r") {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw Error(ErrorCode::not_found, "there is no such file", path_);
    if (!file_.tiff) fail(ErrorCode::bad_file, "is not a TIFF file: " + file_.message);
    format_ = read_format();
    type_ = type_of(format_);
  }

  // Straight into one tensor, which takes up room as pages are read: what only headers claim costs nothing.
  Tensor read() {
    require_plausible_size();
    const auto pages = static_cast<std::int64_t>(TIFFNumberOfDirectories(file_.tiff));
    if (const std::int64_t planes = planes_of_imagej(); pages == 1 && planes > 1) return read_planes(planes);
    const double page_bytes =
        static_cast<double>(format_.height) * static_cast<double>(row_elements() * size_in_bytes(type_));
    require_plausible_ratio(page_bytes * static_cast<double>(pages),
                            static_cast<double>(std::filesystem::file_size(path_)), path_);
    require_memory(page_bytes * static_cast<double>(pages), path_);
    Tensor all(type_, shape_of(pages));
    const auto step = pages > 0 ? all.byte_count() / static_cast<std::size_t>(pages) : 0;
    for (InterruptCheck stop;; ++page_, stop.throw_if_due(path_)) {
      if (!(read_format() == format_))
        fail(ErrorCode::bad_file, "differs from the first page in size or type");
      if (page_ >= pages) fail(ErrorCode::bad_file, "is one page more than the file says it has");
      read_page(all.bytes() + static_cast<std::size_t>(page_) * step);
      if (TIFFLastDirectory(file_.tiff)) break;
      if (!TIFFReadDirectory(file_.tiff))
        fail(ErrorCode::bad_file, "is followed by a damaged page: " + file_.message);
    }
    if (page_ + 1 != pages) fail(ErrorCode::bad_file, "is not the last page that the file says it has");
    return all;
  }

 private:
  [[noreturn]] void fail(ErrorCode code, const std::string& message, const std::string& hint = {}) const {
    throw Error(code, message, fmt::format("{}: page {}", path_, page_ + 1), hint);
  }

  PageFormat read_format() const {
    PageFormat page;
    TIFFGetField(file_.tiff, TIFFTAG_IMAGEWIDTH, &page.width);
    TIFFGetField(file_.tiff, TIFFTAG_IMAGELENGTH, &page.height);
    TIFFGetFieldDefaulted(file_.tiff, TIFFTAG_BITSPERSAMPLE, &page.bits);
    TIFFGetFieldDefaulted(file_.tiff, TIFFTAG_SAMPLESPERPIXEL, &page.channels);
    TIFFGetFieldDefaulted(file_.tiff, TIFFTAG_SAMPLEFORMAT, &page.sample_format);
    TIFFGetFieldDefaulted(file_.tiff, TIFFTAG_PLANARCONFIG, &page.planes);
    TIFFGetField(file_.tiff, TIFFTAG_PHOTOMETRIC, &page.photometric);
    if (page.channels == 1) page.planes = PLANARCONFIG_CONTIG;
    if (page.width == 0 || page.height == 0 || page.channels == 0) fail(ErrorCode::bad_file, "has no pixels");
    return page;
  }

  // "ImageJ=1.54f\nimages=20\n...": how many planes there are, of which the others may have no directories.
  // 0: not written by it.
  std::int64_t planes_of_imagej() const {
    char* text = nullptr;
    if (!TIFFGetField(file_.tiff, TIFFTAG_IMAGEDESCRIPTION, &text) || !text) return 0;
    const std::string_view description(text), mark = "\nimages=";
    const std::size_t at = description.find(mark);
    if (!description.starts_with("ImageJ=") || at == std::string_view::npos) return 0;
    std::int64_t planes = 0;
    std::from_chars(description.data() + at + mark.size(), description.data() + description.size(), planes);
    return planes;
  }

  // Where the first plane begins, which must lie in one piece as it is.
  std::uint64_t begin_of_planes(std::uint64_t plane_bytes) const {
    std::uint16_t compression = COMPRESSION_NONE;
    TIFFGetFieldDefaulted(file_.tiff, TIFFTAG_COMPRESSION, &compression);
    std::uint64_t* offsets = nullptr;
    std::uint64_t* counts = nullptr;
    const bool placed = TIFFGetField(file_.tiff, TIFFTAG_STRIPOFFSETS, &offsets) &&
                        TIFFGetField(file_.tiff, TIFFTAG_STRIPBYTECOUNTS, &counts) && offsets && counts;
    bool together = placed && compression == COMPRESSION_NONE && format_.bits % 8 == 0;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; together && i < TIFFNumberOfStrips(file_.tiff); bytes += counts[i++])
      together = offsets[i] == offsets[0] + bytes;
    if (!together || bytes < plane_bytes)
      fail(ErrorCode::unsupported, "is a stack of ImageJ whose planes do not lie one after the other",
           "save it with one page for each image");
    return offsets[0];
  }

  Tensor read_planes(std::int64_t planes) {
    const std::uint64_t plane_bytes = format_.height * std::uint64_t{row_elements()} * size_in_bytes(type_),
                        begin = begin_of_planes(plane_bytes), size = std::filesystem::file_size(path_);
    if (begin > size || static_cast<std::uint64_t>(planes) > (size - begin) / plane_bytes)
      throw Error(ErrorCode::bad_file,
                  fmt::format("is a stack of {} images and cut short: its {} bytes have room for {}", planes,
                              size, begin > size ? 0 : (size - begin) / plane_bytes),
                  path_);
    require_memory(static_cast<double>(plane_bytes) * static_cast<double>(planes), path_);
    Tensor all(type_, shape_of(planes));
    std::ifstream stream = open_regular_file(path_);
    stream.seekg(static_cast<std::streamoff>(begin));
    InterruptCheck stop;
    for (std::int64_t plane = 0; plane < planes; ++plane, stop.throw_if_due(path_)) {
      std::byte* to = all.bytes() + static_cast<std::uint64_t>(plane) * plane_bytes;
      if (!stream.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(plane_bytes)))
        throw Error(ErrorCode::io, "cannot be read to its end", path_);
      if (TIFFIsByteSwapped(file_.tiff)) swap_bytes(to, plane_bytes);
      if (format_.photometric == PHOTOMETRIC_MINISWHITE) turn_round(to, plane_bytes);
    }
    return all;
  }

  void swap_bytes(std::byte* bytes, std::uint64_t count) const {
    const std::size_t size = size_in_bytes(type_);
    for (std::uint64_t i = 0; size > 1 && i + size <= count; i += size)
      std::reverse(bytes + i, bytes + i + size);
  }

  // Of unsigned numbers the largest less each of them is each with its bits turned.
  static void turn_round(std::byte* bytes, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) bytes[i] = ~bytes[i];
  }

  ElementType type_of(const PageFormat& page) const {
    if (TIFFIsTiled(file_.tiff))
      fail(ErrorCode::unsupported, "is stored in tiles", "convert it to strips: tiffcp -s IN OUT");
    if (page.photometric == PHOTOMETRIC_PALETTE)
      fail(ErrorCode::unsupported, "has a color palette", "save it as grayscale or RGB");
    if (page.planes != PLANARCONFIG_CONTIG)
      fail(ErrorCode::unsupported, "stores its channels apart", "convert it: tiffcp -p contig IN OUT");
    constexpr std::uint16_t read_as_they_are[] = {PHOTOMETRIC_MINISWHITE, PHOTOMETRIC_MINISBLACK,
                                                  PHOTOMETRIC_RGB, PHOTOMETRIC_CFA};
    if (std::ranges::find(read_as_they_are, page.photometric) == std::end(read_as_they_are))
      fail(ErrorCode::unsupported, fmt::format("has colors of kind {}", page.photometric),
           "save it as grayscale or RGB");
    if (page.photometric == PHOTOMETRIC_MINISWHITE && page.sample_format != SAMPLEFORMAT_UINT)
      fail(ErrorCode::unsupported, "says that 0 is white, of numbers that have no largest one",
           "save it with 0 as black");
    if (page.bits == 1 && page.channels == 1) return ElementType::u8;
    const bool is_float = page.sample_format == SAMPLEFORMAT_IEEEFP;
    const bool is_signed = page.sample_format == SAMPLEFORMAT_INT;
    if (is_float && page.bits == 16) return ElementType::f16;
    if (is_float && page.bits == 32) return ElementType::f32;
    if (is_float && page.bits == 64) return ElementType::f64;
    if (!is_float && page.bits == 8) return is_signed ? ElementType::i8 : ElementType::u8;
    if (!is_float && page.bits == 16) return is_signed ? ElementType::i16 : ElementType::u16;
    if (!is_float && page.bits == 32) return is_signed ? ElementType::i32 : ElementType::u32;
    fail(ErrorCode::unsupported, fmt::format("has pixels of {} bits", page.bits),
         "save it with 8 or 16 bits");
  }

  std::size_t row_elements() const { return std::size_t{format_.width} * format_.channels; }

  void require_plausible_size() const {
    if (row_elements() > largest_page_bytes / 8 / format_.height)
      fail(ErrorCode::bad_file, fmt::format("claims {} x {} pixels", format_.width, format_.height));
  }

  void read_page(std::byte* page) {
    const std::size_t row_bytes = row_elements() * size_in_bytes(type_);
    std::vector<std::uint8_t> line(static_cast<std::size_t>(TIFFScanlineSize(file_.tiff)));
    for (std::uint32_t y = 0; y < format_.height; ++y) {
      if (TIFFReadScanline(file_.tiff, line.data(), y) < 0)
        fail(ErrorCode::bad_file, "is damaged: " + file_.message);
      std::byte* to = page + y * row_bytes;
      if (format_.bits == 1) {
        expand_bits(line, reinterpret_cast<std::uint8_t*>(to));
        continue;
      }
      std::memcpy(to, line.data(), std::min(row_bytes, line.size()));
      if (format_.photometric == PHOTOMETRIC_MINISWHITE) turn_round(to, row_bytes);
    }
  }

  void expand_bits(const std::vector<std::uint8_t>& line, std::uint8_t* to) const {
    const bool invert = format_.photometric == PHOTOMETRIC_MINISWHITE;
    for (std::uint32_t x = 0; x < format_.width; ++x)
      to[x] = ((line[x / 8] >> (7 - x % 8)) & 1) != static_cast<int>(invert);
  }

  Shape shape_of(std::int64_t pages) const {
    std::vector<std::int64_t> extents{pages, format_.height, format_.width};
    if (format_.channels > 1) extents.push_back(format_.channels);
    return Shape(extents);
  }

  std::string path_;
  Handle file_;
  PageFormat format_;
  ElementType type_ = ElementType::u8;
  int page_ = 0;
};

std::uint16_t tag_of(TiffCompression compression) {
  switch (compression) {
    case TiffCompression::none: return COMPRESSION_NONE;
    case TiffCompression::lzw: return COMPRESSION_LZW;
    case TiffCompression::deflate: break;
  }
  return COMPRESSION_ADOBE_DEFLATE;
}

}  // namespace

Tensor read_tiff(const std::filesystem::path& path) { return Reader(path).read(); }

struct TiffWriter::State {
  std::filesystem::path path, partial;
  TiffCompression compression;
  std::string description;
  Handle file;
  bool closed = false;

  void require(bool worked) const {
    if (!worked) throw Error(ErrorCode::io, "cannot be written: " + file.message, path.string());
  }
};

TiffWriter::TiffWriter(const std::filesystem::path& path, TiffCompression compression,
                       std::uint64_t expected_bytes, std::string description) {
  const std::filesystem::path partial = partial_name(path);
  state_.reset(new State{path, partial, compression, std::move(description),
                         Handle(partial, expected_bytes < big_tiff_from ? "w" : "w8")});
  state_->require(state_->file.tiff != nullptr);
}

TiffWriter::~TiffWriter() {
  state_->file.close();
  std::error_code ignored;
  if (!state_->closed) std::filesystem::remove(state_->partial, ignored);
}

void TiffWriter::add_page(std::span<const std::uint8_t> pixels, int width, int height, int channels) {
  const auto row = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  if (pixels.size() != row * static_cast<std::size_t>(height))
    throw Error(ErrorCode::internal, "the pixels do not fit the size of the page", state_->path.string());
  TIFF* tiff = state_->file.tiff;
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, channels);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, channels == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, tag_of(state_->compression));
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, height);
  if (!state_->description.empty())
    TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, std::exchange(state_->description, {}).c_str());
  for (int y = 0; y < height; ++y) {
    void* line = const_cast<std::uint8_t*>(pixels.data() + static_cast<std::size_t>(y) * row);
    state_->require(TIFFWriteScanline(tiff, line, static_cast<std::uint32_t>(y)) >= 0);
  }
  state_->require(TIFFWriteDirectory(tiff) != 0);
}

void TiffWriter::close() {
  state_->file.message.clear();
  state_->require(TIFFFlush(state_->file.tiff) != 0);
  state_->file.close();
  std::error_code error;
  std::filesystem::rename(state_->partial, state_->path, error);
  if (error) state_->file.message = error.message();
  state_->require(!error);
  state_->closed = true;
}

}  // namespace superstep::data
