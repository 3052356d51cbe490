#include <new>

#include "superstep/api/c_guard.h"

namespace superstep::api {
namespace {

struct Kept {
  superstep_status status = SUPERSTEP_OK;
  std::string message, where, hint;
};

Kept& kept() {
  thread_local Kept error;
  return error;
}

superstep_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return SUPERSTEP_INVALID_ARGUMENT;
    case ErrorCode::not_found: return SUPERSTEP_NOT_FOUND;
    case ErrorCode::bad_file: return SUPERSTEP_BAD_FILE;
    case ErrorCode::bad_graph: return SUPERSTEP_BAD_GRAPH;
    case ErrorCode::unsupported: return SUPERSTEP_UNSUPPORTED;
    case ErrorCode::io: return SUPERSTEP_IO;
    case ErrorCode::out_of_memory: return SUPERSTEP_OUT_OF_MEMORY;
    case ErrorCode::diverged: return SUPERSTEP_DIVERGED;
    case ErrorCode::interrupted: return SUPERSTEP_INTERRUPTED;
    case ErrorCode::internal: return SUPERSTEP_INTERNAL;
  }
  return SUPERSTEP_INTERNAL;
}

// Assigning texts may fail for want of memory, which is when errors come: then the status alone is kept.
superstep_status keep(superstep_status status, const char* message, const char* where,
                      const char* hint) noexcept {
  Kept& error = kept();
  error.status = status;
  try {
    error.message = message;
    error.where = where;
    error.hint = hint;
  } catch (...) {
    error.message.clear();
    error.where.clear();
    error.hint.clear();
  }
  return status;
}

}  // namespace

superstep_status keep_error(const Error& error) {
  return keep(status_of(error.code()), error.message().c_str(), error.where().c_str(), error.hint().c_str());
}

superstep_status keep_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    return keep_error(error);
  } catch (const std::bad_alloc&) {
    return keep(SUPERSTEP_OUT_OF_MEMORY, "out of memory", "", "");
  } catch (const std::exception& error) {
    return keep(SUPERSTEP_INTERNAL, error.what(), "", "");
  } catch (...) {
    return keep(SUPERSTEP_INTERNAL, "an exception of an unknown kind", "", "");
  }
}

void require(const void* argument, const char* name) {
  if (!argument) throw Error(ErrorCode::invalid_argument, "must not be null", name);
}

}  // namespace superstep::api

using namespace superstep;
using namespace superstep::api;

superstep_error superstep_last_error(void) {
  const Kept& error = kept();
  return {error.status, error.message.c_str(), error.where.c_str(), error.hint.c_str()};
}

const char* superstep_version(void) { return SUPERSTEP_VERSION; }

const char* superstep_status_name(superstep_status status) {
  for (const ErrorCode code : {ErrorCode::invalid_argument, ErrorCode::not_found, ErrorCode::bad_file,
                               ErrorCode::bad_graph, ErrorCode::unsupported, ErrorCode::io,
                               ErrorCode::out_of_memory, ErrorCode::diverged, ErrorCode::interrupted})
    if (status_of(code) == status) return name_of(code);
  return status == SUPERSTEP_OK ? "ok" : name_of(ErrorCode::internal);
}

void superstep_set_interrupt_check(superstep_interrupt_check check, void* context) {
  (void)guarded([&] {
    set_interrupt_check(check ? std::function<bool()>([=] { return check(context) != 0; })
                              : std::function<bool()>());
  });
}

void superstep_set_progress_listener(superstep_progress_listener listener, void* context) {
  (void)guarded([&] {
    if (!listener) return set_progress_listener({});
    set_progress_listener([=](const ProgressReport& report) {
      listener(std::string(report.label).c_str(), report.done, report.total, std::string(report.unit).c_str(),
               context);
    });
  });
}
