#include "superstep/file/weights/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "superstep/base/printable.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/file/weights/pickle.h"
#include "superstep/file/zip.h"

namespace superstep::data {
namespace {

using Value = PickledValue;

constexpr int deepest_dictionary = 8;
constexpr std::uint64_t largest_pickle = std::uint64_t{1} << 30;

struct StorageType {
  const char* name;
  ElementType type;
};
constexpr StorageType storage_types[] = {
    {"DoubleStorage", ElementType::f64}, {"FloatStorage", ElementType::f32},
    {"HalfStorage", ElementType::f16},   {"BFloat16Storage", ElementType::bf16},
    {"LongStorage", ElementType::i64},   {"IntStorage", ElementType::i32},
    {"ShortStorage", ElementType::i16},  {"CharStorage", ElementType::i8},
    {"ByteStorage", ElementType::u8},    {"BoolStorage", ElementType::boolean}};

// The archive, which tensors read from one at a time.
class Archive {
 public:
  Archive(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, const std::string& where)
      : owner_(std::move(owner)), where_(where), zip_(bytes, where) {
    for (const ZipEntry& entry : zip_.entries()) entries_.emplace(entry.name, entry);
    for (const auto& [name, entry] : entries_)
      if (name.ends_with("/data.pkl")) prefix_ = name.substr(0, name.size() - std::strlen("data.pkl"));
  }

  const std::string& where() const { return where_; }
  bool is_torch() const { return !prefix_.empty(); }
  const ZipEntry* find(const std::string& name) const {
    const auto found = entries_.find(prefix_ + name);
    return found == entries_.end() ? nullptr : &found->second;
  }

  std::vector<std::byte> read_whole(const ZipEntry& entry) const {
    std::vector<std::byte> bytes(entry.size);
    const std::scoped_lock lock(mutex_);
    ZipReader::Stream stream(zip_, entry);
    stream.read(bytes);
    stream.finish();
    return bytes;
  }

  // The entry's bytes from `first` on: those before it are unpacked and thrown away.
  void read_part(const ZipEntry& entry, std::uint64_t first, std::span<std::byte> target) const {
    const std::scoped_lock lock(mutex_);
    ZipReader::Stream stream(zip_, entry);
    std::vector<std::byte> thrown(static_cast<std::size_t>(std::min<std::uint64_t>(first, 1 << 20)));
    for (std::uint64_t done = 0; done < first;) {
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(first - done, thrown.size()));
      stream.read({thrown.data(), piece});
      done += piece;
    }
    stream.read(target);
    if (first + target.size() == entry.size) stream.finish();
  }

 private:
  std::shared_ptr<const void> owner_;
  std::string where_, prefix_;
  ZipReader zip_;
  std::map<std::string, ZipEntry> entries_;
  mutable std::mutex mutex_;
};

// Where a tensor's elements are: in a storage, from an element on, by strides.
struct Strided {
  const ZipEntry* entry = nullptr;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> extents, strides;
  std::int64_t offset = 0;
  std::int64_t reach = 0;  // elements from the offset to the last one, itself included
};

// Elements out of a storage by strides, into the row-major order.
void gather(const Strided& from, const std::byte* storage, std::byte* to) {
  const std::size_t size = size_in_bytes(from.type);
  std::vector<std::int64_t> index(from.extents.size(), 0);
  const std::int64_t count = Shape(from.extents).element_count();
  for (std::int64_t done = 0; done < count; ++done, to += size) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * from.strides[axis];
    std::memcpy(to, storage + static_cast<std::size_t>(at) * size, size);
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == from.extents[axis];) index[axis] = 0;
  }
}

Tensor::Fill fill_of(std::shared_ptr<const Archive> archive, const Strided& from) {
  return [archive = std::move(archive), from](std::byte* elements) {
    const std::size_t size = size_in_bytes(from.type);
    const Shape shape(from.extents);
    if (shape.element_count() == 0) return;
    const auto first = static_cast<std::uint64_t>(from.offset) * size;
    const std::size_t bytes = static_cast<std::size_t>(from.reach) * size;
    if (from.strides == shape.row_major_strides())
      return archive->read_part(*from.entry, first, {elements, bytes});
    std::vector<std::byte> storage(bytes);
    archive->read_part(*from.entry, first, storage);
    gather(from, storage.data(), elements);
  };
}

class Reader {
 public:
  explicit Reader(std::shared_ptr<const Archive> archive) : archive_(std::move(archive)) {}

  std::vector<Weight> read() {
    const ZipEntry& entry = *archive_->find("data.pkl");
    if (entry.size > largest_pickle) refuse("its pickle is longer than 1 GB");
    require_memory(static_cast<double>(entry.size), archive_->where());
    const PickledFile file = unpickle(archive_->read_whole(entry), archive_->where());
    if (!std::get_if<Value::Dictionary>(&file.root->value))
      throw Error(ErrorCode::unsupported, "the file holds no dictionary of tensors", archive_->where(),
                  "save the state dictionary: torch.save(model.state_dict(), FILE)");
    add_dictionary(*file.root, "", 0);
    return std::move(weights_);
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::bad_file, message, archive_->where());
  }
  [[noreturn]] void refuse_tensor(const std::string& name, const std::string& message) const {
    refuse(fmt::format("tensor '{}' {}", printable(name), message));
  }

  void add_dictionary(const Value& value, const std::string& prefix, int depth) {
    if (depth > deepest_dictionary) refuse("its dictionaries lie in each other more than eight deep");
    for (const auto& [key, entry] : std::get<Value::Dictionary>(value.value).entries) {
      const auto* name = std::get_if<std::string>(&key->value);
      if (!name) continue;
      const std::string full = prefix + *name;
      if (std::holds_alternative<Value::Dictionary>(entry->value))
        add_dictionary(*entry, full + ".", depth + 1);
      if (const auto* call = std::get_if<Value::Call>(&entry->value)) add_call(*call, full);
    }
  }

  const Value::List& arguments_of(const Value::Call& call, const std::string& name) const {
    const auto* list = std::get_if<Value::List>(&call.arguments->value);
    if (!list || list->items.empty()) refuse_tensor(name, "is damaged");
    return *list;
  }

  // A parameter is a tensor with remarks.
  void add_call(const Value::Call& call, const std::string& name) {
    const Value::List& arguments = arguments_of(call, name);
    if (call.function.name == "_rebuild_tensor_v2") return add_tensor(arguments, name);
    if (call.function.name != "_rebuild_parameter") return;
    const auto* inner = std::get_if<Value::Call>(&arguments.items[0]->value);
    if (!inner || inner->function.name != "_rebuild_tensor_v2") refuse_tensor(name, "is damaged");
    add_tensor(arguments_of(*inner, name), name);
  }

  void add_tensor(const Value::List& arguments, const std::string& name) {
    if (arguments.items.size() < 4) refuse_tensor(name, "is damaged");
    const auto* stored = std::get_if<Value::Stored>(&arguments.items[0]->value);
    if (!stored) refuse_tensor(name, "has no storage");
    Strided from;
    set_storage(from, *stored, name);
    from.offset = integer(*arguments.items[1], name);
    from.extents = integers(*arguments.items[2], name);
    from.strides = integers(*arguments.items[3], name);
    check(from, name);
    Weight weight{.name = name,
                  .shape = Shape(from.extents),
                  .element = from.type,
                  .bytes = {},
                  .owner = archive_,
                  .fill = fill_of(archive_, from)};
    const auto known = std::ranges::find(weights_, name, &Weight::name);
    if (known != weights_.end()) refuse_tensor(name, "is there twice");
    weights_.push_back(std::move(weight));
  }

  // ("storage", its type, its number, where it was, elements)
  void set_storage(Strided& from, const Value::Stored& stored, const std::string& name) const {
    const auto* id = std::get_if<Value::List>(&stored.id->value);
    if (!id || id->items.size() < 3) refuse_tensor(name, "has a damaged storage");
    const auto* type = std::get_if<Value::Name>(&id->items[1]->value);
    const auto* key = std::get_if<std::string>(&id->items[2]->value);
    if (!type || !key) refuse_tensor(name, "has a damaged storage");
    const auto* known =
        std::ranges::find_if(storage_types, [&](const StorageType& each) { return type->name == each.name; });
    if (known == std::end(storage_types)) refuse_tensor(name, "has a storage of an unknown type");
    from.type = known->type;
    from.entry = archive_->find("data/" + *key);
    if (!from.entry)
      refuse_tensor(
          name, fmt::format("has its elements in the entry 'data/{}', which is missing", printable(*key)));
  }

  std::int64_t integer(const Value& value, const std::string& name) const {
    const auto* number = std::get_if<std::int64_t>(&value.value);
    if (!number || *number < 0) refuse_tensor(name, "has a damaged shape");
    return *number;
  }
  // A tuple, or the torch.Size of one.
  std::vector<std::int64_t> integers(const Value& value, const std::string& name) const {
    const auto* list = std::get_if<Value::List>(&value.value);
    if (!list) refuse_tensor(name, "has a damaged shape");
    std::vector<std::int64_t> numbers;
    for (const Pickled item : list->items) numbers.push_back(integer(*item, name));
    return numbers;
  }

  void check(Strided& from, const std::string& name) const {
    if (from.extents.size() != from.strides.size()) refuse_tensor(name, "has a damaged shape");
    const std::int64_t size = static_cast<std::int64_t>(size_in_bytes(from.type));
    const std::int64_t held = static_cast<std::int64_t>(from.entry->size) / size;
    std::int64_t last = 0, count = 1, part = 0;
    bool overflows = false;
    for (std::size_t i = 0; i < from.extents.size(); ++i) {
      overflows |= __builtin_mul_overflow(count, from.extents[i], &count);
      overflows |=
          __builtin_mul_overflow(std::max<std::int64_t>(from.extents[i] - 1, 0), from.strides[i], &part);
      overflows |= __builtin_add_overflow(last, part, &last);
    }
    from.reach = count == 0 ? 0 : last + 1;
    // A tensor may repeat its storage's elements by strides of zero, but not without end.
    constexpr std::int64_t most_repeats = 1 << 16;
    if (overflows || from.offset > held || from.reach > held - from.offset || count / most_repeats > held)
      refuse_tensor(name, fmt::format("reaches beyond the {} elements of its storage", held));
  }

  std::shared_ptr<const Archive> archive_;
  std::vector<Weight> weights_;
};

}  // namespace

bool is_torch_archive(std::span<const std::byte> bytes, const std::string& where) {
  return Archive(bytes, nullptr, where).is_torch();
}

std::vector<Weight> parse_torch_file(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                     const std::string& where) {
  auto archive = std::make_shared<const Archive>(bytes, std::move(owner), where);
  if (!archive->is_torch())
    throw Error(ErrorCode::bad_file, "this archive is not one that torch.save wrote: it has no data.pkl",
                where);
  return Reader(std::move(archive)).read();
}

}  // namespace superstep::data
