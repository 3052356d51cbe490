#include <fmt/format.h>

#include <algorithm>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/hdf5_place.h"
#include "superstep/file/hdf5/hdf5_served.h"

namespace superstep::data {

using hdf5::Request;

struct Hdf5File::State {
  hdf5::ServedFile file;
};

namespace {

std::string shape_text(std::span<const std::int64_t> wanted) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < wanted.size(); ++axis)
    text += (axis ? "," : "") + (wanted[axis] < 0 ? std::string("any") : std::to_string(wanted[axis]));
  return text + "]";
}

bool shape_fits(const Shape& shape, std::span<const std::int64_t> wanted) {
  return std::ranges::equal(shape, wanted,
                            [](std::int64_t is, std::int64_t want) { return want < 0 || is == want; });
}

DataSetInfo get_info(MessageReader& in) {
  DataSetInfo info;
  info.name = in.text();
  info.shape = Shape(in.numbers<std::int64_t>());
  const bool numeric = in.flag();
  const auto type = in.get<ElementType>();
  if (numeric) info.type = type;
  info.type_name = in.text();
  info.complex = in.flag();
  return info;
}

Attribute get_attribute(MessageReader& in) {
  switch (in.get<std::uint8_t>()) {
    case 0: return in.get<std::int64_t>();
    case 1: return in.get<double>();
    default: return in.text();
  }
}

MessageWriter about(Request request, std::string_view name) {
  MessageWriter message;
  message.put(request).put(name);
  return message;
}

Tensor read_tensor(const hdf5::ServedFile& file, MessageWriter request) {
  const ChildAnswer answer = file.ask(std::move(request));
  MessageReader in(answer.bytes);
  return hdf5::get_tensor(in, answer.block);
}

std::vector<std::int64_t> list(std::span<const std::int64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path) : state_(new State{hdf5::ServedFile(path)}) {}
Hdf5File::~Hdf5File() = default;
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;

const std::filesystem::path& Hdf5File::path() const { return state_->file.path(); }

std::vector<DataSetInfo> Hdf5File::data_sets() const {
  MessageWriter request;
  request.put(Request::data_sets);
  const ChildAnswer answer = state_->file.ask(std::move(request));
  MessageReader in(answer.bytes);
  std::vector<DataSetInfo> infos;
  for (auto count = in.get<std::uint64_t>(); count > 0; --count) infos.push_back(get_info(in));
  return infos;
}

bool Hdf5File::contains(std::string_view name) const {
  const ChildAnswer answer = state_->file.ask(about(Request::contains, name));
  return MessageReader(answer.bytes).flag();
}

DataSetInfo Hdf5File::info(std::string_view name) const {
  const ChildAnswer answer = state_->file.ask(about(Request::info, name));
  MessageReader in(answer.bytes);
  return get_info(in);
}

Tensor Hdf5File::read(std::string_view name, ElementType type) const {
  return read_tensor(state_->file, std::move(about(Request::read, name).put(type)));
}

Tensor Hdf5File::read_rows(std::string_view name, ElementType type, std::int64_t first,
                           std::int64_t count) const {
  MessageWriter request = about(Request::read_rows, name);
  request.put(type).put(std::vector{first}).put(std::vector{count});
  return read_tensor(state_->file, std::move(request));
}

Tensor Hdf5File::read_block(std::string_view name, ElementType type, std::span<const std::int64_t> first,
                            std::span<const std::int64_t> count) const {
  MessageWriter request = about(Request::read_block, name);
  request.put(type).put(list(first)).put(list(count));
  return read_tensor(state_->file, std::move(request));
}

DataSetInfo Hdf5File::require_shape(std::string_view name, std::span<const std::int64_t> shape) const {
  DataSetInfo found = info(name);
  const std::string where = place(path(), name);
  if (!found.type)
    throw Error(ErrorCode::bad_file, fmt::format("its elements are of type {}, not numbers", found.type_name),
                where);
  if (!shape_fits(found.shape, shape))
    throw Error(ErrorCode::bad_file,
                fmt::format("its shape is {}, not {}", to_string(found.shape), shape_text(shape)), where);
  return found;
}

Tensor Hdf5File::read(std::string_view name, ElementType type, std::span<const std::int64_t> shape) const {
  require_shape(name, shape);
  return read(name, type);
}

std::optional<DataSetPlace> Hdf5File::place_of(std::string_view name) const {
  const ChildAnswer answer = state_->file.ask(about(Request::place_of, name));
  MessageReader in(answer.bytes);
  if (!in.flag()) return {};
  DataSetPlace place{.file = in.text(), .chunk = {}};
  place.element_bytes = in.get<std::uint64_t>();
  place.begin = in.get<std::uint64_t>();
  place.chunk = in.numbers<std::int64_t>();
  place.at = in.numbers<std::uint64_t>();
  place.stored = in.numbers<std::uint64_t>();
  place.shuffled = in.flag();
  place.deflated = in.flag();
  return place;
}

std::vector<std::string> Hdf5File::read_strings(std::string_view name) const {
  const ChildAnswer answer = state_->file.ask(about(Request::read_strings, name));
  return MessageReader(answer.bytes).texts();
}

std::map<std::string, Attribute> Hdf5File::attributes(std::string_view object) const {
  const ChildAnswer answer = state_->file.ask(about(Request::attributes, object));
  MessageReader in(answer.bytes);
  std::map<std::string, Attribute> attributes;
  for (auto count = in.get<std::uint64_t>(); count > 0; --count) {
    std::string name = in.text();
    attributes.emplace(std::move(name), get_attribute(in));
  }
  return attributes;
}

}  // namespace superstep::data
