// A non-owning reference to a callable: two words, no allocation. The callable must outlive the call.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace superstep {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, Args...>)
      FunctionRef(F&& f)  // NOLINT(google-explicit-constructor): a view, converted at the call
      : object_(address_of(f)), call_([](void* object, Args... args) -> R {
          if constexpr (std::is_function_v<std::remove_reference_t<F>>)
            return reinterpret_cast<std::remove_reference_t<F>*>(object)(std::forward<Args>(args)...);
          else
            return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  // A function's address fits a void* wherever POSIX holds.
  template <class F>
  static void* address_of(F& f) {
    if constexpr (std::is_function_v<F>)
      return reinterpret_cast<void*>(&f);
    else
      return const_cast<void*>(static_cast<const void*>(std::addressof(f)));
  }

  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace superstep
