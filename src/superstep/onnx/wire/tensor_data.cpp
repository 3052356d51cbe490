#include "superstep/onnx/wire/tensor_data.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "superstep/base/printable.h"
#include "superstep/onnx/wire/element.h"

namespace superstep::onnx {
namespace {

// Far beyond any file, and far below where counts of bytes would overflow.
constexpr std::int64_t most_elements = std::int64_t{1} << 40;

[[noreturn]] void refuse(const TensorProto& tensor, std::string what) {
  throw Error(ErrorCode::bad_file, std::move(what), fmt::format("tensor '{}'", tensor.name));
}

std::size_t bits_of(std::int64_t data_type) {
  switch (data_type) {
    case type_u2:
    case type_i2: return 2;
    case type_u4:
    case type_i4:
    case type_f4e2m1: return 4;
    case type_f8e4m3fn:
    case type_f8e4m3fnuz:
    case type_f8e5m2:
    case type_f8e5m2fnuz:
    case type_f8e8m0: return 8;
    default: return 8 * size_in_bytes(*element_type(data_type));
  }
}

std::size_t stored_bytes(const TensorProto& tensor, const graph::ValueType& type) {
  const auto count = static_cast<std::size_t>(type.shape.element_count());
  const std::size_t bits = bits_of(tensor.data_type);
  if (count > SIZE_MAX / 64) refuse(tensor, "has more elements than there can be");
  return (count * bits + 7) / 8;
}

// Elements narrower than any that a Tensor has, one by one: several share a byte, the first in the low bits.
float small_element(std::int64_t data_type, unsigned bits) {
  switch (data_type) {
    case type_u2:
    case type_u4: return static_cast<float>(bits);
    case type_i2: return static_cast<float>(static_cast<int>(bits ^ 2u) - 2);
    case type_i4: return static_cast<float>(static_cast<int>(bits ^ 8u) - 8);
    default: return small_float(data_type, bits);
  }
}

Tensor decode_small(const TensorProto& tensor, const graph::ValueType& type, Bytes stored) {
  Tensor result(type.element, type.shape);
  const auto width = static_cast<unsigned>(bits_of(tensor.data_type));
  for (std::int64_t i = 0; i < result.element_count(); ++i) {
    const auto bit = static_cast<std::size_t>(i) * width;
    const unsigned bits = static_cast<unsigned>(stored[bit / 8]) >> bit % 8 & ((1u << width) - 1);
    result.set(i, small_element(tensor.data_type, bits));
  }
  return result;
}

// Any byte but 0 means true: a bool of another value must not come into being.
void copy_booleans(Bytes stored, Tensor& result) {
  const auto target = result.as<bool>();
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = stored[i] != std::byte{0};
}

Tensor decode(const TensorProto& tensor, const graph::ValueType& type, Bytes stored) {
  const std::size_t expected = stored_bytes(tensor, type);
  if (stored.size() != expected)
    refuse(tensor,
           fmt::format("{} needs {} bytes, the file has {}", to_string(type), expected, stored.size()));
  if (!element_type(tensor.data_type)) return decode_small(tensor, type, stored);
  Tensor result(type.element, type.shape);
  if (type.element == ElementType::boolean)
    copy_booleans(stored, result);
  else if (!stored.empty())
    std::memcpy(result.bytes(), stored.data(), stored.size());
  return result;
}

// Which typed field holds the elements of a type (comments of TensorProto in onnx.proto).
int typed_field(std::int64_t data_type) {
  switch (data_type) {
    case type_f32: return 4;
    case type_i64: return 7;
    case type_f64: return 10;
    case type_u32:
    case type_u64: return 11;
    default: return 5;
  }
}

template <class Each>
void each_typed(const TensorProto& tensor, Each&& each) {
  const int field = typed_field(tensor.data_type);
  for (FieldReader reader(tensor.all, "TensorProto"); reader.next();) {
    if (reader.field() != field) continue;
    if (field == 4)
      reader.each_fixed<float>(each);
    else if (field == 10)
      reader.each_fixed<double>(each);
    else
      reader.each_integer(each);
  }
}

// Numbers of 16 bits stand as their bits in a field of integers.
template <class T, class Number>
T from_field(Number number) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
    T value;
    value.bits = static_cast<std::uint16_t>(number);
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return number != 0;
  } else {
    return static_cast<T>(number);
  }
}

Tensor read_typed(const TensorProto& tensor, const graph::ValueType& type) {
  std::int64_t count = 0;
  each_typed(tensor, [&](auto) { ++count; });
  const bool small = !element_type(tensor.data_type);
  const std::int64_t expected =
      small ? static_cast<std::int64_t>(stored_bytes(tensor, type)) : type.shape.element_count();
  if (count != expected)
    refuse(tensor, fmt::format("{} needs {} numbers, the file has {}", to_string(type), expected, count));
  if (small) {
    std::vector<std::byte> stored;
    each_typed(tensor,
               [&](auto number) { stored.push_back(static_cast<std::byte>(static_cast<int>(number))); });
    return decode_small(tensor, type, stored);
  }
  Tensor result(type.element, type.shape);
  dispatch(type.element, [&]<class T>() {
    T* target = result.as<T>().data();
    each_typed(tensor, [&](auto number) { *target++ = from_field<T>(number); });
  });
  return result;
}

std::size_t external_number(const TensorProto& tensor, std::string_view key, std::size_t otherwise) {
  for (const TextPair& entry : tensor.external) {
    if (entry.key != key) continue;
    std::size_t number = 0;
    const auto [end, code] =
        std::from_chars(entry.value.data(), entry.value.data() + entry.value.size(), number);
    if (code != std::errc() || end != entry.value.data() + entry.value.size())
      refuse(tensor, fmt::format("external data: {} is not a number", key));
    return number;
  }
  return otherwise;
}

std::string external_location(const TensorProto& tensor) {
  for (const TextPair& entry : tensor.external)
    if (entry.key == "location") return std::string(entry.value);
  refuse(tensor, "external data: no location is given");
}

bool leads_outside(const std::filesystem::path& path) {
  if (path.empty() || path.is_absolute()) return true;
  for (const auto& part : path)
    if (part == "..") return true;
  return false;
}

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end();
}

}  // namespace

const MappedFile& ExternalData::open(const std::string& location) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<MappedFile>& file = files_[location];
  if (file) return *file;
  const auto refuse_location = [&](const char* why) {
    files_.erase(location);
    throw Error(ErrorCode::bad_file, fmt::format("external data '{}' {}", printable(location), why), {},
                "external data must lie in the model's folder or below it");
  };
  if (location.find('\0') != std::string::npos) refuse_location("is no file name");
  if (folder_.empty()) refuse_location("cannot be read: the model is not a file");
  if (leads_outside(location)) refuse_location("lies outside the model's folder");
  std::error_code error;
  const auto folder = std::filesystem::canonical(folder_, error);
  const auto path = std::filesystem::canonical(folder_ / location, error);
  if (error) {
    files_.erase(location);
    throw Error(ErrorCode::not_found, "there is no such file of external data", (folder_ / location).string(),
                "copy it to where the model expects it");
  }
  if (!is_below(path, folder)) refuse_location("is a link that leads outside the model's folder");
  try {
    file = std::make_unique<MappedFile>(path);
  } catch (const Error&) {
    files_.erase(location);
    throw;
  }
  return *file;
}

const MappedFile& ExternalData::file_of(const TensorProto& tensor) const {
  return open(external_location(tensor));
}

Bytes ExternalData::bytes(const TensorProto& tensor, std::size_t size) const {
  const Bytes all = file_of(tensor).bytes();
  const std::size_t offset = external_number(tensor, "offset", 0);
  if (offset > all.size())
    refuse(tensor, fmt::format("external data start at byte {} of a file of {}", offset, all.size()));
  const std::size_t length = external_number(tensor, "length", std::min(size, all.size() - offset));
  if (length > all.size() - offset)
    refuse(tensor, fmt::format("external data of {} bytes at {} do not fit a file of {}", length, offset,
                               all.size()));
  return all.subspan(offset, length);
}

graph::ValueType tensor_type(const TensorProto& tensor) {
  const auto held = held_type(tensor.data_type);
  if (!held)
    throw Error(ErrorCode::unsupported,
                fmt::format("elements of type {} have no place in a graph", element_name(tensor.data_type)),
                fmt::format("tensor '{}'", tensor.name));
  if (tensor.has_segment)
    throw Error(ErrorCode::unsupported, "is cut into segments", fmt::format("tensor '{}'", tensor.name));
  Shape shape;
  try {
    shape = Shape(tensor.dims);
  } catch (const Error& error) {
    refuse(tensor, error.message());
  }
  if (shape.element_count() > most_elements) refuse(tensor, "has more elements than there can be");
  return {*held, std::move(shape)};
}

namespace {

// Smaller ones are read at once: a recipe would take up as much (chosen).
constexpr std::size_t large_bytes = 64 << 10;

Bytes external_bytes(const TensorProto& tensor, const graph::ValueType& type, const ExternalData& external) {
  try {
    return external.bytes(tensor, stored_bytes(tensor, type));
  } catch (const Error& error) {
    throw error.where().find("tensor '") == 0 ? error : error.in(fmt::format("tensor '{}'", tensor.name));
  }
}

}  // namespace

Tensor read_tensor(const TensorProto& tensor, const ExternalData& external) {
  return read_tensor_later(tensor, external, nullptr);
}

Tensor read_tensor_later(const TensorProto& tensor, const ExternalData& external,
                         const std::shared_ptr<const MappedFile>& file) {
  const graph::ValueType type = tensor_type(tensor);
  if (!tensor.is_external && !tensor.has_raw) return read_typed(tensor, type);
  const Bytes stored = tensor.is_external ? external_bytes(tensor, type, external) : tensor.raw;
  const bool as_it_is = element_type(tensor.data_type).has_value() && type.element != ElementType::boolean;
  if (!file || !as_it_is || stored.size() < large_bytes || stored.size() != stored_bytes(tensor, type))
    return decode(tensor, type, stored);
  const MappedFile* const holder = tensor.is_external ? &external.file_of(tensor) : file.get();
  return Tensor::generated(type.element, type.shape,
                           [file, holder, stored](std::byte* elements) { holder->read(stored, elements); });
}

namespace {

// The place of element i of a sparse tensor: given directly, or one index an axis.
std::int64_t sparse_place(const Tensor& indices, std::int64_t i, const Shape& shape,
                          const TensorProto& values) {
  std::int64_t place = 0;
  const auto given = indices.as<std::int64_t>();
  if (indices.shape().rank() == 1) {
    place = given[static_cast<std::size_t>(i)];
  } else {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t index = given[static_cast<std::size_t>(i * shape.rank() + axis)];
      if (index < 0 || index >= shape[axis]) refuse(values, "an index lies outside the sparse tensor");
      place = place * shape[axis] + index;
    }
  }
  if (place < 0 || place >= shape.element_count()) refuse(values, "an index lies outside the sparse tensor");
  return place;
}

}  // namespace

Tensor read_sparse_tensor(const SparseTensorProto& sparse, const ExternalData& external) {
  const TensorProto proto = parse_tensor(sparse.values);
  const Tensor values = read_tensor(proto, external);
  const Tensor indices = read_tensor(parse_tensor(sparse.indices), external);
  Shape shape;
  try {
    shape = Shape(sparse.dims);
  } catch (const Error& error) {
    refuse(proto, error.message());
  }
  if (shape.element_count() > most_sparse_elements) refuse(proto, "the dense form would be too large");
  const std::int64_t count = values.element_count();
  const bool by_axis = indices.shape() == Shape{count, shape.rank()};
  if (values.shape().rank() != 1 || indices.type() != ElementType::i64 ||
      (!by_axis && indices.shape() != Shape{count}))
    refuse(proto, "values and indices of a sparse tensor do not fit each other");
  Tensor result(values.type(), shape);
  const std::size_t size = size_in_bytes(values.type());
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(result.bytes() + static_cast<std::size_t>(sparse_place(indices, i, shape, proto)) * size,
                values.bytes() + static_cast<std::size_t>(i) * size, size);
  return result;
}

}  // namespace superstep::onnx
