// gitlab.com/ase/ase, ase/db/sqlite.py: the table `systems`, whose arrays are bytes of little-endian numbers:
// atomic numbers of 32 bits, all else of 64; stress as xx, yy, zz, yz, xz, xy.
#include "superstep/file/atoms/ase_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/base/system/stable_file.h"
#include "superstep/file/atoms/ase_lmdb.h"
#include "superstep/file/records/lmdb.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

constexpr int longest_value = 1 << 30;          // bytes: chosen
constexpr int steps_between_questions = 10000;  // of SQLite's machine, before it is asked whether to stop

class Frames {
 public:
  explicit Frames(const fs::path& path) : path_(path) {
    sqlite3* opened = nullptr;
    const int code =
        sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    base_.reset(opened);
    if (code != SQLITE_OK) fail("cannot be opened");
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, longest_value);
    // Of a stranger's: nothing that its schema names is called.
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_progress_handler(opened, steps_between_questions, is_to_stop, &stop_);
    prepare("select type from sqlite_master where name = 'systems'");
    if (!step() || text(0) != "table")
      throw Error(ErrorCode::bad_file, "is a database of SQLite without a table 'systems'", path_.string(),
                  "those of ASE (ase.db) have one");
    prepare("select id, numbers, positions, cell, pbc, energy, forces, stress from systems order by id");
  }

  bool next(AseFrame& frame) {
    if (!step()) return false;
    frame = {.id = sqlite3_column_int64(query_.get(), 0)};
    read_atoms(frame);
    read_labels(frame);
    return true;
  }

 private:
  static int is_to_stop(void* check) { return static_cast<InterruptCheck*>(check)->is_due() ? 1 : 0; }

  [[noreturn]] void fail(const char* what) const {
    throw Error(ErrorCode::bad_file, fmt::format("{}: {}", what, sqlite3_errmsg(base_.get())),
                path_.string());
  }
  void prepare(const char* sql) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(base_.get(), sql, -1, &made, nullptr) != SQLITE_OK) fail("cannot be read");
    query_.reset(made);
  }
  bool step() {
    const int code = sqlite3_step(query_.get());
    if (code == SQLITE_INTERRUPT) stop_.throw_if_due(path_.string());
    if (code != SQLITE_ROW && code != SQLITE_DONE) fail("cannot be read");
    return code == SQLITE_ROW;
  }
  std::string_view text(int column) const {
    const auto* begin = reinterpret_cast<const char*>(sqlite3_column_text(query_.get(), column));
    return begin ? std::string_view(begin) : std::string_view();
  }
  bool is_null(int column) const { return sqlite3_column_type(query_.get(), column) == SQLITE_NULL; }

  [[noreturn]] void refuse(const AseFrame& frame, ErrorCode code, const std::string& message) const {
    throw Error(code, message, fmt::format("{}: row {}", path_.string(), frame.id));
  }

  // `count` numbers, or as many as there are where it is 0.
  template <class T>
  std::vector<T> numbers(const AseFrame& frame, int column, std::size_t count) const {
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(query_.get(), column));
    if (size % sizeof(T) != 0 || (count > 0 && size != count * sizeof(T)))
      refuse(frame, ErrorCode::bad_file,
             fmt::format("'{}' has {} bytes where {} numbers of {} are wanted",
                         sqlite3_column_name(query_.get(), column), size, count, sizeof(T)));
    std::vector<T> values(size / sizeof(T));
    if (size > 0) std::memcpy(values.data(), sqlite3_column_blob(query_.get(), column), size);
    return values;
  }
  std::vector<Cartesian> vectors(const AseFrame& frame, int column, std::size_t count) const {
    const std::vector<double> flat = numbers<double>(frame, column, 3 * count);
    std::vector<Cartesian> vectors;
    for (std::size_t i = 0; i < count; ++i)
      vectors.push_back({flat[3 * i], flat[3 * i + 1], flat[3 * i + 2]});
    return vectors;
  }

  void read_atoms(AseFrame& frame) const {
    for (const std::int32_t number : numbers<std::int32_t>(frame, 1, 0))
      frame.configuration.elements.push_back(number);
    const std::size_t atoms = frame.configuration.elements.size();
    if (atoms == 0) refuse(frame, ErrorCode::bad_file, "has no atoms");
    frame.configuration.positions = vectors(frame, 2, atoms);
    constexpr int all_axes = 7;
    const int periodic = sqlite3_column_int(query_.get(), 4);
    if (periodic != 0 && periodic != all_axes)
      refuse(frame, ErrorCode::unsupported, "is periodic along some axes alone, which is not supported");
    if (periodic == 0) return;
    const std::vector<Cartesian> edges = vectors(frame, 3, 3);
    frame.configuration.cell = Cell{edges[0], edges[1], edges[2]};
  }

  void read_labels(AseFrame& frame) const {
    if (!is_null(5)) frame.labels.energy = sqlite3_column_double(query_.get(), 5);
    if (!is_null(6)) frame.labels.forces = vectors(frame, 6, frame.configuration.elements.size());
    if (is_null(7) || !frame.configuration.cell) return;
    frame.labels.virial = virial_of_stress(numbers<double>(frame, 7, 6), *frame.configuration.cell);
  }

  struct Close {
    void operator()(sqlite3* base) const { sqlite3_close(base); }
    void operator()(sqlite3_stmt* query) const { sqlite3_finalize(query); }
  };
  fs::path path_;
  std::unique_ptr<sqlite3, Close> base_;
  std::unique_ptr<sqlite3_stmt, Close> query_;
  InterruptCheck stop_;
};

}  // namespace

bool is_sqlite(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  constexpr std::string_view mark{"SQLite format 3\0", 16};
  std::string begin(mark.size(), '\0');
  std::ifstream stream = open_regular_file(path);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == mark;
}

bool holds_ase_rows(const fs::path& path) { return is_sqlite(path) || is_lmdb(path); }

std::array<double, 9> virial_of_stress(const std::vector<double>& stress, const Cell& cell) {
  const double volume = std::abs(cell.volume());
  constexpr std::size_t voigt[] = {0, 5, 4, 5, 1, 3, 4, 3, 2};
  std::array<double, 9> virial{};
  for (std::size_t i = 0; i < virial.size(); ++i) virial[i] = -volume * stress[voigt[i]];
  return virial;
}

void for_ase_frames(const fs::path& path, const std::function<bool(AseFrame frame)>& take) {
  if (is_lmdb(path)) return for_ase_lmdb_frames(path, take);
  const StableFile file(path);
  Frames frames(path);
  for (AseFrame frame; frames.next(frame);)
    if (!take(std::move(frame))) break;
  file.require_unchanged();
}

}  // namespace superstep::data
