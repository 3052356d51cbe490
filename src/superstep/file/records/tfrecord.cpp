// TFRecord files of tf.train.Example, their messages read as protocol buffers write them (encoding:
// developers.google.com/protocol-buffers/docs/encoding; example.proto and feature.proto of TensorFlow).
#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/file/packing/content.h"
#include "superstep/file/records/crc32c.h"
#include "superstep/file/records/record_forms.h"
#include "superstep/file/records/record_source.h"
#include "superstep/file/varint.h"

namespace superstep::data {
namespace {

// A record: its length in eight bytes, little-endian, their checksum, its bytes, their checksum.
constexpr std::size_t head_bytes = 12, tail_bytes = 4;
constexpr std::uint64_t longest_record = std::uint64_t{1} << 31;  // what protocol buffers hold at most

template <class T>
T little_endian(const std::byte* bytes) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8 | std::to_integer<T>(bytes[i]));
  return value;
}

bool has_its_sum(std::span<const std::byte> bytes, const std::byte* sum) {
  return masked_crc32c(bytes) == little_endian<std::uint32_t>(sum);
}

using Bytes = std::span<const std::byte>;

// A message, a field at a time. Throws Error (bad_file) where it is damaged.
class Message {
 public:
  explicit Message(Bytes bytes) : rest_(bytes) {}

  // False at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    number_ = key >> 3;
    kind_ = static_cast<int>(key & 7);
    switch (kind_) {
      case 0: value_ = varint(); break;
      case 1: bytes_ = take(8); break;
      case 2: bytes_ = take(varint()); break;
      case 5: bytes_ = take(4); break;
      default: damaged();
    }
    return true;
  }
  bool is(std::uint64_t number, int kind) const { return number_ == number && kind_ == kind; }
  Bytes bytes() const { return bytes_; }
  std::uint64_t value() const { return value_; }

  std::uint64_t varint() {
    if (const auto value = read_varint([&] { return take(1)[0]; })) return *value;
    damaged();
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  [[noreturn]] static void damaged() { throw Error(ErrorCode::bad_file, "is no tf.train.Example"); }
  Bytes take(std::uint64_t count) {
    if (count > rest_.size()) damaged();
    const Bytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  Bytes rest_, bytes_;
  std::uint64_t number_ = 0, value_ = 0;
  int kind_ = 0;
};

Shape shape_of_list(std::size_t count) {
  return count == 1 ? Shape{} : Shape{static_cast<std::int64_t>(count)};
}

// FloatList: packed, or one by one.
Tensor floats_of(Bytes list) {
  std::vector<float> values;
  for (Message message(list); message.next();) {
    if (!message.is(1, 2) && !message.is(1, 5)) continue;
    for (std::size_t at = 0; at + 4 <= message.bytes().size(); at += 4)
      values.push_back(std::bit_cast<float>(little_endian<std::uint32_t>(message.bytes().data() + at)));
  }
  return Tensor::from(shape_of_list(values.size()), values);
}

Tensor integers_of(Bytes list) {
  std::vector<std::int64_t> values;
  for (Message message(list); message.next();) {
    if (message.is(1, 0)) values.push_back(static_cast<std::int64_t>(message.value()));
    if (!message.is(1, 2)) continue;
    for (Message packed(message.bytes()); !packed.is_at_end();)
      values.push_back(static_cast<std::int64_t>(packed.varint()));
  }
  return Tensor::from(shape_of_list(values.size()), values);
}

// The bytes of a list of one; of several the last.
EncodedBytes bytes_of(Bytes list) {
  EncodedBytes bytes;
  for (Message message(list); message.next();)
    if (message.is(1, 2)) bytes.assign(message.bytes().begin(), message.bytes().end());
  return bytes;
}

// An entry of Features.feature: a name and a Feature of one of three kinds of lists.
void add_feature(Record& record, Bytes entry) {
  RecordValue value;
  bool is_there = false;
  for (Message message(entry); message.next();) {
    if (message.is(1, 2))
      value.name.assign(reinterpret_cast<const char*>(message.bytes().data()), message.bytes().size());
    if (!message.is(2, 2)) continue;
    for (Message feature(message.bytes()); feature.next();) {
      is_there = true;
      if (feature.is(1, 2)) value.value = bytes_of(feature.bytes());
      if (feature.is(2, 2)) value.value = floats_of(feature.bytes());
      if (feature.is(3, 2)) value.value = integers_of(feature.bytes());
    }
  }
  if (is_there) record.push_back(std::move(value));
}

// Example.features, Features.feature.
Record parse_example(Bytes bytes) {
  Record record;
  for (Message example(bytes); example.next();) {
    if (!example.is(1, 2)) continue;
    for (Message features(example.bytes()); features.next();)
      if (features.is(1, 2)) add_feature(record, features.bytes());
  }
  return record;
}

class TfRecordSource : public RecordSource {
 public:
  TfRecordSource(const std::filesystem::path& path, const SourceRequest& request) : file_(path) {
    index();
    settle(static_cast<std::int64_t>(begins_.size()) - 1, request);
  }

 protected:
  Record record(std::int64_t row) const override {
    const auto at = static_cast<std::size_t>(row);
    const std::uint64_t begin = begins_[at] + head_bytes;
    std::vector<std::byte> bytes(begins_[at + 1] - begin);
    file_.read(begin, bytes);
    const Bytes own(bytes.data(), bytes.size() - tail_bytes);
    if (!has_its_sum(own, own.data() + own.size()))
      throw Error(ErrorCode::bad_file, "is damaged: its checksum is another", place_of(row));
    try {
      Record values = parse_example(own);
      std::ranges::sort(values, {}, &RecordValue::name);  // maps are written in any order
      return values;
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), place_of(row));
    }
  }
  std::string place_of(std::int64_t row) const override {
    return fmt::format("{}: record {}", file_.path().string(), row + 1);
  }
  void require_unchanged() const override { file_.require_unchanged(); }
  bool is_ordered() const override { return file_.is_ordered(); }

 private:
  void index() {
    Progress progress = Progress::passing("looking for records", file_.stored_bytes(), "bytes");
    InterruptCheck stop;
    std::uint64_t at = 0;
    while (file_.has(at, 1)) {
      const auto row = static_cast<std::int64_t>(begins_.size());
      begins_.push_back(at);
      at += head_bytes + length_at(at, row) + tail_bytes;
      progress.update(file_.stored_position(at));
      stop.throw_if_due(file_.path().string());
    }
    if (begins_.empty()) throw Error(ErrorCode::bad_file, "is empty", file_.path().string());
    begins_.push_back(at);
    file_.require_unchanged();
  }

  std::uint64_t length_at(std::uint64_t at, std::int64_t row) const {
    const bool is_there = file_.has(at, head_bytes);
    std::byte head[head_bytes];
    if (is_there) file_.read(at, head);
    if (!is_there || !has_its_sum(std::span(head).first(8), head + 8))
      throw Error(ErrorCode::bad_file, !is_there ? "is cut short" : "is damaged: no record begins here",
                  place_of(row));
    const auto length = little_endian<std::uint64_t>(head);
    if (length > longest_record || !file_.has(at + head_bytes, length + tail_bytes))
      throw Error(ErrorCode::bad_file, "is cut short", place_of(row));
    return length;
  }

  Content file_;
  std::vector<std::uint64_t> begins_;  // of records, and the end
};

}  // namespace

bool is_tfrecord(const std::filesystem::path& path) {
  const std::string begin = first_content(path, head_bytes);
  const auto head = std::as_bytes(std::span(begin));
  return head.size() == head_bytes && has_its_sum(head.first(8), head.data() + 8);
}

std::unique_ptr<SampleSource> open_tfrecord_source(const std::filesystem::path& path,
                                                   const SourceRequest& request) {
  return std::make_unique<TfRecordSource>(path, request);
}

}  // namespace superstep::data
