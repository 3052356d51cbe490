// Web data sets: a tar whose members of one name, up to the first point in it, are one sample, each member a
// value with the name of its ending ("000017.jpg", "000017.cls").
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/file/npy.h"
#include "superstep/file/pictures/picture.h"
#include "superstep/file/records/json_values.h"
#include "superstep/file/records/record_forms.h"
#include "superstep/file/records/record_source.h"
#include "superstep/file/records/run_bytes.h"
#include "superstep/file/records/tar.h"

namespace superstep::data {
namespace {

struct Part {
  std::uint32_t ending = 0;  // its number
  std::uint64_t begin = 0, size = 0;
};

// The name of the sample, its folder included, and the ending.
std::pair<std::string_view, std::string_view> parted(std::string_view name) {
  const std::size_t slash = name.rfind('/'), from = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t point = name.find('.', from);
  if (point == std::string_view::npos) return {name, {}};
  return {name.substr(0, point), name.substr(point + 1)};
}

Tensor whole_number(std::span<const std::byte> bytes, const std::string& where) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw Error(ErrorCode::bad_file,
                fmt::format("holds '{}', no whole number", printable(text.substr(0, 40))), where);
  return Tensor::scalar<std::int64_t>(value);
}

// The name of a value whose member ends so: without what it is packed as, where something stands before that
// ("left.png", "x.npy").
std::string_view name_of_value(std::string_view ending) {
  const std::size_t point = ending.rfind('.');
  if (point == std::string_view::npos || point == 0) return ending;
  const std::string_view kind = ending.substr(point + 1);
  const bool known = kind == "npy" || kind == "cls" || kind == "id" || is_picture_name(ending);
  return known ? ending.substr(0, point) : ending;
}

// What a member is packed as.
std::string_view kind_of(std::string_view ending) { return ending.substr(ending.rfind('.') + 1); }

class TarSource : public RecordSource {
 public:
  TarSource(const std::filesystem::path& path, const SourceRequest& request) : file_(path) {
    index();
    settle(static_cast<std::int64_t>(first_part_.size()) - 1, request);
    for (std::size_t i = 0; i < arrays().size(); ++i) members_.push_back(member_of(i));
  }

  // What a member holds goes straight to where it is wanted, as far as it is as the first sample's; what is
  // not is read as a record.
  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    RunBytes run(file_);
    std::vector<RowsTo> left;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      left.clear();
      for (const RowsTo& one : wanted) {
        std::byte* to = one.to + i * arrays()[one.array].row_bytes();
        if (!read_member(run, rows.subspan(i), one.array, to)) left.push_back({one.array, to});
      }
      if (!left.empty()) RecordSource::read(rows.subspan(i, 1), left);
    }
    file_.require_unchanged();
  }

 protected:
  Record record(std::int64_t row) const override {
    Record whole;
    const auto at = static_cast<std::size_t>(row);
    for (std::size_t i = first_part_[at]; i < first_part_[at + 1]; ++i) add_values(whole, parts_[i], row);
    return whole;
  }
  std::string place_of(std::int64_t row) const override {
    return fmt::format("{}: sample {}", file_.path().string(), row + 1);
  }
  void require_unchanged() const override { file_.require_unchanged(); }
  bool is_ordered() const override { return file_.is_ordered(); }

 private:
  // Neighbors of one name are a sample. A name that comes again later is another one, as those who write such
  // archives in their order have it; the same ending twice in one is a mistake.
  void index() {
    std::string last;
    for (const TarMember& member : tar_members(file_)) {
      const auto [name, ending] = parted(member.name);
      if (ending.empty() || name.ends_with('/')) continue;
      if (first_part_.empty() || name != last) {
        first_part_.push_back(parts_.size());
        last = name;
      }
      const std::uint32_t number = number_of_ending(ending);
      for (std::size_t i = first_part_.back(); i < parts_.size(); ++i)
        if (parts_[i].ending == number)
          throw Error(ErrorCode::bad_file, fmt::format("holds '{}' twice", printable(member.name)),
                      file_.path().string());
      parts_.push_back({number, member.begin, member.size});
    }
    if (first_part_.empty())
      throw Error(ErrorCode::bad_file, "holds no sample", file_.path().string(),
                  "members of one sample have one name and endings that say what they are: 17.jpg, 17.cls");
    first_part_.push_back(parts_.size());
  }

  enum class Kind : std::uint8_t { other, npy, number, picture };
  // The member that an array is made of: of an npy the header that the first one has.
  struct Member {
    Kind kind = Kind::other;
    std::uint32_t ending = 0;
    std::vector<std::byte> header = {};
  };

  Member member_of(std::size_t array) const {
    const auto named = std::ranges::find(names_, name_in_records(array));
    if (named == names_.end()) return {};  // out of a member of JSON
    Member member{.ending = static_cast<std::uint32_t>(named - names_.begin())};
    const std::string_view kind = kind_of(endings_[member.ending]);
    if (is_picture(array)) member.kind = Kind::picture;
    if ((kind == "cls" || kind == "id") && arrays()[array].type == ElementType::i64)
      member.kind = Kind::number;
    if (kind == "npy") set_header(member, array);
    return member;
  }

  // Of numbers that lie as they do in memory.
  void set_header(Member& member, std::size_t array) const {
    const Part* part = part_of(number_of(0), member.ending);
    const SourceArray& own = arrays()[array];
    if (!part || part->size < npy_beginning || own.type == ElementType::boolean) return;
    std::vector<std::byte> bytes(part->size);
    file_.read(part->begin, bytes);
    const NpyLayout layout =
        parse_npy_header(std::span(bytes).first(npy_header_bytes(bytes, place(array, 0))), place(array, 0));
    if (layout.swapped || (layout.fortran_order && layout.outer.size() > 1) || layout.type != own.type ||
        layout.data_bytes != own.row_bytes() || layout.header_bytes + layout.data_bytes != bytes.size())
      return;
    member.kind = Kind::npy;
    member.header.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(layout.header_bytes));
  }

  const Part* part_of(std::int64_t sample, std::uint32_t ending) const {
    const auto at = static_cast<std::size_t>(sample);
    for (std::size_t i = first_part_[at]; i < first_part_[at + 1]; ++i)
      if (parts_[i].ending == ending) return &parts_[i];
    return nullptr;
  }

  // Where the samples end that are wanted one behind the other, as far as is read at a time.
  std::uint64_t end_of_run(std::span<const std::int64_t> rows, std::uint64_t begin) const {
    std::uint64_t end = begin;
    for (std::size_t i = 0; i < rows.size() && (i == 0 || rows[i] == rows[i - 1] + 1); ++i) {
      const Part& last = parts_[first_part_[static_cast<std::size_t>(number_of(rows[i])) + 1] - 1];
      if (last.begin + last.size > begin + RunBytes::most) break;
      end = last.begin + last.size;
    }
    return end;
  }

  // False: it is not as the first sample's.
  bool read_member(RunBytes& run, std::span<const std::int64_t> rows, std::size_t array,
                   std::byte* to) const {
    const Member& member = members_[array];
    const Part* part = member.kind == Kind::other ? nullptr : part_of(number_of(rows[0]), member.ending);
    if (!part) return false;
    if (member.kind == Kind::npy) return read_npy_member(run, rows, array, *part, to);
    const auto bytes = run.part(part->begin, part->size, [&] { return end_of_run(rows, part->begin); });
    if (member.kind == Kind::picture)
      put_picture(bytes, rows[0], array, to);
    else
      whole_number(bytes, place(array, rows[0])).copy_to(to);
    return true;
  }

  bool read_npy_member(RunBytes& run, std::span<const std::int64_t> rows, std::size_t array, const Part& part,
                       std::byte* to) const {
    const std::vector<std::byte>& header = members_[array].header;
    const std::span<std::byte> values(to, arrays()[array].row_bytes());
    if (part.size != header.size() + values.size()) return false;
    constexpr std::size_t large = 16 << 10;  // where a call of the system costs less than a copy: chosen
    if (values.size() >= large) {
      std::vector<std::byte> own(header.size());
      file_.read(part.begin, own, values);
      return own == header;
    }
    const auto bytes = run.part(part.begin, part.size, [&] { return end_of_run(rows, part.begin); });
    if (!std::ranges::equal(bytes.first(header.size()), header)) return false;
    std::ranges::copy(bytes.subspan(header.size()), values.begin());
    return true;
  }

  std::uint32_t number_of_ending(std::string_view ending) {
    const auto found = std::ranges::find(endings_, ending);
    const auto number = static_cast<std::uint32_t>(found - endings_.begin());
    constexpr std::size_t most_endings = 256;  // of samples that are alike; chosen
    if (found == endings_.end()) {
      endings_.emplace_back(ending);
      const std::string_view name = name_of_value(ending);
      const bool is_free = std::ranges::find(names_, name) == names_.end();
      names_.emplace_back(is_free ? name : ending);
    }
    if (endings_.size() > most_endings)
      throw Error(ErrorCode::bad_file, fmt::format("has more than {} kinds of members", most_endings),
                  file_.path().string(), "the name of a member ends with what it is: 17.jpg, 17.cls");
    return number;
  }

  void add_values(Record& whole, const Part& part, std::int64_t row) const {
    const std::string &ending = endings_[part.ending], &name = names_[part.ending];
    const std::string where = fmt::format("{}, '{}'", place_of(row), printable(ending));
    EncodedBytes bytes(part.size);
    file_.read(part.begin, bytes);
    const std::string_view kind = kind_of(ending);
    if (kind == "cls" || kind == "id")
      whole.push_back({name, whole_number(bytes, where)});
    else if (kind == "npy")
      whole.push_back({name, parse_npy(bytes, where)});
    else if (kind == "json")
      add_json_values(whole, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where);
    else
      whole.push_back({name, std::move(bytes)});
  }

  Content file_;
  std::vector<std::string> endings_, names_;  // of members, and of the values in them
  std::vector<Part> parts_;
  std::vector<std::size_t> first_part_;  // by sample, and the end
  std::vector<Member> members_;          // by array
};

}  // namespace

std::unique_ptr<SampleSource> open_tar_source(const std::filesystem::path& path,
                                              const SourceRequest& request) {
  return std::make_unique<TarSource>(path, request);
}

}  // namespace superstep::data
