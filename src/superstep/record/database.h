// SQLite with errors that reach a user: a thin wrapper, internal to run/.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace superstep::record {

struct DatabaseWords {
  const char* what = "the records";
  const char* elsewhere = "set SUPERSTEP_HOME to another folder";
};

class Database {
 public:
  // Opens or makes it; a file that may only be read is opened for reading. Waits up to `patience` for
  // another program that writes. Throws Error (io, bad_file). `what` it holds and where another one would be,
  // for messages.
  static constexpr std::chrono::milliseconds usual_patience{5000};
  explicit Database(const std::filesystem::path& path, std::chrono::milliseconds patience = usual_patience,
                    DatabaseWords words = {});
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const std::string& sql, const char* action);
  std::int64_t last_id() const { return sqlite3_last_insert_rowid(handle_); }
  sqlite3* handle() const { return handle_; }
  const std::string& where() const { return where_; }
  // Throws what the last call's failure means to a user: "cannot ACTION the records: database is locked".
  [[noreturn]] void fail(const char* action) const;

 private:
  std::string hint_for(int code) const;

  sqlite3* handle_ = nullptr;
  std::string where_;
  DatabaseWords words_;
};

// A transaction that is undone unless it is committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {
    database_.execute("begin immediate", "write");
  }
  ~Transaction() {
    if (!done_) sqlite3_exec(database_.handle(), "rollback", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    database_.execute("commit", "write");
    done_ = true;
  }

 private:
  Database& database_;
  bool done_ = false;
};

// A prepared statement whose parameters are bound in order.
class Statement {
 public:
  Statement(Database& database, const std::string& sql, const char* action = "read");
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text);
  Statement& bind(std::int64_t value);
  Statement& bind(double value);  // NaN becomes null
  Statement& bind_null();

  bool row();  // steps; false at the end. Throws Error.
  void run();  // steps to the end, and makes ready to be bound again

  std::string text(int column) const;
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const;  // NaN of null
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  Database& database_;
  const char* action_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

}  // namespace superstep::record
