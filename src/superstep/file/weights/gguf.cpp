#include "superstep/file/weights/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "superstep/base/printable.h"
#include "superstep/file/weights/byte_cursor.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t oldest_version = 2, newest_version = 3;
constexpr std::int64_t usual_alignment = 32;
constexpr std::uint32_t most_axes = 4;

struct StoredType {
  std::uint32_t number;
  const char* name;
  ElementType element;
  BlockFormat blocks = BlockFormat::none;
};
constexpr StoredType stored_types[] = {{0, "F32", ElementType::f32},
                                       {1, "F16", ElementType::f16},
                                       {24, "I8", ElementType::i8},
                                       {25, "I16", ElementType::i16},
                                       {26, "I32", ElementType::i32},
                                       {27, "I64", ElementType::i64},
                                       {28, "F64", ElementType::f64},
                                       {30, "BF16", ElementType::bf16},
                                       {2, "Q4_0", ElementType::f32, BlockFormat::q4_0},
                                       {8, "Q8_0", ElementType::f32, BlockFormat::q8_0},
                                       {12, "Q4_K", ElementType::f32, BlockFormat::q4_k},
                                       {14, "Q6_K", ElementType::f32, BlockFormat::q6_k}};

// The names of kinds that there are but that are not read.
const char* name_of_unread(std::uint32_t number) {
  static constexpr struct {
    std::uint32_t number;
    const char* name;
  } unread[] = {{3, "Q4_1"},  {6, "Q5_0"},  {7, "Q5_1"},  {9, "Q8_1"},    {10, "Q2_K"},
                {11, "Q3_K"}, {13, "Q5_K"}, {15, "Q8_K"}, {20, "IQ4_NL"}, {23, "IQ4_XS"}};
  const auto* found = std::ranges::find(unread, number, &std::remove_all_extents_t<decltype(unread)>::number);
  return found == std::end(unread) ? nullptr : found->name;
}

// The kinds of notes, as the format numbers them.
enum class NoteKind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, const std::string& where)
      : bytes_(bytes), owner_(std::move(owner)), cursor_(bytes, where) {}

  GgufFile read() {
    const auto [arrays, notes] = read_counts();
    for (std::uint64_t i = 0; i < notes; ++i) read_note();
    const std::int64_t alignment = read_alignment();
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < arrays; ++i) offsets.push_back(read_array());
    place(offsets, static_cast<std::uint64_t>(alignment));
    return std::move(file_);
  }

 private:
  struct Counts {
    std::uint64_t arrays, notes;
  };
  Counts read_counts() {
    if (cursor_.left() < 4 || cursor_.text(4) != "GGUF")
      cursor_.refuse("this is not a GGUF file: it does not begin with 'GGUF'");
    const auto version = cursor_.number<std::uint32_t>();
    if (version < oldest_version || version > newest_version)
      throw Error(ErrorCode::unsupported,
                  version > 0xffff ? std::string("GGUF files of the other byte order are not read")
                                   : fmt::format("version {} of GGUF is not read", version),
                  cursor_.where(), "versions 2 and 3 are");
    Counts counts{};
    counts.arrays = cursor_.number<std::uint64_t>();
    counts.notes = cursor_.number<std::uint64_t>();
    // An array takes at least 24 bytes of the header, a note 13.
    if (counts.arrays > bytes_.size() / 24 || counts.notes > bytes_.size() / 13)
      cursor_.refuse(
          fmt::format("its header promises {} arrays and {} notes, more than its {} bytes can hold",
                      counts.arrays, counts.notes, bytes_.size()));
    return counts;
  }

  std::string read_text() { return cursor_.text(cursor_.number<std::uint64_t>()); }

  void read_note() {
    cursor_.enter("a note's name");
    std::string name = read_text();
    cursor_.enter(fmt::format("note '{}'", printable(name)));
    const auto kind = static_cast<NoteKind>(cursor_.number<std::uint32_t>());
    WeightNote note = kind == NoteKind::list ? read_list(name) : read_value(kind, name);
    if (!file_.notes.emplace(name, std::move(note)).second)
      cursor_.refuse(fmt::format("note '{}' is there twice", printable(name)));
  }

  WeightNote read_value(NoteKind kind, const std::string& name) {
    switch (kind) {
      case NoteKind::f32: return static_cast<double>(cursor_.number<float>());
      case NoteKind::f64: return cursor_.number<double>();
      case NoteKind::text: return read_text();
      default: return read_integer(kind, name);
    }
  }

  std::int64_t read_integer(NoteKind kind, const std::string& name) {
    switch (kind) {
      case NoteKind::u8: return cursor_.number<std::uint8_t>();
      case NoteKind::i8: return cursor_.number<std::int8_t>();
      case NoteKind::u16: return cursor_.number<std::uint16_t>();
      case NoteKind::i16: return cursor_.number<std::int16_t>();
      case NoteKind::u32: return cursor_.number<std::uint32_t>();
      case NoteKind::i32: return cursor_.number<std::int32_t>();
      case NoteKind::boolean: return cursor_.number<std::uint8_t>() != 0;
      case NoteKind::u64: return static_cast<std::int64_t>(cursor_.number<std::uint64_t>());
      case NoteKind::i64: return cursor_.number<std::int64_t>();
      default: break;
    }
    cursor_.refuse(fmt::format("note '{}' is of the unknown kind {}", printable(name),
                               static_cast<std::uint32_t>(kind)));
  }

  WeightNote read_list(const std::string& name) {
    const auto kind = static_cast<NoteKind>(cursor_.number<std::uint32_t>());
    const auto count = cursor_.number<std::uint64_t>();
    if (kind == NoteKind::list)
      throw Error(ErrorCode::unsupported, fmt::format("note '{}' is a list of lists", printable(name)),
                  cursor_.where());
    // Every element takes a byte or more.
    if (count > cursor_.left())
      cursor_.refuse(fmt::format("note '{}' promises {} entries where {} bytes are left", printable(name),
                                 count, cursor_.left()));
    if (kind == NoteKind::text) return read_elements<std::string>(count, [&] { return read_text(); });
    if (kind == NoteKind::f32 || kind == NoteKind::f64)
      return read_elements<double>(count, [&] { return std::get<double>(read_value(kind, name)); });
    return read_elements<std::int64_t>(count, [&] { return read_integer(kind, name); });
  }

  template <class T, class Read>
  std::vector<T> read_elements(std::uint64_t count, const Read& read) {
    std::vector<T> elements;
    for (std::uint64_t i = 0; i < count; ++i) elements.push_back(read());
    return elements;
  }

  std::int64_t read_alignment() const {
    const auto found = file_.notes.find("general.alignment");
    if (found == file_.notes.end()) return usual_alignment;
    const auto* value = std::get_if<std::int64_t>(&found->second);
    if (!value || *value < 1 || *value > 1 << 20 || (*value & (*value - 1)) != 0)
      cursor_.refuse("its general.alignment is no power of two");
    return *value;
  }

  // Gives the array's offset among the data.
  std::uint64_t read_array() {
    cursor_.enter("an array's name");
    Weight weight;
    weight.name = read_text();
    const std::string label = fmt::format("array '{}'", printable(weight.name));
    cursor_.enter(label);
    const auto axes = cursor_.number<std::uint32_t>();
    if (axes > most_axes) cursor_.refuse(fmt::format("{} has {} axes, more than {}", label, axes, most_axes));
    std::vector<std::int64_t> extents;
    for (std::uint32_t i = 0; i < axes; ++i) {
      const auto extent = cursor_.number<std::uint64_t>();
      if (extent > std::uint64_t{1} << 40)
        cursor_.refuse(fmt::format("{} has an extent of {}", label, extent));
      extents.insert(extents.begin(),
                     static_cast<std::int64_t>(extent));  // the file counts from the innermost
    }
    try {
      weight.shape = Shape(extents);
    } catch (const Error& error) {
      cursor_.refuse(fmt::format("{}: {}", label, error.message()));
    }
    set_type(weight, label);
    const auto offset = cursor_.number<std::uint64_t>();
    if (!names_.insert(weight.name).second) cursor_.refuse(label + " is there twice");
    file_.weights.push_back(std::move(weight));
    return offset;
  }

  void set_type(Weight& weight, const std::string& label) {
    const auto number = cursor_.number<std::uint32_t>();
    const auto* type = std::ranges::find(stored_types, number, &StoredType::number);
    if (type == std::end(stored_types)) {
      const char* name = name_of_unread(number);
      if (!name) cursor_.refuse(fmt::format("{} is of the unknown kind {}", label, number));
      throw Error(ErrorCode::unsupported, fmt::format("{} is packed as {}, which is not read", label, name),
                  cursor_.where(), "F32, F16, BF16, Q8_0, Q4_0, Q4_K and Q6_K are");
    }
    weight.element = type->element;
    weight.blocks = type->blocks;
  }

  std::uint64_t byte_count(const Weight& weight) const {
    const auto elements = static_cast<std::uint64_t>(weight.shape.element_count());
    if (elements / 2 > bytes_.size())  // no kind holds more than two in a byte
      cursor_.refuse(fmt::format("it is cut short: array '{}' of {} does not fit into {} bytes",
                                 printable(weight.name), to_string(weight.shape), bytes_.size()));
    if (weight.blocks == BlockFormat::none) return elements * size_in_bytes(weight.element);
    const BlockSize size = block_size(weight.blocks);
    const std::int64_t row = weight.shape.rank() == 0 ? 1 : weight.shape[weight.shape.rank() - 1];
    if (row % size.values != 0)
      cursor_.refuse(fmt::format("array '{}' has rows of {} values, no multiple of the {} of a {} block",
                                 printable(weight.name), row, size.values, name_of(weight.blocks)));
    return elements / static_cast<std::uint64_t>(size.values) * size.bytes;
  }

  void place(const std::vector<std::uint64_t>& offsets, std::uint64_t alignment) {
    const std::uint64_t begin = (cursor_.at() + alignment - 1) / alignment * alignment;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      Weight& weight = file_.weights[i];
      const std::uint64_t size = byte_count(weight), room = bytes_.size() - std::min(begin, bytes_.size());
      if (offsets[i] % alignment != 0)
        cursor_.refuse(fmt::format("array '{}' does not begin at a multiple of {} bytes",
                                   printable(weight.name), alignment));
      if (size > room || offsets[i] > room - size)
        cursor_.refuse(fmt::format("it is cut short: array '{}' would end at byte {} of {}",
                                   printable(weight.name), begin + offsets[i] + size, bytes_.size()));
      weight.bytes = bytes_.subspan(begin + offsets[i], size);
      weight.owner = owner_;
    }
  }

  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  ByteCursor cursor_;
  GgufFile file_;
  std::set<std::string> names_;
};

}  // namespace

GgufFile parse_gguf(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                    const std::string& where) {
  return Reader(bytes, std::move(owner), where).read();
}

}  // namespace superstep::data
