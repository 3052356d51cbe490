#include "superstep/file/convert/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/text.h"
#include "superstep/file/convert/conversion_folder.h"
#include "superstep/file/convert/sample_writer.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/joined_source.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_rows = 1 << 16;  // of a block of small samples: chosen

// An array of the source, and what it is called in the file.
struct Part {
  std::size_t position = 0;  // in the source's arrays
  SourceArray array;
  std::string name;
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
  Part part{position, array, stored_name(array.name, form)};
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

// What a conversion has and where it stands; saved now and then, so that the same call goes on.
class Work {
 public:
  Work(const ConvertRequest& request, ConversionFolder& folder, std::int64_t samples)
      : request_(request), folder_(folder), samples_(samples), wait_(request.save_seconds) {
    if (folder.keeps()) hold_.emplace("a block of samples is finished first");
  }

  ConversionState state;
  SampleWriter* writer = nullptr;  // while there is something to write

  void after_block() {
    const bool stop = folder_.keeps() && interrupted();
    if (stop || (folder_.keeps() && since_.seconds() >= wait_)) save();
    if (stop)
      throw Error(
          ErrorCode::interrupted, how_far(), request_.out.string(),
          fmt::format("the same call goes on there; {} holds what was written", folder_.path().string()));
    check_.throw_if_due(request_.out.string());
  }

  void save() {
    const Stopwatch cost;
    if (writer && folder_.keeps()) state.mark = writer->mark();
    folder_.save(state);
    constexpr double share = 0.05;  // of the time, at most, goes into waiting for the disk: chosen
    wait_ = std::max(request_.save_seconds, cost.seconds() / share);
    since_ = Stopwatch();
  }

 private:
  std::string how_far() const {
    if (state.checking) return "all samples are written, and were being read back";
    const std::int64_t written = state.group == 0 ? state.row : samples_;
    return fmt::format("{} of {} samples are written", format_count(static_cast<double>(written)),
                       format_count(static_cast<double>(samples_)));
  }

  const ConvertRequest& request_;
  ConversionFolder& folder_;
  std::int64_t samples_;
  double wait_;
  Stopwatch since_;
  InterruptCheck check_;
  std::optional<HoldEnd> hold_;
};

using TakeBlock = std::function<void(std::size_t group, std::vector<Tensor> block)>;

// The blocks of all groups in their order, from where the work stands. `positions`: of the parts, in
// `source`.
void for_blocks(const SampleSource& source, const Plan& plan, const std::vector<std::size_t>& positions,
                std::size_t block_bytes, Work& work, ThreadPool& pool, const TakeBlock& take) {
  ConversionState& at = work.state;
  const auto all = static_cast<double>(plan.samples);
  Progress progress(at.checking ? "checking" : "converting", all, "samples",
                    at.group == 0 ? static_cast<double>(at.row) : all);
  for (; at.group < plan.groups.size(); ++at.group, at.row = 0) {
    const Group& group = plan.groups[at.group];
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
    while (at.row < group.rows) {
      const std::int64_t count = std::min(step, group.rows - at.row);
      take(at.group, read_block(source, of_group, at.row, count, pool));
      at.row += count;
      if (at.group == 0) progress.update(static_cast<double>(at.row));
      work.after_block();
    }
  }
}

void write_samples(const SampleSource& source, const Plan& plan, std::size_t block_bytes, Work& work,
                   ThreadPool& pool) {
  std::vector<std::size_t> positions;
  for (const Part& part : plan.parts) positions.push_back(part.position);
  for_blocks(
      source, plan, positions, block_bytes, work, pool, [&](std::size_t at, std::vector<Tensor> block) {
        const Group& group = plan.groups[at];
        for (std::size_t i = 0; i < block.size(); ++i)
          work.state.sums[group.parts[i]].add({std::as_const(block[i]).bytes(), block[i].byte_count()});
        if (at == 0) return work.writer->write(block, pool);
        const SourceArray& array = plan.parts[group.parts[0]].array;
        work.writer->write_shared(group.parts[0], array.single ? block[0].reshaped(array.row) : block[0]);
      });
  work.writer->close();
  ConversionState written{.checking = true, .sums = std::vector<Sha256>(plan.parts.size())};
  for (Sha256& sum : work.state.sums) written.written.push_back(sum.hexadecimal());
  work.state = std::move(written);
  work.writer = nullptr;
  work.save();
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

void check(const fs::path& file, const Plan& plan, const WriterForm& form, const ConvertRequest& request,
           Work& work, ThreadPool& pool) {
  const fs::path& out = request.out;
  const auto forms = source_forms();
  const auto reader =
      std::ranges::find(forms, std::string_view(form.read_as ? form.read_as : form.name), &SourceForm::name);
  const auto written = reader->open(file, as_written(plan));
  std::vector<std::size_t> positions;
  for (const Part& part : plan.parts) {
    positions.push_back(find_array(*written, part.name));
    if (positions.back() == written->arrays().size()) refuse_difference(part, out, "it is not there");
    const SourceArray& found = written->arrays()[positions.back()];
    if (found.rows != part.array.rows || found.row != part.array.row)
      refuse_difference(part, out, fmt::format("its shape is {}", to_string(found.shape())));
  }
  const auto add = [&](std::size_t group, std::vector<Tensor> block) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::size_t part = plan.groups[group].parts[i];
      const Tensor same = block[i].converted(plan.parts[part].array.type);
      work.state.sums[part].add({same.bytes(), same.byte_count()});
    }
  };
  for_blocks(*written, plan, positions, request.block_bytes, work, pool, add);
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    if (work.state.sums[i].hexadecimal() != work.state.written[i])
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

// All that the bytes of the file depend on, and how they are made: blocks are groups of rows in Parquet.
std::string key_of(const ConvertRequest& request, const Plan& plan, const WriterForm& form) {
  if (request.resume_key.empty()) return {};
  constexpr int version = 1;  // of what is kept
  std::string key = fmt::format("{} {} {} {} {}\n", version, form.name, plan.samples, request.block_bytes,
                                request.resume_key);
  for (const Part& part : plan.parts)
    key += fmt::format("{} {} {} {} {}\n", part.name, name_of(part.array.type), to_string(part.array.shape()),
                       part.array.single, join(part.array.classes, "\n"));
  Sha256 sum;
  sum.add(std::as_bytes(std::span(key)));
  return sum.hexadecimal();
}

// One that goes on where the folder says, or, where that is not there any more, begins.
std::unique_ptr<SampleWriter> open_writer(const ConvertRequest& request, const Plan& plan,
                                          const WriterForm& form, ConversionFolder& folder,
                                          ConversionState& state) {
  std::vector<SourceArray> arrays;
  for (const Part& part : plan.parts) {
    arrays.push_back(part.array);
    arrays.back().name = part.name;
  }
  const std::string shown = request.out.string();
  state = {.sums = std::vector<Sha256>(plan.parts.size())};
  if (folder.left()) try {
      auto writer = form.open({folder.data(), shown, folder.left()->mark}, arrays, plan.samples);
      state = *folder.left();
      return writer;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_file) throw;
      folder.begin_again();
    }
  return form.open({folder.data(), shown, ""}, std::move(arrays), plan.samples);
}

Converted converted(const SampleSource& source, const ConvertRequest& request, const Plan& plan,
                    const WriterForm& form, ConversionFolder& folder, ThreadPool& pool) {
  Work work(request, folder, plan.samples);
  if (folder.left() && folder.left()->checking && !fs::exists(folder.data())) folder.begin_again();
  Converted done{.form = form.name, .samples = plan.samples, .notes = notes_on(source, plan, form)};
  if (folder.left() && folder.left()->checking) {
    work.state = *folder.left();
    done.continued_from = plan.samples;
  } else {
    const auto writer = open_writer(request, plan, form, folder, work.state);
    work.writer = writer.get();
    done.continued_from = work.state.group == 0 ? work.state.row : plan.samples;
    write_samples(source, plan, request.block_bytes, work, pool);
  }
  check(folder.data(), plan, form, request, work, pool);
  folder.put_in_place();
  folder.drop();
  if (folder.began_again())
    done.notes.emplace_back(
        "what a stopped call with other options, or of other files, had written was begun again");
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    done.arrays.push_back({plan.parts[i].array, plan.parts[i].name, work.state.written[i]});
  return done;
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
  const Plan plan = plan_of(source, request, form);
  ConversionFolder folder(request.out, key_of(request, plan, form));
  try {
    return converted(source, request, plan, form, folder, pool);
  } catch (const Error& error) {
    // A full disk can be given room, a system memory, and then there is something to go on with.
    const bool of_use = error.code() == ErrorCode::interrupted || error.code() == ErrorCode::io ||
                        error.code() == ErrorCode::out_of_memory;
    if (!of_use) folder.drop();
    throw;
  }
}

}  // namespace superstep::data
