#include "superstep/file/hdf5/hdf5_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/file/hdf5/hdf5.h"

namespace superstep::data::hdf5 {
namespace {

std::optional<Attribute> read_string(const Handle& attribute, const Handle& type) {
  if (H5Tis_variable_str(type.get()) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute.get(), type.get(), &text) < 0 || !text) return {};
    std::string value(text);
    H5free_memory(text);
    return value;
  }
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) return {};
  return std::string(text.c_str(), strnlen(text.data(), text.size()));
}

template <class T>
std::optional<Attribute> read_number(const Handle& attribute, hid_t memory_type) {
  T value{};
  if (H5Aread(attribute.get(), memory_type, &value) < 0) return {};
  return value;
}

std::optional<Attribute> read_boolean(const Handle& attribute) {
  std::int8_t value = 0;
  if (H5Aread(attribute.get(), type_of(ElementType::boolean).get(), &value) < 0) return {};
  return std::int64_t{value};
}

std::optional<Attribute> read_value(const Handle& attribute) {
  const Handle type(H5Aget_type(attribute.get()), H5Tclose), space(H5Aget_space(attribute.get()), H5Sclose);
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return {};
  const Kind kind = kind_of(type.get());
  if (kind.string) return read_string(attribute, type);
  if (!kind.numeric || kind.complex) return {};
  if (kind.type == ElementType::boolean) return read_boolean(attribute);
  if (is_floating(kind.type)) return read_number<double>(attribute, H5T_NATIVE_DOUBLE);
  return read_number<std::int64_t>(attribute, H5T_NATIVE_INT64);
}

herr_t keep_attribute(hid_t object, const char* name, const H5A_info_t*, void* out) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.valid()) return 0;
  if (std::optional<Attribute> value = read_value(attribute))
    static_cast<std::map<std::string, Attribute>*>(out)->emplace(name, std::move(*value));
  return 0;
}

// An attribute lies in the header of its object, which ends at 64 KB; longer texts go to the file's heap.
constexpr std::size_t longest_in_header = 60000;

// Of fixed length, padded with zeros: one damaged byte then damages one text. Texts of variable length hang
// on heaps and pointers, where it can be the end of the program that reads them.
Handle string_type(const std::string& text) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  H5Tset_size(type.get(),
              text.size() <= longest_in_header ? std::max<std::size_t>(text.size(), 1) : H5T_VARIABLE);
  return type;
}

bool store(hid_t object, const std::string& name, const Handle& type, const void* value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  if (H5Aexists(object, name.c_str()) > 0) H5Adelete(object, name.c_str());
  const Handle attribute(H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  return attribute.valid() && H5Awrite(attribute.get(), type.get(), value) >= 0;
}

}  // namespace

std::map<std::string, Attribute> read_attributes(hid_t object) {
  std::map<std::string, Attribute> attributes;
  hsize_t position = 0;
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &position, keep_attribute, &attributes);
  return attributes;
}

bool write_attribute(hid_t object, const std::string& name, const Attribute& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    const char* pointer = text->c_str();
    const bool fixed = text->size() <= longest_in_header;
    return store(object, name, string_type(*text),
                 fixed ? static_cast<const void*>(pointer) : static_cast<const void*>(&pointer));
  }
  if (const auto* number = std::get_if<double>(&value))
    return store(object, name, type_of(ElementType::f64), number);
  return store(object, name, type_of(ElementType::i64), &std::get<std::int64_t>(value));
}

}  // namespace superstep::data::hdf5
