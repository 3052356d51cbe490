#include "superstep/record/database.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/base/error.h"

namespace superstep::record {

std::string Database::hint_for(int code) const {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "another program holds it: try again later";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN: return fmt::format("check the permissions, or {}", words_.elsewhere);
    case SQLITE_FULL: return "the disk is full";
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: return fmt::format("move the file away, or {}", words_.elsewhere);
    default: return "";
  }
}

Database::Database(const std::filesystem::path& path, std::chrono::milliseconds patience, DatabaseWords words)
    : where_(path.string()), words_(words) {
  const int code = sqlite3_open(path.c_str(), &handle_);
  if (code != SQLITE_OK) {
    const Error error(ErrorCode::io, fmt::format("cannot open {}: {}", words_.what, sqlite3_errstr(code)),
                      where_, hint_for(code));
    sqlite3_close(handle_);
    throw error;
  }
  sqlite3_busy_timeout(handle_, static_cast<int>(patience.count()));
}

Database::~Database() { sqlite3_close(handle_); }

void Database::fail(const char* action) const {
  const int code = sqlite3_errcode(handle_);
  const bool damaged = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
  throw Error(damaged ? ErrorCode::bad_file : ErrorCode::io,
              fmt::format("cannot {} {}: {}", action, words_.what, sqlite3_errmsg(handle_)), where_,
              hint_for(code));
}

void Database::execute(const std::string& sql, const char* action) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(action);
}

Statement::Statement(Database& database, const std::string& sql, const char* action)
    : database_(database), action_(action) {
  if (sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
    database_.fail(action_);
}

Statement& Statement::bind(const std::string& text) {
  sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind(std::int64_t value) {
  sqlite3_bind_int64(statement_, ++bound_, value);
  return *this;
}

Statement& Statement::bind(double value) {
  sqlite3_bind_double(statement_, ++bound_, value);
  return *this;
}

Statement& Statement::bind_null() {
  sqlite3_bind_null(statement_, ++bound_);
  return *this;
}

bool Statement::row() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail(action_);
  return code == SQLITE_ROW;
}

void Statement::run() {
  while (row()) {
  }
  sqlite3_reset(statement_);
  bound_ = 0;
}

std::string Statement::text(int column) const {
  const auto* value = sqlite3_column_text(statement_, column);
  return value ? reinterpret_cast<const char*>(value) : "";
}

double Statement::number(int column) const {
  return is_null(column) ? std::nan("") : sqlite3_column_double(statement_, column);
}

}  // namespace superstep::record
