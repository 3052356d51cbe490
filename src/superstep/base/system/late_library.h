// Shared libraries that are opened when the first of their functions is called.
//
// A library that the program is linked to is loaded whenever the program starts, with all that it needs
// itself: HDF5 alone brings twenty others along (curl, Kerberos, LDAP ...). What few commands need costs the
// others nothing when it is opened late. The functions that are called are written out, in the namespace that
// calls them, where they hide the library's own declarations:
//
//   inline constinit const LateLibrary zeromq("ZeroMQ", SUPERSTEP_LATE_ZMQ);
//   SUPERSTEP_LATE(zeromq, zmq_ctx_new);
//
// One that was forgotten does not link. `superstep_late_library` in cmake/LateLibrary.cmake says which file
// it is.
#pragma once

#include <atomic>
#include <type_traits>

namespace superstep {

class LateLibrary {
 public:
  enum class Scope {
    own,  // its names are found here alone
    all,  // and by what is opened after it: a library whose plug-ins ask for its names
  };

  // `what`: its name, as users know it. `name`: that by which the loader finds it ("libzmq.so.5"); `file`:
  // where it lay when this was built, which is tried when the loader does not know the name.
  constexpr LateLibrary(const char* what, const char* name, const char* file, Scope scope = Scope::own)
      : what_(what), name_(name), file_(file), scope_(scope) {}

  // The address of a function. The library stays open. Throws Error (unsupported) where the
  // library is not installed, or has no such name. Called from any thread.
  void* find(const char* symbol) const;
  // Of a variable. In a program that is linked to the library as well the linker may have moved it into the
  // program, from where the library reads it, too: that one is found.
  void* find_variable(const char* symbol) const;

 private:
  void* opened() const;

  const char* what_;
  const char* name_;
  const char* file_;
  Scope scope_;
  mutable std::atomic<void*> handle_ = nullptr;
};

// Called, and handed on, as the function is. Throws what LateLibrary::find() throws.
template <class Function>
class LateFunction {
 public:
  constexpr LateFunction(const LateLibrary& library, const char* name) : library_(library), name_(name) {}
  operator Function*() const {  // NOLINT(google-explicit-constructor): it stands for the function
    void* address = address_.load(std::memory_order_relaxed);
    if (!address) address_.store(address = library_.find(name_), std::memory_order_relaxed);
    return reinterpret_cast<Function*>(address);
  }

 private:
  const LateLibrary& library_;
  const char* name_;
  mutable std::atomic<void*> address_ = nullptr;
};

// A variable of the library, to be read.
template <class Value>
class LateValue {
 public:
  constexpr LateValue(const LateLibrary& library, const char* name) : library_(library), name_(name) {}
  operator const Value&() const {
    return *static_cast<const Value*>(library_.find_variable(name_));
  }  // NOLINT(google-explicit-constructor)

 private:
  const LateLibrary& library_;
  const char* name_;
};

}  // namespace superstep

// NOLINTBEGIN(cppcoreguidelines-macro-usage): declares a name of the library's in the namespace where it
// stands
#define SUPERSTEP_LATE(library, function) \
  inline constinit const ::superstep::LateFunction<decltype(::function)> function { library, #function }
#define SUPERSTEP_LATE_VALUE(library, variable)                                                    \
  inline constinit const ::superstep::LateValue<std::remove_cv_t<decltype(::variable)>> variable { \
    library, #variable                                                                             \
  }
// NOLINTEND(cppcoreguidelines-macro-usage)
