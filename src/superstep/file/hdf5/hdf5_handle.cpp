#include "superstep/file/hdf5/hdf5_handle.h"

#include <fmt/format.h>

#include <cstring>

#include "superstep/file/hdf5/hdf5.h"

namespace superstep::data {

std::string place(const std::filesystem::path& path, std::string_view name) {
  return name.empty() ? path.string() : fmt::format("{}: data set '{}'", path.string(), name);
}

}  // namespace superstep::data

namespace superstep::data::hdf5 {
namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

struct Reason {
  std::string text;
  bool from_system = false;
};

// "..., error message = 'No space left on device', ..." in the description of a failed system call.
std::string system_message(std::string_view description) {
  constexpr std::string_view mark = "error message = '";
  const std::size_t begin = description.find(mark);
  if (begin == std::string_view::npos) return {};
  const std::size_t first = begin + mark.size(), last = description.find('\'', first);
  return std::string(description.substr(first, last - first));
}

herr_t keep_reason(unsigned, const H5E_error2_t* entry, void* out) {
  auto& reason = *static_cast<Reason*>(out);
  const std::string_view description = entry->desc ? entry->desc : "";
  if (std::string message = system_message(description); !message.empty()) {
    reason = {std::move(message), true};
  } else if (reason.text.empty() && !description.empty()) {
    reason.text = description;
  }
  return 0;
}

Handle copy_of(hid_t type) { return Handle(H5Tcopy(type), H5Tclose); }

// A 16-bit floating-point type with this many bits of exponent and mantissa.
Handle small_float(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias) {
  Handle type = copy_of(H5T_IEEE_F32LE);
  H5Tset_fields(type.get(), 15, mantissa_bits, exponent_bits, 0, mantissa_bits);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), bias);
  return type;
}

Handle boolean_type() {
  Handle type(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose);
  std::int8_t value = 0;
  H5Tenum_insert(type.get(), "FALSE", &value);
  value = 1;
  H5Tenum_insert(type.get(), "TRUE", &value);
  return type;
}

ElementType integer_of(hid_t type) {
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (H5Tget_size(type)) {
    case 1: return is_signed ? ElementType::i8 : ElementType::u8;
    case 2: return is_signed ? ElementType::i16 : ElementType::u16;
    case 3:
    case 4: return is_signed ? ElementType::i32 : ElementType::u32;
    default: return is_signed ? ElementType::i64 : ElementType::u64;
  }
}

ElementType float_of(hid_t type) {
  std::size_t sign, exponent, exponent_bits = 0, mantissa, mantissa_bits;
  H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits);
  if (H5Tget_size(type) == 2) return exponent_bits == 8 ? ElementType::bf16 : ElementType::f16;
  return H5Tget_size(type) <= 4 ? ElementType::f32 : ElementType::f64;
}

Kind numeric_kind(ElementType type) { return {.numeric = true, .type = type, .name = name_of(type)}; }

bool is_boolean(hid_t type) {
  std::int8_t value = 0;
  return H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 && H5Tenum_valueof(type, "TRUE", &value) >= 0 &&
         value == 1;
}

Kind kind_of_compound(hid_t type) {
  if (H5Tget_nmembers(type) == 2 && H5Tget_member_index(type, "r") == 0 &&
      H5Tget_member_index(type, "i") == 1 && H5Tget_member_class(type, 0) == H5T_FLOAT &&
      H5Tget_member_class(type, 1) == H5T_FLOAT) {
    const Handle part(H5Tget_member_type(type, 0), H5Tclose);
    const ElementType element = float_of(part.get());
    return {true, true, false, element, fmt::format("complex {}", name_of(element))};
  }
  return {.name = "compound"};
}

// Its numbers; the library converts an enumeration as the integers that stand for its names.
Kind kind_of_enumeration(hid_t type) {
  const Handle integers(H5Tget_super(type), H5Tclose);
  return numeric_kind(integer_of(integers.get()));
}

}  // namespace

// The library's own closing at exit crashes when a file could not be written to its end (a full disk).
// Every file is closed by its owner here, so nothing is lost without it.
void skip_closing_at_exit() {
  static const herr_t once = H5dont_atexit();
  static_cast<void>(once);
}

Entry::Entry() : lock_(library_mutex()) {
  skip_closing_at_exit();
  silence_library();
}

void silence_library() {
  thread_local bool done = false;
  if (!done) H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  done = true;
}

std::string last_error_text() {
  Reason reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, &reason);
  return reason.text.empty() ? "no reason given" : reason.text;
}

Error io_error(const std::filesystem::path& path, std::string_view name, std::string_view action) {
  const std::string reason = last_error_text();
  const bool full = reason == std::strerror(ENOSPC) || reason == std::strerror(EDQUOT);
  const char* hint = full ? "the disk is full: free some space or write elsewhere"
                     : reason == std::strerror(EFBIG)
                         ? "the limit on the size of files is reached (ulimit -f)"
                     : reason == std::strerror(EACCES) ? "check the permissions"
                     : reason == std::strerror(ENOENT) ? "make the folder first"
                                                       : "";
  return Error(ErrorCode::io, fmt::format("cannot {}: {}", action, reason), place(path, name), hint);
}

Handle type_of(ElementType type) {
  switch (type) {
    case ElementType::f64: return copy_of(H5T_NATIVE_DOUBLE);
    case ElementType::f32: return copy_of(H5T_NATIVE_FLOAT);
    case ElementType::f16: return small_float(5, 10, 15);
    case ElementType::bf16: return small_float(8, 7, 127);
    case ElementType::i64: return copy_of(H5T_NATIVE_INT64);
    case ElementType::i32: return copy_of(H5T_NATIVE_INT32);
    case ElementType::i16: return copy_of(H5T_NATIVE_INT16);
    case ElementType::i8: return copy_of(H5T_NATIVE_INT8);
    case ElementType::u64: return copy_of(H5T_NATIVE_UINT64);
    case ElementType::u32: return copy_of(H5T_NATIVE_UINT32);
    case ElementType::u16: return copy_of(H5T_NATIVE_UINT16);
    case ElementType::u8: return copy_of(H5T_NATIVE_UINT8);
    case ElementType::boolean: return boolean_type();
  }
  throw Error(ErrorCode::internal, "element type out of range");
}

Kind kind_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return numeric_kind(integer_of(type));
    case H5T_FLOAT: return numeric_kind(float_of(type));
    case H5T_ENUM: return is_boolean(type) ? numeric_kind(ElementType::boolean) : kind_of_enumeration(type);
    case H5T_STRING: return {.string = true, .name = "string"};
    case H5T_COMPOUND: return kind_of_compound(type);
    case H5T_BITFIELD: return {.name = "bit field"};
    case H5T_REFERENCE: return {.name = "reference"};
    case H5T_VLEN: return {.name = "variable-length list"};
    case H5T_ARRAY: return {.name = "array"};
    default: return {.name = "opaque"};
  }
}

}  // namespace superstep::data::hdf5
