// A file of any form that samples are read from (file/source/forms.h): opened, and its first and last samples
// read, or refused with an Error. What has checksums would be refused for them alone: an input that begins
// with byte 1 is the message of a record of TFRecord, one that begins with byte 2 a tar, whose headers get
// the sums that they have.
#include <numeric>
#include <span>
#include <string>

#include "superstep/file/records/crc32c.h"
#include "superstep/file/source/forms.h"
#include "tests/fuzz/attempt.h"
#include "tests/fuzz/input_file.h"

namespace {

using namespace superstep;

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

std::string with_sum(const std::string& text) {
  return text + little_endian(data::masked_crc32c(std::as_bytes(std::span(text))), 4);
}

std::string record_of(const std::string& message) {
  return with_sum(little_endian(message.size(), 8)) + with_sum(message);
}

std::string with_header_sums(std::string tar) {
  constexpr std::size_t block = 512;
  for (std::size_t at = 0; at + block <= tar.size(); at += block) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    tar.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = at; i < at + block; ++i) sum += static_cast<unsigned char>(tar[i]);
    for (std::size_t i = 6; i-- > 0; sum /= 8) tar[at + 148 + i] = static_cast<char>('0' + sum % 8);
    tar[at + 154] = '\0';
  }
  return tar;
}

void read_some(const data::SampleSource& source) {
  constexpr std::size_t most_bytes = 1 << 24;
  for (std::size_t i = 0; i < source.arrays().size(); ++i) {
    const data::SourceArray& array = source.arrays()[i];
    if (array.rows == 0 || array.row_bytes() > most_bytes) continue;
    const std::int64_t rows[] = {0, array.rows - 1};
    attempt([&] { data::read_rows(source, i, rows); });
    source.place(i, array.rows - 1);
  }
  source.notes(), source.others();
}

void open(const std::string& bytes, const char* ending, const data::SourceRequest& request) {
  const InputFile file(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), ending);
  attempt([&] {
    if (const data::SourceForm* form = data::form_for(file.path()))
      read_some(*form->open(file.path(), request));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* input, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(input), size);
  if (bytes.starts_with('\x01')) bytes = record_of(bytes.substr(1));
  if (bytes.starts_with('\x02')) bytes = with_header_sums(bytes.substr(1));
  const data::SourceRequest wanted{
      .wanted = {{.name = "image", .type = ElementType::u8, .row = Shape{3, 8, 8}},
                 {.name = "label", .type = ElementType::i64, .row = Shape{}}}};
  const bool text = !bytes.empty() && (bytes[0] == '{' || (bytes[0] >= 'a' && bytes[0] <= 'z'));
  const bool nifti = bytes.starts_with("\x5c\x01") || bytes.starts_with("\x1f\x8b");
  const char* ending = nifti ? ".nii.gz" : !text ? "" : bytes[0] == '{' ? ".jsonl" : ".csv";
  open(bytes, ending, {});
  open(bytes, ending, wanted);
  if (bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd"))
    for (const char* packed : {".csv.gz", ".jsonl.gz"}) open(bytes, packed, {});
  return 0;
}
