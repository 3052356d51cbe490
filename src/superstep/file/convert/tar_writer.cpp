// Web data sets: tar as POSIX.1-1988 (ustar) has it, members named "000000017.label.cls".
#include <fmt/format.h>

#include <array>

#include "superstep/base/error.h"
#include "superstep/file/convert/record_writer.h"
#include "superstep/file/npy.h"

namespace superstep::data {
namespace {

constexpr std::size_t block = 512;
using Header = std::array<char, block>;

// Octal figures and a zero behind them.
void put_octal(Header& header, std::size_t at, std::size_t length, std::uint64_t value) {
  const std::string figures = fmt::format("{:0{}o}", value, length - 1);
  figures.copy(header.data() + at, length - 1);
}

std::string header_of(const std::string& name, std::uint64_t size, const std::string& where) {
  constexpr std::size_t longest_name = 100;
  if (name.size() > longest_name)
    throw Error(ErrorCode::unsupported, fmt::format("'{}' is too long a name for a member", name), where);
  if (size >> 33)
    throw Error(ErrorCode::unsupported, "is larger than a member of a tar may be (8 GB)", where);
  Header header{};
  name.copy(header.data(), longest_name);
  put_octal(header, 100, 8, 0644);
  put_octal(header, 108, 8, 0);
  put_octal(header, 116, 8, 0);
  put_octal(header, 124, 12, size);
  put_octal(header, 136, 12, 0);  // equal samples are equal archives, whenever they are written
  header[156] = '0';
  std::string_view(
      "ustar\0"
      "00",
      8)
      .copy(header.data() + 257, 8);
  std::uint64_t sum = 8 * ' ';
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, 7, sum);
  header[155] = ' ';
  return {header.data(), header.size()};
}

// What a value is says its ending; the name of the array stands before it.
struct Member {
  const char* ending;
  std::string bytes;
};

Member member_of(const SourceArray& array, const Tensor& value) {
  if (is_of_pictures(array)) return {"png", png_of(value)};
  const bool number = array.type == ElementType::i64 && array.row.rank() == 0;
  if (number) return {"cls", std::to_string(value.as<std::int64_t>()[0])};
  const std::vector<std::byte> npy = format_npy(value);
  return {"npy", std::string(reinterpret_cast<const char*>(npy.data()), npy.size())};
}

class TarWriter : public RecordWriter {
 public:
  using RecordWriter::RecordWriter;

 protected:
  std::string encode(std::int64_t row, std::span<const Tensor> values) const override {
    std::string record;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Member member = member_of(arrays()[i], values[i]);
      const std::string name = fmt::format("{:09}.{}.{}", row, arrays()[i].name, member.ending);
      record += header_of(name, member.bytes.size(), place(row, i)) + member.bytes;
      record.append((block - record.size() % block) % block, '\0');
    }
    return record;
  }
  std::string end() const override { return std::string(2 * block, '\0'); }
};

}  // namespace

std::unique_ptr<SampleWriter> open_tar_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                               std::int64_t) {
  return std::make_unique<TarWriter>(place, std::move(arrays));
}

}  // namespace superstep::data
