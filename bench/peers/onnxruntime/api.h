// The part of ONNX Runtime's C API that the peer needs, found at run time: no header, nothing to link.
//
// The library exports OrtGetApiBase(); its GetApi(version) gives a table of function pointers that is only
// ever appended to, so that a function is known by its place (ONNX Runtime, onnxruntime_c_api.h, struct
// OrtApi; places 0 to 101 are those of API version 1, 124 came with version 3, 130 with version 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace superstep::bench::onnxruntime {

// Types that the library keeps to itself.
struct Status;
struct Environment;
struct SessionOptions;
struct Session;
struct Value;
struct TypeInfo;
struct TensorInfo;
struct MemoryInfo;
struct Allocator;

// Element types by the numbers of onnx.proto (TensorProto.DataType), as the API has them.
enum class Element : int {
  f32 = 1,
  u8 = 2,
  i8 = 3,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  bf16 = 16
};

class Api {
 public:
  // Opens the library at `path`. Throws std::runtime_error with the reason when it cannot be used.
  explicit Api(const std::string& path);

  const std::string& version() const { return version_; }  // of the library: "1.30.0"

  // Calls the function at `place` of the table; throws std::runtime_error with the library's message.
  template <class... Args>
  void call(int place, Args... args) const {
    check(function<Status*(Args...)>(place)(args...));
  }

  Environment* make_environment() const;
  SessionOptions* make_options(int threads,
                               const std::vector<std::pair<std::string, std::string>>& entries) const;
  void fix_dimension(SessionOptions* options, const std::string& name, std::int64_t extent) const;
  Session* make_session(Environment* environment, const std::string& model, SessionOptions* options) const;
  MemoryInfo* host_memory() const;
  Value* make_tensor(MemoryInfo* memory, void* data, std::size_t bytes,
                     const std::vector<std::int64_t>& shape, Element type) const;
  void run(Session* session, const std::vector<const char*>& input_names, const std::vector<Value*>& inputs,
           const std::vector<const char*>& output_names, std::vector<Value*>& outputs) const;

  struct Signature {
    std::string name;
    Element type;
    std::vector<std::int64_t> shape;          // -1 where it is left open
    std::vector<std::string> symbolic_names;  // of the open extents; empty for the others
  };
  std::vector<Signature> inputs(Session* session) const;
  std::vector<Signature> outputs(Session* session) const;
  std::vector<Signature> initialized_inputs(Session* session) const;  // inputs that have an initialiser

 private:
  template <class Function>
  auto function(int place) const {
    return reinterpret_cast<Function*>(table_[place]);
  }
  void check(Status* status) const;
  std::vector<Signature> signatures(Session* session, int count_place, int name_place, int type_place) const;

  void* const* table_ = nullptr;
  std::string version_;
};

}  // namespace superstep::bench::onnxruntime
