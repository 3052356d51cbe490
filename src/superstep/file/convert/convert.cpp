#include "superstep/file/convert/convert.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/base/text.h"
#include "superstep/file/convert/sample_writer.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/joined_source.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

// Read, packed and written at a time: chosen, so that every thread has some samples of a megabyte each.
constexpr std::size_t block_bytes = 32 << 20;
constexpr std::int64_t most_rows = 1 << 16;  // of a block of small samples: chosen

// The file, or folder, before it has its name.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& out) : out_(out), path_(partial_name(out)) {}
  ~Unfinished() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const fs::path& path() const { return path_; }
  void put_in_place() const {
    std::error_code none;
    const bool folder = fs::is_directory(path_, none);
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    const bool on_disk = file >= 0 && (folder ? ::syncfs(file) : ::fsync(file)) == 0;
    if (file >= 0) ::close(file);
    // A folder takes the place of an empty one alone.
    if (folder && on_disk && fs::is_directory(out_, none)) {
      const fs::path before = partial_name(out_);
      fs::rename(out_, before, none);
      const bool placed = !none && ::rename(path_.c_str(), out_.c_str()) == 0;
      if (!placed && !none) fs::rename(before, out_, none);
      if (placed) fs::remove_all(before, none);
      if (placed) return;
    }
    if (!on_disk || ::rename(path_.c_str(), out_.c_str()) != 0)
      throw Error(ErrorCode::io, "could not be put in place: is the disk full?", out_.string());
  }

 private:
  fs::path out_, path_;
};

// An array of the source, what it is called in the file, and what its elements were.
struct Part {
  std::size_t position = 0;  // in the source's arrays
  SourceArray array;
  std::string name;
  std::string sha256;
};

// Rows of several arrays as they are in the source: the samples' together, others one by one.
struct Group {
  std::vector<std::size_t> parts;  // their numbers
  std::int64_t rows = 0;
};

struct Plan {
  std::vector<Part> parts;
  std::vector<Group> groups;
  std::int64_t samples = 0;
};

// A name that every form can hold: records have no folders in the names of their values.
std::string stored_name(const std::string& name, const WriterForm& form) {
  if (name.empty()) return "array";
  std::string stored = name;
  if (!form.holds_shared) std::ranges::replace(stored, '/', '.');
  return stored;
}

void add_part(Plan& plan, const SampleSource& source, std::size_t position, const WriterForm& form) {
  const SourceArray& array = source.arrays()[position];
  Part part{position, array, stored_name(array.name, form), {}};
  const auto is_taken = [&](const Part& other) { return other.name == part.name; };
  const bool taken = std::ranges::any_of(plan.parts, is_taken);
  const std::string why =
      taken ? fmt::format("would be called '{}' as another is", printable(part.name)) : form.why_not(array);
  if (!why.empty())
    throw Error(ErrorCode::unsupported, taken ? why : fmt::format("{} {}", form.words, why),
                source.place(position, 0), "write another form, or name the arrays that are meant (--array)");
  plan.parts.push_back(std::move(part));
}

std::vector<std::size_t> chosen(const SampleSource& source, const std::vector<std::string>& names) {
  std::vector<std::size_t> positions(source.arrays().size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  if (names.empty()) return positions;
  positions.clear();
  std::vector<std::string> known;
  for (const SourceArray& array : source.arrays()) known.push_back(array.name);
  for (const std::string& name : names) {
    const std::size_t at = find_array(source, name);
    if (at == known.size())
      throw Error(ErrorCode::invalid_argument, fmt::format("there is no array '{}'", name), "",
                  unknown_name_hint(name, known));
    if (std::ranges::find(positions, at) == positions.end()) positions.push_back(at);
  }
  return positions;
}

// The samples are what most arrays have a row of each.
Plan plan_of(const SampleSource& source, const ConvertRequest& request, const WriterForm& form) {
  Plan plan;
  for (const std::size_t position : chosen(source, request.arrays)) add_part(plan, source, position, form);
  plan.samples = usual_rows(source);
  const auto is_sample = [&](const Part& part) {
    return !part.array.single && part.array.rows == plan.samples;
  };
  if (std::ranges::none_of(plan.parts, is_sample) && !plan.parts.empty() && !plan.parts.front().array.single)
    plan.samples = plan.parts.front().array.rows;
  plan.groups.push_back({{}, plan.samples});
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const Part& part = plan.parts[i];
    if (is_sample(part)) {
      plan.groups.front().parts.push_back(i);
    } else if (form.holds_shared) {
      plan.groups.push_back({{i}, part.array.rows});
    } else {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} holds samples alone, and '{}' has {} where there are {} samples",
                              form.words, printable(part.array.name),
                              part.array.single ? "a single value" : fmt::format("{} rows", part.array.rows),
                              plan.samples),
                  source.place(part.position, 0), "name the arrays that are meant (--array), or write HDF5");
    }
  }
  if (!form.holds_shared && plan.samples == 0)
    throw Error(ErrorCode::bad_file, "holds no samples", source.place(0, 0));
  return plan;
}

// Rows [first, first + count) of the parts' arrays in `source`, where they are at `positions`, by all
// threads.
std::vector<Tensor> read_block(const SampleSource& source, const std::vector<std::size_t>& positions,
                               std::int64_t first, std::int64_t count, ThreadPool& pool) {
  std::vector<Tensor> block;
  for (const std::size_t position : positions) {
    SourceArray some = source.arrays()[position];
    some.rows = count;
    block.emplace_back(some.type, some.shape());
    block.back().bytes();
  }
  const std::int64_t pieces =
      source.shards().empty() ? std::min<std::int64_t>(count, std::int64_t{4} * pool.threads()) : 1;
  pool.parallel_for(pieces, [&](std::int64_t piece, int) {
    const std::int64_t begin = count * piece / pieces, end = count * (piece + 1) / pieces;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(end - begin));
    std::iota(rows.begin(), rows.end(), first + begin);
    std::vector<RowsTo> to;
    for (std::size_t i = 0; i < positions.size(); ++i)
      to.push_back({positions[i], block[i].bytes() + static_cast<std::size_t>(begin) *
                                                         source.arrays()[positions[i]].row_bytes()});
    source.read(rows, to);
  });
  return block;
}

using TakeBlock = std::function<void(const Group& group, std::vector<Tensor> block)>;

// All blocks of all groups in their order. `positions`: of the parts, in `source`.
void for_blocks(const SampleSource& source, const Plan& plan, const std::vector<std::size_t>& positions,
                const char* words, ThreadPool& pool, const TakeBlock& take) {
  Progress progress(words, static_cast<double>(plan.samples), "samples");
  InterruptCheck stop;
  for (const Group& group : plan.groups) {
    if (group.parts.empty()) continue;
    std::size_t row_bytes = 1;
    std::vector<std::size_t> of_group;
    for (const std::size_t part : group.parts) {
      row_bytes += source.arrays()[positions[part]].row_bytes();
      of_group.push_back(positions[part]);
    }
    const auto fitting = static_cast<std::int64_t>(std::max<std::size_t>(1, block_bytes / row_bytes));
    const std::int64_t step = std::min(fitting, most_rows);
    require_memory(static_cast<double>(row_bytes) * static_cast<double>(std::min(step, group.rows)),
                   source.place(of_group.front(), 0));
    for (std::int64_t first = 0; first < group.rows; first += step) {
      const std::int64_t count = std::min(step, group.rows - first);
      take(group, read_block(source, of_group, first, count, pool));
      if (&group == &plan.groups.front()) progress.update(static_cast<double>(first + count));
      stop.throw_if_due(source.place(of_group.front(), 0));
    }
  }
}

void write_samples(const SampleSource& source, Plan& plan, SampleWriter& writer, ThreadPool& pool) {
  std::vector<Sha256> sums(plan.parts.size());
  std::vector<std::size_t> positions;
  for (const Part& part : plan.parts) positions.push_back(part.position);
  for_blocks(source, plan, positions, "converting", pool, [&](const Group& group, std::vector<Tensor> block) {
    for (std::size_t i = 0; i < block.size(); ++i)
      sums[group.parts[i]].add({std::as_const(block[i]).bytes(), block[i].byte_count()});
    if (&group == &plan.groups.front()) return writer.write(block, pool);
    const SourceArray& array = plan.parts[group.parts[0]].array;
    writer.write_shared(group.parts[0], array.single ? block[0].reshaped(array.row) : block[0]);
  });
  writer.close();
  for (std::size_t i = 0; i < plan.parts.size(); ++i) plan.parts[i].sha256 = sums[i].hexadecimal();
}

[[noreturn]] void refuse_difference(const Part& part, const fs::path& out, const std::string& words) {
  throw Error(
      ErrorCode::unsupported,
      fmt::format("array '{}' is not the same when it is read back: {}", printable(part.array.name), words),
      out.string(), "nothing was written; write another form (HDF5 holds everything)");
}

// As the source's arrays were, whatever the form makes of types and shapes.
SourceRequest as_written(const Plan& plan) {
  SourceRequest request;
  for (const Part& part : plan.parts) {
    request.wanted.push_back(part.array);
    request.wanted.back().name = part.name;
  }
  return request;
}

void check(const fs::path& file, const Plan& plan, const WriterForm& form, const fs::path& out,
           ThreadPool& pool) {
  const auto forms = source_forms();
  const auto reader =
      std::ranges::find(forms, std::string_view(form.read_as ? form.read_as : form.name), &SourceForm::name);
  const auto written = reader->open(file, as_written(plan));
  std::vector<std::size_t> positions;
  std::vector<Sha256> sums(plan.parts.size());
  for (const Part& part : plan.parts) {
    positions.push_back(find_array(*written, part.name));
    if (positions.back() == written->arrays().size()) refuse_difference(part, out, "it is not there");
    const SourceArray& found = written->arrays()[positions.back()];
    if (found.rows != part.array.rows || found.row != part.array.row)
      refuse_difference(part, out, fmt::format("its shape is {}", to_string(found.shape())));
  }
  for_blocks(*written, plan, positions, "checking", pool, [&](const Group& group, std::vector<Tensor> block) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      const Tensor same = block[i].converted(plan.parts[group.parts[i]].array.type);
      sums[group.parts[i]].add({same.bytes(), same.byte_count()});
    }
  });
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    if (sums[i].hexadecimal() != plan.parts[i].sha256)
      refuse_difference(plan.parts[i], out, "its elements are others");
}

std::vector<std::string> notes_on(const SampleSource& source, const Plan& plan, const WriterForm& form) {
  std::vector<std::string> notes = source.notes();
  if (const auto others = source.others(); !others.empty())
    notes.push_back(fmt::format("not read, and not written: {}", join(others, ", ")));
  for (const Part& part : plan.parts) {
    const SourceArray& array = part.array;
    if (part.name != array.name)
      notes.push_back(fmt::format("'{}' is called '{}' there", printable(array.name), printable(part.name)));
    if (!array.classes.empty() && form.name != std::string_view("hdf5"))
      notes.push_back(fmt::format("the names of the {} classes of '{}' are not kept: HDF5 keeps them",
                                  array.classes.size(), printable(array.name)));
    if (!form.holds_shapes && array.row.rank() > 1 && !is_of_pictures(array))
      notes.push_back(
          fmt::format("'{}' is a flat list of {} numbers there, which a workload brings to its shape",
                      printable(array.name), array.row.element_count()));
  }
  return notes;
}

}  // namespace

void require_replaceable(const fs::path& out, const WriterForm& form) {
  std::error_code none;
  if (!fs::exists(out, none)) return;
  const auto forms = source_forms();
  const auto store = std::ranges::find(forms, std::string_view("zarr"), &SourceForm::name);
  const bool folder = fs::is_directory(out, none);
  if (folder != form.folder || (folder && !fs::is_empty(out, none) && !store->takes(out)))
    throw Error(ErrorCode::invalid_argument,
                folder ? "is a folder with other things in it" : "is a file, and this form is a folder",
                out.string(), "name another place to write");
}

Converted convert_samples(const SampleSource& source, const ConvertRequest& request, ThreadPool& pool) {
  const WriterForm& form = find_writer_form(request.form, request.out);
  require_replaceable(request.out, form);
  Plan plan = plan_of(source, request, form);
  const Unfinished unfinished(request.out);
  std::vector<SourceArray> arrays;
  for (const Part& part : plan.parts) {
    arrays.push_back(part.array);
    arrays.back().name = part.name;
  }
  write_samples(source, plan, *form.open(unfinished.path(), std::move(arrays), plan.samples), pool);
  check(unfinished.path(), plan, form, request.out, pool);
  unfinished.put_in_place();
  Converted converted{.form = form.name, .samples = plan.samples, .notes = notes_on(source, plan, form)};
  for (Part& part : plan.parts)
    converted.arrays.push_back({std::move(part.array), std::move(part.name), std::move(part.sha256)});
  return converted;
}

}  // namespace superstep::data
